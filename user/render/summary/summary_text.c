#include "render/summary/summary_text.h"

#include "base/strbuf.h"
#include "render/summary/sections.h"

#include <string.h>

#define SECTIONS_MAX 40
#define ROWS_MAX     5 /* of a table on the first screen */

static const char *const tones[] = {
	[TONE_PLAIN] = "",
	[TONE_STRONG] = "\033[1m",
	[TONE_WARNING] = "\033[33m",
};

/* Colour is set line by line: a pager that shows some of the lines shows them as they are meant. */
static void put_lines(struct sink *out, const char *text, enum summary_tone tone)
{
	while (*text) {
		size_t len;

		text += *text == *SUMMARY_HEADING;
		len = strcspn(text, "\n");

		if (len && tone != TONE_PLAIN)
			sink_puts(out, tones[tone]);
		sink_write(out, text, len);
		if (len && tone != TONE_PLAIN)
			sink_puts(out, "\033[0m");
		sink_puts(out, "\n");
		text += len + (text[len] == '\n');
	}
}

static uint32_t count_lines(const char *text)
{
	uint32_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* At most `max` lines; the last one says when there were more. No heading without a row. */
static void cut_lines(struct strbuf *b, uint32_t max)
{
	char *at = b->s, *last = at;

	if (!at || count_lines(at) <= max)
		return;
	for (uint32_t i = 0; i < max; i++) {
		last = at;
		at = strchr(at, '\n') + 1;
	}
	if (last > b->s && *last == *SUMMARY_HEADING)
		at = last;
	b->len = (size_t)(at - b->s) - 1;
	b->s[b->len] = '\0';
	strbuf_puts(b, "…\n");
}

static enum summary_tone tone_of(const struct summary_section *section, const struct run_summary *s,
				 bool colour)
{
	return colour && section->tone ? section->tone(s) : TONE_PLAIN;
}

static void put_whole(const struct summary_section *section, const struct run_summary *s,
		      bool colour, struct sink *out)
{
	_cleanup_(sink_closep) struct sink *text = NULL;
	size_t len;

	if (tone_of(section, s, colour) == TONE_PLAIN || sink_open_memory(&text, NULL) < 0) {
		section->text(s, out);
		return;
	}
	section->text(s, text);
	if (sink_commit(text, NULL) == 0)
		put_lines(out, sink_memory(text, &len), tone_of(section, s, colour));
}

void summary_text_write(const struct run_summary *s, bool colour, struct sink *out)
{
	for (const struct summary_section *section = summary_sections; section->name; section++)
		put_whole(section, s, colour, out);
}

/* --- the first screen --- */

struct screen {
	struct strbuf text[SECTIONS_MAX];
	uint32_t lines;
};

static void screen_free(struct screen *sc)
{
	for (int i = 0; i < SECTIONS_MAX; i++)
		strbuf_free(&sc->text[i]);
}

static void brief(const struct summary_section *section, const struct run_summary *s, uint32_t rows,
		  struct strbuf *b)
{
	_cleanup_(sink_closep) struct sink *text = NULL;
	size_t len;

	strbuf_reset(b);
	if (!section->brief || sink_open_memory(&text, NULL) < 0)
		return;
	section->brief(s, rows, text);
	if (sink_commit(text, NULL) == 0)
		strbuf_puts(b, sink_memory(text, &len));
	cut_lines(b, section->lines + (section->table ? rows : 0));
}

static void compose(struct screen *sc, const struct run_summary *s, uint32_t rows)
{
	sc->lines = 0;
	for (int i = 0; summary_sections[i].name; i++) {
		brief(&summary_sections[i], s, rows, &sc->text[i]);
		sc->lines += sc->text[i].s ? count_lines(sc->text[i].s) : 0;
	}
}

/* The verdict again is cut before anything that stands nowhere else on the screen, to an empty line and two of text. */
#define LINES_OF_LAST 3

/* Takes a line from whoever has most, the later one of two. */
static void shorten(struct screen *sc)
{
	uint32_t most = 0;
	int longest = 0;

	for (int i = 0; summary_sections[i].name; i++) {
		uint32_t n = sc->text[i].s ? count_lines(sc->text[i].s) : 0;

		if (summary_sections[i].brief == section_last_brief && n > LINES_OF_LAST)
			n = UINT32_MAX;

		if (n >= most) {
			most = n;
			longest = i;
		}
	}
	cut_lines(&sc->text[longest], count_lines(sc->text[longest].s) - 1);
	sc->lines--;
}

void summary_screen_write(const struct run_summary *s, bool colour, struct sink *out)
{
	_cleanup_(screen_free) struct screen sc = { 0 };

	for (uint32_t rows = ROWS_MAX; rows >= 1; rows--) {
		compose(&sc, s, rows);
		if (sc.lines <= SUMMARY_SCREEN_LINES)
			break;
	}
	while (sc.lines > SUMMARY_SCREEN_LINES)
		shorten(&sc);
	for (int i = 0; summary_sections[i].name; i++)
		if (sc.text[i].s)
			put_lines(out, sc.text[i].s, tone_of(&summary_sections[i], s, colour));
}
