/*
 * What was lost, by cause.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

static uint64_t all_lost(const struct run_summary *s)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < s->n_drops; i++)
		lost += s->drops[i].count;
	return lost;
}

void section_losses_text(const struct run_summary *s, struct sink *out)
{
	cells_label(out, "Lost");
	if (all_lost(s) == 0) {
		sink_puts(out, "nothing\n");
		return;
	}
	sink_puts(out, "by cause\n");
	for (uint32_t i = 0; i < s->n_drops; i++) {
		if (s->drops[i].count == 0)
			continue;
		cells_right(out, unit_count((int64_t)s->drops[i].count).s, 14);
		sink_puts(out, "  ");
		cells_wrapped(out, s->drops[i].help, 16, true);
	}
}

/* The worst cause, how many more there are, and what else makes figures less than whole. */
static void add_causes(const struct run_summary *s, struct strbuf *b)
{
	const struct summary_drop *worst = NULL;
	uint32_t causes = 0;

	for (uint32_t i = 0; i < s->n_drops; i++) {
		causes += s->drops[i].count > 0;
		if (s->drops[i].count && (!worst || s->drops[i].count > worst->count))
			worst = &s->drops[i];
	}
	if (worst)
		strbuf_printf(b, "%s (%s)", worst->help, unit_count((int64_t)worst->count).s);
	if (causes > 1)
		strbuf_printf(b, "; %u more cause%s", causes - 1, causes == 2 ? "" : "s");
}

static uint64_t stacks_of(const struct summary_stacks *k)
{
	return k->complete + k->truncated + k->guessed + k->no_table + k->unreadable + k->lost;
}

static void add_stacks(const struct run_summary *s, struct strbuf *b)
{
	uint64_t all = 0, complete = 0;
	const struct summary_stacks *worst = NULL;
	double worst_part = 0.99; /* from here on it is worth a word */

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];
		uint64_t n = stacks_of(k);

		all += n;
		complete += k->complete;
		if (n && (double)k->complete / (double)n < worst_part) {
			worst_part = (double)k->complete / (double)n;
			worst = k;
		}
	}
	if (!all)
		return;
	strbuf_printf(b, "; %s of stacks complete",
		      unit_percent((int64_t)complete, (int64_t)all).s);
	if (worst)
		strbuf_printf(b, " (%s %s)", worst->source,
			      unit_percent((int64_t)worst->complete, (int64_t)stacks_of(worst)).s);
}

void section_losses_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)rows;
	if (all_lost(s))
		add_causes(s, &b);
	else
		strbuf_puts(&b, "nothing");
	add_stacks(s, &b);
	if (s->symbols.locations)
		strbuf_printf(
			&b, "; %s of locations symbolized",
			unit_percent((int64_t)s->symbols.named, (int64_t)s->symbols.locations).s);
	cells_line(out, "Lost");
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
}

enum summary_tone section_losses_tone(const struct run_summary *s)
{
	return all_lost(s) ? TONE_WARNING : TONE_PLAIN;
}

void section_losses_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "drops"), *o;

	for (uint32_t i = 0; i < s->n_drops; i++) {
		o = json_element(d, list);
		json_text(d, o, "name", s->drops[i].name);
		json_count(d, o, "count", s->drops[i].count);
		json_text(d, o, "help", s->drops[i].help);
	}
}
