#include "unwind/shared_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ms_rule *rule_at(const struct shared_rules *s, uint32_t ix)
{
	return (struct ms_rule *)(s->rules + ix * s->stride);
}

int shared_rules_init(struct shared_rules *s, void *rules, uint32_t max, size_t stride)
{
	static const struct ms_rule first[MS_RULE_FIRST] = {
		[MS_RULE_IX_NONE] = { .kind = MS_RULE_NONE },
		[MS_RULE_IX_END] = { .kind = MS_RULE_END },
		[MS_RULE_IX_FP] = { .kind = MS_RULE_FP },
		[MS_RULE_IX_BAD] = { .kind = MS_RULE_BAD },
	};

	if (max < MS_RULE_FIRST || stride < sizeof(struct ms_rule))
		return -EINVAL;
	if (max > MS_ROW_RULE_MASK)
		max = MS_ROW_RULE_MASK;
	*s = (struct shared_rules){ .rules = rules, .stride = stride, .max = max };
	s->by_ix = calloc(max, sizeof(*s->by_ix));
	if (!s->by_ix)
		return -ENOMEM;
	for (; s->n < MS_RULE_FIRST; s->n++)
		*rule_at(s, s->n) = first[s->n];
	return 0;
}

void shared_rules_fini(struct shared_rules *s)
{
	hash_free(s->by_rule);
	free(s->by_ix);
	*s = (struct shared_rules){ 0 };
}

static void idle_remove(struct shared_rules *s, struct shared_rule *r)
{
	if (r->older)
		r->older->newer = r->newer;
	else
		s->oldest = r->newer;
	if (r->newer)
		r->newer->older = r->older;
	else
		s->newest = r->older;
	r->older = r->newer = NULL;
}

static void idle_add(struct shared_rules *s, struct shared_rule *r, uint64_t now_ns)
{
	r->idle_ns = now_ns;
	r->older = s->newest;
	r->newer = NULL;
	if (s->newest)
		s->newest->newer = r;
	else
		s->oldest = r;
	s->newest = r;
}

/* A place for one more: a new one, else that of the rule that nobody has named for longest. */
static struct shared_rule *new_entry(struct shared_rules *s, uint64_t now_ns)
{
	struct shared_rule *r = s->oldest;

	if (s->n < s->max) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return NULL;
		r->ix = s->n++;
		s->by_ix[r->ix] = r;
		return r;
	}
	if (!r || now_ns < r->idle_ns + MS_POOL_GRACE_NS)
		return NULL;
	idle_remove(s, r);
	HASH_DELETE(hh, s->by_rule, r);
	return r;
}

int shared_rules_get(struct shared_rules *s, const struct ms_rule *rule, uint64_t now_ns,
		     uint32_t *ret_ix)
{
	static const uint32_t fixed[MS_N_RULE_KINDS] = {
		[MS_RULE_NONE] = MS_RULE_IX_NONE + 1,
		[MS_RULE_END] = MS_RULE_IX_END + 1,
		[MS_RULE_FP] = MS_RULE_IX_FP + 1,
		[MS_RULE_BAD] = MS_RULE_IX_BAD + 1,
	};
	struct shared_rule *r;

	*ret_ix = MS_RULE_IX_BAD;
	if (rule->kind >= MS_N_RULE_KINDS)
		return 0;
	if (fixed[rule->kind]) {
		*ret_ix = fixed[rule->kind] - 1;
		return 0;
	}
	HASH_FIND(hh, s->by_rule, rule, sizeof(*rule), r);
	if (!r) {
		r = new_entry(s, now_ns);
		if (!r)
			return -ENOSPC;
		r->rule = *rule;
		r->refs = 0;
		HASH_ADD(hh, s->by_rule, rule, sizeof(r->rule), r);
		if (!hash_added(r)) {
			/* Out of memory: its place is lost. */
			s->by_ix[r->ix] = NULL;
			free(r);
			return -ENOSPC;
		}
		*rule_at(s, r->ix) = *rule;
	} else if (!r->refs) {
		idle_remove(s, r);
	}
	r->refs++;
	*ret_ix = r->ix;
	return 0;
}

void shared_rules_put(struct shared_rules *s, uint32_t ix, uint64_t now_ns)
{
	struct shared_rule *r = ix < s->max ? s->by_ix[ix] : NULL;

	if (r && r->refs && --r->refs == 0)
		idle_add(s, r, now_ns);
}
