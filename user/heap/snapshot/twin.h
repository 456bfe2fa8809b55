/*
 * A copy-on-write twin of a stopped process, so that it can go on while its memory is copied: one of its threads is made to
 * call clone(2) with no flags. The twin never runs. Its exit signal is 0, so the process sees no SIGCHLD, and waits for
 * any child do not find it; once it was killed, the process is made to reap it (wait4(2) with __WALL). One that has executed
 * another program since gets a SIGCHLD all the same (the kernel's do_notify_parent()).
 *
 * The kernel ends the twin when whoever made it dies; were it let go before that is arranged, it would end by itself. Either
 * way it is a zombie then until the process ends, since nobody has it reaped.
 *
 * Not in a twin: what the process shares with others goes on changing; memory with MADV_DONTFORK. Pages that the process
 * writes to meanwhile exist twice, in its control group's account: there has to be room for all of them.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_TWIN_H
#define MEMSCOPE_HEAP_SNAPSHOT_TWIN_H

#include "base/cleanup.h"
#include "base/err.h"
#include "heap/snapshot/stop.h"

struct twin;

/*
 * May `pid` have one, with `bytes` of private memory? Finds what making it needs; nothing is stopped or changed yet.
 * -EPERM: under seccomp; -ENOMEM: its group or the machine is too near its limit; -EOPNOTSUPP: not on this machine, or it
 * has no such code. A sentence for each.
 */
int twin_prepare(pid_t pid, uint64_t bytes, struct twin **ret_twin, struct err *e);

/* Makes it, from one of the stopped threads, which stay stopped. The calling thread is its tracer. */
int twin_make(struct twin *t, const struct stopped *stopped, struct err *e);
pid_t twin_pid(const struct twin *t);

/*
 * Kills it and has the process reap it, whose threads run, or are about to end. -EAGAIN: no thread could be borrowed
 * for that: it stays a zombie until the process ends. 0: gone, or there was none.
 */
int twin_end(struct twin *t, struct stopped *stopped);
void twin_free(struct twin *t);
DEFINE_CLEANUP(struct twin *, twin_freep, twin_free)

#endif
