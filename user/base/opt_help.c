/* Option rows as text: --help, man page, Markdown. */
#include "base/opt.h"

#include <string.h>

enum { HELP_WIDTH = 79, HELP_COLUMN = 26, LONG_VALUE = 50 };

/* Columns that `len` bytes of UTF-8 take: one per character. */
static int columns(const char *s, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += (s[i] & 0xc0) != 0x80;
	return n;
}

/* Words of `text` from column `at` on, continued in column `indent`; ends the line. */
static void put_wrapped(FILE *f, const char *text, int indent, int at)
{
	while (*text) {
		size_t len = strcspn(text, " \n");
		int width = columns(text, len);

		if (at > indent && at + 1 + width > HELP_WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', f);
			at++;
		}
		fprintf(f, "%.*s", (int)len, text);
		at += width;
		text += len;
		text += strspn(text, " \n");
	}
	fputc('\n', f);
}

static const char *value_name(const struct opt *o)
{
	if (o->kind == OPT_FLAG)
		return NULL;
	if (o->arg)
		return o->arg;
	return o->kind == OPT_CHOICE ? o->choices : "VALUE";
}

/* The help sentence, with the choices when the value's name does not show them. */
static void full_help(const struct opt *o, char *out, size_t cap)
{
	size_t used = (size_t)snprintf(out, cap, "%s", o->help ? o->help : "");

	if (o->kind != OPT_CHOICE || !o->arg || used + 2 >= cap)
		return;
	used += (size_t)snprintf(out + used, cap - used, ": ");
	for (const char *c = o->choices; *c && used + 3 < cap; c++) {
		if (*c == '|') {
			out[used++] = ',';
			out[used++] = ' ';
		} else {
			out[used++] = *c;
		}
	}
	out[used < cap ? used : cap - 1] = 0;
}

void opt_print_help(const struct opt_command *cmd, FILE *f)
{
	char left[128], help[1024];

	fprintf(f, "Usage: memscope %s %s\n\n", cmd->name, cmd->synopsis);
	put_wrapped(f, cmd->doc, 0, 0);
	if (cmd->opts[0].name && cmd->opts[0].kind != OPT_HEADING)
		fputc('\n', f);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		const char *value = value_name(o);
		int at;

		if (o->kind == OPT_HEADING) {
			fprintf(f, "\n%s:\n", o->name);
			continue;
		}
		snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->key ? '-' : ' ',
			 o->key ? o->key : ' ', o->key ? ',' : ' ', o->name, value ? "=" : "",
			 value ? value : "");
		at = columns(left, strlen(left));
		fputs(left, f);
		if (at + 2 > HELP_COLUMN) {
			fputc('\n', f);
			at = 0;
		}
		fprintf(f, "%*s", HELP_COLUMN - at, "");
		full_help(o, help, sizeof(help));
		put_wrapped(f, help, HELP_COLUMN, HELP_COLUMN);
	}
}

static void put_roff(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", f);
		else if (*s == '-')
			fputs("\\-", f);
		else if (*s == '|') /* a list of choices may be longer than a line */
			fputs("|\\:", f);
		else
			fputc(*s, f);
	}
}

void opt_print_man(const struct opt_command *cmd, FILE *f)
{
	char help[1024];

	fprintf(f, ".SH OPTIONS OF MEMSCOPE %s\n", cmd->name);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		const char *value = value_name(o);

		if (o->kind == OPT_HEADING) {
			fputs(".SS ", f);
			put_roff(f, o->name);
			fputc('\n', f);
			continue;
		}
		/* One word over two lines cannot be adjusted to the right margin. */
		if (value && strlen(value) > LONG_VALUE)
			fputs(".na\n", f);
		fputs(".TP\n", f);
		if (o->key)
			fprintf(f, "\\fB\\-%c\\fR, ", o->key);
		fputs("\\fB\\-\\-", f);
		put_roff(f, o->name);
		fputs("\\fR", f);
		if (value) {
			fputs("=\\fI", f);
			put_roff(f, value);
			fputs("\\fR", f);
		}
		fputs("\n\\&", f); /* a sentence that begins with a dot is not a request */
		full_help(o, help, sizeof(help));
		put_roff(f, help);
		fputc('\n', f);
		if (value && strlen(value) > LONG_VALUE)
			fputs(".ad\n", f);
	}
}
