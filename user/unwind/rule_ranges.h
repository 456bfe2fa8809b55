/*
 * Rules by address, while a table is made: a sorted list of places from which on a rule holds.
 * Sources of rules (CFI, Go's tables, listed symbols) make a list each, with RULE_RANGE_HOLE where they
 * know nothing, and are laid one over the other.
 */
#ifndef MEMSCOPE_UNWIND_RULE_RANGES_H
#define MEMSCOPE_UNWIND_RULE_RANGES_H

#include <stdint.h>
#include <stdlib.h>

#define RULE_RANGE_HOLE UINT32_MAX

struct rule_range {
	uint64_t vaddr;
	uint32_t rule;  /* number in the table's set */
};

struct rule_ranges {
	struct rule_range *m;
	uint32_t n, cap;
};

void rule_ranges_fini(struct rule_ranges *list);
/*
 * From `vaddr` on `rule` holds, whatever earlier calls said of it and what is above. A rule that
 * holds there already adds nothing. -ENOMEM, -EFBIG.
 */
int rule_ranges_add(struct rule_ranges *list, uint64_t vaddr, uint32_t rule);
/* What `over` says, and where it has holes, what `list` says; into `list`. -ENOMEM, -EFBIG. */
int rule_ranges_overlay(struct rule_ranges *list, const struct rule_ranges *over);
/* What `under` says, where `list` has holes. */
int rule_ranges_underlay(struct rule_ranges *list, const struct rule_ranges *under);
/* The rule at `vaddr`, RULE_RANGE_HOLE before the first mark. */
uint32_t rule_ranges_find(const struct rule_ranges *list, uint64_t vaddr);

#endif
