/*
 * What was allocated, what of it lives, and by whom.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/alloc_parts.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <math.h>
#include <string.h>

static void put_sites(struct sink *out, const char *title, const struct site_row *rows, uint32_t n,
		      uint64_t whole)
{
	site_rows_text(out, "blocks", title, rows, n, whole, site_name);
}

static void put_alloc_row(struct sink *out, const char *what, uint64_t bytes, uint64_t objects)
{
	sink_puts(out, "  ");
	cells_left(out, what, CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes((int64_t)bytes).s, 12);
	cells_right(out, unit_count((int64_t)objects).s, 14);
	sink_puts(out, " blocks\n");
}

static void put_allocated(const struct summary_alloc *a, struct sink *out)
{
	int64_t ns = a->covered_to_ns - a->covered_from_ns;

	sink_puts(out, "  ");
	cells_left(out, "allocated", CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes((int64_t)a->bytes).s, 12);
	cells_right(out, unit_count((int64_t)a->objects).s, 14);
	sink_puts(out, " blocks");
	if (ns > 0)
		sink_printf(out, ", %s a second",
			    unit_count((int64_t)((double)a->objects * 1e9 / (double)ns)).s);
	sink_puts(out, "\n");
}

static void put_alloc_odds(const struct summary_alloc *a, struct sink *out)
{
	static const struct {
		size_t offset;
		const char *text;
	} odds[] = {
		{ offsetof(struct summary_alloc, failed), "calls failed (returned NULL)" },
		{ offsetof(struct summary_alloc, earlier_frees), "frees of pre-existing blocks" },
		{ offsetof(struct summary_alloc, inherited_frees),
		  "frees by children of blocks inherited by fork (counted as the parent's)" },
		{ offsetof(struct summary_alloc, untracked),
		  "blocks not tracked: the block table was full (live is too low by these)" },
	};

	for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
		uint64_t n = *(const uint64_t *)((const char *)a + odds[i].offset);

		if (n > 0)
			sink_printf(out, "  %s %s\n", unit_count((int64_t)n).s, odds[i].text);
	}
}

void section_alloc_text(const struct run_summary *s, struct sink *out)
{
	const struct summary_alloc *a = &s->alloc;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->tier == ALLOC_TIER_SAMPLED) {
		alloc_sampled_text(a, out);
		alloc_unseen_text(s, out);
		return;
	}
	if (a->tier == ALLOC_TIER_BURSTS) {
		alloc_bursts_text(a, out);
		alloc_unseen_text(s, out);
		return;
	}
	if (a->tier != ALLOC_TIER_EXACT) {
		if (a->reason)
			cells_labelled(out, "Allocations", a->reason);
		return;
	}
	strbuf_puts(&b, "every call");
	if (a->covered_to_ns > a->covered_from_ns)
		strbuf_printf(&b, " from %s to %s of the run", unit_ns(a->covered_from_ns).s,
			      unit_ns(a->covered_to_ns).s);
	if (a->calls_per_s > 0)
		strbuf_printf(&b, ", %s a second", unit_count((int64_t)a->calls_per_s).s);
	if (a->cost_percent > 0)
		strbuf_printf(&b, "; tracing costs about %.1f%% of one CPU", a->cost_percent);
	if (a->reason)
		strbuf_printf(&b, "; %s", a->reason);
	cells_labelled(out, "Allocations", b.s ? b.s : "");
	put_allocated(a, out);
	put_alloc_row(out, "freed", a->freed_bytes, a->freed_objects);
	put_alloc_row(out, "live", a->live_bytes, a->live_objects);
	if (a->preexisting_known && a->start_objects)
		put_alloc_row(out, "pre-existing", a->preexisting_bytes, a->preexisting_objects);
	alloc_fates_text(a, out);
	put_alloc_odds(a, out);
	put_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_sites(out, "live, allocated by", a->live_sites, a->n_live_sites,
		  a->live_bytes + a->preexisting_bytes);
	alloc_more_sites_text(a, out);
	alloc_leaks_text(a, out);
	alloc_unseen_text(s, out);
}

/* "4.0 MiB (95% interval 3.0 MiB to 5.0 MiB)" */
static void add_estimate(struct strbuf *b, uint64_t bytes, const struct summary_interval *i)
{
	strbuf_puts(b, unit_bytes((int64_t)bytes).s);
	if (i->high > i->low)
		strbuf_printf(b, " (95%% interval %s)", unit_bytes_range(i->low, i->high, false).s);
}

