/*
 * The tracepoints of this kernel, as tracefs lists them: events/SYSTEM/NAME/id.
 *
 * Where tracefs is not mounted, it is mounted for this process alone, in no one's tree of files (fsmount(2)).
 */
#ifndef MEMSCOPE_COLLECT_EVENTS_TRACEFS_H
#define MEMSCOPE_COLLECT_EVENTS_TRACEFS_H

#include "base/err.h"

#include <stdint.h>

/* A descriptor of its folder `events`; -errno with a sentence. */
int tracefs_open(struct err *e);
/* Calls `each` for those that match both patterns (event_spec.h), in order of their names. Returns how many; -errno. `id`s are
 * those of struct perf_event_attr's config. */
typedef void (*tracefs_fn)(void *ctx, const char *system, const char *name, uint64_t id);
int tracefs_find(int events_fd, const char *system, const char *name, tracefs_fn each, void *ctx);

#endif
