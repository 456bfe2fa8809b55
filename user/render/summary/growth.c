/*
 * Pages first touched, and those released.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <string.h>

#define MODULE_WIDTH 24

static uint64_t growth_sum(const uint64_t bytes[N_MEMORY_KINDS])
{
	return bytes[MEMORY_FILE] + bytes[MEMORY_ANON] + bytes[MEMORY_SHARED];
}

static void put_growth_sites(struct sink *out, const char *title, const struct site_row *rows,
			     uint32_t n, uint64_t whole)
{
	if (n == 0)
		return;
	cells_right(out, "bytes", 13);
	sink_printf(out, "          %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 13);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, site_name_or_leaf(&rows[i]), 48, rows[i].module, MODULE_WIDTH);
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
	int64_t more = g->check.rss_bytes - g->check.reported_bytes;

	if (g->check.processes == 0)
		return;
	sink_printf(out, "  RSS changed by %s", signed_bytes(g->check.rss_bytes).s);
	if (more == 0)
		sink_puts(out, ", as the kernel's events report\n");
	else
		sink_printf(out, ", %s %s than the kernel's events report\n",
			    unit_bytes(more < 0 ? -more : more).s, more < 0 ? "less" : "more");
}

static void put_growing(const struct summary_growth *g, struct sink *out)
{
	if (!g->n_growing)
		return;
	cells_right(out, "a minute", 13);
	sink_puts(out, "          goes on being touched by\n");
	for (uint32_t i = 0; i < g->n_growing; i++) {
		const struct summary_leak *l = &g->growing[i];

		cells_right(out, unit_bytes((int64_t)(l->slope * 60)).s, 13);
		cells_spaces(out, 10);
		cells_in_image(out, site_name_or_leaf(&l->site), 48, l->site.module, MODULE_WIDTH);
		cells_spaces(out, CELLS_LABEL_WIDTH);
		sink_printf(out, "95 %% interval %s, r2 %.3f, steadily since second %.0f\n",
			    unit_bytes_range((int64_t)(l->slope_low * 60),
					     (int64_t)(l->slope_high * 60), false)
				    .s,
			    l->r2, l->since_s);
	}
}

void section_growth_text(const struct run_summary *s, struct sink *out)
{
	static const char *const kinds[N_MEMORY_KINDS] = {
		[MEMORY_ANON] = "anonymous",
		[MEMORY_FILE] = "file-backed",
		[MEMORY_SHARED] = "shared",
	};
	const struct summary_growth *g = &s->growth;
	uint64_t resident = growth_sum(g->resident_bytes), returned = growth_sum(g->returned_bytes);

	if (!g->known || resident + returned == 0)
		return;
	cells_label(out, "Growth");
	sink_printf(out, "%s first touched, %s released", unit_bytes((int64_t)resident).s,
		    unit_bytes((int64_t)returned).s);
	if (g->made_bytes == 0 && g->ended_bytes == 0)
		sink_printf(out, " (%s)", signed_bytes((int64_t)(resident - returned)).s);
	sink_puts(out, "\n");
	for (int i = 0; i < N_MEMORY_KINDS; i++) {
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
			    "  in addition, forks and execs made %s; %s ended with their process\n",
			    unit_bytes((int64_t)g->made_bytes).s,
			    unit_bytes(g->ended_bytes > 0 ? g->ended_bytes : 0).s);
	put_growth_sites(out, "first touched by", g->sites, g->n_sites, g->on_stacks);
	put_growing(g, out);
	put_growth_sites(out, "released by", g->returned_sites, g->n_returned_sites,
			 g->returned_on_stacks);
}

static void add_growth_kinds(struct json_doc *d, cJSON *in, const char *key,
			     const uint64_t bytes[N_MEMORY_KINDS])
{
	cJSON *o = json_object(d, in, key);

	json_count(d, o, "file_bytes", bytes[MEMORY_FILE]);
	json_count(d, o, "anonymous_bytes", bytes[MEMORY_ANON]);
	json_count(d, o, "shared_bytes", bytes[MEMORY_SHARED]);
}

void section_growth_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct summary_growth *g = &s->growth;
	cJSON *o, *check, *list, *row;

	if (!g->known) {
		json_null(d, root, "growth");
		return;
	}
	o = json_object(d, root, "growth");
	add_growth_kinds(d, o, "resident", g->resident_bytes);
	add_growth_kinds(d, o, "released", g->returned_bytes);
	json_count(d, o, "fork_exec_bytes", g->made_bytes);
	json_number(d, o, "ended_bytes", g->ended_bytes);
	json_count(d, o, "on_stacks_bytes", g->on_stacks);
	json_count(d, o, "released_on_stacks_bytes", g->returned_on_stacks);
	json_count(d, o, "samples", g->samples);
	if (g->check.processes) {
		check = json_object(d, o, "check");
		json_count(d, check, "processes", g->check.processes);
		json_number(d, check, "reported_bytes", g->check.reported_bytes);
		json_number(d, check, "rss_bytes", g->check.rss_bytes);
	} else {
		json_null(d, o, "check");
	}
	site_rows_json(d, o, "sites", g->sites, g->n_sites);
	site_rows_json(d, o, "released_sites", g->returned_sites, g->n_returned_sites);
	list = json_array(d, o, "growing");
	for (uint32_t i = 0; i < g->n_growing; i++) {
		const struct summary_leak *l = &g->growing[i];

		row = json_element(d, list);
		json_text(d, row, "function", l->site.function);
		json_text(d, row, "module", l->site.module);
		json_real(d, row, "bytes_s", l->slope);
		json_real(d, row, "low", l->slope_low);
		json_real(d, row, "high", l->slope_high);
		json_real(d, row, "since_s", l->since_s);
	}
}
