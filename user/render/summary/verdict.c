/*
 * What to make of all of it, and what to do next: summary_verdict(). The verdict is first and last.
 */
#include "render/summary/sections.h"
#include "render/tables/cells.h"

void section_verdict_text(const struct run_summary *s, struct sink *out)
{
	struct verdict v;

	summary_verdict(s, &v);
	sink_puts(out, "\n");
	cells_wrapped(out, v.sentence, 0, false);
}

void section_verdict_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	(void)rows;
	section_verdict_text(s, out);
}

enum summary_tone section_verdict_tone(const struct run_summary *s)
{
	(void)s;
	return TONE_STRONG;
}

void section_verdict_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "verdict");
	struct verdict v;

	summary_verdict(s, &v);
	json_text(d, o, "kind", verdict_name(v.kind));
	json_text(d, o, "sentence", v.sentence);
	json_text(d, o, "next", v.next);
}

void section_next_text(const struct run_summary *s, struct sink *out)
{
	struct verdict v;

	summary_verdict(s, &v);
	if (!v.next[0])
		return;
	sink_puts(out, "Next: ");
	cells_wrapped(out, v.next, 6, true);
}

void section_next_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	(void)rows;
	section_next_text(s, out);
}

void section_last_text(const struct run_summary *s, struct sink *out)
{
	section_verdict_text(s, out);
}

void section_last_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	section_verdict_brief(s, rows, out);
}

enum summary_tone section_last_tone(const struct run_summary *s)
{
	return section_verdict_tone(s);
}
