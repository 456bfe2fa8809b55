/*
 * What lives, estimated where calls are traced in bursts.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/alloc_parts.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <stdio.h>

static void put_live_sites(const struct summary_alloc *a, struct sink *out)
{
	if (!a->n_live_sites)
		return;
	sink_puts(
		out,
		"        bytes      95% low         high       kept   share  live, allocated by\n");
	for (uint32_t i = 0; i < a->n_live_sites; i++) {
		const struct site_row *row = &a->live_sites[i];

		cells_right(out, unit_bytes(row->value).s, 13);
		cells_right(out, unit_bytes(row->low).s, 13);
		cells_right(out, unit_bytes(row->high).s, 13);
		cells_right(out, unit_count((int64_t)row->samples).s, 11);
		cells_right(out, unit_percent(row->value, (int64_t)a->live_bytes).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(row), 24, row->module, 14);
	}
}

void alloc_live_peak_text(const struct summary_alloc *a, struct sink *out)
{
	if (!a->live_peak.known)
		return;
	sink_puts(out, "  ");
	cells_left(out, "peak", CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes(a->live_peak.bytes).s, 12);
	if (a->live_peak.in_use) {
		sink_printf(out, " in use at a look, %s into the run\n",
			    unit_ns(a->live_peak.at_ns).s);
		return;
	}
	sink_printf(out, " live, %s into the run; 95%% interval %s\n",
		    unit_ns(a->live_peak.at_ns).s,
		    unit_bytes_range(a->live_peak.low, a->live_peak.high, false).s);
}

void alloc_live_peak_json(struct json_doc *d, cJSON *to, const struct summary_alloc *a)
{
	cJSON *o;

	if (!a->live_peak.known)
		return;
	o = json_object(d, to, "live_peak");
	json_number(d, o, "bytes", a->live_peak.bytes);
	json_number(d, o, "low", a->live_peak.low);
	json_number(d, o, "high", a->live_peak.high);
	json_number(d, o, "at_ns", a->live_peak.at_ns);
	json_truth(d, o, "in_use", a->live_peak.in_use);
}

void alloc_live_text(const struct summary_alloc *a, struct sink *out)
{
	const struct summary_live *l = &a->live;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (!l->known) {
		if (l->why_not)
			sink_printf(out, "  live is unknown: %s\n", l->why_not);
		return;
	}
	sink_puts(out, "  ");
	cells_left(out, "live", CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_bytes((int64_t)a->live_bytes).s, 12);
	cells_right(out, unit_count((int64_t)a->live_objects).s, 14);
	sink_printf(out, " blocks; 95%% interval %s\n",
		    unit_bytes_range(a->live_interval.low, a->live_interval.high, false).s);
	alloc_live_peak_text(a, out);
	strbuf_printf(
		&b,
		"%u looks at the structures of %s, %s of CPU time: of the blocks seen in bursts "
		"%s may be in use; %s of others came again at the same address",
		l->looks, l->allocators, unit_ns(l->look_ns).s, unit_count((int64_t)l->kept).s,
		unit_count((int64_t)l->reused).s);
	if (l->before_bytes)
		strbuf_printf(&b, "; %s were in use before", unit_bytes(l->before_bytes).s);
	if (l->unknown)
		strbuf_printf(&b, "; %s times a look could not say",
			      unit_count((int64_t)l->unknown).s);
	if (l->cached)
		strbuf_puts(&b, "; blocks in thread caches count as in use");
	if (l->objects_bytes)
		strbuf_printf(&b, "; CPython's own objects, %s in use, are not among them",
			      unit_bytes(l->objects_bytes).s);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
	put_live_sites(a, out);
	alloc_leaks_text(a, out);
}

void alloc_live_json(struct json_doc *d, cJSON *to, const struct summary_alloc *a)
{
	const struct summary_live *l = &a->live;
	cJSON *o = json_object(d, to, "live_estimate");

	json_truth(d, o, "known", l->known);
	json_text(d, o, "why_not", l->why_not);
	if (!l->known)
		return;
	json_text(d, o, "allocators", l->allocators);
	json_number(d, o, "low", a->live_interval.low);
	json_number(d, o, "high", a->live_interval.high);
	json_count(d, o, "blocks", a->live_interval.samples);
	json_number(d, o, "before_bytes", l->before_bytes);
	json_number(d, o, "objects_bytes", l->objects_bytes);
	json_count(d, o, "looks", l->looks);
	json_count(d, o, "failed_looks", l->failed_looks);
	json_number(d, o, "look_ns", l->look_ns);
	json_count(d, o, "reused", l->reused);
	json_count(d, o, "unknown", l->unknown);
	json_truth(d, o, "caches_count", l->cached);
}
