/*
 * Sets of labels that programs set themselves, by the numbers that the kernel gives them (bpf/labels.bpf.h); and the processes
 * whose labels it reads. Go's and OpenTelemetry's, which find and read them, add them here.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_LABEL_SETS_H
#define MEMSCOPE_COLLECT_STREAM_LABEL_SETS_H

#include "collect/session/bpf_session.h"
#include "collect/stream/ingest.h"

struct label_sets;

enum { LABEL_SETS = 8192, LABEL_KEY_BYTES = 128 };

/* All are borrowed. NULL: out of memory. */
struct label_sets *label_sets_new(struct session *s, struct dict *dict, struct proc_table *procs);
/* Samples get them. */
void label_sets_begin(struct label_sets *sets, struct ingest *in);
void label_sets_free(struct label_sets *sets);
DEFINE_CLEANUP(struct label_sets *, label_sets_freep, label_sets_free)

bool label_sets_has(const struct label_sets *sets, const struct proc_id *proc, uint32_t number);
/* INGEST_OWN_LABELS labels at most. `counted`: it is one of the LABEL_SETS for which there is room, else the caller has counted it.
 * false: no room, which is counted. */
bool label_sets_add(struct label_sets *sets, const struct proc_id *proc, uint32_t number,
		    const struct label *labels, uint32_t n, bool counted);
/* The key of a program's label: those that memscope has itself keep their names, the program's are called app.NAME. */
string_id label_sets_key(struct label_sets *sets, const char *key);

/* struct lang_memory: of the process *(pid_t *)ctx. */
bool label_sets_read_memory(void *ctx, uint64_t addr, void *buf, size_t len);
/* How the kernel names a process that lives: known, or to be asked for. */
bool label_sets_name(struct label_sets *sets, struct proc *proc, struct proc_id *ret_id);
/* It has ended. */
void label_sets_ended(struct label_sets *sets, pid_t pid);

struct label_sets_stats {
	uint64_t sets, left_out; /* left_out: sets and processes */
};
struct label_sets_stats label_sets_stats(const struct label_sets *sets);

#endif
