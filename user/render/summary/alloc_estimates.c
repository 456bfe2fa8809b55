/*
 * Allocations that were estimated: by a sampler, or from bursts of tracing.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/alloc_parts.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit_text half_interval(int64_t value, int64_t low, int64_t high)
{
	struct unit_text t;

	if (high <= low)
		snprintf(t.s, sizeof(t.s), "exact");
	else
		snprintf(t.s, sizeof(t.s), "± %.40s", unit_percent((high - low) / 2, value).s);
	return t;
}

static void put_estimate(struct sink *out, const char *what, uint64_t bytes, uint64_t objects,
			 const struct summary_interval *i)
{
	sink_puts(out, "  ");
	cells_left(out, what, CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes((int64_t)bytes).s, 12);
	cells_right(out, half_interval((int64_t)bytes, i->low, i->high).s, 9);
	cells_right(out, unit_count((int64_t)objects).s, 14);
	sink_printf(out, " blocks, by %s samples\n", unit_count((int64_t)i->samples).s);
}

static void put_estimated_sites(struct sink *out, const char *what, const struct site_row *rows,
				uint32_t n, uint64_t whole)
{
	if (!n)
		return;
	sink_printf(out, "        bytes       95%%   samples   share  %s\n", what);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 13);
		cells_right(out, half_interval(rows[i].value, rows[i].low, rows[i].high).s, 10);
		cells_right(out, unit_count((int64_t)rows[i].samples).s, 10);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(&rows[i]), 37, rows[i].module, 16);
	}
}

void alloc_sampled_text(const struct summary_alloc *a, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	strbuf_puts(&b, "sampled by ");
	strbuf_add_clean(&b, a->sampler, strlen(a->sampler));
	if (a->rate > 0)
		strbuf_printf(&b, ", one per %s on average", unit_bytes(a->rate).s);
	strbuf_puts(&b, ": unbiased estimates, with their 95% intervals");
	if (a->covered_from_ns > 0)
		strbuf_printf(&b, "; from %s into the run", unit_ns(a->covered_from_ns).s);
	if (a->reason)
		strbuf_printf(&b, "; %s", a->reason);
	cells_labelled(out, "Allocations", b.s ? b.s : "");
	put_estimate(out, "allocated", a->bytes, a->objects, &a->bytes_interval);
	if (!a->unreported || a->unreported < a->bytes_interval.samples)
		put_estimate(out, "live", a->live_bytes, a->live_objects, &a->live_interval);
	alloc_live_peak_text(a, out);
	if (a->unreported)
		sink_printf(out,
			    "  %s samples are not in live: their sampler does not report frees\n",
			    unit_count((int64_t)a->unreported).s);
	if (a->earlier_frees)
		sink_printf(
			out,
			"  %s frees of samples that were not tracked (pre-existing, inherited or dropped)\n",
			unit_count((int64_t)a->earlier_frees).s);
	if (a->untracked)
		sink_printf(out, "  %s samples not tracked: no room (live is too low by these)\n",
			    unit_count((int64_t)a->untracked).s);
	put_estimated_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_estimated_sites(out, "live, allocated by", a->live_sites, a->n_live_sites,
			    a->live_bytes);
	alloc_leaks_text(a, out);
}

static struct unit_text weight_text(double weight)
{
	struct unit_text t;

	if (weight >= 100)
		return unit_count((int64_t)weight);
	snprintf(t.s, sizeof(t.s), "%.3g", weight);
	return t;
}

/* Tier, coverage and cost in a sentence; what to do for more in another. */
void alloc_bursts_text(const struct summary_alloc *a, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->bursts.from_ns > a->covered_from_ns)
		strbuf_printf(&b, "every call until %s into the run, then ",
			      unit_ns(a->bursts.from_ns).s);
	strbuf_printf(&b,
		      "estimated from %u bursts that cover %s of the time, at %.2g%% of one CPU",
		      a->bursts.n, unit_percent(a->bursts.covered_ns, a->bursts.span_ns).s,
		      a->bursts.cost_percent);
	if (a->bursts.weight > 0)
		strbuf_printf(&b, "; %s calls seen, each stands for %s (95%% interval %s to %s)",
			      unit_count((int64_t)a->bursts.seen_calls).s,
			      weight_text(a->bursts.weight).s, weight_text(a->bursts.weight_low).s,
			      weight_text(a->bursts.weight_high).s);
	strbuf_puts(&b, a->live.known ? "; frees are not traced"
				      : "; frees and live blocks are unknown");
	cells_labelled(out, "Allocations", b.s ? b.s : "");
	if (a->reason) {
		cells_spaces(out, CELLS_LABEL_WIDTH);
		cells_wrapped(out, a->reason, CELLS_LABEL_WIDTH, true);
	}
	sink_puts(out, "  ");
	cells_left(out, "allocated", CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes((int64_t)a->bytes).s, 12);
	cells_right(out, unit_count((int64_t)a->objects).s, 14);
	sink_printf(out, " blocks; 95%% interval %s\n",
		    unit_bytes_range(a->bytes_interval.low, a->bytes_interval.high, false).s);
	if (a->n_sites)
		sink_puts(
			out,
			"        bytes      95% low         high       seen   share  allocated by\n");
	for (uint32_t i = 0; i < a->n_sites; i++) {
		const struct site_row *row = &a->sites[i];

		cells_right(out, unit_bytes(row->value).s, 13);
		cells_right(out, unit_bytes(row->low).s, 13);
		cells_right(out, unit_bytes(row->high).s, 13);
		cells_right(out, unit_count((int64_t)row->samples).s, 11);
		cells_right(out, unit_percent(row->value, (int64_t)a->bytes).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(row), 24, row->module, 14);
	}
	alloc_live_text(a, out);
}

