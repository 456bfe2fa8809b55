#include "heap/graph/leaks.h"

#include "base/large.h"

/*
 * Strongly connected parts of what is not reached (Tarjan 1972, with a stack of our own). A part that is entered from no
 * other one is a direct leak.
 */
struct search {
	const struct graph *g;
	const uint8_t *reached;
	uint32_t *seen; /* order in which nodes were met, from 1 on; 0: not yet  */
	uint32_t *low;  /* least that its part can reach; once closed: its part  */
	uint32_t *way;  /* of the search                                        */
	uint32_t *open; /* nodes whose part is not closed                       */
	uint64_t *next;
	uint8_t *closed;
	uint32_t n_seen, n_open;
};

static void search_fini(struct search *s)
{
	large_free(s->seen);
	large_free(s->low);
	large_free(s->way);
	large_free(s->open);
	large_free(s->next);
	large_free(s->closed);
}

static bool search_init(struct search *s)
{
	size_t n = (size_t)s->g->n + 1;

	s->seen = large_alloc(n, sizeof(*s->seen));
	s->low = large_alloc(n, sizeof(*s->low));
	s->way = large_alloc(n, sizeof(*s->way));
	s->open = large_alloc(n, sizeof(*s->open));
	s->next = large_alloc(n, sizeof(*s->next));
	s->closed = large_alloc(n, 1);
	return s->seen && s->low && s->way && s->open && s->next && s->closed;
}

static void meet(struct search *s, uint32_t node)
{
	s->seen[node] = s->low[node] = ++s->n_seen;
	s->next[node] = s->g->first[node];
	s->open[s->n_open++] = node;
}

/* Its part is whole: those that were met since, which are named after the least of them. */
static void close_part(struct search *s, uint32_t top)
{
	uint32_t from = s->n_open, least = top;

	do {
		from--;
		if (s->open[from] < least)
			least = s->open[from];
	} while (s->open[from] != top);
	for (uint32_t i = from; i < s->n_open; i++) {
		s->closed[s->open[i]] = 1;
		s->low[s->open[i]] = least;
	}
	s->n_open = from;
}

static void find_parts_from(struct search *s, uint32_t start)
{
	uint32_t depth = 0;

	meet(s, start);
	s->way[depth++] = start;
	while (depth) {
		uint32_t from = s->way[depth - 1], to;

		if (s->next[from] == s->g->first[from + 1]) {
			depth--;
			if (s->low[from] == s->seen[from])
				close_part(s, from);
			else if (s->low[from] < s->low[s->way[depth - 1]])
				s->low[s->way[depth - 1]] = s->low[from];
			continue;
		}
		to = s->g->edges[s->next[from]++].to;
		if (s->reached[to] || s->closed[to])
			continue;
		if (!s->seen[to]) {
			meet(s, to);
			s->way[depth++] = to;
		} else if (s->seen[to] < s->low[from]) {
			s->low[from] = s->seen[to];
		}
	}
}

/* Parts that another one points to are indirect. */
static void tell_apart(const struct search *s, uint8_t *leaks)
{
	for (uint32_t i = 0; i < s->g->n; i++)
		if (!s->reached[i])
			leaks[i] = s->low[i] == i ? GRAPH_LEAK_DIRECT : GRAPH_LEAK_INDIRECT;
	for (uint32_t from = 0; from < s->g->n; from++)
		for (uint64_t e = s->g->first[from]; !s->reached[from] && e < s->g->first[from + 1];
		     e++) {
			uint32_t to = s->g->edges[e].to;

			if (!s->reached[to] && s->low[to] != s->low[from])
				leaks[s->low[to]] = GRAPH_LEAK_INDIRECT;
		}
}

uint8_t *graph_leaks(const struct graph *g, const uint8_t *reached)
{
	_cleanup_(search_fini) struct search s = { .g = g, .reached = reached };
	_cleanup_(freep) uint8_t *leaks = calloc((size_t)g->n + 1, 1);

	if (!leaks || !search_init(&s))
		return NULL;
	for (uint32_t i = 0; i < g->n; i++)
		if (!reached[i] && !s.seen[i])
			find_parts_from(&s, i);
	tell_apart(&s, leaks);
	return TAKE_PTR(leaks);
}
