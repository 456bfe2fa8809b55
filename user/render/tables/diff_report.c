#include "render/tables/diff_report.h"

#include "analyse/sites.h"
#include "base/strbuf.h"
#include "render/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_COLUMNS = 90, STACK_COLUMNS = 400, NAMED = 5 };

static int64_t whole(double v)
{
	return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)llround(v);
}

/* "+1.2 MiB", "−3", "0" */
static struct unit_text change_text(const struct shown *shown, double by)
{
	struct unit_text t, amount = shown_text(shown, NULL, whole(fabs(by)));

	if (!whole(by))
		return amount;
	snprintf(t.s, sizeof(t.s), "%s%.44s", by > 0 ? "+" : "-", amount.s);
	return t;
}

/* "+12.3 %", "new", "gone", "" */
static struct unit_text percent_text(double before, double after)
{
	struct unit_text t = { "" };

	if (before <= 0 || after <= 0)
		snprintf(t.s, sizeof(t.s), "%s", before == after ? "" : after > 0 ? "new" : "gone");
	else
		snprintf(t.s, sizeof(t.s), "%+.1f%%", (after - before) / before * 100);
	return t;
}

static bool is_counted(const struct diff *d)
{
	return d->noise == DIFF_COUNTED;
}

/* What is said of a row. */
static const char *verdict(const struct diff *d, const struct diff_row *row)
{
	double by = fabs(row->self[1] - row->self[0]);

	if (!row->changed)
		return by == 0                 ? "equal"
		       : is_counted(d)         ? "little"
		       : row->as_the_rest      ? "as the rest"
		       : by <= row->self_noise ? "within noise"
					       : "uncertain";
	if (row->total[0] <= 0)
		return "added";
	if (row->total[1] <= 0)
		return "removed";
	return row->self[1] > row->self[0] ? "more" : "less";
}

/* --- names --- */

/* Root first; what does not fit is left out at the root. */
static int add_stack(struct strbuf *b, const struct frame_tree *tree, uint32_t node,
		     enum text_form form)
{
	uint32_t depth = tree->nodes[node].depth;
	_cleanup_(freep) uint32_t *path = calloc(depth + 1ul, sizeof(*path));

	if (!path)
		return -ENOMEM;
	for (uint32_t i = depth; i > 0; i--) {
		path[i - 1] = node;
		node = tree->nodes[node].parent;
	}
	for (uint32_t i = 0; i < depth; i++) {
		const char *name = tree->nodes[path[i]].name;

		if (i)
			strbuf_putc(b, ';');
		text_add(b, form, *name ? name : "[unknown]", STACK_COLUMNS);
	}
	return 0;
}

static int add_name(struct strbuf *b, const struct diff *d, const struct diff_row *row)
{
	bool bare = row->module[0] == '[';

	if (row->node)
		return add_stack(b, d->tree, row->node, TEXT_FOLDED);
	text_add(b, TEXT_FOLDED, *row->name ? row->name : "[unknown]", NAME_COLUMNS);
	if (*row->module) {
		strbuf_puts(b, bare ? "  " : "  [");
		text_add(b, TEXT_FOLDED, row->module, 40);
		strbuf_puts(b, bare ? "" : "]");
	}
	return 0;
}

/* --- text --- */

bool diff_lengths_differ(double before, double after)
{
	return before > 0 && after > 0 && fabs(after - before) > 0.05 * fmax(before, after);
}

static struct unit_text seconds_text(double seconds)
{
	return unit_ns((int64_t)(seconds * 1e9));
}

static void add_scale(struct strbuf *b, const struct diff_report *r)
{
	const struct diff *d = r->diff;
	const char *to = r->opts->scale == DIFF_TOTALS ? "total" : "duration";

	if (r->opts->scale == DIFF_ABSOLUTE)
		return;
	if (r->seconds[0] > 0) {
		strbuf_printf(b, "\n  of unequal durations, %s and ",
			      seconds_text(r->seconds[0]).s);
		strbuf_printf(b, "%s (--absolute compares sums all the same):",
			      seconds_text(r->seconds[1]).s);
	}
	if (d->noise == DIFF_RUNS)
		strbuf_printf(b,
			      "\n  every run is scaled to the same %s (before: by %.4g on average)",
			      to, d->scale);
	else
		strbuf_printf(b, "\n  the one before is scaled by %.4g, to the same %s", d->scale,
			      to);
}

