/*
 * When to forget a record that the kernel sends only once: a stack, who ended a wait. It is asked for again after
 * some rounds without use, and forgotten a round later if it neither came nor was used: forgetting at once would lose totals that name it
 * and are already under way.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_RECORD_AGE_H
#define MEMSCOPE_COLLECT_STREAM_RECORD_AGE_H

#include <stdint.h>

struct record_age {
	uint32_t used;  /* round of the last use */
	uint32_t asked; /* round in which the kernel was asked to send it again; 0: it was not */
};

enum record_old { RECORD_NOT_OLD, RECORD_SEND_AGAIN, RECORD_FORGET };

/* `round` counts from 1. */
static inline enum record_old record_old(struct record_age *age, uint32_t round, uint32_t calls)
{
	if (age->asked && age->used < age->asked)
		return RECORD_FORGET;
	age->asked = 0;
	if (round - age->used <= calls)
		return RECORD_NOT_OLD;
	age->asked = round;
	return RECORD_SEND_AGAIN;
}

#endif
