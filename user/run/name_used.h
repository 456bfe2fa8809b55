/*
 * Names for what a child of memscope writes: of the places that its profiles have, and of no others, as a run knows those
 * of days. What it finds goes to the parent (place_names.h), so that the next child need not find it again.
 */
#ifndef MEMSCOPE_RUN_NAME_USED_H
#define MEMSCOPE_RUN_NAME_USED_H

#include "base/err.h"
#include "run/run.h"

enum { NAMES_BACK_MAX = 50000 }; /* places of a run that keep their names, some 8 MB */

/* Before the fork: memory for names that both have. A descriptor, or -errno. */
int names_back_open(struct err *e);

#define LINES_ANY_NS INT64_MAX

/*
 * In the child, where all other places count as named from then on. `profiles`: n of them, each may be NULL. `names_fd`:
 * names_back_open(), or -1. `lines_ns`: CPU time that debug info may take; LINES_ANY_NS: as much as it needs; 0: it is not read.
 * 1: some of it was left unread for that (0: there was none, where no place's file has any). Names of places that it may say more
 * about go back, too, and serve children that may not read it either.
 */
int name_used(struct run *r, struct profile *const *profiles, uint32_t n, int64_t lines_ns,
	      int names_fd, struct err *e);

/* In the parent, when the child has ended well. */
void names_back_take(int names_fd, struct run *r);

#endif
