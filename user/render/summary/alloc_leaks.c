/*
 * Sites that leak, and sites that grew and do not: the same evidence, whatever tier it comes from.
 */
#include "analyse/leaks.h"
#include "base/units.h"
#include "render/summary/alloc_parts.h"
#include "render/summary/site_rows.h"
#include "render/tables/cells.h"

#include <math.h>

/* What the work of the program says of it. */
static void put_work(const struct summary_leak *l, struct sink *out)
{
	char clause[256];

	leak_work_clause(l, clause, sizeof(clause));
	if (!*clause)
		return;
	cells_spaces(out, CELLS_LABEL_WIDTH);
	cells_wrapped(out, clause, CELLS_LABEL_WIDTH, true);
}

/* How good the line is; or, of estimates, what became of the blocks. */
static void put_evidence(const struct summary_leak *l, struct sink *out)
{
	cells_spaces(out, CELLS_LABEL_WIDTH);
	sink_printf(
		out, "95 %% interval %s, ",
		unit_bytes_range((int64_t)(l->slope_low * 60), (int64_t)(l->slope_high * 60), false)
			.s);
	if (l->sampled <= 0) {
		sink_printf(out, "r2 %.3f, steadily since second %.0f\n", l->r2, l->since_s);
		return;
	}
	sink_printf(out, "steadily since second %.0f\n", l->since_s);
	cells_spaces(out, CELLS_LABEL_WIDTH);
	sink_printf(out,
		    "%.0f of %.0f sampled blocks that reached an age of %.3g s are still in use\n",
		    l->sampled, l->sampled + l->ended, l->sampled_age_s);
}

static void put_no_leaks(const struct summary_alloc *a, struct sink *out)
{
	if (!a->n_no_leaks)
		return;
	cells_right(out, "live", 13);
	cells_right(out, "grew by", 14);
	sink_puts(out, "            grew, and is no leak; allocated by\n");
	for (uint32_t i = 0; i < a->n_no_leaks; i++) {
		const struct summary_leak *l = &a->no_leaks[i];

		cells_right(out, unit_bytes(l->live).s, 13);
		cells_right(out, unit_bytes((int64_t)l->changed).s, 14);
		cells_spaces(out, 12);
		cells_in_image(out, site_name(&l->site), 42, l->site.module, 18);
		if (l->says == GROWTH_STOPPED) {
			cells_spaces(out, CELLS_LABEL_WIDTH);
			sink_printf(out, "has stayed at that level since second %.0f\n",
				    l->since_s);
		}
		if (l->says == GROWTH_REPLACES) {
			cells_spaces(out, CELLS_LABEL_WIDTH);
			sink_puts(
				out,
				"takes the place of what was there before: the process has not grown\n");
		}
		put_work(l, out);
	}
}

void alloc_leaks_text(const struct summary_alloc *a, struct sink *out)
{
	if (a->n_leaks) {
		cells_right(out, "live", 13);
		cells_right(out, "per minute", 14);
		sink_printf(
			out,
			"  retained  growing, allocated by (retained: of blocks older than %.0f s)\n",
			a->leaks[0].age_s);
	}
	for (uint32_t i = 0; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];

		cells_right(out, unit_bytes(l->live).s, 13);
		cells_right(out, unit_bytes((int64_t)(l->slope * 60)).s, 14);
		cells_right(out, unit_percent((int64_t)(l->survived * 1000), 1000).s, 10);
		sink_puts(out, "  ");
		cells_in_image(out, site_name(&l->site), 42, l->site.module, 18);
		put_evidence(l, out);
		put_work(l, out);
	}
	put_no_leaks(a, out);
}

static void add_leak(struct json_doc *d, cJSON *list, const struct summary_leak *l)
{
	cJSON *o = json_element(d, list);

	json_text(d, o, "function", l->site.function);
	json_text(d, o, "module", l->site.module);
	json_number(d, o, "live_bytes", l->live);
	json_real(d, o, "bytes_s", l->slope);
	json_real(d, o, "low", l->slope_low);
	json_real(d, o, "high", l->slope_high);
	json_real(d, o, "r2", l->r2);
	json_real(d, o, "since_s", l->since_s);
	json_text(d, o, "growth", growth_name(l->says));
	if (l->says != GROWTH_STOPPED) {
		json_real(d, o, "retained", l->survived);
		json_real(d, o, "retained_age_s", l->age_s);
		if (l->sampled > 0) {
			json_real(d, o, "sampled_in_use", l->sampled);
			json_real(d, o, "sampled_ended", l->ended);
			json_real(d, o, "sampled_age_s", l->sampled_age_s);
		}
	} else {
		json_real(d, o, "grew_bytes", l->changed);
		json_truth(d, o, "work_ended", l->work_ended);
	}
	if (!l->work)
		return;
	json_text(d, o, "work", l->work->name);
	json_text(d, o, "grows_with", workload_name(l->fit.says));
	if (!isfinite(l->fit.unit_low))
		return;
	json_real(d, o, "bytes_per_unit", l->fit.per_unit);
	json_real(d, o, "bytes_per_unit_low", l->fit.unit_low);
	json_real(d, o, "bytes_per_unit_high", l->fit.unit_high);
	json_real(d, o, "idle_bytes_s", l->fit.idle);
	json_real(d, o, "idle_bytes_s_low", l->fit.idle_low);
	json_real(d, o, "idle_bytes_s_high", l->fit.idle_high);
}

void alloc_leaks_json(struct json_doc *d, cJSON *in, const struct summary_alloc *a)
{
	cJSON *list = json_array(d, in, "leaks");

	for (uint32_t i = 0; i < a->n_leaks; i++)
		add_leak(d, list, &a->leaks[i]);
	list = json_array(d, in, "no_leaks");
	for (uint32_t i = 0; i < a->n_no_leaks; i++)
		add_leak(d, list, &a->no_leaks[i]);
}
