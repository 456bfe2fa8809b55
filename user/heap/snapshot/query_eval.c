/* Conditions are computed for all objects at once, each as a byte an object: what refers to what is one pass then. */
#include "base/large.h"
#include "heap/snapshot/owners.h"
#include "heap/snapshot/query.h"
#include "heap/snapshot/snapshot.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

enum { TEXT_PART = 4096 };

struct evaluation {
	const struct snapshot *s;
	uint32_t n;
	struct graph_dominators dominators; /* once they are needed */
	uint64_t *retained;
	struct err *e;
};

static uint8_t *eval(struct evaluation *v, const struct query *q);

static uint8_t *new_set(struct evaluation *v)
{
	uint8_t *set = calloc((size_t)v->n + 1, 1);

	if (!set)
		err_set(v->e, -ENOMEM, "out of memory");
	return set;
}

/* --- of the object itself --- */

static bool name_matches(const struct query *q, const regex_t *like, const char *name)
{
	if (q->op == QUERY_LIKE)
		return regexec(like, name, 0, NULL, 0) == 0;
	return query_is_named(name, q->text) == (q->op == QUERY_EQ);
}

static bool arena_matches(const struct query *q, const regex_t *like,
			  const struct heap_owner *owner)
{
	char name[HEAP_OWNER_NAME_MAX];

	heap_owner_name(owner, name);
	if (q->op == QUERY_LIKE)
		return regexec(like, name, 0, NULL, 0) == 0;
	return (strcmp(name, q->text) == 0) == (q->op == QUERY_EQ);
}

static bool place_matches(const struct query *q, const regex_t *like, const struct sites *sites,
			  const struct site *place)
{
	char name[SITE_NAME_MAX];

	if (q->op != QUERY_LIKE)
		return site_is_named(sites, place, q->text);
	place_name(sites, place, name);
	return regexec(like, name, 0, NULL, 0) == 0;
}

/* A stack is met by one of its frames; what has none meets nothing, and no `!=` either. */
static bool stack_matches(const struct query *q, const regex_t *like, const struct sites *sites,
			  uint32_t number)
{
	const struct site_stack *stack = &sites->stack[number];
	bool found = false;

	if (!number)
		return false;
	if (q->field == QUERY_SITE)
		found = place_matches(q, like, sites, &sites->site[stack->site]);
	for (uint32_t i = 0; q->field == QUERY_STACK && i < stack->n && !found; i++)
		found = place_matches(q, like, sites, &sites->frame[stack->first + i]);
	return found == (q->op != QUERY_NE);
}

/* Who allocated it, by stacks. */
static uint8_t *eval_site(struct evaluation *v, const struct query *q)
{
	const struct sites *sites = v->s->sites;
	_cleanup_(freep) bool *matches = calloc(sites->n_stacks + 1ul, sizeof(*matches));
	_cleanup_(freep) uint8_t *set = matches ? new_set(v) : NULL;
	regex_t like;

	if (!set) {
		err_set(v->e, -ENOMEM, "out of memory");
		return NULL;
	}
	if (q->op == QUERY_LIKE && regcomp(&like, q->text, REG_EXTENDED | REG_NOSUB) != 0) {
		err_set(v->e, -EINVAL, "\"%.200s\" is no regular expression", q->text);
		return NULL;
	}
	for (uint32_t i = 0; i < sites->n_stacks; i++)
		matches[i] = stack_matches(q, &like, sites, i);
	if (q->op == QUERY_LIKE)
		regfree(&like);
	for (uint32_t i = 0; i < v->n; i++)
		set[i] = matches[sites->stack_of[i]];
	return TAKE_PTR(set);
}

