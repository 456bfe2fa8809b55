/*
 * RSS, the process's private memory, and the shape of its trend.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Two verdicts, kept apart: of all points, and of two. */
static void put_trend_shape(const struct run_summary *s, struct sink *out)
{
	char reason[256], line[320];

	if (s->shape.kind == TREND_SHAPE_SHORT)
		return;
	trend_shape_reason(&s->shape, reason, sizeof(reason));
	snprintf(line, sizeof(line), "%s: %s", trend_shape_name(s->shape.kind), reason);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	cells_wrapped(out, line, CELLS_LABEL_WIDTH, true);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	sink_printf(out, "%s, by the first and the last value alone: RSS %+.1f%%\n",
		    plain_words(s->plain.kind), s->plain.percent);
}

static const char *unit_of(const struct summary_workload *w, char *buf, size_t cap)
{
	if (!w->own)
		snprintf(buf, cap, "for each of %.60s", w->name);
	else if (strcmp(w->name, "cpu_seconds") == 0)
		snprintf(buf, cap, "for each second of CPU time");
	else
		snprintf(buf, cap, "for each byte allocated");
	return buf;
}

/* A size that may be a part of a byte. */
static const char *size_of(double bytes, char *buf, size_t cap)
{
	if (fabs(bytes) < 1000)
		snprintf(buf, cap, "%.3g B", bytes);
	else
		snprintf(buf, cap, "%s%s", bytes < 0 ? "-" : "",
			 unit_bytes(llround(fabs(bytes))).s);
	return buf;
}

static void put_interval(struct strbuf *b, double low, double high)
{
	char from[80], to[80];

	strbuf_printf(b, " (95%%: %s to %s)", size_of(low, from, sizeof(from)),
		      size_of(high, to, sizeof(to)));
}

/* false: there is nothing to say. */
static bool workload_sentence(const struct summary_workload *w, struct strbuf *b)
{
	const struct workload_fit *f = &w->fit;
	char unit[80], size[80];

	if (f->says == WORKLOAD_UNTOLD && !w->own)
		strbuf_printf(b,
			      "whether it grows with %.60s or by itself is unknown: that went on "
			      "too evenly, or too little beside the noise",
			      w->name);
	if (f->says == WORKLOAD_WITH || f->says == WORKLOAD_BOTH) {
		strbuf_printf(b, "grows with work: %s %s", size_of(f->per_unit, size, sizeof(size)),
			      unit_of(w, unit, sizeof(unit)));
		put_interval(b, f->unit_low, f->unit_high);
	}
	if (f->says == WORKLOAD_WITH)
		strbuf_printf(b, "; idle, %s a second at most",
			      size_of(fmax(f->idle_high, 0), size, sizeof(size)));
	if (f->says == WORKLOAD_BOTH || f->says == WORKLOAD_IDLE) {
		strbuf_printf(b, "%s %s a second",
			      b->len ? "; and while idle:" : "grows while idle:",
			      size_of(f->idle, size, sizeof(size)));
		put_interval(b, f->idle_low, f->idle_high);
	}
	if (f->says == WORKLOAD_IDLE)
		strbuf_printf(b, "; %s %s at most",
			      size_of(fmax(f->unit_high, 0), size, sizeof(size)),
			      unit_of(w, unit, sizeof(unit)));
	return b->len > 0;
}

/* Those that were given; else the one of ours that explains most. */
static void put_workload(const struct run_summary *s, struct sink *out)
{
	const struct summary_workload *best = NULL;
	bool given = false;

	for (uint32_t i = 0; i < s->n_workload; i++) {
		const struct summary_workload *w = &s->workload[i];

		given |= !w->own;
		if (w->own && w->fit.says > WORKLOAD_STEADY && w->fit.says != WORKLOAD_UNTOLD &&
		    (!best || w->fit.r2 > best->fit.r2))
			best = w;
	}
	for (uint32_t i = 0; i < s->n_workload; i++) {
		const struct summary_workload *w = &s->workload[i];
		_cleanup_(strbuf_free) struct strbuf b = { 0 };

		if ((given ? w->own : w != best) || !workload_sentence(w, &b) || !b.s)
			continue;
		cells_spaces(out, CELLS_LABEL_WIDTH);
		cells_wrapped(out, b.s, CELLS_LABEL_WIDTH, true);
	}
}

static bool has_rss(const struct run_summary *s)
{
	return s->rss.known && s->rss.first_kb >= 0 && s->rss.last_kb >= 0;
}

