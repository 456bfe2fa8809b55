/*
 * Moments and stretches of time as people write them, for what was gathered in the past.
 *
 *   2026-11-22T19:50[:30][Z|+01:00]   also with a blank for the T; local time unless it says otherwise
 *   2026-11-22                        its begin
 *   19:50[:30]                        the last time that it was so: today, or yesterday
 *   20261122-195000[-2]               as in names of files
 *   @1795373400                       seconds since the Epoch
 *   -30m                              before now: s, m, h, d
 *   now
 */
#ifndef MEMSCOPE_BASE_MOMENT_H
#define MEMSCOPE_BASE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The `len` bytes at `text`, in ns since the Epoch; `now_ns` likewise. -EINVAL: none of these. */
int moment_parse(const char *text, size_t len, int64_t now_ns, int64_t *ret_ns);
/* Of a stretch that begins at `from_ns`: a time of day is the first one after it. */
int moment_parse_end(const char *text, size_t len, int64_t now_ns, int64_t from_ns,
		     int64_t *ret_ns);
/* "30m": s, m, h, d. -EINVAL; 0 is none. */
int stretch_parse(const char *text, size_t len, int64_t *ret_ns);

struct moment_text {
	char s[40];
};

/* 2026-11-22T19:50:00, in local time, as it is understood above. */
struct moment_text moment_text(int64_t ns);
/* The same for people; of the day of `now_ns` the time of day alone: "19:50:00". */
struct moment_text moment_short(int64_t ns, int64_t now_ns);

#endif