/* By types or arenas, of which there are few. */
static uint8_t *eval_name(struct evaluation *v, const struct query *q)
{
	const struct types *t = &v->s->types;
	const struct heap_blocks *b = &v->s->blocks;
	bool by_type = q->field == QUERY_TYPE;
	uint32_t n = by_type ? t->n : b->n_owners;
	_cleanup_(freep) bool *matches = calloc(n + 1ul, sizeof(*matches));
	_cleanup_(freep) uint8_t *set = matches ? new_set(v) : NULL;
	regex_t like;

	if (!set) {
		err_set(v->e, -ENOMEM, "out of memory");
		return NULL;
	}
	if (q->op == QUERY_LIKE && regcomp(&like, q->text, REG_EXTENDED | REG_NOSUB) != 0) {
		err_set(v->e, -EINVAL, "\"%.200s\" is no regular expression", q->text);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		matches[i] = by_type ? name_matches(q, &like, t->type[i].name)
				     : arena_matches(q, &like, &b->owners[i]);
	if (q->op == QUERY_LIKE)
		regfree(&like);
	for (uint32_t i = 0; i < v->n; i++)
		set[i] = matches[by_type ? t->of[i] : b->rows[i].owner < n ? b->rows[i].owner : n];
	return TAKE_PTR(set);
}

static int need_dominators(struct evaluation *v)
{
	if (v->retained || owners_retained(v->s, &v->dominators, &v->retained) == 0)
		return 0;
	return err_set(v->e, -ENOMEM, "out of memory");
}

static uint64_t field_of(const struct evaluation *v, enum query_field field, uint32_t i)
{
	const struct snapshot *s = v->s;

	switch (field) {
	case QUERY_SIZE:
		return snapshot_bytes(s, i);
	case QUERY_RETAINED:
		return v->retained[i];
	case QUERY_REFERENCES:
		return s->graph->first[i + 1] - s->graph->first[i];
	case QUERY_AGE:
		return s->sites->age_ms[i] == SITES_OLDER ? UINT64_MAX : s->sites->age_ms[i];
	case QUERY_REFERRERS:
		return s->reverse->first[i + 1] - s->reverse->first[i];
	default:
		return s->blocks.rows[i].addr;
	}
}

static bool number_matches(enum query_op op, uint64_t x, uint64_t y)
{
	switch (op) {
	case QUERY_NE:
		return x != y;
	case QUERY_LE:
		return x <= y;
	case QUERY_GE:
		return x >= y;
	case QUERY_LT:
		return x < y;
	case QUERY_GT:
		return x > y;
	default:
		return x == y;
	}
}

static uint8_t *eval_compare(struct evaluation *v, const struct query *q)
{
	_cleanup_(freep) uint8_t *set = NULL;

	if (q->field == QUERY_TYPE || q->field == QUERY_ARENA)
		return eval_name(v, q);
	if ((q->field == QUERY_SITE || q->field == QUERY_STACK || q->field == QUERY_AGE) &&
	    !v->s->sites) {
		err_set(v->e, -ENODATA,
			"who allocated what, and when, is known of the time in which that is traced: a snapshot that is taken with --trace SEC has it");
		return NULL;
	}
	if (q->field == QUERY_SITE || q->field == QUERY_STACK)
		return eval_site(v, q);
	if (q->field == QUERY_RETAINED && need_dominators(v) < 0)
		return NULL;
	set = new_set(v);
	for (uint32_t i = 0; set && i < v->n; i++)
		set[i] = number_matches(q->op, field_of(v, q->field, i), q->number);
	return TAKE_PTR(set);
}

static uint8_t *eval_contains(struct evaluation *v, const struct query *q)
{
	uint32_t offset, i = block_index_find(v->s->index, q->number, &offset);
	uint8_t *set;

	if (i == BLOCK_NONE) {
		err_set(v->e, -ENOENT, "no block in use has the address 0x%llx",
			(unsigned long long)q->number);
		return NULL;
	}
	set = new_set(v);
	if (set)
		set[i] = 1;
	return set;
}

/* Is the text among the bytes of a block? *ret_read: there are bytes. */
static bool has_text(const struct snapshot *s, uint32_t i, const char *text, bool *ret_read)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	uint64_t addr = s->blocks.rows[i].addr, end = addr + snapshot_bytes(s, i);
	size_t n = strlen(text);
	uint8_t part[TEXT_PART];

	/* Parts overlap, so that a text between two is in one of them. */
	while (addr + n <= end) {
		size_t len = end - addr < sizeof(part) ? end - addr : sizeof(part);

		if (!mem->read(mem->ctx, addr, part, len))
			return false;
		*ret_read = true;
		if (memmem(part, len, text, n))
			return true;
		addr += len - n + 1;
	}
	return false;
}

static uint8_t *eval_text(struct evaluation *v, const struct query *q)
{
	_cleanup_(freep) uint8_t *set = new_set(v);
	bool read = false;

	if (!*q->text || strlen(q->text) > TEXT_PART / 2) {
		err_set(v->e, -EINVAL, "text: wants between 1 and %d bytes", TEXT_PART / 2);
		return NULL;
	}
	for (uint32_t i = 0; set && i < v->n; i++)
		set[i] = has_text(v->s, i, q->text, &read);
	if (set && v->n && (!read || (v->s->stored && v->s->facts.contents != FILE_CONTENTS_ALL))) {
		err_set(v->e, -ENODATA,
			"the snapshot has no contents to look for a text in: one that is written with --contents all has");
		return NULL;
	}
	return TAKE_PTR(set);
}

