/*
 * Writes one window's profiles (windows.c): in every format that has something to show, for each container in its own folder, and
 * what other components have of its time.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_WINDOW_WRITE_H
#define MEMSCOPE_RUN_OUTPUT_WINDOW_WRITE_H

#include "run/pipeline.h"

struct window_write {
	struct run *run;
	char prefix[50]; /* "_" and the word of a trigger, or "" */
	char stamp[32];
	int64_t lines_ns; /* CPU time that inlined calls and lines may take, as name_used() has it */
	bool lines_cut; /* … which was not enough for all of them                                */
	bool again;     /* it was tried before: what is pushed is pushed */
};

/* What failed first is what is said. */
struct window_outcome {
	int rc;
	struct err *e;
};
void window_outcome_add(struct window_outcome *o, int rc, const struct err *e);

/* Every file that can be written; returns the first error. */
int window_write_once(const struct window_write *w, const struct profile_now *now, struct err *e);
/* Where the disk is full older windows go, until this one fits; of one of a service that does not nothing is left. */
int window_write(struct window_write *w, const struct profile_now *now, struct err *e);

/* `rc`: how it was written, which is said first. */
int window_put_in_place(const struct window_write *w, int rc, struct err *e);

#endif
