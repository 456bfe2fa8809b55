#include "base/page.h"

#include "base/cleanup.h"
#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>

enum block_kind { HEADING, PARAGRAPH, VERBATIM, ITEM, TERM };

/* What stands between two empty lines, or begins with a mark. */
struct block {
	enum block_kind kind;
	struct strbuf head; /* of a term: the term            */
	struct strbuf text; /* joined, or as it stands        */
};

static enum block_kind kind_of(const char *line)
{
	if (strncmp(line, "# ", 2) == 0)
		return HEADING;
	if (strncmp(line, "    ", 4) == 0)
		return VERBATIM;
	if (strncmp(line, "- ", 2) == 0)
		return ITEM;
	if (strncmp(line, "= ", 2) == 0)
		return TERM;
	return PARAGRAPH;
}

static bool is_empty(const char *line)
{
	return *line == '\n' || !*line;
}

static const char *next_line(const char *line)
{
	line = strchrnul(line, '\n');
	return *line ? line + 1 : line;
}

static int line_len(const char *line)
{
	return (int)strcspn(line, "\n");
}

/* Empty lines inside of what is printed as it stands are part of it. */
static const char *read_verbatim(const char *line, struct strbuf *text)
{
	int empty = 0;

	for (; *line && (is_empty(line) || kind_of(line) == VERBATIM); line = next_line(line)) {
		if (is_empty(line)) {
			empty++;
			continue;
		}
		for (; empty; empty--)
			strbuf_printf(text, "\n");
		strbuf_printf(text, "%.*s\n", line_len(line) - 4, line + 4);
	}
	return line;
}

/* The block that begins at `line` or behind empty lines; false at the end of the page. */
static bool next_block(const char **line, struct block *b)
{
	const char *s = *line;

	strbuf_free(&b->head);
	strbuf_free(&b->text);
	while (*s && is_empty(s))
		s = next_line(s);
	if (!*s)
		return false;
	b->kind = kind_of(s);
	if (b->kind == VERBATIM) {
		*line = read_verbatim(s, &b->text);
		return true;
	}
	if (b->kind != PARAGRAPH)
		s += 2;
	if (b->kind == TERM || b->kind == HEADING) {
		strbuf_printf(&b->head, "%.*s", line_len(s), s);
		s = next_line(s);
	}
	for (; b->kind != HEADING && !is_empty(s); s = next_line(s)) {
		if (b->text.len && kind_of(s) != PARAGRAPH)
			break;
		s += strspn(s, " ");
		strbuf_printf(&b->text, "%s%.*s", b->text.len ? " " : "", line_len(s), s);
	}
	*line = s;
	return true;
}

static void block_fini(struct block *b)
{
	strbuf_free(&b->head);
	strbuf_free(&b->text);
}

const char *page_summary(const char *text, int *ret_len)
{
	*ret_len = line_len(text);
	return text;
}

/* --- terminal --- */

struct out {
	FILE *f;
	int width;
	bool bold;
};

/* One word, its backquotes turned into what the terminal shows; `*in_code` goes on into the next. */
static void put_word(const struct out *o, const char *word, size_t len, bool *in_code)
{
	for (size_t i = 0; i < len; i++) {
		if (word[i] != '`') {
			fputc(word[i], o->f);
			continue;
		}
		*in_code = !*in_code;
		if (o->bold)
			fputs(*in_code ? "\033[1m" : "\033[0m", o->f);
	}
}

static int word_columns(const char *word, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += (word[i] & 0xc0) != 0x80 && word[i] != '`';
	return n;
}

