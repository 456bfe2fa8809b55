/*
 * Which locks threads waited for, and who owned them.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

#define LOCK_COLUMN 24
#define SHOWN_PART  0.01 /* of the longest wait: what is less is no row */

/* Its variable, else its address. */
static void put_lock(const struct lock_row *row, struct sink *out)
{
	char text[64];

	if (strcmp(row->kind, "GIL") == 0)
		snprintf(text, sizeof(text), "the GIL");
	else
		snprintf(text, sizeof(text), "%s%s0x%llx", row->kind, *row->kind ? " " : "",
			 (unsigned long long)row->lock);
	cells_name(out, *row->name ? row->name : text, 26, true);
}

/* "97% held by thread 4712 (loader), in refill": below the lock */
static void put_owner(const struct lock_row *row, struct sink *out)
{
	char text[300];

	if (!row->owner_ns)
		return;
	snprintf(text, sizeof(text), "%s held by thread %u%s%.40s%s%s%.100s",
		 unit_percent(row->owner_ns, row->waited_ns).s, row->owner,
		 *row->owner_name ? " (" : "", row->owner_name, *row->owner_name ? ")" : "",
		 *row->held_in ? ", in " : "", row->held_in);
	cells_spaces(out, LOCK_COLUMN);
	cells_name(out, text, CELLS_WIDTH - LOCK_COLUMN, false);
	sink_puts(out, "\n");
}

/* Where it is, and who released it where nobody is known to have held it: "in [heap]; 98% released in put, by worker" */
static void put_release(const struct lock_row *row, struct sink *out)
{
	bool released = *row->released_in && !row->owner_ns;
	char text[400];

	if (!*row->place && !released)
		return;
	snprintf(text, sizeof(text), "%s%.120s%s", *row->place ? "in " : "", row->place,
		 *row->place && released ? "; " : "");
	if (released)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s released in %.100s, by %.40s",
			 unit_percent(row->released_in_ns, row->waited_ns).s, row->released_in,
			 row->releaser);
	cells_spaces(out, LOCK_COLUMN);
	cells_name(out, text, CELLS_WIDTH - LOCK_COLUMN, false);
	sink_puts(out, "\n");
}

void section_locks_text(const struct run_summary *s, struct sink *out)
{
	if (s->locks.n == 0)
		return;
	cells_labelled(out, "Locks", "what was waited for, and who held it when the wait began");
	cells_right(out, "time", 10);
	cells_right(out, "count", 12);
	sink_puts(out, "  ");
	cells_left(out, "lock", 28);
	sink_puts(out, "waited for in\n");
	for (uint32_t i = 0; i < s->locks.n; i++) {
		const struct lock_row *row = &s->locks.rows[i];

		if ((double)row->waited_ns < SHOWN_PART * (double)s->locks.rows[0].waited_ns)
			break; /* sorted */
		cells_right(out, unit_ns(row->waited_ns).s, 10);
		cells_right(out, unit_count(row->waits).s, 12);
		sink_puts(out, "  ");
		put_lock(row, out);
		sink_puts(out, "  ");
		cells_in_image(out, row->function, 28, row->module, 14);
		put_owner(row, out);
		put_release(row, out);
	}
}

void section_locks_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "locks");

	for (uint32_t i = 0; i < s->locks.n; i++) {
		const struct lock_row *row = &s->locks.rows[i];
		cJSON *o = json_element(d, list);

		json_number(d, o, "pid", row->pid);
		json_count(d, o, "address", row->lock);
		json_text(d, o, "kind", row->kind);
		json_text(d, o, "name", row->name);
		json_text(d, o, "place", row->place);
		json_number(d, o, "waited_ns", row->waited_ns);
		json_number(d, o, "waits", row->waits);
		json_text(d, o, "function", row->function);
		json_text(d, o, "module", row->module);
		json_number(d, o, "owner_known_ns", row->known_ns);
		json_count(d, o, "owners", row->n_owners);
		json_count(d, o, "owner", row->owner);
		json_text(d, o, "owner_name", row->owner_name);
		json_number(d, o, "owner_ns", row->owner_ns);
		json_number(d, o, "held_ns", row->held_ns);
		json_text(d, o, "held_in", row->held_in);
		json_text(d, o, "held_in_module", row->held_module);
		json_text(d, o, "held_caller", row->held_caller);
		json_number(d, o, "held_in_ns", row->held_in_ns);
		json_number(d, o, "released_ns", row->released_ns);
		json_text(d, o, "released_in", row->released_in);
		json_text(d, o, "released_in_module", row->released_module);
		json_number(d, o, "released_in_ns", row->released_in_ns);
		json_text(d, o, "releaser", row->releaser);
	}
}
