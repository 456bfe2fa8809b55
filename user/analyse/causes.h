/*
 * What may be wrong with a program, each by evidence of its own: the facts of which summary_verdict() makes a
 * sentence. Several can be true. The thresholds are named at the top of causes.c.
 *
 *   leak          diagnosis.h
 *   gc            a quarter of the CPU time collects garbage, by functions; or it stood still for that a quarter of the time, by
 *                 its runtime's counters, which stripped programs have as well
 *   contended     waits for mutexes or the GIL at one place, summed over threads, fill a fifth of the run. Where those who
 *                 have the lock wait for something else meanwhile, that comes first, and the lock hands it on
 *                 or a task of asyncio waited for a lock of asyncio's at half of the looks, and four times one got it
 *   short of CPU  threads were ready to run, and other programs or a quota had the CPU: a quarter of the time they wanted
 *                 one and a fifth of the run, like any other reason to wait; a twentieth, where it is a quota, which
 *                 somebody has set. A service that runs briefly and often waits a little each time on a busy machine; who
 *                 had less than a twentieth of a CPU is short of it if it was pushed off its CPU for a fifth of the run.
 *                 Time that threads wait while their own program has the CPU is no evidence, nor what a single CPython
 *                 could not have used
 *   waiting       for disk, a socket, a pipe …: a fifth of the run; on average less than half of it, but for what only
 *                 holds up: disk, memory, locks of files and of the kernel, a stop
 *                 poll() for a single connection that the program has made is as good as read(): most libraries that
 *                 know a timeout wait so. Threads were seen there four times, and nearly always for one alone
 *                 an event loop, by its connections: in half of the looks at them a request waited in the program, and
 *                 one that it had sent since was outstanding; or, where nobody is seen to wait for it, one was
 *                 outstanding at four fifths of the looks, although answers came, each within 0.4 s. Who waits for news
 *                 is neither: a subscriber, a long poll, a queue's worker
 *   CPU-bound     it used 0.7 of a CPU. Beside that, a lesser wait is named only for what surely holds up
 */
#ifndef MEMSCOPE_ANALYSE_CAUSES_H
#define MEMSCOPE_ANALYSE_CAUSES_H

#include "analyse/summary.h"

#define CAUSES_MAX 3

struct causes {
	const struct run_summary *s;
	double share;                /* of one CPU; -1 unknown; of a host: of all            */
	double starved;              /* part of the time it wanted a CPU, 0 … 1 …            */
	int64_t starved_ns;          /* … and how much that is, of all threads                 */
	bool throttled;              /* … and most of that by a quota                        */
	double allocator, gc;        /* parts of the samples                                 */
	double gc_stopped;           /* part of the time that it stood still for collections, at least: by its runtime's counters */
	const struct site_row *lock; /* the largest contended wait, of threads or goroutines; or NULL */
	const struct site_row *under_lock; /* what those wait for who have that lock; NULL: not known, or for nothing */
	const struct site_row *wait; /* that; else the largest other that may hold it up; or NULL */
	enum wait_kind wait_kind;    /* of that: poll() for a single peer is a wait for a socket */
	double wait_share;           /* of the run                                           */
	const struct summary_peer *peer; /* for whom its event loop waits; NULL: nobody, or `wait` says it */
	const struct task_row *task_lock; /* tasks that wait for an asyncio lock; NULL: none, or no trouble */
	int64_t grown_kb;            /* 0: not growing                                       */
	char leak[280];              /* the diagnosis in a clause; "": none                  */
	enum verdict_kind kinds[CAUSES_MAX]; /* the most serious first; at least one         */
	uint32_t n;
};

/*
 * The lock that most of what was waited for at that place was for; NULL: it is not known, or they were several. Waits
 * of threads that switch often are estimates.
 */
const struct lock_row *causes_lock_row(const struct run_summary *s, const struct site_row *w);
/* The goroutines that a wait is of; NULL: it is of threads. */
const struct goroutine_row *causes_goroutines(const struct run_summary *s, const struct site_row *w);
void causes_find(const struct run_summary *s, struct causes *ret_causes);

#endif
