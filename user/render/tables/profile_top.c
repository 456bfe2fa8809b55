/* A profile's functions, by self and by total, with how sure that is. */
#include "render/formats/text.h"
#include "render/tables/profile_parts.h"

#include "base/saturate.h"
#include "model/about.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	RANGE_COLUMNS = 24,
	NARROW = 100, /* columns: intervals leave no room for the other value */
};

/* Never more than there are functions: what a caller asks for is not to be allocated. */
static uint32_t most_rows(const struct profile *p, uint32_t rows)
{
	const struct dict *d = profile_dict(p);
	uint64_t n = 1;

	for (uint32_t i = 1; i <= dict_location_count(d); i++)
		n += 1 + dict_location_get(d, (location_id){ i })->n_lines;
	return rows && n >= rows ? rows : (uint32_t)n;
}

int profile_top_make(struct report *r)
{
	uint32_t cap = most_rows(r->p, r->o->rows), type = r->shown.type;

	r->rows = calloc(2 * (cap + 1ul), sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	r->n_self = top_functions(r->p, type, TOP_BY_SELF, r->rows, cap);
	if (r->n_self < 0)
		return r->n_self;
	r->n_total = top_functions(r->p, type, TOP_BY_TOTAL, r->rows + r->n_self, cap);
	if (r->n_total < 0)
		return r->n_total;
	return top_intervals(r->p, type, r->rows, (uint32_t)(r->n_self + r->n_total),
			     r->whole > r->part ? (double)r->whole : 0, &r->sums);
}

/* What no row has. */
struct rest {
	uint32_t self_functions, total_functions;
	int64_t self;
};

static int find_rest(const struct report *r, struct rest *ret_rest)
{
	uint32_t cap = most_rows(r->p, 0);
	_cleanup_(freep) struct top_row *all = calloc(cap + 1ul, sizeof(*all));
	int by_self = all ? top_functions(r->p, r->shown.type, TOP_BY_SELF, all, cap) : -ENOMEM;
	int by_total = all ? top_functions(r->p, r->shown.type, TOP_BY_TOTAL, all, cap) : -ENOMEM;

	if (by_self < 0 || by_total < 0)
		return -ENOMEM;
	*ret_rest = (struct rest){ (uint32_t)(by_self - r->n_self),
				   (uint32_t)(by_total - r->n_total), r->part };
	for (int i = 0; i < r->n_self; i++)
		ret_rest->self = subtract_saturating(ret_rest->self, r->rows[i].self);
	return 0;
}

/* --- text --- */

static const char *self_heading(const struct report *r)
{
	static const char *const headings[] = {
		[SITE_NONE] = "Top by self",
		[SITE_ALLOCATION] =
			"Top by self: allocation sites, without the allocator's own frames",
		[SITE_WAIT] = "Top by self: wait sites, without the kernel's own frames",
	};

	return headings[r->sites];
}

static int64_t whole(double v)
{
	return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* Of a file that may say anything. */
static struct unit_text samples_text(double n)
{
	return unit_count(whole(round(fmax(0, n))));
}

void profile_range(struct report *r, const struct interval *i, uint32_t width)
{
	int64_t low = whole(i->low), high = whole(i->high);
	bool bytes = strcmp(r->shown.unit, "bytes") == 0;
	char text[200];
	uint32_t columns;

	if (low == high && high < INT64_MAX)
		snprintf(text, sizeof(text), "counted");
	else if (bytes)
		snprintf(text, sizeof(text), "%s", unit_bytes_range(low, high, false).s);
	else
		snprintf(text, sizeof(text), "%s to %s", shown_text(&r->shown, NULL, low).s,
			 shown_text(&r->shown, NULL, high).s);
	columns = text_columns(text);
	strbuf_printf(&r->out, "%*s%s", columns < width ? (int)(width - columns) : 0, "", text);
}

/* Which of its columns a table has. */
struct columns {
	bool self, total, range;
	uint32_t used;
};

static struct columns choose_columns(const struct report *r, bool by_self)
{
	bool range = r->sums.estimated, narrow = r->style.width && r->style.width < NARROW;
	struct columns c = { .self = by_self || !range || !narrow,
			     .total = !by_self || !range || !narrow,
			     .range = range };

	c.used = (uint32_t)(c.self + c.total) * (r->style.value_columns + 8) +
		 (c.range ? RANGE_COLUMNS + 1 : 0) + 1;
	return c;
}

static void add_range(struct report *r, const struct interval *i)
{
	if (i)
		profile_range(r, i, RANGE_COLUMNS);
	else
		strbuf_printf(&r->out, "%*s", RANGE_COLUMNS, "95% interval");
	strbuf_putc(&r->out, ' ');
}

static void table_heading(struct report *r, const struct columns *c, const char *heading,
			  bool by_self)
{
	strbuf_putc(&r->out, '\n');
	row_heading(&r->out, &r->style, heading);
	if (c->self)
		row_value_heading(&r->out, &r->style, "self");
	if (c->range && by_self)
		add_range(r, NULL);
	if (c->total)
		row_value_heading(&r->out, &r->style, "total");
	if (c->range && !by_self)
		add_range(r, NULL);
	strbuf_puts(&r->out, " function\n");
}

/* "12 more functions", with their self time where it adds up. */
static void table_rest(struct report *r, const struct columns *c, uint32_t functions,
		       const int64_t *self)
{
	char text[100] = "";

	if (functions)
		snprintf(text, sizeof(text), "(%s more function%s)", unit_count(functions).s,
			 functions > 1 ? "s" : "");
	else if (self && *self > 0)
		snprintf(text, sizeof(text), "(without a stack)");
	if (!*text)
		return;
	if (c->self && self)
		row_value(&r->out, &r->style, *self, r->whole);
	else if (c->self)
		row_no_value(&r->out, &r->style);
	strbuf_printf(&r->out, "%*s", c->range ? RANGE_COLUMNS + 1 : 0, "");
	if (c->total)
		row_no_value(&r->out, &r->style);
	strbuf_putc(&r->out, ' ');
	row_note(&r->out, &r->style, text);
}

static void text_table(struct report *r, const char *heading, const struct top_row *rows, int n,
		       bool by_self, const struct rest *rest)
{
	struct columns c = choose_columns(r, by_self);

	table_heading(r, &c, heading, by_self);
	for (int i = 0; i < n; i++) {
		if (c.self)
			row_value(&r->out, &r->style, rows[i].self, r->whole);
		if (c.range && by_self)
			add_range(r, &rows[i].self_interval);
		if (c.total)
			row_value(&r->out, &r->style, rows[i].total, r->whole);
		if (c.range && !by_self)
			add_range(r, &rows[i].total_interval);
		strbuf_putc(&r->out, ' ');
		row_name(&r->out, &r->style, c.used, rows[i].name, rows[i].module);
	}
	table_rest(r, &c, by_self ? rest->self_functions : rest->total_functions,
		   by_self ? &rest->self : NULL);
	if (by_self)
		row_unselected(r, false);
}

/* How sure the figures are, and of what. */
static void add_sureness(struct report *r)
{
	const struct value_error *e = &r->sums.all.error;
	bool blocks = r->sites == SITE_ALLOCATION && strcmp(r->shown.unit, "count") == 0;
	bool bursts = value_error_has_groups(e) || e->below != 0 || e->above != 0;

	if (!r->sums.estimated) {
		bool sampled = profile_about(r->p, ABOUT_ESTIMATE, 0) && r->sites != SITE_WAIT;

		strbuf_printf(&r->out, "\n%s\n",
			      sampled && r->part ? "These are estimates whose errors are not known."
			      : sampled          ? "No sample is among these values."
			      : r->sites == SITE_WAIT
				      ? "Every wait was measured: no sampling error."
				      : "Every value is a count: no sampling error.");
		return;
	}
	strbuf_puts(&r->out, "\n95% intervals: ");
	if (r->sums.on_cpu)
		strbuf_printf(&r->out, "shares by %s samples (Wilson).",
			      samples_text(e->samples).s);
	else if (bursts)
		strbuf_printf(&r->out,
			      "variation between bursts, and the error of the tracing cost%s (%s "
			      "calls seen).%s",
			      e->v > 0 ? "; of samples, their sampling error" : "",
			      samples_text(e->samples).s,
			      fabs(e->below) + fabs(e->above) > 0.5 * (double)r->part
				      ? "\nThe latter is common to all rows: shares are surer than "
					"amounts."
				      : "");
	else
		strbuf_printf(&r->out, "sampling error of %s samples.", samples_text(e->samples).s);
	if (blocks && !bursts)
		strbuf_puts(&r->out, " Where sizes are mixed, those of counts of blocks hold "
				     "nearer 90%.");
	strbuf_putc(&r->out, '\n');
}

static void write_text(struct report *r, const struct rest *rest)
{
	text_table(r, self_heading(r), r->rows, r->n_self, true, rest);
	text_table(r, "Top by total", r->rows + r->n_self, r->n_total, false, rest);
	add_sureness(r);
}

/* --- JSON --- */

void profile_json_ends(struct strbuf *b, const char *key, const struct interval *i)
{
	strbuf_printf(b, ",\"%s_low\":%.15g,\"%s_high\":%.15g", key, i->low, key, i->high);
}

static void json_table(struct report *r, const char *key, const struct top_row *rows, int n)
{
	struct strbuf *b = &r->out;

	strbuf_printf(b, ",\n\"%s\":[", key);
	for (int i = 0; i < n; i++) {
		strbuf_puts(b, i ? ",\n{\"function\":\"" : "\n{\"function\":\"");
		text_add(b, TEXT_JSON, rows[i].name, UINT32_MAX);
		strbuf_puts(b, "\",\"module\":\"");
		text_add(b, TEXT_JSON, rows[i].module, UINT32_MAX);
		strbuf_printf(b, "\",\"self\":%" PRId64 ",\"total\":%" PRId64, rows[i].self,
			      rows[i].total);
		if (r->sums.estimated) {
			profile_json_ends(b, "self", &rows[i].self_interval);
			profile_json_ends(b, "total", &rows[i].total_interval);
			strbuf_printf(b, ",\"samples\":%.15g", rows[i].samples);
		}
		strbuf_puts(b, "}");
	}
	strbuf_puts(b, "]");
}

static void write_json(struct report *r, const struct rest *rest)
{
	json_table(r, "by_self", r->rows, r->n_self);
	json_table(r, "by_total", r->rows + r->n_self, r->n_total);
	strbuf_printf(&r->out, ",\n\"not_shown\":{\"functions\":%u,\"self\":%" PRId64 "}",
		      rest->self_functions, rest->self);
}

/* --- CSV --- */

static int compare_by_self(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

static void csv_interval(struct strbuf *b, const struct interval *i, bool known)
{
	if (known)
		strbuf_printf(b, ",%.15g,%.15g", i->low, i->high);
	else
		strbuf_puts(b, ",,");
}

static void write_csv(struct report *r)
{
	/* By total has every function that has anything. */
	struct top_row *rows = r->rows + r->n_self;
	int64_t rest = r->whole;

	qsort(rows, (size_t)r->n_total, sizeof(*rows), compare_by_self);
	for (int i = 0; i < r->n_total; i++) {
		profile_csv_begin(r);
		text_add_csv(&r->out, rows[i].name);
		strbuf_putc(&r->out, ',');
		text_add_csv(&r->out, rows[i].module);
		strbuf_printf(&r->out, ",%" PRId64 ",%" PRId64, rows[i].self, rows[i].total);
		csv_interval(&r->out, &rows[i].self_interval, r->sums.estimated);
		csv_interval(&r->out, &rows[i].total_interval, r->sums.estimated);
		strbuf_putc(&r->out, '\n');
		rest = subtract_saturating(rest, rows[i].self);
	}
	if (rest <= 0)
		return;
	profile_csv_begin(r);
	strbuf_printf(&r->out, "\"\",\"\",%" PRId64 ",,,,,\n", rest);
}

int profile_top_write(struct report *r)
{
	struct rest rest;
	int rc;

	if (r->form == REPORT_CSV) {
		write_csv(r);
		return 0;
	}
	rc = find_rest(r, &rest);
	if (rc < 0)
		return rc;
	if (r->form == REPORT_JSON)
		write_json(r, &rest);
	else
		write_text(r, &rest);
	return 0;
}
