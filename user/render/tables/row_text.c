#include "render/code_name.h"
#include "render/formats/text.h"
#include "render/tables/profile_parts.h"

#include <string.h>

enum {
	NAME_COLUMNS = 90, /* where lines may be long                                */
	MODULE_COLUMNS = 40,
	LEAST_NAME = 20, /* of a name, however narrow the terminal is              */
	LEAST_WITH_MODULE = 36,
	PERCENT_COLUMNS = 7, /* with a space before it: " 100.0%"                       */
};

/* Of the whole: as perf report does, what a reader looks for. */
#define HOT_PART 0.05

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

static void tone(struct strbuf *out, const struct row_style *s, const char *code)
{
	if (s->colour)
		strbuf_puts(out, code);
}

static void spaces(struct strbuf *out, uint32_t n)
{
	strbuf_printf(out, "%*s", (int)n, "");
}

void row_value(struct strbuf *out, const struct row_style *s, int64_t value, int64_t whole)
{
	struct unit_text text = shown_text(s->shown, NULL, value);
	uint32_t columns = text_columns(text.s);
	bool hot = (double)value >= HOT_PART * (double)whole && whole > 0;

	spaces(out, columns < s->value_columns ? s->value_columns - columns : 0);
	strbuf_puts(out, text.s);
	tone(out, s, hot ? RED : "");
	strbuf_printf(out, "%*s", PERCENT_COLUMNS, unit_percent(value, whole).s);
	tone(out, s, hot ? PLAIN : "");
	strbuf_putc(out, ' ');
}

void row_no_value(struct strbuf *out, const struct row_style *s)
{
	spaces(out, s->value_columns + PERCENT_COLUMNS + 1);
}

void row_value_heading(struct strbuf *out, const struct row_style *s, const char *text)
{
	strbuf_printf(out, "%*s ", (int)(s->value_columns + PERCENT_COLUMNS), text);
}

/* Parameters and template arguments go before the name does. */
static void add_name(struct strbuf *out, const char *name, uint32_t columns)
{
	_cleanup_(strbuf_free) struct strbuf shorter = { 0 };

	code_name_shorten(&shorter, name, columns);
	text_add(out, TEXT_PLAIN, shorter.s ? shorter.s : name, columns);
}

static void add_module(struct strbuf *out, const struct row_style *s, const char *module,
		       uint32_t columns)
{
	bool has_brackets = module[0] == '[';

	tone(out, s, DIM);
	strbuf_puts(out, has_brackets ? "  " : "  [");
	text_add(out, TEXT_PLAIN, module, columns);
	strbuf_puts(out, has_brackets ? "" : "]");
	tone(out, s, PLAIN);
}

void row_name(struct strbuf *out, const struct row_style *s, uint32_t used, const char *name,
	      const char *module)
{
	uint32_t room = s->width > used + LEAST_NAME ? s->width - used : LEAST_NAME;
	uint32_t name_columns = NAME_COLUMNS, module_columns = MODULE_COLUMNS;

	name = *name ? name : "[unknown]";
	if (module && !*module)
		module = NULL;
	if (s->width && module) {
		uint32_t columns = text_columns(module), most = room / 3;

		if (room < LEAST_WITH_MODULE)
			module = NULL;
		else
			module_columns = columns + 4 <= most ? columns : most - 4;
	}
	if (s->width)
		name_columns = module ? room - module_columns - 4 : room;
	add_name(out, name, name_columns);
	if (module)
		add_module(out, s, module, module_columns);
	strbuf_putc(out, '\n');
}

void row_heading(struct strbuf *out, const struct row_style *s, const char *text)
{
	tone(out, s, BOLD);
	strbuf_puts(out, text);
	tone(out, s, PLAIN);
	strbuf_putc(out, '\n');
}

void row_note(struct strbuf *out, const struct row_style *s, const char *text)
{
	tone(out, s, DIM);
	strbuf_puts(out, text);
	tone(out, s, PLAIN);
	strbuf_putc(out, '\n');
}

void row_unselected(struct report *r, bool two_values)
{
	int64_t rest = r->whole - r->part;

	if (rest <= 0)
		return;
	row_value(&r->out, &r->style, rest, r->whole);
	if (two_values)
		row_no_value(&r->out, &r->style);
	strbuf_putc(&r->out, ' ');
	row_note(&r->out, &r->style, "(not selected)");
}