static void add_total(struct strbuf *b, const struct diff_report *r)
{
	const struct diff *d = r->diff;
	double by = d->total[1] - d->total[0];

	strbuf_printf(b, "%s (%s/%s)%s%s: ", r->shown.title,
		      profile_type(r->opts->after, r->opts->after_type)->name, r->shown.unit,
		      r->source ? ", " : "", r->source ? r->source : "");
	strbuf_printf(b, "%s → ", shown_text(&r->shown, NULL, whole(d->raw_total[0])).s);
	strbuf_printf(b, "%s%s%s", shown_text(&r->shown, NULL, whole(d->raw_total[1])).s,
		      *r->shown.noun ? " " : "", r->shown.noun);
	if (d->noise == DIFF_RUNS)
		strbuf_puts(b, " a run");
	add_scale(b, r);
	if (r->opts->scale != DIFF_TOTALS) {
		struct unit_text change = change_text(&r->shown, by);

		strbuf_printf(b, "%s %s (%s)",
			      r->opts->scale == DIFF_ABSOLUTE ? ":" : ", then differs by", change.s,
			      percent_text(d->total[0], d->total[1]).s);
		if (!is_counted(d))
			strbuf_printf(b, " ± %s%s",
				      shown_text(&r->shown, NULL, whole(d->total_noise)).s,
				      fabs(by) <= d->total_noise ? ", within noise" : "");
	}
	strbuf_putc(b, '\n');
}

/* What a change was held against. */
static void add_noise(struct strbuf *b, const struct diff_report *r)
{
	const struct diff *d = r->diff;
	bool waits = sites_kind(r->opts->after, r->opts->after_type) == SITE_WAIT;

	switch (d->noise) {
	case DIFF_COUNTED:
		break;
	case DIFF_SAMPLES:
		strbuf_puts(b, waits ? "chance: how many waits there are in a run, and how long"
				     : "sampling noise");
		break;
	case DIFF_BURSTS:
		strbuf_puts(b, "the variation between bursts");
		break;
	case DIFF_RUNS:
		strbuf_printf(b,
			      "the variation between runs (%u before, %u after; %sWelch's t-test)",
			      d->n_runs[0], d->n_runs[1], d->moderated ? "moderated " : "");
		break;
	}
}

static void add_rule(struct strbuf *b, const struct diff_report *r)
{
	const struct diff *d = r->diff;
	bool stacks = r->opts->by == DIFF_BY_STACK;
	double least = r->opts->least_share * 100;

	strbuf_printf(b, "%s %s%s changed", d->n_changed ? unit_count(d->n_changed).s : "No",
		      stacks ? "stack" : "function", d->n_changed > 1 ? "s" : "");
	for (uint32_t i = 0; i < d->n_changed && i < NAMED && !stacks; i++) {
		strbuf_puts(b, i ? ", " : ": ");
		text_add(b, TEXT_FOLDED, d->rows[i].name, 60);
		strbuf_printf(b, " (%s)", verdict(d, &d->rows[i]));
	}
	if (d->n_changed > NAMED && !stacks)
		strbuf_puts(b, ", …");
	strbuf_putc(b, '\n');
	if (is_counted(d)) {
		strbuf_printf(
			b,
			"  Every value is a count: the differences of these two profiles are exact; "
			"least change: %g%% of the total.\n",
			least);
	} else {
		strbuf_printf(b, "  Tested: %s %s%s, against ", unit_count(d->n_tested).s,
			      stacks ? "stack" : "function", d->n_tested == 1 ? "" : "s");
		add_noise(b, r);
		strbuf_printf(b,
			      ".\n  False discovery rate: 1%% (Benjamini-Hochberg); least change: "
			      "%g%% of the total.\n",
			      least);
	}
	if (d->spread > 1)
		strbuf_printf(b,
			      "  These two profiles vary by %.1f times that variance, which is "
			      "taken into account.\n",
			      d->spread);
	if (d->noise == DIFF_BURSTS && r->opts->scale != DIFF_TOTALS &&
	    d->total_noise > 0.5 * fmax(d->total[0], d->total[1]))
		strbuf_puts(b,
			    "  Most of that is the error of the tracing cost, which all functions "
			    "share: --normalize compares shares.\n");
	if (d->noise != DIFF_RUNS && !r->after_scalars)
		strbuf_puts(b,
			    "  One run a side cannot tell a change of the program from variation "
			    "between runs: compare several (diff A1 A2 A3 -- B1 B2 B3).\n");
	if (d->noise == DIFF_RUNS && !d->moderated && d->n_runs[0] + d->n_runs[1] < 10)
		strbuf_puts(b, "  With so few runs only large changes stand out.\n");
}

