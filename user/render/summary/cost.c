/*
 * What the run cost: those who were profiled, and memscope itself.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <math.h>
#include <stdio.h>

#define SECOND_NS 1e9

static void put_own(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (s->own.cpu_ns == 0 && s->own.rss_kb == 0)
		return;
	strbuf_printf(&b, "%s of CPU time (%s of one CPU), %s resident", unit_ns(s->own.cpu_ns).s,
		      unit_percent(s->own.cpu_ns, s->duration_ns).s,
		      unit_bytes(s->own.rss_kb * 1024).s);
	if (s->own.peak_kb > 0)
		strbuf_printf(&b, " (peak %s)", unit_bytes(s->own.peak_kb * 1024).s);
	if (s->own.map_bytes > 0)
		strbuf_printf(&b, ", %s in the kernel", unit_bytes(s->own.map_bytes).s);
	cells_labelled(out, "memscope itself", b.s ? b.s : "");
}

static double percent_of_cpu(const struct run_summary *s, int64_t ns)
{
	return s->duration_ns > 0 ? (double)ns * 100 / (double)s->duration_ns : 0;
}

/* Plus a one-second startup allowance, before costs are known. */
static bool is_over_limit(const struct run_summary *s)
{
	return s->cost.limit_percent > 0 &&
	       (double)s->cost.target_ns >
		       s->cost.limit_percent / 100 * ((double)s->duration_ns + SECOND_NS);
}

/* What the programs cost those who ran them. */
static void put_cost(const struct run_summary *s, struct sink *out)
{
	char line[160], cell[32], limit[32] = "";

	if (!s->cost.known)
		return;
	if (s->cost.limit_percent > 0)
		snprintf(limit, sizeof(limit), " (limit %.3g%%)", s->cost.limit_percent);
	snprintf(
		line, sizeof(line),
		"%.2g%% of one CPU%s in the target; %.2g%% in untraced processes that hit our probes",
		percent_of_cpu(s, s->cost.target_ns), limit,
		percent_of_cpu(s, s->cost.ns - s->cost.target_ns));
	cells_labelled(out, "Overhead", line);
	sink_puts(out, "      events    program       trap  of one CPU  source\n");
	for (uint32_t i = 0; i < s->cost.n; i++) {
		const struct summary_cost *c = &s->cost.sources[i];

		cells_right(out, unit_count((int64_t)c->events).s, 12);
		cells_right(out, unit_ns((int64_t)c->program_ns).s, 11);
		cells_right(out, unit_ns((int64_t)c->trap_ns).s, 11);
		snprintf(cell, sizeof(cell), "%.2f%%", percent_of_cpu(s, c->ns));
		cells_right(out, cell, 12);
		sink_printf(out, "  %s\n", c->name);
	}
	if (is_over_limit(s))
		cells_wrapped(
			out,
			"Over the limit: allocation and wait-stack sampling is throttled, but each sample, switch and "
			"page fault has its fixed cost. --only leaves sources out; a lower -F takes fewer "
			"samples.",
			2, false);
}

static int64_t service_ns(const struct run_summary *s)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < s->service.n_parts; i++)
		sum += s->service.parts[i].ns;
	return sum;
}

static void put_duties(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->service.n_duties; i++) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };

		strbuf_printf(
			&b,
			"%s: %.3g%% of what was asked for (1/%u at the least), to keep within the "
			"limit: figures are estimates",
			s->service.duties[i].name, 100 * s->service.duties[i].share,
			s->service.duties[i].least);
		if (s->service.duties[i].error_percent >= 0)
			strbuf_printf(&b, ", their sum +/- %.2g%% (95%%)",
				      s->service.duties[i].error_percent);
		if (b.s)
			cells_wrapped(out, b.s, 2, false);
	}
}

static void put_savings(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->service.n_savings; i++) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };

		strbuf_printf(&b, "%s: in %.3g%% of the time, to keep within the limit",
			      s->service.savings[i].name, 100 * s->service.savings[i].share);
		if (b.s)
			cells_wrapped(out, b.s, 2, false);
	}
	if (s->unwind.put_off) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };

		strbuf_printf(
			&b,
			"%s stacks end at code without an unwind table: to make more would have "
			"passed a quarter of the limit",
			unit_count((int64_t)s->unwind.put_off).s);
		if (b.s)
			cells_wrapped(out, b.s, 2, false);
	}
}

/* All that a service costs its host. */
static void put_service(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (!s->service.known)
		return;
	strbuf_printf(&b, "%.2g%% of one CPU in all (limit %.3g%%)",
		      percent_of_cpu(s, service_ns(s)), s->service.limit_percent);
	for (uint32_t i = 0; i < s->service.n_parts; i++)
		strbuf_printf(&b, "%s %s %.2g%%", i ? "," : ":", s->service.parts[i].name,
			      percent_of_cpu(s, s->service.parts[i].ns));
	cells_labelled(out, "Service", b.s ? b.s : "");
	put_duties(s, out);
	put_savings(s, out);
}

