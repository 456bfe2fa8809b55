/*
 * What the summary of a run says, but for its files: all are named, and each component has reported.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_FACTS_H
#define MEMSCOPE_RUN_OUTPUT_FACTS_H

#include "run/run.h"
#include "symbolize/debug_package.h"
#include "symbolize/call_types.h"

enum { FACTS_TOP = 10 };

struct facts {
	struct run *r;
	struct run_summary s; /* what it points to is below, and the components' */
	struct summary_process *processes;
	struct summary_group groups[GROUPS_MAX];
	struct summary_source sources[N_SOURCES + 1];
	struct summary_drop drops[N_STATS + 5];
	struct process_row by_process[FACTS_TOP];
	struct debug_package packages[8]; /* of symbols.worst */
	uint64_t stats[N_STATS];
	struct ingest_stats in;
};

/* `f` is all zeros before. A failure leaves what facts_fini() takes. */
int facts_gather(struct facts *f, struct run *r, struct err *e);
void facts_fini(struct facts *f);

/* Files of the run's processes. */
struct symbolize_opts output_files(struct run *r);
/* What calls return pointers to (call_types.h). 0 or -ENOMEM. */
int output_call_types(struct run *r, const location_id *calls, uint32_t n, call_type_fn fn, void *ctx);

#endif
