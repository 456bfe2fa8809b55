/*
 * Which of a profile's values folded text and pictures show, and how: the one place that decides.
 *
 *   asked for (--value NAME)             that one
 *   else the profile's default type      except that a CPU profile (samples/count beside a time)
 *                                        shows samples: the shares are the same, and a sample
 *                                        count says how far to trust them
 *
 * Folded text needs whole numbers that people recognise: nanoseconds are written as microseconds,
 * as off-CPU tools do; everything else as it is. Pictures write values for people (units.h),
 * or, when a countname is given, the folded number with that name.
 */
#ifndef MEMSCOPE_RENDER_SHOWN_H
#define MEMSCOPE_RENDER_SHOWN_H

#include "base/units.h"
#include "model/profile.h"

struct shown {
	uint32_t type;        /* index of the value type                              */
	const char *unit;     /* as pprof spells it                                   */
	const char *noun;     /* after a bare count: "samples"; "" for times and bytes */
	const char *title;    /* of a picture: "On-CPU", "Live memory"                */
	const char *palette;  /* what "auto" stands for (palette.h)                   */
	int64_t divisor;      /* value / divisor is the folded number                 */
};

/* `wanted`: index of a value type, or -1 to choose as above. */
struct shown shown_pick(const struct profile *p, int wanted);

/* The folded number, rounded to the nearest. */
int64_t shown_number(const struct shown *s, int64_t value);
/*
 * For people, to be followed by shown_noun(): "12.3 ms" and "", "1,234" and "samples", or the
 * folded number and the countname. Both may hold other people's bytes: escape them.
 */
struct unit_text shown_text(const struct shown *s, const char *countname, int64_t value);
const char *shown_noun(const struct shown *s, const char *countname);

#endif
