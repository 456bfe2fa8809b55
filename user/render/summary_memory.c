#include "render/summary_memory.h"

#include "analyse/diagnosis.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "render/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MODULE_WIDTH 24

static const char *name_of(const struct site_row *row)
{
	return row->function[0] ? row->function : "[unknown]";
}

/* Where no function of the program asked, what the kernel did tells more than nothing. */
static const char *name_or_leaf(const struct site_row *row)
{
	return !row->function[0] && row->leaf[0] ? row->leaf : name_of(row);
}

static void put_rows(struct sink *out, const char *what, const char *title,
		     const struct site_row *rows, uint32_t n, uint64_t whole,
		     const char *(*name)(const struct site_row *row))
{
	if (n == 0)
		return;
	cells_right(out, "bytes", 12);
	cells_right(out, what, 14);
	sink_printf(out, "         %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 12);
		cells_right(out, unit_count(rows[i].count).s, 14);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name(&rows[i]), 42, rows[i].module, 18);
	}
}

static void put_sites(struct sink *out, const char *title, const struct site_row *rows, uint32_t n,
		      uint64_t whole)
{
	put_rows(out, "blocks", title, rows, n, whole, name_of);
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

static void put_leaks(const struct summary_alloc *a, struct sink *out)
{
	if (a->n_leaks == 0)
		return;
	cells_right(out, "live", 12);
	cells_right(out, "a minute", 14);
	sink_printf(out, "   kept  growing, allocated by (kept: of blocks older than %.0f s)\n",
		    a->leaks[0].age_s);
	for (uint32_t i = 0; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];

		cells_right(out, unit_bytes(l->live).s, 12);
		cells_right(out, unit_bytes((int64_t)(l->slope * 60)).s, 14);
		cells_right(out, unit_percent((int64_t)(l->survived * 1000), 1000).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name_of(&l->site), 42, l->site.module, 18);
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_printf(out, "95 %% interval %s, r2 %.3f, since second %.0f\n",
			    unit_bytes_range((int64_t)(l->slope_low * 60),
					     (int64_t)(l->slope_high * 60), false)
				    .s,
			    l->r2, l->since_s);
	}
}

static void put_alloc_odds(const struct summary_alloc *a, struct sink *out)
{
	static const struct {
		size_t offset;
		const char *text;
	} odds[] = {
		{ offsetof(struct summary_alloc, failed), "calls failed (returned NULL)" },
		{ offsetof(struct summary_alloc, earlier_frees),
		  "frees of blocks from before the run" },
		{ offsetof(struct summary_alloc, inherited_frees),
		  "frees by children of what they inherited by fork (it stays their parent's)" },
		{ offsetof(struct summary_alloc, untracked),
		  "blocks not followed: the block table was full (live is too low by these)" },
	};

	for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
		uint64_t n = *(const uint64_t *)((const char *)a + odds[i].offset);

		if (n > 0)
			sink_printf(out, "  %s %s\n", unit_count((int64_t)n).s, odds[i].text);
	}
}

/* Half of the interval's width, as a share of the estimate. */
static struct unit_text plus_minus(int64_t value, int64_t low, int64_t high)
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
	cells_right(out, plus_minus((int64_t)bytes, i->low, i->high).s, 9);
	cells_right(out, unit_count((int64_t)objects).s, 14);
	sink_printf(out, " blocks, by %s samples\n", unit_count((int64_t)i->samples).s);
}

static void put_estimated_sites(struct sink *out, const char *what, const struct site_row *rows,
				uint32_t n, uint64_t whole)
{
	if (!n)
		return;
	sink_printf(out, "       bytes       95%%  samples  share  %s\n", what);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 12);
		cells_right(out, plus_minus(rows[i].value, rows[i].low, rows[i].high).s, 10);
		cells_right(out, unit_count((int64_t)rows[i].samples).s, 9);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name_of(&rows[i]), 38, rows[i].module, 18);
	}
}

