/*
 * Starts a program so that it can be watched from its first instruction.
 *
 *   launch_start()  a child waits before exec: its pid can be put among the targets
 *   launch_go()     exec; with a callback, the child is then held (ptrace) at every mapping of a
 *                   file until its own first instruction, so that probes are in place before the
 *                   constructors of its libraries allocate
 *
 * The child is let go of completely before launch_go() returns: no tracer stays on it.
 */
#ifndef MEMSCOPE_COLLECT_LAUNCH_H
#define MEMSCOPE_COLLECT_LAUNCH_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct launch;

/* `argv` is borrowed until launch_go(). */
int launch_start(char *const *argv, struct launch **ret_launch, struct err *e);
pid_t launch_pid(const struct launch *l);
/*
 * `held` may be NULL: no tracing. A command that cannot be run is an error (-ENOENT, -EACCES …)
 * that names it.
 */
int launch_go(struct launch *l, void (*held)(void *ctx, pid_t pid), void *ctx, struct err *e);
/* Whether the child has ended, without waiting; its wait status. */
bool launch_ended(struct launch *l, int *ret_status);
/* A child that was never let go is killed; one that runs is left alone. */
void launch_free(struct launch *l);
DEFINE_CLEANUP(struct launch *, launch_freep, launch_free)

#endif