/* " (+2.0 MiB), peak 10.0 MiB" */
static void add_change(struct strbuf *b, const struct run_summary *s)
{
	int64_t grown_kb = s->rss.last_kb - s->rss.first_kb;

	strbuf_printf(b, " (%s%s)", grown_kb < 0 ? "-" : "+",
		      unit_bytes((grown_kb < 0 ? -grown_kb : grown_kb) * 1024).s);
	if (s->rss.peak_kb >= 0)
		strbuf_printf(b, ", peak %s", unit_bytes(s->rss.peak_kb * 1024).s);
}

void section_memory_text(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (!has_rss(s))
		return;
	cells_label(out, "Memory");
	strbuf_printf(&b, "RSS %s at the start, %s at the end",
		      unit_bytes(s->rss.first_kb * 1024).s, unit_bytes(s->rss.last_kb * 1024).s);
	add_change(&b, s);
	sink_printf(out, "%s\n", b.s ? b.s : "");
	if (s->rss.shared) {
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_puts(out, "pages shared by several processes count in each\n");
	}
	if (s->memory.known) {
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_printf(out, "private (anonymous and swap) %s %s, %s at the end\n",
			    unit_bytes(s->memory.base * 1024).s,
			    s->memory.from_quarter ? "after a quarter of the run" : "at the start",
			    unit_bytes(s->memory.last * 1024).s);
	}
	put_trend_shape(s, out);
	put_workload(s, out);
}

void section_memory_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	const struct site_row *top =
		s->growth.known && s->growth.n_sites ? &s->growth.sites[0] : NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	char reason[256];

	(void)rows;
	if (has_rss(s)) {
		strbuf_printf(&b, "RSS %s to %s", unit_bytes(s->rss.first_kb * 1024).s,
			      unit_bytes(s->rss.last_kb * 1024).s);
		add_change(&b, s);
	}
	if (b.len && s->shape.kind != TREND_SHAPE_SHORT) {
		trend_shape_reason(&s->shape, reason, sizeof(reason));
		strbuf_printf(&b, "; private memory: %s; %s", trend_shape_name(s->shape.kind),
			      reason);
	}
	/* Whose pages, where they are a part of RSS worth a word. */
	if (top && (int64_t)s->growth.on_stacks > s->rss.last_kb * 1024 / 20)
		strbuf_printf(&b, "%s%s of %s first touched by %s", b.len ? "; " : "",
			      unit_percent(top->value, (int64_t)s->growth.on_stacks).s,
			      unit_bytes((int64_t)s->growth.on_stacks).s, site_name_or_leaf(top));
	if (!b.s)
		return;
	cells_line(out, "Memory");
	cells_wrapped(out, b.s, CELLS_LABEL_WIDTH, true);
}

static void add_rss(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->rss.known) {
		json_null(d, root, "rss");
		return;
	}
	o = json_object(d, root, "rss");
	json_number(d, o, "first_kb", s->rss.first_kb);
	json_number(d, o, "last_kb", s->rss.last_kb);
	json_number(d, o, "peak_kb", s->rss.peak_kb);
}

static void add_memory(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->memory.known) {
		json_null(d, root, "memory");
		return;
	}
	o = json_object(d, root, "memory");
	json_number(d, o, "base_kb", s->memory.base);
	json_number(d, o, "last_kb", s->memory.last);
	json_number(d, o, "peak_kb", s->memory.peak);
	json_text(d, o, "trend_shape", trend_shape_name(s->shape.kind));
	json_real(d, o, "slope_kb_s", s->shape.all.slope);
	json_text(d, o, "endpoint_rule", plain_name(s->plain.kind));
	json_real(d, o, "endpoint_percent", s->plain.percent);
}

static void add_workload(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "workload");

	for (uint32_t i = 0; i < s->n_workload; i++) {
		const struct workload_fit *f = &s->workload[i].fit;
		cJSON *o = json_element(d, list);

		json_text(d, o, "name", s->workload[i].name);
		json_text(d, o, "grows_with", workload_name(f->says));
		if (f->says == WORKLOAD_SHORT || !isfinite(f->unit_low))
			continue;
		json_real(d, o, "grown_bytes", f->grown);
		json_real(d, o, "bytes_per_unit", f->per_unit);
		json_real(d, o, "bytes_per_unit_low", f->unit_low);
		json_real(d, o, "bytes_per_unit_high", f->unit_high);
		json_real(d, o, "idle_bytes_s", f->idle);
		json_real(d, o, "idle_bytes_s_low", f->idle_low);
		json_real(d, o, "idle_bytes_s_high", f->idle_high);
		json_real(d, o, "units", f->work);
		json_real(d, o, "r2", f->r2);
	}
}

void section_memory_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	add_rss(d, root, s);
	add_memory(d, root, s);
	add_workload(d, root, s);
}
