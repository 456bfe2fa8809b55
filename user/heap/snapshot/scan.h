/* Inside snapshot/: the words of a snapshot's memory, made into its graph and its roots. */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_SCAN_H
#define MEMSCOPE_HEAP_SNAPSHOT_SCAN_H

#include "heap/snapshot/snapshot.h"

/* `owned`: of each mapping, whether an allocator keeps its own notes there: those are no roots. -ENOMEM. */
int scan_references(struct snapshot *s);
int scan_roots(struct snapshot *s, const bool *owned);
/* Puts them into the order in which they are kept, and the graph's beside them. -ENOMEM. */
int scan_sort_roots(struct snapshot *s);

#endif
