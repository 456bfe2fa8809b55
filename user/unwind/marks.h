/*
 * Rules by address, while a table is made: a sorted list of places from which on a rule holds.
 * Sources of rules (CFI, Go's tables, listed symbols) make a list each, with MARK_HOLE where they
 * know nothing, and are laid one over the other.
 */
#ifndef MEMSCOPE_UNWIND_MARKS_H
#define MEMSCOPE_UNWIND_MARKS_H

#include <stdint.h>
#include <stdlib.h>

#define MARK_HOLE UINT32_MAX

struct mark {
	uint64_t vaddr;
	uint32_t rule;  /* number in the table's set */
};

struct marks {
	struct mark *m;
	uint32_t n, cap;
};

void marks_fini(struct marks *list);
/*
 * From `vaddr` on `rule` holds, whatever earlier calls said of it and what is above. A rule that
 * holds there already adds nothing. -ENOMEM, -EFBIG.
 */
int marks_add(struct marks *list, uint64_t vaddr, uint32_t rule);
/* What `over` says, and where it has holes, what `list` says; into `list`. -ENOMEM, -EFBIG. */
int marks_overlay(struct marks *list, const struct marks *over);
/* What `under` says, where `list` has holes. */
int marks_underlay(struct marks *list, const struct marks *under);
/* The rule at `vaddr`, MARK_HOLE before the first mark. */
uint32_t marks_find(const struct marks *list, uint64_t vaddr);

#endif
