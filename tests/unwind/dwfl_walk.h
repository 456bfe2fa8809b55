/*
 * The other unwinder: elfutils' libdw, over the same registers, stack copy and files.
 */
#ifndef MEMSCOPE_TESTS_UNWIND_DWFL_WALK_H
#define MEMSCOPE_TESTS_UNWIND_DWFL_WALK_H

#include "world.h"

struct dwfl_walk;

/* One for what a process has mapped now. NULL: `*ret_why` says why not. */
struct dwfl_walk *dwfl_walk_new(const struct process *p, const char **ret_why);
void dwfl_walk_free(void *walk);

/*
 * Frames as memscope has them: leaf first, MS_FRAME_EXACT where a signal interrupted. `*ret_end` is
 * NULL where libdw came to the outermost frame, or to a return address that it cannot read; else what
 * stopped it. `*ret_below`: it wanted memory below sp, which is not in the copy.
 */
uint32_t dwfl_walk_stack(struct dwfl_walk *walk, const struct sample *s, uint64_t *frames,
			 uint32_t max, const char **ret_end, bool *ret_below);

#endif
