/*
 * What ran on the CPUs: functions by samples.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH   50
#define MODULE_WIDTH 24

#define INTERPRETED "top interpreted functions, with the native code they call"

static void put_top(const struct run_summary *s, struct sink *out, const char *title,
		    const struct top_row *rows, uint32_t n, bool total)
{
	if (n == 0)
		return;
	cells_right(out, "self", 9);
	cells_right(out, "total", 9);
	sink_printf(out, "  %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		/* Code without image and name is no function whose callees could be summed. */
		if (total && rows[i].kind == FRAME_UNKNOWN)
			continue;
		cells_right(out, unit_percent(rows[i].self, (int64_t)s->oncpu.samples).s, 9);
		cells_right(out, unit_percent(rows[i].total, (int64_t)s->oncpu.samples).s, 9);
		sink_puts(out, "  ");
		cells_in_image(out, rows[i].name, NAME_WIDTH, rows[i].module, MODULE_WIDTH);
	}
}

static void put_few_samples(const struct run_summary *s, struct sink *out)
{
	double share = summary_cpu_share(s);
	char text[320] = "Few samples: ", used[64] = "";
	size_t len = strlen(text);

	if (!summary_few_samples(s))
		return;
	/* Two standard errors of a share of one half. */
	if (s->oncpu.samples > 0)
		len += snprintf(text + len, sizeof(text) - len,
				"a share may be off by %.0f points. ",
				ceil(100 / sqrt((double)s->oncpu.samples)));
	if (share >= 0)
		snprintf(used, sizeof(used), "The target used %.1f%% of one CPU. ", 100 * share);
	snprintf(text + len, sizeof(text) - len, "%s%s 60-120 s, or sample more often (-F 999).",
		 used, summary_is_busy(s) ? "Record longer," : "Put load on it and record");
	cells_wrapped(out, text, 2, false);
}

static void put_samples(const struct run_summary *s, struct sink *out)
{
	double share = summary_cpu_share(s);

	sink_printf(out, "%s samples", unit_count((int64_t)s->oncpu.samples).s);
	if (s->oncpu.hz > 0)
		sink_printf(out, " at %.0f Hz", s->oncpu.hz);
	if (s->oncpu.event)
		sink_printf(out, " (%s)", s->oncpu.event);
	if (share >= 0)
		sink_printf(out, ", %.1f%% of one CPU", 100 * share);
}

void section_oncpu_text(const struct run_summary *s, struct sink *out)
{
	char text[256];

	if (s->oncpu.samples == 0 && !summary_few_samples(s))
		return;
	cells_label(out, "On-CPU");
	put_samples(s, out);
	sink_puts(out, "\n");
	put_few_samples(s, out);
	if (s->oncpu.probe_samples * 100 >= s->oncpu.samples && s->oncpu.probe_samples > 0) {
		snprintf(
			text, sizeof(text),
			"%s of the samples are in the traps of allocation probes: memscope's own cost, absent "
			"with --alloc=off.",
			unit_percent((int64_t)s->oncpu.probe_samples, (int64_t)s->oncpu.samples).s);
		cells_wrapped(out, text, 2, false);
	}
	put_top(s, out, INTERPRETED, s->oncpu.interpreted, s->oncpu.n_interpreted, false);
	put_top(s, out, "top by self", s->oncpu.by_self, s->oncpu.n_self, false);
	put_top(s, out, "top by total", s->oncpu.by_total, s->oncpu.n_total, true);
}

#define BRIEF_ROWS 5

static uint32_t at_most(uint32_t n, uint32_t rows)
{
	return n < rows ? n : rows;
}

/* Is a quarter of the samples or more in the interpreted functions that would be shown? */
static bool is_interpreted(const struct run_summary *s)
{
	int64_t in = 0;

	for (uint32_t i = 0; i < s->oncpu.n_interpreted; i++)
		in += s->oncpu.interpreted[i].self;
	return in > 0 && (uint64_t)in >= s->oncpu.samples / 4;
}

/* The functions by self, and how far shares of few samples may be off. */
void section_oncpu_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	double share = summary_cpu_share(s);

	(void)rows;
	if (s->oncpu.samples == 0 && !summary_few_samples(s))
		return;
	strbuf_printf(&b, "%s samples", unit_count((int64_t)s->oncpu.samples).s);
	if (s->oncpu.hz > 0)
		strbuf_printf(&b, " at %.0f Hz", s->oncpu.hz);
	if (summary_few_samples(s) && s->oncpu.samples > 0)
		strbuf_printf(&b, " are few (shares ± %.0f points)",
			      ceil(100 / sqrt((double)s->oncpu.samples)));
	if (share >= 0)
		strbuf_printf(&b, ", %.1f%% of one CPU", 100 * share);
	if (s->oncpu.probe_samples * 100 >= s->oncpu.samples && s->oncpu.probe_samples > 0)
		strbuf_printf(
			&b, "; %s in memscope's probes",
			unit_percent((int64_t)s->oncpu.probe_samples, (int64_t)s->oncpu.samples).s);
	cells_line(out, "On-CPU");
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
	if (is_interpreted(s))
		put_top(s, out, INTERPRETED, s->oncpu.interpreted,
			at_most(s->oncpu.n_interpreted, BRIEF_ROWS), false);
	else
		put_top(s, out, "top by self", s->oncpu.by_self,
			at_most(s->oncpu.n_self, BRIEF_ROWS), false);
}

static void add_top(struct json_doc *d, cJSON *in, const char *key, const struct top_row *rows,
		    uint32_t n)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].name);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, "self", rows[i].self);
		json_number(d, o, "total", rows[i].total);
	}
}

static void add_gc(struct json_doc *d, cJSON *to, const struct run_summary *s)
{
	cJSON *o = json_object(d, to, "gc");

	for (int i = 0; i < N_GC_RUNTIMES; i++)
		if (s->oncpu.gc_by_runtime[i])
			json_count(d, o, gc_runtime_name((enum gc_runtime)i),
				   s->oncpu.gc_by_runtime[i]);
}

void section_oncpu_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "oncpu");
	double share = summary_cpu_share(s);

	json_count(d, o, "samples", s->oncpu.samples);
	json_real(d, o, "hz", s->oncpu.hz);
	json_text(d, o, "event", s->oncpu.event);
	json_number(d, o, "cpu_ns", s->oncpu.cpu_ns);
	json_real(d, o, "cpu_share", share < 0 ? NAN : share);
	json_truth(d, o, "few_samples", summary_few_samples(s));
	json_count(d, o, "kernel_samples", s->oncpu.kernel_samples);
	json_count(d, o, "probe_samples", s->oncpu.probe_samples);
	json_count(d, o, "gc_samples", s->oncpu.gc_samples);
	json_count(d, o, "jit_samples", s->oncpu.jit_samples);
	add_gc(d, o, s);
	add_top(d, o, "top_self", s->oncpu.by_self, s->oncpu.n_self);
	add_top(d, o, "top_interpreted", s->oncpu.interpreted, s->oncpu.n_interpreted);
	add_top(d, o, "top_total", s->oncpu.by_total, s->oncpu.n_total);
}