static void put_sampled(const struct summary_alloc *a, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	strbuf_puts(&b, "sampled by ");
	strbuf_add_clean(&b, a->sampler, strlen(a->sampler));
	if (a->rate > 0)
		strbuf_printf(&b, ", every %s on average", unit_bytes(a->rate).s);
	strbuf_puts(&b, ": unbiased estimates, with their 95% intervals");
	if (a->covered_from_ns > 0)
		strbuf_printf(&b, "; from %s of the run", unit_ns(a->covered_from_ns).s);
	if (a->reason)
		strbuf_printf(&b, "; %s", a->reason);
	cells_labelled(out, "Allocations", b.s ? b.s : "");
	put_estimate(out, "allocated", a->bytes, a->objects, &a->bytes_interval);
	if (!a->untold || a->untold < a->bytes_interval.samples)
		put_estimate(out, "live", a->live_bytes, a->live_objects, &a->live_interval);
	if (a->untold)
		sink_printf(
			out,
			"  %s of the samples are not in live: their sampler does not tell of frees\n",
			unit_count((int64_t)a->untold).s);
	if (a->earlier_frees)
		sink_printf(
			out,
			"  %s samples freed that were not followed (from before the run, a parent's, or "
			"left out)\n",
			unit_count((int64_t)a->earlier_frees).s);
	if (a->untracked)
		sink_printf(out, "  %s samples not followed: no room (live is too low by these)\n",
			    unit_count((int64_t)a->untracked).s);
	put_estimated_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_estimated_sites(out, "live, allocated by", a->live_sites, a->n_live_sites,
			    a->live_bytes);
}

/* --- exact: what became of the blocks --- */

#define CLASSES_SHOWN 6

/* "under 10 µs 1.2%, 100 µs 30.1%, …": the largest classes, in order of their limits. */
static void put_classes(struct sink *out, const char *what, const uint64_t *n, uint32_t n_classes,
			struct unit_text (*limit)(uint32_t class))
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	uint64_t whole = 0;

	for (uint32_t i = 0; i < n_classes; i++)
		whole += n[i];
	if (!whole)
		return;
	for (uint32_t i = 0; i < n_classes; i++) {
		uint32_t larger = 0;

		for (uint32_t k = 0; k < n_classes; k++)
			larger += n[k] > n[i] || (n[k] == n[i] && k < i);
		if (!n[i] || larger >= CLASSES_SHOWN)
			continue;
		strbuf_printf(&b, "%s%s %s", b.len ? ", " : "",
			      i + 1 < n_classes ? limit(i).s : "more",
			      unit_percent((int64_t)n[i], (int64_t)whole).s);
	}
	sink_puts(out, "  ");
	cells_left(out, what, 2 * CELLS_LABEL_WIDTH - 4);
	cells_wrapped(out, b.s ? b.s : "", 2 * CELLS_LABEL_WIDTH - 2, true);
}

static struct unit_text life_limit(uint32_t class)
{
	static const char *const limits[ALLOC_LIVES - 1] = { "10 µs",  "100 µs", "1 ms", "10 ms",
							     "100 ms", "1 s",    "10 s" };
	struct unit_text t;

	snprintf(t.s, sizeof(t.s), "%s", limits[class]);
	return t;
}

static struct unit_text size_limit(uint32_t class)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	uint32_t bits = class + 3;
	struct unit_text t;

	snprintf(t.s, sizeof(t.s), "%u %s", 1U << bits % 10, units[bits / 10]);
	return t;
}

static void put_share(struct sink *out, const char *what, uint64_t n, uint64_t whole,
		      const char *meaning)
{
	sink_puts(out, "  ");
	cells_left(out, what, CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_percent((int64_t)n, (int64_t)whole).s, 12);
	cells_right(out, unit_count((int64_t)n).s, 14);
	sink_printf(out, " %s\n", meaning);
}

static void put_peak(const struct summary_alloc *a, struct sink *out)
{
	int64_t rest = a->peak.bytes - a->peak.on_stacks;

	sink_puts(out, "  ");
	cells_left(out, "peak", CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes(a->peak.bytes).s, 12);
	cells_right(out, unit_count(a->peak.objects).s, 14);
	if (a->peak.images == 1)
		sink_printf(out, " blocks, %s into the run\n", unit_ns(a->peak.at_ns).s);
	else
		sink_printf(out, " blocks: each of %u process images at its own highest point\n",
			    a->peak.images);
	if (rest)
		sink_printf(out,
			    "  stacks tell %s %s of the peak: threads allocated at one moment\n",
			    unit_bytes(rest < 0 ? -rest : rest).s, rest < 0 ? "more" : "less");
}

