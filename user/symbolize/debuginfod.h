/*
 * Debug info from debuginfod servers, if the user has configured any (DEBUGINFOD_URLS; never
 * otherwise: a request reveals to a server what runs here).
 *
 * Through libdebuginfod, loaded when it is first needed: it brings a dozen libraries along, and
 * most runs do not need them. It keeps what it fetched in the user's cache, as for gdb and perf.
 *
 * All fetches of a run together take at most DEBUGINFOD_SECONDS_MAX, or DEBUGINFOD_MAXTIME if that
 * is less. A server that does not answer is not tried again.
 */
#ifndef MEMSCOPE_SYMBOLIZE_DEBUGINFOD_H
#define MEMSCOPE_SYMBOLIZE_DEBUGINFOD_H

#include "base/cleanup.h"

enum { DEBUGINFOD_SECONDS_MAX = 20 };

struct debuginfod;

/* NULL: not configured, not installed, or out of memory. */
struct debuginfod *debuginfod_new(void);
void debuginfod_free(struct debuginfod *s);
DEFINE_CLEANUP(struct debuginfod *, debuginfod_freep, debuginfod_free)

/*
 * The debug info of a build ID (lower-case hex): a descriptor, or -errno. -ENOENT: no server has
 * it; -ETIMEDOUT: no time is left, or a server failed before.
 */
int debuginfod_open(struct debuginfod *s, const char *build_id);

#endif
