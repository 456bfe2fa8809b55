/*
 * A profile's value as events in the order of time, for formats that have a time with each sample.
 *
 * What came in a bin of time (model/sample_times.h): counted samples of a stack are spread evenly over it, for readers
 * draw how many there were; any other value is one event at its middle. A profile without times of this value has an
 * event per sample, evenly over its duration in the order of samples, which means nothing: `timed` is false.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_TIMED_EVENTS_H
#define MEMSCOPE_RENDER_FORMATS_TIMED_EVENTS_H

#include "model/profile.h"

struct timed_event {
	int64_t ns;      /* after the profile's begin  */
	int64_t value;   /* above 0                     */
	uint32_t sample; /* index of the profile's     */
};

struct timed_events {
	struct timed_event *all; /* by time, then by sample */
	size_t n;
	bool timed;
};

/* Of value type `type`. 0 or -ENOMEM; timed_events_fini() in either case. */
int timed_events_make(const struct profile *p, uint32_t type, struct timed_events *ret);
void timed_events_fini(struct timed_events *e);

#endif