static void put_fates(const struct summary_alloc *a, struct sink *out)
{
	if (!a->more || !a->objects)
		return;
	put_peak(a, out);
	put_share(out, "temporary", a->temporary, a->objects,
		  "freed by their thread before it allocated again");
	if (a->cross_freed)
		put_share(out, "crossing", a->cross_freed, a->freed_objects,
			  "of the freed: by another thread");
	put_classes(out, "lived less than", a->lives, ALLOC_LIVES, life_limit);
	put_classes(out, "sizes of up to", a->sizes, ALLOC_SIZES, size_limit);
}

/* `as_bytes`: what the second column counts. */
static void put_counted(struct sink *out, const char *value, const char *beside, bool as_bytes,
			const char *title, const struct site_row *rows, uint32_t n, uint64_t whole)
{
	if (n == 0)
		return;
	cells_right(out, value, 12);
	cells_right(out, beside, 14);
	sink_printf(out, "         %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_count(rows[i].value).s, 12);
		cells_right(out,
			    as_bytes ? unit_bytes(rows[i].count).s : unit_count(rows[i].count).s,
			    14);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name_of(&rows[i]), 42, rows[i].module, 18);
	}
}

static void put_threads(const struct summary_alloc *a, struct sink *out)
{
	const struct summary_sites *m = a->more;

	if (m->seen_threads < 2)
		return;
	cells_right(out, "bytes", 12);
	cells_right(out, "blocks", 14);
	sink_printf(out, "         allocated by thread, of %s\n", unit_count(m->seen_threads).s);
	for (uint32_t i = 0; i < m->n_threads; i++) {
		cells_right(out, unit_bytes(m->threads[i].bytes).s, 12);
		cells_right(out, unit_count(m->threads[i].objects).s, 14);
		cells_right(out, unit_percent(m->threads[i].bytes, (int64_t)a->bytes).s, 7);
		sink_puts(out, "  ");
		cells_name(out, m->threads[i].name, 42, true);
		sink_printf(out, "  %d\n", (int)m->threads[i].tid);
	}
}

static void put_more_sites(const struct summary_alloc *a, struct sink *out)
{
	const struct summary_sites *m = a->more;

	if (!m)
		return;
	put_sites(out, "live at the peak, allocated by", m->peak, m->n_peak,
		  (uint64_t)a->peak.on_stacks);
	put_counted(out, "blocks", "bytes", true, "most allocations", m->calls, m->n_calls,
		    a->objects);
	put_counted(out, "temporary", "of blocks", false, "most temporary", m->temporary,
		    m->n_temporary, a->temporary);
	put_threads(a, out);
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
static void put_slices(const struct summary_alloc *a, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->slices.from_ns > a->covered_from_ns)
		strbuf_printf(&b, "every call until %s of the run, then in ",
			      unit_ns(a->slices.from_ns).s);
	strbuf_printf(&b, "%u slices of time, %s of it, at %.2g%% of one CPU", a->slices.n,
		      unit_percent(a->slices.covered_ns, a->slices.span_ns).s,
		      a->slices.cost_percent);
	if (a->slices.weight > 0)
		strbuf_printf(&b, "; %s calls seen, each for %s (95%% interval %s to %s)",
			      unit_count((int64_t)a->slices.seen_calls).s,
			      weight_text(a->slices.weight).s, weight_text(a->slices.weight_low).s,
			      weight_text(a->slices.weight_high).s);
	strbuf_puts(&b, "; frees and what lives are not told");
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
	if (!a->n_sites)
		return;
	sink_puts(out, "       bytes   95%, from          to       seen  share  allocated by\n");
	for (uint32_t i = 0; i < a->n_sites; i++) {
		const struct site_row *row = &a->sites[i];

		cells_right(out, unit_bytes(row->value).s, 12);
		cells_right(out, unit_bytes(row->low).s, 12);
		cells_right(out, unit_bytes(row->high).s, 12);
		cells_right(out, unit_count((int64_t)row->samples).s, 11);
		cells_right(out, unit_percent(row->value, (int64_t)a->bytes).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name_of(row), 34, row->module, 18);
	}
}

static void put_mapped(struct sink *out, const char *title, const struct site_row *rows, uint32_t n,
		       uint64_t whole)
{
	put_rows(out, "mappings", title, rows, n, whole, name_or_leaf);
}

