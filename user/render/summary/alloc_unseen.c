/*
 * What allocation sites do not have: an interpreter's small objects, where its own allocator is not traced.
 */
#include "base/strbuf.h"
#include "render/summary/alloc_parts.h"
#include "render/tables/cells.h"

static int64_t in_use(const struct ledger_row rows[])
{
	return rows[LEDGER_TRACED].bytes + rows[LEDGER_BEFORE].bytes + rows[LEDGER_LIVE].bytes;
}

static bool is_unseen(const struct run_summary *s)
{
	const struct summary_alloc *a = &s->alloc;
	const struct ledger *l = &s->ledger.now;

	return (a->tier == ALLOC_TIER_EXACT || a->tier == ALLOC_TIER_SAMPLED ||
		a->tier == ALLOC_TIER_BURSTS) &&
	       l->objects_by && !l->objects_traced && !a->objects_seen && in_use(l->objects) > 0;
}

void alloc_unseen_text(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	const struct ledger *l = &s->ledger.now;

	if (!is_unseen(s))
		return;
	strbuf_printf(
		&b,
		"malloc sees %s of the live heap: %s of small objects are in %s's arenas, not in these "
		"figures (--inject sees them)",
		unit_percent(in_use(l->parts) - in_use(l->objects), in_use(l->parts)).s,
		unit_bytes(in_use(l->objects)).s, l->objects_by);
	cells_spaces(out, 2);
	cells_wrapped(out, b.s ? b.s : "", 2, true);
}

void alloc_unseen_json(struct json_doc *d, cJSON *alloc, const struct run_summary *s)
{
	const struct ledger *l = &s->ledger.now;
	bool unseen = is_unseen(s);

	json_number(d, alloc, "unseen_objects_bytes", unseen ? in_use(l->objects) : 0);
	json_number(d, alloc, "seen_live_bytes",
		    unseen ? in_use(l->parts) - in_use(l->objects) : 0);
}
