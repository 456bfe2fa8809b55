/*
 * Labels that Go programs set themselves (runtime/pprof), as labels of their samples.
 *
 * The kernel numbers sets of labels and says each number once; what it stands for is read in the process then, which
 * is soon after. A set that has gone by then, and those beyond GO_LABEL_SETS, are counted.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_GO_LABELS_H
#define MEMSCOPE_COLLECT_STREAM_GO_LABELS_H

#include "collect/session/bpf_session.h"
#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"

struct go_labels;

enum { GO_LABEL_SETS = 8192 };

/* All are borrowed. NULL: out of memory. */
struct go_labels *go_labels_new(struct session *s, struct drain *d, struct dict *dict,
				struct proc_table *procs);
/* Samples get them. */
void go_labels_begin(struct go_labels *g, struct ingest *in);
void go_labels_free(struct go_labels *g);
DEFINE_CLEANUP(struct go_labels *, go_labels_freep, go_labels_free)

/* A process is there, or runs another program: is it one of Go's? false: the kernel has not named it yet, ask again. */
bool go_labels_look(struct go_labels *g, pid_t pid);

struct go_labels_stats {
	uint64_t processes, sets, gone, left_out;
	uint32_t untested; /* a version that was never tried; 0: none */
};
struct go_labels_stats go_labels_stats(const struct go_labels *g);

#endif
