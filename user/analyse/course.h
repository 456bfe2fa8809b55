/*
 * What the course of a program's memory says: does it leak, or load, or breathe. Two verdicts, kept
 * apart: the plain rule of two end points that existing scripts use, and one of the whole series.
 */
#ifndef MEMSCOPE_ANALYSE_COURSE_H
#define MEMSCOPE_ANALYSE_COURSE_H

#include "analyse/series.h"

#include <stdint.h>

/*
 * The plain rule. Growth from the first value to the last: over 50 % is a potential leak, 20 to 50 %
 * is to be monitored, less is healthy.
 */
enum plain_kind { PLAIN_HEALTHY, PLAIN_MONITOR, PLAIN_WARNING };

struct plain_verdict {
	enum plain_kind kind;
	double percent; /* of the first value; 0 where that is 0 */
};

struct plain_verdict plain_verdict(double first, double last);
const char *plain_name(enum plain_kind k);  /* healthy, monitor, warning: for programs to read */
const char *plain_words(enum plain_kind k); /* "warning, potential leak" */

enum course_kind {
	COURSE_SHORT,     /* too few points to tell                                           */
	COURSE_FLAT,      /* nothing that matters beside its noise                            */
	COURSE_SETTLED,   /* rose, and then rose no more: a program that loads, a cache fills */
	COURSE_STEPPED,   /* another level at once, up or down, and that is kept              */
	COURSE_SAWTOOTH,  /* up and down between bounds that stay: a collector, a work load   */
	COURSE_SHRINKING, /* gives memory back                                                */
	COURSE_GROWING,   /* rises still at the end: a leak, as far as numbers can tell       */
	N_COURSE_KINDS,
};

const char *course_name(enum course_kind k); /* one word, lower case: for programs to read */

/* What is too little to matter: this share of the median, and no less than this. */
#define COURSE_PART    0.02
#define COURSE_MIN_KB  512
#define COURSE_POINTS  12 /* fewer are COURSE_SHORT */

struct course {
	enum course_kind kind;
	struct series_line all;   /* a line through everything                               */
	struct series_line tail;  /* COURSE_GROWING, _SHRINKING: through what it was judged by:
				   * the last piece, or the low points of a saw               */
	double span_s;            /* from the first point to the last                        */
	double since_s;           /* the last piece's begin, since the first point           */
	double changed;           /* how much higher the last level is than the first        */
	double jump, jump_s;      /* the largest step between two pieces, and when; 0: none  */
	uint32_t falls;           /* how often it fell far                                   */
	uint32_t n_changes;
	double changes_s[SERIES_PIECES]; /* when its course changed, since the first point   */
	double matters;           /* what was too little to matter: as the values            */
};

/*
 * Of `n` points, values in kB:
 *
 * - It is a saw if, beside a line through it, it falls and rises again by a quarter of its range three
 *   times or more, and most legs are as high as more than half of it (of noise they are not). A saw
 *   grows if the line through its low points does.
 * - Otherwise it is cut into pieces (series_pieces). It grows or shrinks if the last piece, a quarter
 *   of the whole or longer, does: by what matters, with a slope whose interval leaves out 0, and in
 *   its later half hardly slower (what comes to rest slows down). It
 *   has stepped if most of what it changed by was jumps between pieces; it has settled if it came to
 *   another level otherwise.
 */
void course_of(const struct point *p, uint32_t n, struct course *ret_course);

/* The reason in one sentence, values written as sizes. */
void course_reason(const struct course *c, char *buf, uint32_t size);

#endif