void section_cost_text(const struct run_summary *s, struct sink *out)
{
	put_service(s, out);
	put_cost(s, out);
	put_own(s, out);
}

/* Placing probes and writing files cost the same however long a run is: of a short one that is no share of it. */
static bool is_short(const struct run_summary *s)
{
	return s->duration_ns < 2 * SECOND_NS;
}

static struct unit_text own_cpu(const struct run_summary *s)
{
	return is_short(s) ? unit_ns(s->own.cpu_ns) : unit_percent(s->own.cpu_ns, s->duration_ns);
}

void section_cost_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	char text[320] = "";
	size_t len = 0;

	(void)rows;
	if (s->cost.known) {
		len = (size_t)snprintf(text, sizeof(text), "%.2g%% of one CPU in the target",
				       percent_of_cpu(s, s->cost.target_ns));
		if (s->cost.limit_percent > 0)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " (limit %.3g%%%s)",
						s->cost.limit_percent,
						is_over_limit(s) ? ", exceeded" : "");
		len += (size_t)snprintf(text + len, sizeof(text) - len, ", %.2g%% in others",
					percent_of_cpu(s, s->cost.ns - s->cost.target_ns));
	}
	if (s->own.cpu_ns || s->own.rss_kb)
		snprintf(text + len, sizeof(text) - len,
			 "%smemscope itself: %s%s, %s resident, %s in the kernel", len ? "; " : "",
			 own_cpu(s).s, is_short(s) ? " of CPU time" : " of one CPU",
			 unit_bytes(s->own.rss_kb * 1024).s, unit_bytes(s->own.map_bytes).s);
	if (!*text)
		return;
	cells_line(out, "Overhead");
	cells_wrapped(out, text, CELLS_LABEL_WIDTH, true);
}

static void add_service(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->service.known)
		return;
	o = json_object(d, root, "service");
	json_real(d, o, "limit_percent", s->service.limit_percent);
	json_real(d, o, "percent", percent_of_cpu(s, service_ns(s)));
	list = json_array(d, o, "costs");
	for (uint32_t i = 0; i < s->service.n_parts; i++) {
		cJSON *row = json_element(d, list);

		json_text(d, row, "name", s->service.parts[i].name);
		json_number(d, row, "ns", s->service.parts[i].ns);
	}
	list = json_array(d, o, "estimates");
	for (uint32_t i = 0; i < s->service.n_duties; i++) {
		cJSON *row = json_element(d, list);
		double error = s->service.duties[i].error_percent;

		json_text(d, row, "name", s->service.duties[i].name);
		json_real(d, row, "share", s->service.duties[i].share);
		json_real(d, row, "least_share", 1.0 / s->service.duties[i].least);
		json_real(d, row, "error_percent", error >= 0 ? error : NAN);
	}
	list = json_array(d, o, "savings");
	for (uint32_t i = 0; i < s->service.n_savings; i++) {
		cJSON *row = json_element(d, list);

		json_text(d, row, "name", s->service.savings[i].name);
		json_real(d, row, "share", s->service.savings[i].share);
	}
}

static void add_cost(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->cost.known)
		return;
	o = json_object(d, root, "cost");
	json_number(d, o, "window_ns", s->cost.window_ns);
	json_number(d, o, "ns", s->cost.ns);
	json_real(d, o, "percent", (double)s->cost.ns * 100 / (double)s->duration_ns);
	json_real(d, o, "target_percent",
		  s->oncpu.cpu_ns > 0 ? (double)s->cost.ns * 100 / (double)s->oncpu.cpu_ns : NAN);
	json_number(d, o, "profiled_ns", s->cost.target_ns);
	json_real(d, o, "profiled_percent",
		  (double)s->cost.target_ns * 100 / (double)s->duration_ns);
	json_real(d, o, "limit_percent", s->cost.limit_percent > 0 ? s->cost.limit_percent : NAN);
	list = json_array(d, o, "sources");
	for (uint32_t i = 0; i < s->cost.n; i++) {
		const struct summary_cost *c = &s->cost.sources[i];

		o = json_element(d, list);
		json_text(d, o, "name", c->name);
		json_count(d, o, "events", c->events);
		json_real(d, o, "program_ns", c->program_ns);
		json_real(d, o, "trap_ns", c->trap_ns);
		json_number(d, o, "ns", c->ns);
		json_real(d, o, "percent", (double)c->ns * 100 / (double)s->duration_ns);
	}
}

void section_cost_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "memscope");

	json_number(d, o, "cpu_ns", s->own.cpu_ns);
	json_number(d, o, "rss_kb", s->own.rss_kb);
	json_number(d, o, "peak_kb", s->own.peak_kb);
	json_number(d, o, "map_bytes", s->own.map_bytes);
	add_cost(d, root, s);
	add_service(d, root, s);
}
