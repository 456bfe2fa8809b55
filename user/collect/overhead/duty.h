/*
 * How much of the time each source is attached, so that all that a service does keeps to its limit: the controller of `memscope serve`.
 * Pure arithmetic, in percent of one CPU.
 *
 * What a source costs is proportional to the part of the time that it is attached, 2^-shift, and its events are counted all the
 * time: so the shifts that fit follow from one measurement, and there is nothing to approach step by step. The source that costs most
 * gives way first; one that takes less than DUTY_SMALL of the room stays as it is, for where the others have given way as far as they can
 * the limit would be passed without it, too. More is allowed again only if it would fit into DUTY_BACK of the limit, and has for
 * DUTY_QUIET decisions in a row: so a load that varies by less than that moves nothing to and fro.
 *
 * What cannot be less (`fixed`: the process itself, its children, what follows processes) comes first; DUTY_LEAST of the limit is
 * for the sources in any case, because one that is allowed nothing reports nothing. Of that comes off what sources in slices cost however
 * short these are (`floor`: programs that stay attached, and return at once).
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_DUTY_H
#define MEMSCOPE_COLLECT_OVERHEAD_DUTY_H

#include <stdbool.h>
#include <stdint.h>

enum duty_source { DUTY_ONCPU, DUTY_WAITS, DUTY_GROWTH, N_DUTIES };

#define DUTY_USE   0.9 /* of the limit, to have room for what comes suddenly */
#define DUTY_BACK  0.6
#define DUTY_QUIET 20
#define DUTY_LEAST 0.25
#define DUTY_SMALL 0.25 /* of the room for the sources */

/* Zero-initialise, set the first two. */
struct duty {
	double limit;
	uint32_t shift_max[N_DUTIES]; /* 0: it cannot be less */
	uint32_t shift[N_DUTIES];
	uint32_t quiet[N_DUTIES]; /* decisions in a row for which less would have done */
};

/* `full`: what each source would cost if it were attached all of the time. true: a shift has changed. */
bool duty_decide(struct duty *d, double fixed, double floor, const double full[N_DUTIES]);
/* What the sources cost with these shifts. */
double duty_percent(const struct duty *d, const double full[N_DUTIES]);

#endif
