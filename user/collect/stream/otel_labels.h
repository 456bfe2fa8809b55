/*
 * What threads publish for profilers (user/lang/otel.h), as labels of their samples and waits: trace_id, span_id, attributes.
 *
 * A process that publishes a context is found by the name of a mapping, which may be made at any time: processes are looked at when
 * they begin or map a library, and again and again, ever more seldom.
 *
 * There may be a span for each request, and a set of labels for each span. The numbers of the first OTEL_SPANS spans that
 * samples saw are kept, and as many that waits saw; from then on samples, or waits, get attributes alone.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_OTEL_LABELS_H
#define MEMSCOPE_COLLECT_STREAM_OTEL_LABELS_H

#include "collect/stream/drain.h"
#include "collect/stream/label_sets.h"

struct otel_labels;

enum { OTEL_SPANS = 8192, OTEL_PROCESSES = 4096 };

/* All are borrowed. NULL: out of memory. */
struct otel_labels *otel_labels_new(struct label_sets *sets, struct drain *d, struct dict *dict,
				    struct proc_table *procs);
void otel_labels_free(struct otel_labels *o);
DEFINE_CLEANUP(struct otel_labels *, otel_labels_freep, otel_labels_free)

/* A process is there, or runs another program (`fresh`), or has mapped a file. `newborn`: it has begun, or runs that, just now. */
void otel_labels_process(struct otel_labels *o, pid_t pid, bool fresh, bool newborn, uint64_t now_ns);
void otel_labels_ended(struct otel_labels *o, pid_t pid);
/* Looks at processes that are due, for 0.5 % of a CPU at most. */
void otel_labels_tick(struct otel_labels *o, uint64_t now_ns);

struct otel_labels_stats {
	uint32_t processes;      /* whose threads are read                                        */
	uint32_t no_variable;    /* that publish a context, and no otel_thread_ctx_v1 that can be found */
	uint32_t other_schema;   /* … or a schema that is not known: */
	char schema[64];
	uint64_t cut;            /* records with more attributes, or longer, than are read     */
	uint64_t unknown_keys;   /* attributes whose number the process has no name for        */
	bool spans_full[2];      /* of samples, of waits                                        */
	uint64_t left_out;       /* processes: there are more than OTEL_PROCESSES              */
	uint64_t unread;         /* files whose reading failed                                 */
	char unread_why[256];
};
struct otel_labels_stats otel_labels_stats(const struct otel_labels *o);

#endif
