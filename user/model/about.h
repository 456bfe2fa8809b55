/*
 * What a profile says of itself: lines among pprof's comments. pprof shows comments in its legend (those that
 * begin with a '#' it does not) and keeps them when it merges, and so do we.
 *
 *   Target: redis-server (pid 5099)    what was profiled; one line each
 *   Title: before the fix              record --title
 *   Label: env=prod                    record --label, one line each
 *   End: target                        the run was over when its target ended: its sums are of all of the target's work
 *   Estimate: every call in 57 bursts, 0.52 % of 10 s    how the values were estimated; none: they were counted,
 *                                      or are samples as pprof knows them. Merged profiles have a line of each
 *   Peak: 0.512345 s after the start   of a profile of sites: when most was in use
 *   Selected: stacks with parse        it is a part of another, by --filter, --ignore, --focus
 *   Times are instructions: 10^9 are shown as a second    not seconds; none: they are
 */
#ifndef MEMSCOPE_MODEL_ABOUT_H
#define MEMSCOPE_MODEL_ABOUT_H

#include "model/profile.h"

enum about { ABOUT_TARGET, ABOUT_TITLE, ABOUT_LABEL, ABOUT_END, ABOUT_ESTIMATE, ABOUT_PEAK, ABOUT_SELECTED, ABOUT_TIMES };

/* "Target: " */
const char *about_prefix(enum about what);
/* The `i`th line of that kind, without its prefix; NULL: there are not so many. Lives as long as `p`. */
const char *profile_about(const struct profile *p, enum about what, uint32_t i);

#endif