/* Words of `text` from column `at` on, continued in column `indent`; ends the line. */
static void put_wrapped(const struct out *o, const char *text, int indent, int at)
{
	bool in_code = false;

	while (*text) {
		size_t len = strcspn(text, " ");
		int columns = word_columns(text, len);

		if (at > indent && at + 1 + columns > o->width) {
			fprintf(o->f, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', o->f);
			at++;
		}
		put_word(o, text, len, &in_code);
		at += columns;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', o->f);
}

static void put_verbatim(const struct out *o, const char *text)
{
	for (; *text; text = next_line(text))
		fprintf(o->f, "%*s%.*s\n", *text == '\n' ? 0 : 4, "", line_len(text), text);
}

/* `tight`: without an empty line before it. */
static void print_block(const struct out *o, const struct block *b, bool tight)
{
	const char *text = b->text.s ? b->text.s : "";

	if (!tight)
		fputc('\n', o->f);
	switch (b->kind) {
	case HEADING:
		fprintf(o->f, "%s%s%s\n", o->bold ? "\033[1m" : "", b->head.s,
			o->bold ? "\033[0m" : "");
		break;
	case PARAGRAPH:
		fputs("  ", o->f);
		put_wrapped(o, text, 2, 2);
		break;
	case VERBATIM:
		put_verbatim(o, text);
		break;
	case ITEM:
		fputs("  - ", o->f);
		put_wrapped(o, text, 4, 4);
		break;
	case TERM:
		fputs("  ", o->f);
		put_wrapped(o, b->head.s, 2, 2);
		fputs("      ", o->f);
		put_wrapped(o, text, 6, 6);
		break;
	}
}

void page_print_text(const char *text, FILE *f, int width, bool bold)
{
	struct out o = { f, width < 40 ? 40 : width, bold };
	struct block b = { 0 };
	enum block_kind last = PARAGRAPH;
	int len;
	const char *summary = page_summary(text, &len);

	fprintf(f, "%s%.*s%s\n", bold ? "\033[1m" : "", len, summary, bold ? "\033[0m" : "");
	text = next_line(text);
	while (next_block(&text, &b)) {
		print_block(&o, &b,
			    last == HEADING || (last == b.kind && (last == ITEM || last == TERM)));
		last = b.kind;
	}
	block_fini(&b);
}

/* --- man --- */

static void put_roff_char(FILE *f, char c)
{
	static const struct {
		char c;
		const char *roff;
	} special[] = { { '\\', "\\e" },
			{ '-', "\\-" },
			{ '\'', "\\(aq" },
			{ '^', "\\(ha" },
			{ '~', "\\(ti" } };

	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if (special[i].c == c) {
			fputs(special[i].roff, f);
			return;
		}
	fputc(c, f);
}

/* A line of roff, whatever it begins with; backquotes switch to bold and back. */
static void put_roff(FILE *f, const char *s, size_t len, bool code)
{
	bool bold = false;

	fputs("\\&", f);
	for (size_t i = 0; i < len; i++) {
		if (code && s[i] == '`') {
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", f);
			continue;
		}
		put_roff_char(f, s[i]);
	}
	fputc('\n', f);
}

static void put_roff_verbatim(FILE *f, const char *text)
{
	fputs(".PP\n.RS 4\n.nf\n", f);
	for (; *text; text = next_line(text))
		put_roff(f, text, (size_t)line_len(text), false);
	fputs(".fi\n.RE\n", f);
}

static void print_man_block(FILE *f, const struct block *b)
{
	const char *text = b->text.s ? b->text.s : "";

	switch (b->kind) {
	case HEADING:
		fputs(".SS \"", f);
		for (const char *c = b->head.s; *c; c++)
			put_roff_char(f, *c);
		fputs("\"\n", f);
		return;
	case PARAGRAPH:
		fputs(".PP\n", f);
		break;
	case VERBATIM:
		put_roff_verbatim(f, text);
		return;
	case ITEM:
		fputs(".IP \\(bu 2\n", f);
		break;
	case TERM:
		fputs(".TP\n", f);
		put_roff(f, b->head.s, b->head.len, true);
		break;
	}
	put_roff(f, text, b->text.len, true);
}

void page_print_man(const char *name, const char *text, FILE *f)
{
	struct block b = { 0 };
	int len;
	const char *summary = page_summary(text, &len);

	fputs(".TH MEMSCOPE\\-", f);
	for (const char *c = name; *c; c++)
		put_roff_char(f, (char)toupper((unsigned char)*c));
	fputs(" 7 \"\" memscope \"memscope topics\"\n.SH NAME\nmemscope\\-", f);
	for (const char *c = name; *c; c++)
		put_roff_char(f, *c);
	fputs(" \\- ", f);
	for (int i = 0; i < len; i++)
		put_roff_char(f, summary[i]);
	fputs("\n.SH DESCRIPTION\n", f);
	text = next_line(text);
	while (next_block(&text, &b))
		print_man_block(f, &b);
	block_fini(&b);
	fputs(".SH SEE ALSO\n.BR memscope (1)\n", f);
}