static void add_totals(struct strbuf *b, const struct summary_alloc *a)
{
	if (a->tier == ALLOC_TIER_EXACT) {
		strbuf_printf(b, "%s in %s blocks, every call traced; live %s in %s",
			      unit_bytes((int64_t)a->bytes).s, unit_count((int64_t)a->objects).s,
			      unit_bytes((int64_t)a->live_bytes).s,
			      unit_count((int64_t)a->live_objects).s);
		if (a->untracked)
			strbuf_printf(b, " (too low by %s blocks)",
				      unit_count((int64_t)a->untracked).s);
		return;
	}
	add_estimate(b, a->bytes, &a->bytes_interval);
	if (a->tier == ALLOC_TIER_BURSTS) {
		strbuf_printf(b, ", estimated from %s of the time",
			      unit_percent(a->bursts.covered_ns, a->bursts.span_ns).s);
		if (a->live.known) {
			strbuf_puts(b, "; live ");
			add_estimate(b, a->live_bytes, &a->live_interval);
		}
		return;
	}
	if (!a->unreported || a->unreported < a->bytes_interval.samples) {
		strbuf_puts(b, "; live ");
		add_estimate(b, a->live_bytes, &a->live_interval);
	}
	strbuf_puts(b, "; sampled by ");
	strbuf_add_clean(b, a->sampler ? a->sampler : "", a->sampler ? strlen(a->sampler) : 0);
}

void section_alloc_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	const struct summary_alloc *a = &s->alloc;
	bool sure = a->tier == ALLOC_TIER_EXACT;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->tier == ALLOC_TIER_OFF || a->tier == ALLOC_TIER_DECLINED)
		strbuf_puts(&b, a->reason ? a->reason : "");
	else
		add_totals(&b, a);
	if (!b.len)
		return;
	cells_line(out, "Allocations");
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
	alloc_unseen_text(s, out);
	if (!a->n_sites || a->tier == ALLOC_TIER_OFF || a->tier == ALLOC_TIER_DECLINED)
		return;
	sink_puts(out, SUMMARY_HEADING);
	cells_right(out, "bytes", 13);
	cells_right(out, sure ? "blocks" : "95%", 14);
	sink_puts(out, "   share  allocated by\n");
	for (uint32_t i = 0; i < a->n_sites && i < rows; i++) {
		const struct site_row *row = &a->sites[i];

		cells_right(out, unit_bytes(row->value).s, 13);
		cells_right(out,
			    sure ? unit_count(row->count).s
				 : half_interval(row->value, row->low, row->high).s,
			    14);
		cells_right(out, unit_percent(row->value, (int64_t)a->bytes).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(row), 40, row->module, 18);
	}
}

void section_alloc_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct summary_alloc *a = &s->alloc;
	static const char *const tiers[] = {
		[ALLOC_TIER_OFF] = "off",           [ALLOC_TIER_EXACT] = "exact",
		[ALLOC_TIER_SAMPLED] = "sampled",   [ALLOC_TIER_BURSTS] = "bursts",
		[ALLOC_TIER_DECLINED] = "declined",
	};
	cJSON *o = json_object(d, root, "alloc");

	json_text(d, o, "tier", tiers[a->tier]);
	json_text(d, o, "reason", a->reason);
	json_real(d, o, "calls_per_s", a->calls_per_s > 0 ? a->calls_per_s : NAN);
	json_real(d, o, "cost_percent", a->cost_percent > 0 ? a->cost_percent : NAN);
	json_number(d, o, "covered_from_ns", a->covered_from_ns);
	json_number(d, o, "covered_to_ns", a->covered_to_ns);
	alloc_unseen_json(d, o, s);
	json_count(d, o, "objects", a->objects);
	json_count(d, o, "bytes", a->bytes);
	json_count(d, o, "freed_objects", a->freed_objects);
	json_count(d, o, "freed_bytes", a->freed_bytes);
	json_count(d, o, "live_objects", a->live_objects);
	json_count(d, o, "live_bytes", a->live_bytes);
	json_count(d, o, "failed", a->failed);
	json_count(d, o, "inherited_frees", a->inherited_frees);
	json_count(d, o, "earlier_frees", a->earlier_frees);
	json_count(d, o, "untracked", a->untracked);
	if (a->preexisting_known) {
		json_count(d, o, "preexisting_objects", a->preexisting_objects);
		json_count(d, o, "preexisting_bytes", a->preexisting_bytes);
		json_count(d, o, "start_objects", a->start_objects);
		json_count(d, o, "start_bytes", a->start_bytes);
	}
	alloc_estimates_json(d, o, a);
	site_rows_json(d, o, "sites", a->sites, a->n_sites);
	site_rows_json(d, o, "live_sites", a->live_sites, a->n_live_sites);
	alloc_leaks_json(d, o, a);
	alloc_fates_json(d, o, a);
}
