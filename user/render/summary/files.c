/*
 * The files of the run.
 */
#include "base/strbuf.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>

void section_files_text(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (!s->dir || !s->dir[0])
		return;
	cells_label(out, "Files");
	cells_name(out, s->dir, 4096, false);
	sink_puts(out, "/\n");
	for (uint32_t i = 0; i < s->n_files; i++)
		strbuf_printf(&b, "%s%s", i ? "  " : "", s->files[i]);
	if (b.s)
		cells_wrapped(out, b.s, CELLS_LABEL_WIDTH, false);
}

static bool ends_in(const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	return len >= end && strcmp(name + len - end, ending) == 0;
}

/* "summary.txt" or "summary-STAMP.txt", where it was written. */
static const char *summary_file(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->n_files; i++)
		if (strncmp(s->files[i], "summary", 7) == 0 && ends_in(s->files[i], ".txt"))
			return s->files[i];
	return NULL;
}

/* The pictures by name, the others by their number, and where the rest of the summary is. */
void section_files_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	const char *summary = summary_file(s);
	uint32_t others = 0;

	(void)rows;
	if (s->dir && s->dir[0])
		strbuf_printf(&b, "%s/ ", s->dir);
	for (uint32_t i = 0; i < s->n_files; i++)
		if (ends_in(s->files[i], ".html")) /* what shows all the others */
			strbuf_printf(&b, "%s ", s->files[i]);
	for (uint32_t i = 0; i < s->n_files; i++) {
		if (ends_in(s->files[i], ".html"))
			continue;
		if (ends_in(s->files[i], ".svg"))
			strbuf_printf(&b, "%s ", s->files[i]);
		else
			others++;
	}
	if (others)
		strbuf_printf(&b, "and %u more; ", others);
	if (summary)
		strbuf_printf(&b, "everything: %s or --verbose", summary);
	else
		strbuf_puts(&b, "everything: --verbose");
	cells_line(out, "Files");
	cells_wrapped(out, b.s ? b.s : "", CELLS_LABEL_WIDTH, true);
}

void section_files_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	json_text(d, root, "dir", s->dir);
	json_strings(d, root, "files", s->files, s->n_files);
}
