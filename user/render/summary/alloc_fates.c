/*
 * Allocations of which every call was traced: what became of the blocks.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/alloc_parts.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <stdio.h>

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
	cells_left(out, what, CELLS_LABEL_WIDTH + 4);
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH + 6, true);
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
		sink_printf(out, " blocks, over %u process images, each at its own peak\n",
			    a->peak.images);
	if (rest)
		sink_printf(
			out,
			"  stacks add up to %s %s than the peak: threads allocated at the same time\n",
			unit_bytes(rest < 0 ? -rest : rest).s, rest < 0 ? "more" : "less");
}

void alloc_fates_text(const struct summary_alloc *a, struct sink *out)
{
	if (!a->more || !a->objects)
		return;
	put_peak(a, out);
	put_share(out, "temporary", a->temporary, a->objects,
		  "freed by their thread before its next allocation");
	if (a->cross_freed)
		put_share(out, "cross-thread", a->cross_freed, a->freed_objects,
			  "of the freed: freed by another thread");
	put_classes(out, "lifetime under", a->lives, ALLOC_LIVES, life_limit);
	put_classes(out, "size up to", a->sizes, ALLOC_SIZES, size_limit);
}

/* `as_bytes`: what the second column counts. */
static void put_counted(struct sink *out, const char *value, const char *beside, bool as_bytes,
			const char *title, const struct site_row *rows, uint32_t n, uint64_t whole)
{
	if (n == 0)
		return;
	cells_right(out, value, 13);
	cells_right(out, beside, 14);
	sink_printf(out, "          %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_count(rows[i].value).s, 13);
		cells_right(out,
			    as_bytes ? unit_bytes(rows[i].count).s : unit_count(rows[i].count).s,
			    14);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(&rows[i]), 40, rows[i].module, 18);
	}
}

static void put_threads(const struct summary_alloc *a, struct sink *out)
{
	const struct summary_sites *m = a->more;

	if (m->seen_threads < 2 || !m->n_threads)
		return;
	cells_right(out, "bytes", 13);
	cells_right(out, "blocks", 14);
	sink_printf(out, "          allocated by thread, of %s\n", unit_count(m->seen_threads).s);
	for (uint32_t i = 0; i < m->n_threads; i++) {
		cells_right(out, unit_bytes(m->threads[i].bytes).s, 13);
		cells_right(out, unit_count(m->threads[i].objects).s, 14);
		cells_right(out, unit_percent(m->threads[i].bytes, (int64_t)a->bytes).s, 8);
		sink_puts(out, "  ");
		cells_name(out, m->threads[i].name, 42, true);
		sink_printf(out, "  %d\n", (int)m->threads[i].tid);
	}
}

void alloc_more_sites_text(const struct summary_alloc *a, struct sink *out)
{
	const struct summary_sites *m = a->more;

	if (!m)
		return;
	site_rows_text(out, "blocks", "live at the peak, allocated by", m->peak, m->n_peak,
		       (uint64_t)a->peak.on_stacks, site_name);
	put_counted(out, "blocks", "bytes", true, "top by allocations", m->calls, m->n_calls,
		    a->objects);
	put_counted(out, "temporary", "of blocks", false, "top by temporary allocations",
		    m->temporary, m->n_temporary, a->temporary);
	put_threads(a, out);
}

/* `limit`: what the first class is below or at, each next one times `factor`; the last has none. */
static void add_classes(struct json_doc *d, cJSON *in, const char *key, const char *limit_key,
			uint64_t limit, uint64_t factor, const uint64_t *n, uint32_t n_classes)
{
	cJSON *list = json_array(d, in, key), *o;

	for (uint32_t i = 0; i < n_classes; i++, limit *= factor) {
		if (!n[i])
			continue;
		o = json_element(d, list);
		if (i + 1 < n_classes)
			json_count(d, o, limit_key, limit);
		else
			json_null(d, o, limit_key);
		json_count(d, o, "blocks", n[i]);
	}
}

static void add_counted_sites(struct json_doc *d, cJSON *in, const char *key,
			      const struct site_row *rows, uint32_t n, const char *value_key,
			      const char *count_key)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].function);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, value_key, rows[i].value);
		json_number(d, o, count_key, rows[i].count);
	}
}

/* Only of exact tracing. */
void alloc_fates_json(struct json_doc *d, cJSON *o, const struct summary_alloc *a)
{
	const struct summary_sites *more = a->more;
	cJSON *peak, *list;

	if (!more)
		return;
	json_count(d, o, "temporary", a->temporary);
	json_count(d, o, "cross_thread_frees", a->cross_freed);
	json_count(d, o, "lifetime_ns", a->life_ns);
	peak = json_object(d, o, "peak");
	json_count(d, peak, "images", a->peak.images);
	json_number(d, peak, "bytes", a->peak.bytes);
	json_number(d, peak, "objects", a->peak.objects);
	json_number(d, peak, "on_stacks_bytes", a->peak.on_stacks);
	json_number(d, peak, "at_ns", a->peak.at_ns);
	add_classes(d, o, "lifetimes", "under_ns", 10000, 10, a->lives, ALLOC_LIVES);
	add_classes(d, o, "sizes", "up_to_bytes", 8, 2, a->sizes, ALLOC_SIZES);
	add_counted_sites(d, o, "peak_sites", more->peak, more->n_peak, "bytes", "blocks");
	add_counted_sites(d, o, "call_sites", more->calls, more->n_calls, "calls", "bytes");
	add_counted_sites(d, o, "temporary_sites", more->temporary, more->n_temporary, "temporary",
			  "calls");
	json_count(d, o, "n_threads", more->seen_threads);
	list = json_array(d, o, "threads");
	for (uint32_t i = 0; i < more->n_threads; i++) {
		cJSON *t = json_element(d, list);

		json_number(d, t, "pid", more->threads[i].pid);
		json_number(d, t, "tid", more->threads[i].tid);
		json_text(d, t, "name", more->threads[i].name);
		json_number(d, t, "objects", more->threads[i].objects);
		json_number(d, t, "bytes", more->threads[i].bytes);
	}
}