static int add_rows(struct strbuf *b, const struct diff_report *r,
		    const struct diff_row *const *rows, uint32_t n, bool total)
{
	const struct diff *d = r->diff;

	strbuf_printf(b, "%12s %7s %12s %7s %13s %8s %*s  %-12s %s\n", "before", "", "after", "",
		      "change", "", is_counted(d) ? 11 : 12, is_counted(d) ? "" : "\u00b1 95%",
		      total ? "" : "what", r->opts->by == DIFF_BY_STACK ? "stack" : "function");
	for (uint32_t i = 0; i < n; i++) {
		const double *v = total ? rows[i]->total : rows[i]->self;
		double noise = total ? rows[i]->total_noise : rows[i]->self_noise;

		for (int k = 0; k < 2; k++) {
			strbuf_printf(b, "%12s ", shown_text(&r->shown, NULL, whole(v[k])).s);
			strbuf_printf(b, "%7s ", unit_percent(whole(v[k]), whole(d->total[k])).s);
		}
		strbuf_printf(b, "%13s ", change_text(&r->shown, v[1] - v[0]).s);
		strbuf_printf(b, "%8s ", percent_text(v[0], v[1]).s);
		strbuf_printf(b, "%11s",
			      is_counted(d) ? "" : shown_text(&r->shown, NULL, whole(noise)).s);
		strbuf_printf(b, "  %-12s ", total ? "" : verdict(d, rows[i]));
		if (add_name(b, d, rows[i]) < 0)
			return -ENOMEM;
		strbuf_putc(b, '\n');
	}
	return 0;
}

static int compare_totals(const void *a, const void *b)
{
	const struct diff_row *x = *(const struct diff_row *const *)a;
	const struct diff_row *y = *(const struct diff_row *const *)b;
	double dx = fabs(x->total[1] - x->total[0]), dy = fabs(y->total[1] - y->total[0]);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

static int add_tables(struct strbuf *b, const struct diff_report *r)
{
	const struct diff *d = r->diff;
	_cleanup_(freep) const struct diff_row **rows = calloc(d->n + 1ul, sizeof(*rows));
	uint32_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->n; i++)
		if (d->rows[i].self[0] != d->rows[i].self[1])
			rows[n++] = &d->rows[i];
	if (n) {
		strbuf_puts(b, "\nBy self\n");
		if (add_rows(b, r, rows, n < r->rows ? n : r->rows, false) < 0)
			return -ENOMEM;
	}
	if (r->opts->by == DIFF_BY_STACK)
		return 0;
	n = 0;
	for (uint32_t i = 0; i < d->n; i++)
		if (d->rows[i].total[0] != d->rows[i].total[1])
			rows[n++] = &d->rows[i];
	if (!n)
		return 0;
	qsort(rows, n, sizeof(*rows), compare_totals);
	strbuf_puts(b, "\nBy total\n");
	return add_rows(b, r, rows, n < r->rows ? n : r->rows, true);
}

int diff_text_write(const struct diff_report *r, struct sink *out, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	add_total(&b, r);
	add_rule(&b, r);
	if (add_tables(&b, r) < 0 || strbuf_oom(&b))
		return err_set(e, -ENOMEM, "out of memory for a difference");
	sink_write(out, b.s, b.len);
	return 0;
}

