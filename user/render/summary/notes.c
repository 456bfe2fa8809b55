/*
 * Sentences that the run left for the reader.
 */
#include "base/strbuf.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

void section_notes_text(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->n_notes; i++)
		cells_labelled(out, "Note", s->notes[i]);
}

void section_notes_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)rows;
	if (!s->n_notes)
		return;
	if (s->n_notes > 1)
		strbuf_printf(&b, "first of %u: ", s->n_notes);
	strbuf_puts(&b, s->notes[0]);
	cells_line(out, "Note");
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
}

void section_notes_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	json_strings(d, root, "notes", s->notes, s->n_notes);
}
