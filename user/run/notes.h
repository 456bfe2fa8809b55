/*
 * Sentences for the summary, and whether something that was asked for is missing (exit status 3).
 */
#ifndef MEMSCOPE_RUN_NOTES_H
#define MEMSCOPE_RUN_NOTES_H

#include <stdbool.h>
#include <stdint.h>

struct run;

enum { NOTES_MAX = 64 };

struct notes {
	char *text[NOTES_MAX];
	bool missing[NOTES_MAX]; /* this one says that something asked for was unavailable */
	uint32_t n;
	bool partial;            /* something asked for was unavailable                    */
};

/* A sentence for the summary; `missing`: something asked for was unavailable. */
void run_note(struct run *r, bool missing, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* On a terminal, one line that the next one takes the place of: what a run does before it samples, and after. NULL: nothing. */
void run_progress(const struct run *r, const char *doing);
/* With -v, on stderr. */
void run_say(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void notes_fini(struct notes *n);

#endif