static void add_interval(struct json_doc *d, cJSON *to, const char *key,
			 const struct summary_interval *i)
{
	cJSON *o = json_object(d, to, key);

	json_number(d, o, "low", i->low);
	json_number(d, o, "high", i->high);
	json_count(d, o, "samples", i->samples);
}

static void add_bursts(struct json_doc *d, cJSON *to, const struct summary_alloc *a)
{
	cJSON *o = json_object(d, to, "bursts");

	json_count(d, o, "bursts", a->bursts.n);
	json_number(d, o, "from_ns", a->bursts.from_ns);
	json_number(d, o, "covered_ns", a->bursts.covered_ns);
	json_number(d, o, "span_ns", a->bursts.span_ns);
	json_count(d, o, "seen_calls", a->bursts.seen_calls);
	json_count(d, o, "seen_bytes", a->bursts.seen_bytes);
	json_real(d, o, "weight", a->bursts.weight > 0 ? a->bursts.weight : NAN);
	json_real(d, o, "weight_low", a->bursts.weight > 0 ? a->bursts.weight_low : NAN);
	json_real(d, o, "weight_high", a->bursts.weight > 0 ? a->bursts.weight_high : NAN);
	json_count(d, o, "hits", a->bursts.hits);
	json_real(d, o, "trap_ns", a->bursts.trap_ns);
	json_number(d, o, "target_ns", a->bursts.target_ns);
	json_number(d, o, "own_ns", a->bursts.own_ns);
	json_number(d, o, "worst_burst_ns", a->bursts.worst_ns);
	json_number(d, o, "burst_ns", a->bursts.burst_ns);
	json_real(d, o, "cost_percent", a->bursts.cost_percent);
	json_real(d, o, "limit_percent", a->bursts.limit_percent);
	add_interval(d, to, "bytes_interval", &a->bytes_interval);
}

void alloc_estimates_json(struct json_doc *d, cJSON *o, const struct summary_alloc *a)
{
	if (a->tier == ALLOC_TIER_SAMPLED) {
		json_text(d, o, "sampler", a->sampler);
		json_number(d, o, "rate", a->rate);
		add_interval(d, o, "bytes_interval", &a->bytes_interval);
		add_interval(d, o, "live_interval", &a->live_interval);
		json_count(d, o, "freed_samples", a->freed_samples);
		json_count(d, o, "unreported", a->unreported);
	}
	if (a->tier == ALLOC_TIER_BURSTS) {
		add_bursts(d, o, a);
		alloc_live_json(d, o, a);
	}
	alloc_live_peak_json(d, o, a);
}
