/*
 * A difference (analyse/diff.h) as text, JSON and CSV. What is said of a row:
 *
 *   added, removed, more, less   it has changed, by the rule of diff.h
 *   as the rest                  of a profile of time: dearer or cheaper, as the whole is
 *   within noise                 it differs by no more than its 95 % interval
 *   uncertain                    by more, but not by enough for the rule
 *   little                       counted, and below the least change
 *   equal
 */
#ifndef MEMSCOPE_RENDER_TABLES_DIFF_REPORT_H
#define MEMSCOPE_RENDER_TABLES_DIFF_REPORT_H

#include "analyse/diff.h"
#include "base/err.h"
#include "base/sink.h"
#include "render/shown.h"

/* One scalar of two runs, or the means of several; NAN where a run does not say. */
struct diff_scalar {
	const char *text, *key, *unit;
	double value[2];
	double low[2], high[2];  /* of estimates; NAN: exact */
	bool by_sum;             /* of a program's whole work: not compared per second */
	double seconds[2];       /* not 0: of these many seconds, so per second as well */
};

struct diff_report {
	const char *name[2];           /* what was given */
	const char *source;            /* of runs: oncpu, …; NULL */
	const struct diff *diff;       /* NULL: there is no profile to compare */
	const struct diff_opts *opts;
	struct shown shown;
	uint32_t rows;                 /* at most, of each table */
	double seconds[2];             /* not 0: how long each took, for which it is scaled unasked */
	bool after_scalars;            /* what one run a side says of noise has been said */
};

/* Do two durations, in seconds, differ by so much (5 %) that sums over them are not compared as they are? 0: not known. */
bool diff_lengths_differ(double before, double after);

/* `several`: they are means of several runs, and their intervals those of the means. */
void diff_scalars_text(const struct diff_scalar *scalars, uint32_t n, const char *const names[2],
		       bool several, struct sink *out);
int diff_text_write(const struct diff_report *r, struct sink *out, struct err *e);

/* The members of one JSON object, without its brackets, so that several reports make one. */
int diff_json_write(const struct diff_report *r, struct sink *out, struct err *e);
void diff_scalars_json(const struct diff_scalar *scalars, uint32_t n, struct sink *out);

/* One line a row: function or stack, module, self and total before and after, noise, p, what. */
int diff_csv_write(const struct diff_report *r, struct sink *out, struct err *e);

#endif
