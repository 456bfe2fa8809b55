/*
 * How many things a service leaves out because it passes its limit: by what does not follow from the events of its sources, its process and
 * its children; or by all that it costs, when sources can give no more way. Pure arithmetic, in percent of one CPU. duty.h has the sources'
 * part: what is left here is theirs, DUTY_LEAST of the limit at least.
 *
 * What a saving brings shows in the mean of a minute only after that minute: so one more is made after a minute of decisions that agree. One
 * is taken back after as many as cover what comes from time to time, too: the writing of a window is a burst, and between two of them there
 * is always room.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_SAVING_H
#define MEMSCOPE_COLLECT_OVERHEAD_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#define SAVING_OVER  0.75 /* of the limit: beyond it a saving is made            */
#define SAVING_BACK  0.4  /* below it one is taken back: each saves a part only  */
#define SAVING_AGREE 60   /* decisions, of one second each                       */

/* Zero-initialise, set the first two. */
struct saving {
	double limit;
	uint32_t most;       /* savings that there are        */
	uint32_t burst;      /* decisions between two bursts, at least; 0: there are none */
	uint32_t made;       /* so many of them, in their order */
	uint32_t over, back; /* decisions in a row       */
};

/* `percent`: what that took of late. true: `made` has changed. */
bool saving_decide(struct saving *s, double percent);

#endif