static uint8_t *eval_lost(struct evaluation *v)
{
	const struct snapshot *s = v->s;
	uint8_t *set = graph_reached(s->graph, s->graph_roots, s->n_roots);

	for (uint32_t i = 0; set && i < v->n; i++)
		set[i] = !set[i];
	if (!set)
		err_set(v->e, -ENOMEM, "out of memory");
	return set;
}

/* --- of others --- */

/* Those at the other end of edges from such a one, in either direction. */
static uint8_t *eval_neighbours(struct evaluation *v, const struct graph *g, const uint8_t *of)
{
	uint8_t *set = new_set(v);

	for (uint32_t i = 0; set && i < v->n; i++)
		for (uint64_t k = g->first[i]; of[i] && k < g->first[i + 1]; k++)
			set[g->edges[k].to] = 1;
	return set;
}

static uint8_t *eval_reachable(struct evaluation *v, const uint8_t *of)
{
	_cleanup_(freep) struct graph_root *roots = calloc((size_t)v->n + 1, sizeof(*roots));
	uint8_t *set;
	uint64_t n = 0;

	for (uint32_t i = 0; roots && i < v->n; i++)
		if (of[i])
			roots[n++] = (struct graph_root){ i, 0 };
	set = roots ? graph_reached(v->s->graph, roots, n) : NULL;
	if (!set)
		err_set(v->e, -ENOMEM, "out of memory");
	return set;
}

/* Each after its dominator: what holds for that holds for it. */
static uint8_t *eval_retained_by(struct evaluation *v, const uint8_t *of)
{
	uint8_t *set = need_dominators(v) == 0 ? new_set(v) : NULL;

	if (!set)
		return NULL;
	memcpy(set, of, v->n);
	for (uint32_t i = 0; i < v->dominators.n_reached; i++) {
		uint32_t node = v->dominators.order[i], by = v->dominators.of[node];

		if (by < v->n)
			set[node] |= set[by];
	}
	return set;
}

/* --- */

/* Of both sides, in the left one. */
static uint8_t *eval_both(struct evaluation *v, const struct query *q)
{
	_cleanup_(freep) uint8_t *left = eval(v, q->left);
	_cleanup_(freep) uint8_t *right = left ? eval(v, q->right) : NULL;

	if (!right)
		return NULL;
	for (uint32_t i = 0; i < v->n; i++)
		left[i] = q->kind == QUERY_AND ? left[i] & right[i] : left[i] | right[i];
	return TAKE_PTR(left);
}

static uint8_t *eval_of_left(struct evaluation *v, const struct query *q)
{
	_cleanup_(freep) uint8_t *of = eval(v, q->left);

	if (!of)
		return NULL;
	switch (q->kind) {
	case QUERY_REFERS_TO:
		return eval_neighbours(v, v->s->reverse, of);
	case QUERY_REFERRED_BY:
		return eval_neighbours(v, v->s->graph, of);
	case QUERY_REACHABLE:
		return eval_reachable(v, of);
	case QUERY_RETAINED_BY:
		return eval_retained_by(v, of);
	default:
		for (uint32_t i = 0; i < v->n; i++)
			of[i] = !of[i];
		return TAKE_PTR(of);
	}
}

static uint8_t *eval(struct evaluation *v, const struct query *q)
{
	switch (q->kind) {
	case QUERY_COMPARE:
		return eval_compare(v, q);
	case QUERY_CONTAINS:
		return eval_contains(v, q);
	case QUERY_LOST:
		return eval_lost(v);
	case QUERY_HAS_TEXT:
		return eval_text(v, q);
	case QUERY_AND:
	case QUERY_OR:
		return eval_both(v, q);
	default:
		return eval_of_left(v, q);
	}
}

int query_objects(const struct query *q, const struct snapshot *s, uint8_t **ret_set, struct err *e)
{
	struct err own = { 0 };
	struct evaluation v = { .s = s, .n = (uint32_t)s->blocks.n, .e = e ? e : &own };

	*ret_set = eval(&v, q);
	graph_dominators_fini(&v.dominators);
	large_free(v.retained);
	return *ret_set ? 0 : v.e->code;
}
