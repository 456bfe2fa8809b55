/*
 * The rules that rows of all tables name, each stored once.
 *
 * A rule stays while a table names it. One that nobody names keeps its place, and can be named
 * again, until the place is needed; a walk that is under way may still read it, so it is not
 * overwritten before MS_POOL_GRACE_NS have gone by.
 */
#ifndef MEMSCOPE_UNWIND_SHARED_RULES_H
#define MEMSCOPE_UNWIND_SHARED_RULES_H

#include "abi.h"
#include "base/hash.h"

#include <stddef.h>
#include <stdint.h>

struct shared_rule {
	struct ms_rule rule;
	uint32_t ix;              /* its place                                          */
	uint32_t refs;            /* tables that name it                                */
	uint64_t idle_ns;         /* since when nobody does                             */
	struct shared_rule *older, *newer;  /* of those that nobody names, by idle_ns   */
	UT_hash_handle hh;
};

struct shared_rules {
	char *rules;              /* borrowed: what walks read */
	size_t stride;
	uint32_t n, max;          /* places in use, in all     */
	struct shared_rule **by_ix;
	struct shared_rule *by_rule;
	struct shared_rule *oldest, *newest;
};

/*
 * `rules`: room for `max` rules, `stride` bytes apart, at least MS_RULE_FIRST of them. Writes those
 * that every set begins with, which stay for ever. -ENOMEM, -EINVAL.
 */
int shared_rules_init(struct shared_rules *s, void *rules, uint32_t max, size_t stride);
void shared_rules_fini(struct shared_rules *s);

/*
 * The place of a rule, named once more. A rule of kind NONE, END, FP or BAD is the fixed one of its
 * kind. Full (or out of memory): MS_RULE_IX_BAD, -ENOSPC.
 */
int shared_rules_get(struct shared_rules *s, const struct ms_rule *rule, uint64_t now_ns, uint32_t *ret_ix);
/* A table that named it is gone. */
void shared_rules_put(struct shared_rules *s, uint32_t ix, uint64_t now_ns);

#endif
