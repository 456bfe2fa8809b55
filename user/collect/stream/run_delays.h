/*
 * Who ran while threads of the targets waited for a CPU, as bpf/runqueue.bpf.h adds it up.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_RUN_DELAYS_H
#define MEMSCOPE_COLLECT_STREAM_RUN_DELAYS_H

#include "collect/stream/drain.h"

enum run_delay_by {
	RUN_DELAY_PROCESS,   /* a process ran on the CPU that the thread then got     */
	RUN_DELAY_KERNEL,    /* a thread of the kernel did                            */
	RUN_DELAY_IDLE,      /* that CPU was idle: the wake-up was on its way         */
	RUN_DELAY_ELSEWHERE, /* the thread stood in the queue of another CPU before   */
	RUN_DELAY_UNKNOWN,   /* longer ago than the kernel's programs remember        */
};

struct run_delay_event {
	struct proc_id proc; /* whose threads waited                                  */
	enum run_delay_by by;
	struct proc_id other; /* of a process: that which ran; its own is possible. exec_id is 0 */
	char comm[16];       /* … its leader's name; a kernel thread's, without its number */
	uint64_t count, ns;
};

typedef void (*run_delay_fn)(void *ctx, const struct run_delay_event *event);

/* As totals are drained; before ingest_listen(). `d` and `ctx` are borrowed. NULL: out of memory. */
struct run_delays;
struct run_delays *run_delays_new(struct drain *d, run_delay_fn fn, void *ctx);
void run_delays_free(struct run_delays *r);
DEFINE_CLEANUP(struct run_delays *, run_delays_freep, run_delays_free)

#endif
