/*
 * Labels that programs set themselves, and the part of the samples that has each.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

void section_labels_text(const struct run_summary *s, struct sink *out)
{
	if (!s->n_program_labels)
		return;
	cells_labelled(out, "Labels", "set by the programs themselves; on-CPU: of all samples");
	cells_right(out, "on-CPU", 10);
	cells_right(out, "blocked", 11);
	sink_puts(out, "  label\n");
	for (uint32_t i = 0; i < s->n_program_labels; i++) {
		const struct label_row *row = &s->program_labels[i];

		for (uint32_t k = 0; k < row->n_top; k++) {
			const struct label_share *share = &row->top[k];

			cells_right(out, unit_percent(share->samples, (int64_t)s->oncpu.samples).s,
				    10);
			cells_right(out, share->blocked_ns ? unit_ns(share->blocked_ns).s : "", 11);
			sink_puts(out, "  ");
			cells_name(out, row->key, 24, false);
			sink_puts(out, "=");
			cells_name(out, share->value, 40, false);
			if (k + 1 == row->n_top && row->values > row->n_top)
				sink_printf(out, "  (%u of %s)", row->n_top,
					    unit_count(row->values).s);
			sink_puts(out, "\n");
		}
	}
}

void section_labels_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "program_labels");

	for (uint32_t i = 0; i < s->n_program_labels; i++) {
		const struct label_row *row = &s->program_labels[i];
		cJSON *o = json_element(d, list), *top;

		json_text(d, o, "key", row->key);
		json_number(d, o, "values", row->values);
		json_number(d, o, "samples", row->samples);
		json_number(d, o, "blocked_ns", row->blocked_ns);
		top = json_array(d, o, "top");
		for (uint32_t k = 0; k < row->n_top; k++) {
			cJSON *t = json_element(d, top);

			json_text(d, t, "value", row->top[k].value);
			json_number(d, t, "samples", row->top[k].samples);
			json_number(d, t, "blocked_ns", row->top[k].blocked_ns);
		}
	}
}
