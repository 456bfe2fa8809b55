#include "heap/graph/group_retained.h"

#include <stdlib.h>

/* Of each node: where it and those that it dominates are in the tree's order from the top. */
struct numbers {
	uint32_t *size; /* how many it dominates, itself among them       */
	uint32_t *at;   /* its own place                                 */
	uint32_t *next; /* of those directly below it: the next one's    */
	uint32_t *order;
};

static void number(const struct graph_dominators *d, struct numbers *x)
{
	uint32_t top = 0;

	for (uint32_t i = d->n_reached; i-- > 0;) {
		uint32_t node = d->order[i];

		x->size[node]++;
		if (d->of[node] < d->n)
			x->size[d->of[node]] += x->size[node];
	}
	for (uint32_t i = 0; i < d->n_reached; i++) {
		uint32_t node = d->order[i],
			 *next = d->of[node] < d->n ? &x->next[d->of[node]] : &top;

		x->at[node] = *next;
		*next += x->size[node];
		x->next[node] = x->at[node] + 1;
		x->order[x->at[node]] = node;
	}
}

uint64_t *graph_group_retained(const struct graph_dominators *d, const uint64_t *retained,
			       const uint32_t *group_of, uint32_t n_groups)
{
	uint32_t *room = calloc((size_t)d->n + 1, 4 * sizeof(*room));
	uint32_t *end = calloc((size_t)n_groups + 1, sizeof(*end));
	uint64_t *sums = calloc((size_t)n_groups + 1, sizeof(*sums));
	struct numbers x = { room, room + d->n, room + 2 * (size_t)d->n, room + 3 * (size_t)d->n };

	if (room && end && sums) {
		number(d, &x);
		/* From the top: within one of its group until its last one has passed. */
		for (uint32_t i = 0; i < d->n_reached; i++) {
			uint32_t node = x.order[i], group = group_of[node];

			if (i < end[group])
				continue;
			sums[group] += retained[node];
			end[group] = i + x.size[node];
		}
	} else {
		free(sums);
		sums = NULL;
	}
	free(room);
	free(end);
	return sums;
}
