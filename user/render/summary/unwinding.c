/*
 * The unwind tables of the run, and whether they had room.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

/* Only when the tables had too little room. */
void section_unwinding_text(const struct run_summary *s, struct sink *out)
{
	if (!s->unwind.evicted_in_use && !s->unwind.refused)
		return;
	cells_label(out, "Unwinding");
	sink_printf(
		out,
		"%s for unwind tables is too little (--mem): %s evicted while in use, %s refused\n",
		unit_bytes((int64_t)s->unwind.budget_bytes).s,
		unit_count((int64_t)s->unwind.evicted_in_use).s,
		unit_count((int64_t)s->unwind.refused).s);
}

void section_unwinding_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->unwind.known)
		return;
	o = json_object(d, root, "unwind");
	json_count(d, o, "files", s->unwind.files);
	json_count(d, o, "resident", s->unwind.resident);
	json_count(d, o, "bytes", s->unwind.bytes);
	json_count(d, o, "budget_bytes", s->unwind.budget_bytes);
	json_count(d, o, "rows", s->unwind.rows);
	json_count(d, o, "rules", s->unwind.rules);
	json_count(d, o, "spans", s->unwind.spans);
	json_count(d, o, "processes", s->unwind.processes);
	json_count(d, o, "made", s->unwind.made);
	json_count(d, o, "made_ns", s->unwind.made_ns);
	json_count(d, o, "evicted", s->unwind.evicted);
	json_count(d, o, "evicted_in_use", s->unwind.evicted_in_use);
	json_count(d, o, "refused", s->unwind.refused);
	json_count(d, o, "left_out", s->unwind.left_out);
	json_count(d, o, "put_off", s->unwind.put_off);
	json_count(d, o, "unreadable", s->unwind.unreadable);
	json_count(d, o, "without_rows", s->unwind.without_rows);
	if (s->unwind.trouble && s->unwind.trouble[0])
		json_text(d, o, "trouble", s->unwind.trouble);
}
