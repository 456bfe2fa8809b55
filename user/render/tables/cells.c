#include "render/tables/cells.h"

#include "base/strbuf.h"
#include "render/code_name.h"

#include <string.h>

/* Between columns, whatever stands in them. */
#define GAP 2

static size_t count_chars(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The byte position of character `n`. */
static size_t char_at(const char *s, size_t n)
{
	size_t i = 0;

	for (; s[i]; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	return i;
}

/*
 * A name that others chose: clean, without parameters where they do not fit, and cut in the middle
 * to at most `width` characters.
 */
static void fit(struct strbuf *b, const char *name, size_t width)
{
	_cleanup_(strbuf_free) struct strbuf whole = { 0 }, clean = { 0 };
	size_t chars, head;

	strbuf_add_clean(&whole, name, strlen(name));
	code_name_shorten(&clean, whole.s ? whole.s : "", width);
	if (!clean.s)
		return;
	chars = count_chars(clean.s);
	if (chars <= width) {
		strbuf_puts(b, clean.s);
		return;
	}
	head = (width - 1) / 2;
	strbuf_add(b, clean.s, char_at(clean.s, head));
	strbuf_puts(b, "…");
	strbuf_puts(b, clean.s + char_at(clean.s, chars - (width - 1 - head)));
}

void cells_spaces(struct sink *out, size_t n)
{
	while (n-- > 0)
		sink_write(out, " ", 1);
}

void cells_right(struct sink *out, const char *text, size_t width)
{
	size_t n = count_chars(text);

	cells_spaces(out, n + GAP < width ? width - n : GAP);
	sink_puts(out, text);
}

void cells_left(struct sink *out, const char *text, size_t width)
{
	size_t n = count_chars(text);

	sink_puts(out, text);
	cells_spaces(out, n + GAP < width ? width - n : GAP);
}

void cells_name(struct sink *out, const char *name, size_t width, bool pad)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	fit(&b, name ? name : "", width);
	sink_puts(out, b.s ? b.s : "");
	if (pad)
		cells_spaces(out, width - count_chars(b.s ? b.s : ""));
}

void cells_in_image(struct sink *out, const char *name, size_t name_width, const char *module,
		    size_t module_width)
{
	bool has_module = module && module[0];

	cells_name(out, name, name_width, has_module);
	if (has_module) {
		sink_puts(out, "  ");
		cells_name(out, module, module_width, false);
	}
	sink_puts(out, "\n");
}

void cells_wrapped(struct sink *out, const char *text, size_t indent, bool hang)
{
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };
	size_t column = indent;
	const char *word;

	strbuf_add_clean(&clean, text, strlen(text));
	if (!clean.s)
		return;
	if (!hang)
		cells_spaces(out, indent);
	for (word = clean.s; *word;) {
		size_t bytes = strcspn(word, " ");
		char saved = word[bytes];
		size_t chars;

		((char *)word)[bytes] = '\0';
		chars = count_chars(word);
		if (column > indent && column + 1 + chars > CELLS_WIDTH) {
			sink_puts(out, "\n");
			cells_spaces(out, indent);
			column = indent;
		} else if (column > indent) {
			sink_puts(out, " ");
			column++;
		}
		sink_puts(out, word);
		column += chars;
		((char *)word)[bytes] = saved;
		word += bytes;
		word += strspn(word, " ");
	}
	sink_puts(out, "\n");
}

void cells_line(struct sink *out, const char *label)
{
	cells_left(out, label, CELLS_LABEL_WIDTH);
}

void cells_label(struct sink *out, const char *label)
{
	sink_puts(out, "\n");
	cells_line(out, label);
}

void cells_labelled(struct sink *out, const char *label, const char *sentence)
{
	cells_label(out, label);
	cells_wrapped(out, sentence, CELLS_LABEL_WIDTH, true);
}
