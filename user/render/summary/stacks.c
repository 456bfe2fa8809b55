/*
 * How much of each source's stacks is complete, and whose code is to blame for the rest.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>

static void put_stacks(const struct run_summary *s, struct sink *out)
{
	bool labelled = false;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];
		const struct {
			uint64_t n;
			const char *word;
		} verdicts[] = {
			{ k->complete, "complete" },     { k->guessed, "guessed" },
			{ k->truncated, "truncated" },   { k->no_table, "no table" },
			{ k->unreadable, "unreadable" }, { k->lost, "lost" },
		};
		uint64_t all = 0;
		const char *sep = "";

		for (size_t j = 0; j < sizeof(verdicts) / sizeof(verdicts[0]); j++)
			all += verdicts[j].n;
		if (all == 0)
			continue;
		if (labelled)
			cells_spaces(out, CELLS_LABEL_WIDTH);
		else
			cells_label(out, "Stacks");
		labelled = true;
		cells_left(out, k->source, 8);
		for (size_t j = 0; j < sizeof(verdicts) / sizeof(verdicts[0]); j++) {
			if (verdicts[j].n == 0)
				continue;
			sink_printf(out, "%s%s %s", sep,
				    unit_percent((int64_t)verdicts[j].n, (int64_t)all).s,
				    verdicts[j].word);
			sep = ", ";
		}
		sink_puts(out, "\n");
	}
}

/* The code they are incomplete in; single ones are noise. */
static void put_incomplete(const struct run_summary *s, struct sink *out)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];

		all += k->complete + k->truncated + k->guessed + k->no_table + k->unreadable +
		       k->lost;
	}
	for (uint32_t i = 0; i < s->n_incomplete && s->incomplete[i].events * 1000 >= all; i++) {
		const char *slash = strrchr(s->incomplete[i].module, '/');

		cells_right(out, unit_percent((int64_t)s->incomplete[i].events, (int64_t)all).s,
			    CELLS_LABEL_WIDTH + 8);
		sink_printf(out, " %s in ", s->incomplete[i].verdict);
		cells_name(out, slash && slash[1] ? slash + 1 : s->incomplete[i].module, 48, false);
		sink_puts(out, "\n");
	}
}

void section_stacks_text(const struct run_summary *s, struct sink *out)
{
	put_stacks(s, out);
	put_incomplete(s, out);
}

void section_stacks_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "stacks"), *o;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		o = json_element(d, list);
		json_text(d, o, "source", s->stacks[i].source);
		json_count(d, o, "complete", s->stacks[i].complete);
		json_count(d, o, "truncated", s->stacks[i].truncated);
		json_count(d, o, "guessed", s->stacks[i].guessed);
		json_count(d, o, "no_table", s->stacks[i].no_table);
		json_count(d, o, "unreadable", s->stacks[i].unreadable);
		json_count(d, o, "lost", s->stacks[i].lost);
	}

	list = json_array(d, root, "incomplete_stacks");
	for (uint32_t i = 0; i < s->n_incomplete; i++) {
		o = json_element(d, list);
		json_text(d, o, "module", s->incomplete[i].module);
		json_text(d, o, "verdict", s->incomplete[i].verdict);
		json_count(d, o, "events", s->incomplete[i].events);
	}
}
