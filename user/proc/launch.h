/*
 * Starts a program so that it can be watched from its first instruction.
 *
 *   launch_start()  a child waits before exec: its pid can be put among the targets
 *   launch_go()     exec; with a callback, the child is then held (ptrace) at every mapping of a
 *                   file until its own first instruction, so that probes are in place before the
 *                   constructors of its libraries allocate
 *
 * The hold ends at the entry point, and earlier when the program could notice it: with the first
 * thread or vfork (memory is shared, and so would the trap be), when it stops itself, when its
 * constructors run for longer than 2 s, when the caller's time is over, or when SIGINT, SIGTERM or
 * SIGHUP is pending for us (the caller has them blocked). Processes that it forks run free. What is
 * mapped later is for the caller to find.
 *
 * What asks for it (launch_on_entry) has the child once more where the hold ends, at its first instruction.
 *
 * The child is let go of completely before launch_go() returns: no tracer stays on it.
 */
#ifndef MEMSCOPE_PROC_LAUNCH_H
#define MEMSCOPE_PROC_LAUNCH_H

#include "base/cleanup.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch;

/* `argv` is borrowed until launch_go(). SIGCHLD is set to its default, and back in the child. */
int launch_start(char *const *argv, struct launch **ret_launch, struct err *e);
pid_t launch_pid(const struct launch *l);
/*
 * Before launch_go(): `entered` is called when the dynamic linker is done and the program is held at its own
 * first instruction, traced by us, with TRACESYSGOOD and EXITKILL alone; an error ends it, and is that of
 * launch_go(). launch_entered(): whether it came to that, which it does not where the hold ended earlier.
 */
void launch_on_entry(struct launch *l, int (*entered)(void *ctx, pid_t pid, struct err *e),
		     void *ctx);
bool launch_entered(const struct launch *l);
/*
 * `held` may be NULL: no tracing; nor is there any where the system forbids it. `until_ns`
 * (CLOCK_MONOTONIC, 0: no limit) ends the hold, not the program. A command that cannot be run is an
 * error (-ENOENT, -EACCES …) that names it.
 */
int launch_go(struct launch *l, void (*held)(void *ctx, pid_t pid), void *ctx, uint64_t until_ns,
	      struct err *e);
/* Ended, but somebody else took its status (or this process ignores SIGCHLD). */
#define LAUNCH_STATUS_UNKNOWN (-1)
/* Whether the child has ended, without waiting; its wait status or LAUNCH_STATUS_UNKNOWN. */
bool launch_ended(struct launch *l, int *ret_status);
/* A child that was never let go is killed; one that runs is left alone. */
void launch_free(struct launch *l);
DEFINE_CLEANUP(struct launch *, launch_freep, launch_free)

/* The program of a command, as execvp() looks for it: open for reading, and where it is; -1: it is not there. */
int launch_open_program(const char *name, char path[PATH_MAX]);

#endif
