/*
 * Stores that windows were pushed to.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

static int64_t dropped(const struct summary_push_store *row)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < row->n_dropped; i++)
		n += row->dropped[i].n;
	return n;
}

void section_push_text(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->push.n; i++) {
		const struct summary_push_store *row = &s->push.stores[i];
		char text[700];
		size_t n;

		n = (size_t)snprintf(text, sizeof(text),
				     "%s of %s profiles to %.200s (%s), %s requests again, %s wait",
				     unit_count(row->pushed).s, unit_count(row->spooled).s,
				     row->store, unit_bytes(row->pushed_bytes).s,
				     unit_count(row->retries).s, unit_count(row->waiting).s);
		if (dropped(row))
			n += (size_t)snprintf(
				text + n, sizeof(text) - n,
				", %s did not come there:", unit_count(dropped(row)).s);
		for (uint32_t k = 0; k < row->n_dropped; k++)
			if (row->dropped[k].n)
				n += (size_t)snprintf(text + n, sizeof(text) - n, " %s %s",
						      row->dropped[k].why,
						      unit_count(row->dropped[k].n).s);
		cells_labelled(out, i ? "" : "Pushed", text);
	}
}

void section_push_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = s->push.n ? json_array(d, root, "push") : NULL;

	for (uint32_t i = 0; i < s->push.n; i++) {
		const struct summary_push_store *row = &s->push.stores[i];
		cJSON *r = json_element(d, list), *drops;

		json_text(d, r, "store", row->store);
		json_number(d, r, "spooled", row->spooled);
		json_number(d, r, "pushed", row->pushed);
		json_number(d, r, "pushed_bytes", row->pushed_bytes);
		json_number(d, r, "retries", row->retries);
		json_number(d, r, "waiting", row->waiting);
		json_number(d, r, "waiting_bytes", row->waiting_bytes);
		json_number(d, r, "failing_since_ns", row->failing_since_ns);
		json_number(d, r, "cpu_ns", row->cpu_ns);
		drops = json_object(d, r, "dropped");
		for (uint32_t k = 0; k < row->n_dropped; k++)
			json_number(d, drops, row->dropped[k].why, row->dropped[k].n);
	}
}
