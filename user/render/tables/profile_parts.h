/* Inside a report of a profile (profile_text.h): what its views share. */
#ifndef MEMSCOPE_RENDER_TABLES_PROFILE_PARTS_H
#define MEMSCOPE_RENDER_TABLES_PROFILE_PARTS_H

#include "analyse/sites.h"
#include "analyse/top.h"
#include "base/strbuf.h"
#include "render/shown.h"
#include "render/tables/profile_text.h"

enum report_form { REPORT_TEXT, REPORT_JSON, REPORT_CSV };

/* How rows of text look. */
struct row_style {
	const struct shown *shown;
	uint32_t value_columns; /* of a value, without its percentage             */
	uint32_t width;         /* of a line, 0: without a limit                  */
	bool colour;
};

/* A profile on its way into a report. */
struct report {
	const struct profile *p;
	const struct profile_text_opts *o;
	enum report_form form;
	struct shown shown;
	struct row_style style;
	enum site_kind sites;
	int64_t part;         /* sum of what is positive                   */
	int64_t whole;        /* what percentages are of                   */
	struct top_row *rows; /* PROFILE_TOP: by self, then by total       */
	int n_self, n_total;
	struct profile_sums sums;
	struct strbuf out;
};

/* --- rows of text (row_text.c) --- */

/* "  12.3 µs  12.5%" in value_columns + 8 columns; spaces where a value is not said. */
void row_value(struct strbuf *out, const struct row_style *s, int64_t value, int64_t whole);
void row_no_value(struct strbuf *out, const struct row_style *s);
/* The heading over such a value. */
void row_value_heading(struct strbuf *out, const struct row_style *s, const char *text);
/*
 * Two spaces and a function's name, with its image (NULL or "": not said), to the end of a line of which `used` columns are
 * taken. Without an image where a line has no room for both.
 */
void row_name(struct strbuf *out, const struct row_style *s, uint32_t used, const char *name, const char *module);
/* A line of its own, that stands out; a row that is no function. */
void row_heading(struct strbuf *out, const struct row_style *s, const char *text);
void row_note(struct strbuf *out, const struct row_style *s, const char *text);
/* What a selection left out, as a row behind those that were selected. */
void row_unselected(struct report *r, bool two_values);

/* --- views: 0 or -ENOMEM --- */

int profile_top_make(struct report *r);
int profile_top_write(struct report *r);
int profile_tree_write(struct report *r);
int profile_callers_write(struct report *r);
int profile_labels_write(struct report *r);

/* "source,type,unit,": what a line of CSV begins with. */
void profile_csv_begin(struct report *r);
void profile_json_ends(struct strbuf *b, const char *key, const struct interval *i);
/* "1.1 MiB to 1.4 MiB", to the right of `width` columns. */
void profile_range(struct report *r, const struct interval *i, uint32_t width);

#endif