/* Beside the allocator: what none of the figures above has. */
static void put_mappings(const struct summary_mappings *m, struct sink *out)
{
	static const char *const kinds[N_MAPPING_KINDS] = {
		[MAPPING_ANON] = "anonymous",
		[MAPPING_FILE] = "of files",
		[MAPPING_SHARED] = "shared",
	};
	uint64_t made = 0, live = 0;

	for (int i = 0; m->known && i < N_MAPPING_KINDS; i++) {
		made += m->by[i].made_bytes;
		live += m->by[i].live_bytes;
	}
	if (!made && !m->failed)
		return;
	cells_labelled(out, "Mappings",
		       "by mmap, mremap and brk outside of the allocator, in bytes of address "
		       "space: every system call on this host took some ns more for it");
	cells_right(out, "made", CELLS_LABEL_WIDTH + 12);
	cells_right(out, "given back", 12);
	cells_right(out, "still there", 12);
	sink_puts(out, "\n");
	for (int i = 0; i < N_MAPPING_KINDS; i++) {
		if (!m->by[i].made)
			continue;
		sink_puts(out, "  ");
		cells_left(out, kinds[i], CELLS_LABEL_WIDTH - 2);
		cells_right(out, unit_bytes((int64_t)m->by[i].made_bytes).s, 12);
		cells_right(out, unit_bytes((int64_t)m->by[i].gone_bytes).s, 12);
		cells_right(out, unit_bytes((int64_t)m->by[i].live_bytes).s, 12);
		sink_printf(out, "  in %s of %s mappings\n", unit_count((int64_t)m->by[i].live).s,
			    unit_count((int64_t)m->by[i].made).s);
	}
	if (m->ended_bytes)
		sink_printf(out, "  %s went with images that ended\n",
			    unit_bytes((int64_t)m->ended_bytes).s);
	if (m->failed)
		sink_printf(out, "  %s calls failed\n", unit_count((int64_t)m->failed).s);
	if (m->full)
		sink_printf(out,
			    "  %s mappings not followed: no room (still there is too low by "
			    "these); raise --mem\n",
			    unit_count((int64_t)m->full).s);
	put_mapped(out, "mapped by", m->sites, m->n_sites, made);
	put_mapped(out, "still there, mapped by", m->live_sites, m->n_live_sites, live);
}

void summary_put_alloc(const struct run_summary *s, struct sink *out)
{
	const struct summary_alloc *a = &s->alloc;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->tier == ALLOC_TIER_SAMPLED) {
		put_sampled(a, out);
		return;
	}
	if (a->tier == ALLOC_TIER_SLICES) {
		put_slices(a, out);
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
		strbuf_printf(&b, "; tracing cost about %.1f%% of one CPU", a->cost_percent);
	if (a->reason)
		strbuf_printf(&b, "; %s", a->reason);
	cells_labelled(out, "Allocations", b.s ? b.s : "");
	put_allocated(a, out);
	put_alloc_row(out, "freed", a->freed_bytes, a->freed_objects);
	put_alloc_row(out, "live", a->live_bytes, a->live_objects);
	if (a->before_known && a->start_objects)
		put_alloc_row(out, "from before", a->before_bytes, a->before_objects);
	put_fates(a, out);
	put_alloc_odds(a, out);
	put_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_sites(out, "live, allocated by", a->live_sites, a->n_live_sites,
		  a->live_bytes + a->before_bytes);
	put_more_sites(a, out);
	put_leaks(a, out);
	put_mappings(&a->mappings, out);
}

/* Two verdicts, kept apart: of all points, and of two. */
static void put_course(const struct run_summary *s, struct sink *out)
{
	char reason[256], line[320];

	if (s->course.kind == COURSE_SHORT)
		return;
	course_reason(&s->course, reason, sizeof(reason));
	snprintf(line, sizeof(line), "%s: %s", course_name(s->course.kind), reason);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	cells_wrapped(out, line, CELLS_LABEL_WIDTH, true);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	sink_printf(out, "plain rule: %s: RSS %+.1f%% from first to last\n",
		    plain_words(s->plain.kind), s->plain.percent);
}

static uint64_t growth_sum(const uint64_t bytes[N_GROWTH_KINDS])
{
	return bytes[GROWTH_FILE] + bytes[GROWTH_ANON] + bytes[GROWTH_SHARED];
}

static void put_growth_sites(struct sink *out, const char *title, const struct site_row *rows,
			     uint32_t n, uint64_t whole)
{
	if (n == 0)
		return;
	cells_right(out, "bytes", 12);
	sink_printf(out, "         %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 12);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		cells_in_image(out, name_or_leaf(&rows[i]), 48, rows[i].module, MODULE_WIDTH);
	}
}