static bool scalar_in_noise(const struct diff_scalar *s)
{
	/* Two intervals of half widths a and b: that of the difference is their root sum of squares. */
	double a = (s->high[0] - s->low[0]) / 2, b = (s->high[1] - s->low[1]) / 2;

	return fabs(s->value[1] - s->value[0]) <= sqrt(a * a + b * b);
}

void diff_scalars_text(const struct diff_scalar *scalars, uint32_t n, const char *const names[2],
		       bool several, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf name = { 0 };

	for (int i = 0; i < 2; i++) {
		strbuf_reset(&name);
		text_add(&name, TEXT_FOLDED, names[i], 200);
		sink_printf(out, "%-7s %s\n", i ? "after" : "before", name.s ? name.s : "");
	}
	sink_printf(out, "\n%-18s %14s %14s %9s\n", "", "before", "after", "change");
	for (uint32_t i = 0; i < n; i++) {
		const struct diff_scalar *s = &scalars[i];
		double rate[2] = { s->value[0] / s->seconds[0], s->value[1] / s->seconds[1] };
		bool unequal = !s->by_sum && diff_lengths_differ(s->seconds[0], s->seconds[1]);

		if (isnan(s->value[0]) || isnan(s->value[1]))
			continue;
		sink_printf(out, "%-18s %14s ", s->text, unit_value(whole(s->value[0]), s->unit).s);
		sink_printf(out, "%14s ", unit_value(whole(s->value[1]), s->unit).s);
		sink_printf(out, "%9s",
			    unequal ? percent_text(rate[0], rate[1]).s
				    : percent_text(s->value[0], s->value[1]).s);
		if (unequal && percent_text(rate[0], rate[1]).s[0])
			sink_puts(out, " a second");
		/* NAN compares as false: exact figures have no noise. */
		sink_printf(out, "%s\n", scalar_in_noise(s) ? "  within noise" : "");
	}
	sink_puts(out,
		  several ? "\n"
			  : "One run a side cannot tell a change of the program from variation "
			    "between runs: compare several (diff A1 A2 A3 -- B1 B2 B3).\n\n");
}

/* --- JSON and CSV --- */

static void add_number(struct strbuf *b, const char *key, double v)
{
	if (isfinite(v))
		strbuf_printf(b, "\"%s\":%.10g", key, v);
	else
		strbuf_printf(b, "\"%s\":null", key);
}

static void add_pair(struct strbuf *b, const char *key, const double v[2])
{
	strbuf_printf(b, ",\"%s\":[%.15g,%.15g]", key, v[0], v[1]);
}

static int add_json_row(struct strbuf *b, const struct diff *d, const struct diff_row *row)
{
	strbuf_puts(b, "{\"function\":\"");
	text_add(b, TEXT_JSON, row->name, UINT32_MAX);
	strbuf_puts(b, "\",\"module\":\"");
	text_add(b, TEXT_JSON, row->module, UINT32_MAX);
	strbuf_puts(b, "\"");
	if (row->node) {
		strbuf_puts(b, ",\"stack\":\"");
		if (add_stack(b, d->tree, row->node, TEXT_JSON) < 0)
			return -ENOMEM;
		strbuf_puts(b, "\"");
	}
	add_pair(b, "self", row->self);
	add_pair(b, "total", row->total);
	strbuf_printf(b, ",\"what\":\"%s\",\"changed\":%s,", verdict(d, row),
		      row->changed ? "true" : "false");
	add_number(b, "self_noise", is_counted(d) ? NAN : row->self_noise);
	strbuf_putc(b, ',');
	add_number(b, "total_noise", is_counted(d) ? NAN : row->total_noise);
	strbuf_putc(b, ',');
	add_number(b, "p", is_counted(d) ? NAN : row->p);
	strbuf_putc(b, '}');
	return 0;
}

