/*
 * What was mapped by system calls beside the allocator.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

static void put_mapped(struct sink *out, const char *title, const struct site_row *rows, uint32_t n,
		       uint64_t whole)
{
	site_rows_text(out, "mappings", title, rows, n, whole, site_name_or_leaf);
}

/* Beside the allocator: what none of the figures above has. */
void section_mappings_text(const struct run_summary *s, struct sink *out)
{
	const struct summary_mappings *m = &s->alloc.mappings;
	static const char *const kinds[N_MEMORY_KINDS] = {
		[MEMORY_ANON] = "anonymous",
		[MEMORY_FILE] = "file-backed",
		[MEMORY_SHARED] = "shared",
	};
	uint64_t made = 0, live = 0;

	if (s->alloc.tier != ALLOC_TIER_EXACT)
		return;
	for (int i = 0; m->known && i < N_MEMORY_KINDS; i++) {
		made += m->by[i].made_bytes;
		live += m->by[i].live_bytes;
	}
	if (!made && !m->failed)
		return;
	cells_labelled(out, "Mappings",
		       "by mmap, mremap and brk outside the allocator, in bytes of address space; "
		       "tracing them adds some ns to every system call on this host");
	cells_right(out, "made", CELLS_LABEL_WIDTH + 12);
	cells_right(out, "released", 12);
	cells_right(out, "live", 12);
	sink_puts(out, "\n");
	for (int i = 0; i < N_MEMORY_KINDS; i++) {
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
		sink_printf(out, "  %s ended with their process image\n",
			    unit_bytes((int64_t)m->ended_bytes).s);
	if (m->failed)
		sink_printf(out, "  %s calls failed\n", unit_count((int64_t)m->failed).s);
	if (m->full)
		sink_printf(out,
			    "  %s mappings not tracked: no room (live is too low by "
			    "these); raise --mem\n",
			    unit_count((int64_t)m->full).s);
	put_mapped(out, "mapped by", m->sites, m->n_sites, made);
	put_mapped(out, "live, mapped by", m->live_sites, m->n_live_sites, live);
}

void section_mappings_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct summary_mappings *m = &s->alloc.mappings;
	static const char *const kinds[N_MEMORY_KINDS] = {
		[MEMORY_FILE] = "file",
		[MEMORY_ANON] = "anonymous",
		[MEMORY_SHARED] = "shared",
	};
	cJSON *o;

	if (!m->known) {
		json_null(d, root, "mappings");
		return;
	}
	o = json_object(d, root, "mappings");
	for (int i = 0; i < N_MEMORY_KINDS; i++) {
		cJSON *of = json_object(d, o, kinds[i]);

		json_count(d, of, "made", m->by[i].made);
		json_count(d, of, "made_bytes", m->by[i].made_bytes);
		json_count(d, of, "released_bytes", m->by[i].gone_bytes);
		json_count(d, of, "live", m->by[i].live);
		json_count(d, of, "live_bytes", m->by[i].live_bytes);
	}
	json_count(d, o, "ended_bytes", m->ended_bytes);
	json_count(d, o, "failed", m->failed);
	json_count(d, o, "untracked", m->full);
	site_rows_json(d, o, "sites", m->sites, m->n_sites);
	site_rows_json(d, o, "live_sites", m->live_sites, m->n_live_sites);
}
