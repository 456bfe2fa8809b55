/*
 * What was measured, and what could not be.
 */
#include "base/strbuf.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

void section_sources_text(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->n_sources; i++) {
		char text[512];

		if (s->sources[i].state != SOURCE_UNAVAILABLE)
			continue;
		snprintf(text, sizeof(text), "%s: %s", s->sources[i].name,
			 s->sources[i].why ? s->sources[i].why : "not available here");
		cells_labelled(out, "Missing", text);
	}
}

void section_sources_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)rows;
	for (uint32_t i = 0; i < s->n_sources; i++)
		if (s->sources[i].state == SOURCE_UNAVAILABLE)
			strbuf_printf(&b, "%s%s: %s", b.len ? "; " : "", s->sources[i].name,
				      s->sources[i].why ? s->sources[i].why : "not available here");
	if (!b.s)
		return;
	cells_line(out, "Missing");
	cells_wrapped(out, b.s, CELLS_LABEL_WIDTH, true);
}

enum summary_tone section_sources_tone(const struct run_summary *s)
{
	(void)s;
	return TONE_WARNING;
}

void section_sources_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const states[] = {
		[SOURCE_NOT_ASKED] = "off",
		[SOURCE_OK] = "ok",
		[SOURCE_UNAVAILABLE] = "unavailable",
	};
	cJSON *sources = json_object(d, root, "sources");

	for (uint32_t i = 0; i < s->n_sources; i++) {
		cJSON *o = json_object(d, sources, s->sources[i].name);

		json_text(d, o, "state", states[s->sources[i].state]);
		json_text(d, o, "why", s->sources[i].why);
	}
}