int diff_json_write(const struct diff_report *r, struct sink *out, struct err *e)
{
	static const char *const scales[] = { "absolute", "totals", "seconds" };
	static const char *const noises[] = { "counted", "samples", "bursts", "runs" };
	const struct diff *d = r->diff;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	strbuf_puts(&b, "\"type\":\"");
	text_add(&b, TEXT_JSON, profile_type(r->opts->after, r->opts->after_type)->name,
		 UINT32_MAX);
	strbuf_puts(&b, "\",\"unit\":\"");
	text_add(&b, TEXT_JSON, r->shown.unit, UINT32_MAX);
	strbuf_printf(&b, "\",\"scaled\":\"%s\",", scales[r->opts->scale]);
	add_number(&b, "before_scale", d->scale);
	add_pair(&b, "total", d->total);
	add_pair(&b, "raw_total", d->raw_total);
	strbuf_putc(&b, ',');
	add_number(&b, "total_noise", is_counted(d) ? NAN : d->total_noise);
	strbuf_printf(&b,
		      ",\"noise\":\"%s\",\"runs\":[%u,%u],\"estimated\":%s,\"exact\":%s,"
		      "\"changed\":%u,\"compared\":%u,",
		      noises[d->noise], d->n_runs[0], d->n_runs[1], d->estimated ? "true" : "false",
		      is_counted(d) ? "true" : "false", d->n_changed,
		      is_counted(d) ? d->n : d->n_tested);
	add_number(&b, "spread", d->spread);
	strbuf_puts(&b, ",\n\"rows\":[");
	for (uint32_t i = 0; i < d->n && i < r->rows; i++) {
		strbuf_puts(&b, i ? ",\n" : "\n");
		if (add_json_row(&b, d, &d->rows[i]) < 0)
			return err_set(e, -ENOMEM, "out of memory for a difference");
	}
	strbuf_puts(&b, "]");
	if (strbuf_oom(&b))
		return err_set(e, -ENOMEM, "out of memory for a difference");
	sink_write(out, b.s, b.len);
	return 0;
}

void diff_scalars_json(const struct diff_scalar *scalars, uint32_t n, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	bool first = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct diff_scalar *s = &scalars[i];

		if (isnan(s->value[0]) || isnan(s->value[1]))
			continue;
		strbuf_printf(&b, "%s\"%s\":{", first ? "" : ",\n", s->key);
		first = false;
		add_number(&b, "before", s->value[0]);
		strbuf_putc(&b, ',');
		add_number(&b, "after", s->value[1]);
		if (!isnan(s->low[0]) && !isnan(s->low[1]))
			strbuf_printf(&b, ",\"within_noise\":%s",
				      scalar_in_noise(s) ? "true" : "false");
		strbuf_putc(&b, '}');
	}
	if (b.s && !strbuf_oom(&b))
		sink_write(out, b.s, b.len);
}

int diff_csv_write(const struct diff_report *r, struct sink *out, struct err *e)
{
	const struct diff *d = r->diff;
	_cleanup_(strbuf_free) struct strbuf b = { 0 }, name = { 0 };

	strbuf_printf(&b,
		      "%s,module,what,self_before,self_after,self_noise,total_before,total_after,"
		      "total_noise,p\n",
		      r->opts->by == DIFF_BY_STACK ? "stack" : "function");
	for (uint32_t i = 0; i < d->n; i++) {
		const struct diff_row *row = &d->rows[i];

		strbuf_reset(&name);
		if (row->node && add_stack(&name, d->tree, row->node, TEXT_FOLDED) < 0)
			return err_set(e, -ENOMEM, "out of memory for a difference");
		text_add_csv(&b, row->node && name.s ? name.s : row->name);
		strbuf_putc(&b, ',');
		text_add_csv(&b, row->module);
		strbuf_printf(&b, ",%s,%.15g,%.15g,%.6g,%.15g,%.15g,%.6g,%.6g\n", verdict(d, row),
			      row->self[0], row->self[1], row->self_noise, row->total[0],
			      row->total[1], row->total_noise, row->p);
	}
	if (strbuf_oom(&b))
		return err_set(e, -ENOMEM, "out of memory for a difference");
	sink_write(out, b.s, b.len);
	return 0;
}
