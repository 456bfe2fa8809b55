/*
 * Labels that Go programs set themselves (runtime/pprof), as labels of their samples.
 *
 * The kernel sends the address of each set once; what it has is read in the process then, which is soon after. A set that has gone by
 * then is counted.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_GO_LABELS_H
#define MEMSCOPE_COLLECT_STREAM_GO_LABELS_H

#include "collect/stream/drain.h"
#include "collect/stream/label_sets.h"

struct go_labels;

/* All are borrowed. NULL: out of memory. */
struct go_labels *go_labels_new(struct label_sets *sets, struct drain *d, struct dict *dict,
				struct proc_table *procs);
void go_labels_free(struct go_labels *g);
DEFINE_CLEANUP(struct go_labels *, go_labels_freep, go_labels_free)

/* A process is there, or runs another program: is it one of Go's? false: the kernel has not named it yet, ask again. */
bool go_labels_look(struct go_labels *g, pid_t pid);

struct go_labels_stats {
	uint64_t processes, sets, gone;
	uint32_t untested; /* a version that was never tried; 0: none */
	uint64_t unread;   /* files whose reading failed */
	char unread_why[256];
};
struct go_labels_stats go_labels_stats(const struct go_labels *g);

#endif