static struct unit_text signed_bytes(int64_t bytes)
{
	struct unit_text t = unit_bytes(bytes < 0 ? -bytes : bytes);

	memmove(t.s + 1, t.s, sizeof(t.s) - 2);
	t.s[0] = bytes < 0 ? '-' : '+';
	return t;
}

static void put_growth_check(const struct summary_growth *g, struct sink *out)
{
	int64_t more = g->check.rss_bytes - g->check.told_bytes;

	if (g->check.processes == 0)
		return;
	sink_printf(out, "  RSS changed by %s", signed_bytes(g->check.rss_bytes).s);
	if (more == 0)
		sink_puts(out, ", all of it told by the kernel's events\n");
	else
		sink_printf(out, ", which is %s %s than the kernel's events tell\n",
			    unit_bytes(more < 0 ? -more : more).s, more < 0 ? "less" : "more");
}

void summary_put_growth(const struct run_summary *s, struct sink *out)
{
	static const char *const kinds[N_GROWTH_KINDS] = {
		[GROWTH_ANON] = "anonymous",
		[GROWTH_FILE] = "of files",
		[GROWTH_SHARED] = "shared",
	};
	const struct summary_growth *g = &s->growth;
	uint64_t resident = growth_sum(g->resident_bytes), returned = growth_sum(g->returned_bytes);

	if (!g->known || resident + returned == 0)
		return;
	cells_label(out, "Growth");
	sink_printf(out, "%s became resident, %s was given back", unit_bytes((int64_t)resident).s,
		    unit_bytes((int64_t)returned).s);
	if (g->made_bytes == 0 && g->ended_bytes == 0)
		sink_printf(out, " (%s)", signed_bytes((int64_t)(resident - returned)).s);
	sink_puts(out, "\n");
	for (int i = 0; i < N_GROWTH_KINDS; i++) {
		if (g->resident_bytes[i] + g->returned_bytes[i] == 0)
			continue;
		sink_puts(out, "  ");
		cells_left(out, kinds[i], CELLS_LABEL_WIDTH - 2);
		cells_right(out, signed_bytes((int64_t)g->resident_bytes[i]).s, 12);
		cells_right(out, signed_bytes(-(int64_t)g->returned_bytes[i]).s, 14);
		sink_puts(out, "\n");
	}
	put_growth_check(g, out);
	if (g->made_bytes > 0 || g->ended_bytes > 0)
		sink_printf(out,
			    "  besides, forks and execs made %s, and %s went with what ended\n",
			    unit_bytes((int64_t)g->made_bytes).s,
			    unit_bytes(g->ended_bytes > 0 ? g->ended_bytes : 0).s);
	put_growth_sites(out, "made resident by", g->sites, g->n_sites, g->on_stacks);
	put_growth_sites(out, "given back by", g->returned_sites, g->n_returned_sites,
			 g->returned_on_stacks);
}

void summary_put_rss(const struct run_summary *s, struct sink *out)
{
	int64_t grown_kb = s->rss.last_kb - s->rss.first_kb;

	if (!s->rss.known || s->rss.first_kb < 0 || s->rss.last_kb < 0)
		return;
	cells_label(out, "Memory");
	sink_printf(out, "RSS %s at first, %s at last (%s%s)", unit_bytes(s->rss.first_kb * 1024).s,
		    unit_bytes(s->rss.last_kb * 1024).s, grown_kb < 0 ? "-" : "+",
		    unit_bytes((grown_kb < 0 ? -grown_kb : grown_kb) * 1024).s);
	if (s->rss.peak_kb >= 0)
		sink_printf(out, ", peak %s", unit_bytes(s->rss.peak_kb * 1024).s);
	sink_puts(out, "\n");
	if (s->rss.shared) {
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_puts(out, "a page that several processes share counts in each\n");
	}
	if (s->memory.known) {
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_printf(out, "its own (anonymous and swap) %s %s, %s at last\n",
			    unit_bytes(s->memory.base * 1024).s,
			    s->memory.from_quarter ? "after a quarter of the run" : "at first",
			    unit_bytes(s->memory.last * 1024).s);
	}
	put_course(s, out);
}

void summary_put_diagnoses(const struct run_summary *s, struct sink *out)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	char sentence[sizeof(found->evidence) + 32];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(sentence, sizeof(sentence), "%s: %s", diagnosis_name(found[i].kind),
			 found[i].evidence);
		cells_labelled(out, "Diagnosis", sentence);
	}
}
