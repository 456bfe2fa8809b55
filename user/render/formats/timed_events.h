/*
 * A profile's value as events in the order of time, for formats that have a time with each sample.
 *
 * What a sample has in a bin of time (model/sample_times.h) is one event, or as many as were counted. Where in
 * its bin an event was is not known: those of a bin are spread over it in equal steps, in the order of samples. A
 * profile without times of this value has an event per sample, spread so over its duration, which means nothing:
 * `timed` is false.
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

/* Of value type `type`; values up to `most_apart` are that many events of 1. 0 or -ENOMEM; timed_events_fini() in either case. */
int timed_events_make(const struct profile *p, uint32_t type, int64_t most_apart,
		      struct timed_events *ret);
void timed_events_fini(struct timed_events *e);

#endif
