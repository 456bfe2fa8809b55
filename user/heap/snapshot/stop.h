/*
 * All threads of a process stopped at once, with their registers, and let go again.
 *
 * By PTRACE_SEIZE and PTRACE_INTERRUPT (ptrace(2)): no signal is sent, parents and waiters see nothing, system calls that
 * were interrupted begin again, a process that was stopped already stays stopped afterwards. When memscope dies, the kernel
 * lets every thread go by itself. Threads that begin while others are stopped are found by listing them until there are no new
 * ones. One that does not stop in time (in uninterruptible sleep) is counted: it touches no memory there, but its registers
 * are not known; it is let go when it stops.
 *
 * A traced thread that ends stays in its process until its tracer has waited for it; and a thread that executes another
 * program waits in the kernel until all others of its process are gone, while whoever seizes it waits for that
 * (cred_guard_mutex, ptrace_attach()). So ends are waited for whatever else is being done: in the handler of SIGCHLD.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_STOP_H
#define MEMSCOPE_HEAP_SNAPSHOT_STOP_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* XSAVE's area up to AVX-512's registers: 2688 bytes. */
enum { STOP_REGS_MAX = 40, STOP_FP_MAX = 2688 };

struct stopped_thread {
	pid_t tid;
	int signal;                    /* that was on its way to it: goes on its way with the release */
	bool is_ours, is_stopped;      /* traced by us; and stopped                                   */
	bool in_call;                  /* of the system                                              */
	uint32_t n_regs;
	uint64_t regs[STOP_REGS_MAX];  /* general ones, as the kernel orders them                   */
	uint32_t fp_bytes, core_fp_bytes;
	uint8_t fp[STOP_FP_MAX];       /* floating-point ones, as NT_PRFPREG has them (core_fp_bytes), and wider ones behind them */
	uint64_t pc, sp, tp;           /* … three of them; tp: the thread pointer                    */
};

struct stopped {
	pid_t pid;
	struct stopped_thread *threads;
	uint32_t n, room;
	pid_t highest;                 /* of them                                                    */
	uint32_t after_found; /* the row behind the last one that was looked for */
	uint32_t n_missed;             /* that did not stop in time                                  */
	uint64_t began_ns, ended_ns;   /* CLOCK_MONOTONIC: of the first stop, of the last release    */
	uint64_t stopped_ns, releases_ns; /* … of the last stop, of the first release                */
};

/*
 * One at a time, in a process of its own: SIGCHLD has a handler from here to stop_fini().
 *
 * Waits at most `patience_ms` for threads to stop. -ESRCH: no such process; -EBUSY: another tracer, which is named,
 * has it; -EPERM: it may not be traced; -ENOMEM. Nothing stays stopped then.
 */
int stop_all(pid_t pid, uint32_t patience_ms, struct stopped *s, struct err *e);
/* Lets all go that are stopped; threads and registers stay known. */
void stop_release(struct stopped *s);
/* Another thread that has been seized but does not stop: it is let go when it does. -ENOMEM. */
int stop_add_late(struct stopped *s, pid_t tid);
void stop_fini(struct stopped *s);

/* Nobody may trace any process here, not even root: kernel.yama.ptrace_scope is 3. */
bool stop_is_barred(void);
#define STOP_BARRED "kernel.yama.ptrace_scope is 3: nobody may trace any process until the machine is started anew"

#endif
