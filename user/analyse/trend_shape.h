/*
 * The trend shape of a program's memory: does it leak, or load, or breathe. Two verdicts, kept
 * apart: the endpoint rule that existing scripts use, and one of the whole series.
 */
#ifndef MEMSCOPE_ANALYSE_TREND_SHAPE_H
#define MEMSCOPE_ANALYSE_TREND_SHAPE_H

#include "analyse/series.h"

#include <stdint.h>

/*
 * The endpoint rule. Growth from the first value to the last: over 50 % is a potential leak, 20 to
 * 50 % is to be monitored, less is healthy.
 */
enum plain_kind { PLAIN_HEALTHY, PLAIN_MONITOR, PLAIN_WARNING };

struct plain_verdict {
	enum plain_kind kind;
	double percent; /* of the first value; 0 where that is 0 */
};

struct plain_verdict plain_verdict(double first, double last);
const char *plain_name(enum plain_kind k);  /* healthy, monitor, warning: for programs to read */
const char *plain_words(enum plain_kind k); /* "warning, potential leak" */

enum trend_shape_kind {
	TREND_SHAPE_SHORT,     /* too few points */
	TREND_SHAPE_FLAT,      /* no change that matters beside its noise */
	TREND_SHAPE_SETTLED,   /* rose, then stayed: a program that loads, a cache that fills */
	TREND_SHAPE_STEPPED,   /* jumped to another level, up or down, and stayed */
	TREND_SHAPE_SAWTOOTH,  /* up and down between bounds that stay: a collector, a work load */
	TREND_SHAPE_SHRINKING, /* releases memory */
	TREND_SHAPE_GROWING,   /* still rising at the end: a leak, as far as numbers show */
	N_TREND_SHAPES,
};

const char *trend_shape_name(enum trend_shape_kind k); /* one word, lower case: for programs to read */

/* Changes too small to matter: this share of the median, and at least this. */
#define TREND_SHAPE_PART    0.02
#define TREND_SHAPE_MIN_KB  512
#define TREND_SHAPE_POINTS  12 /* fewer are TREND_SHAPE_SHORT */

struct trend_shape {
	enum trend_shape_kind kind;
	struct series_line all;   /* a line through everything                               */
	struct series_line tail;  /* TREND_SHAPE_GROWING, _SHRINKING: through the points that decided:
				   * the last piece, or the low points of a saw               */
	double span_s;            /* from the first point to the last                        */
	double since_s;           /* the last piece's begin, since the first point           */
	double changed;           /* how much higher the last level is than the first        */
	double jump, jump_s;      /* the largest step between two pieces, and when; 0: none  */
	uint32_t falls;           /* how often it fell far                                   */
	uint32_t n_changes;
	double changes_s[SERIES_PIECES]; /* when its shape changed, since the first point   */
	double matters;           /* the limit of what matters, in the unit of the values    */
};

/*
 * Of `n` points, values in kB:
 *
 * - It is a sawtooth if, relative to a line through it, it falls and rises again by a quarter of
 * its range three times or more, and most legs are as high as more than half of it (legs of noise
 * are not). A sawtooth grows if the line through its low points does.
 * - Otherwise it is cut into pieces (series_pieces). It grows or shrinks if the last piece, a
 * quarter of the whole or longer, does: by an amount that matters, with a slope whose interval
 * excludes 0, and hardly slower in its later half (what settles slows down). It has stepped if
 * jumps between pieces make up most of its change; it has settled if it reached another level
 * otherwise.
 */
void trend_shape_of(const struct point *p, uint32_t n, struct trend_shape *ret_shape);
/* The same, with another least of what matters than TREND_SHAPE_MIN_KB. */
void trend_shape_above(const struct point *p, uint32_t n, double least_kb,
		       struct trend_shape *ret_shape);

/* The reason in one sentence, values written as sizes. */
void trend_shape_reason(const struct trend_shape *c, char *buf, uint32_t size);

#endif
