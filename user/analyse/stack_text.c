#include "analyse/stack_text.h"
#include "analyse/syscall_quote.h"

#include <string.h>

static void text_put(struct strbuf *out, const char *s)
{
	escaped_put(out, s, (uint32_t)strlen(s));
}

/* Of an image's functions only those are names that its linker knew. */
static const char *function_of(const struct dict *d, const struct location *l,
			       const struct line *line)
{
	const struct module *m = dict_module_get(d, l->module);

	if (m->kind == MODULE_ELF && !*dict_str(d, line->system_name))
		return "";
	return dict_str(d, line->function);
}

static bool has_language(const struct dict *d, const struct location *l)
{
	return dict_module_get(d, l->module)->kind == MODULE_LANG;
}

/* … and it is known where it stands. */
static bool is_of_language(const struct dict *d, const struct location *l, const struct line *line)
{
	return has_language(d, l) && *dict_str(d, line->file);
}

/* What stands for frames that are missing has none. */
static bool has_address(const struct dict *d, const struct location *l)
{
	return !has_language(d, l) && (l->module.ix || l->vaddr < 1ULL << 63);
}

static void line_put(const struct dict *d, const struct location *l, const struct line *line,
		     struct strbuf *out)
{
	const char *path = dict_str(d, dict_module_get(d, l->module)->path);

	strbuf_puts(out, " > ");
	if (is_of_language(d, l, line)) {
		text_put(out, dict_str(d, line->file));
		strbuf_putc(out, ':');
		strbuf_unsigned(out, line->line);
	} else {
		text_put(out, *path ? path : function_of(d, l, line));
	}
	if (*path) {
		strbuf_putc(out, '(');
		text_put(out, function_of(d, l, line));
		strbuf_putc(out, ')');
	}
	if (has_address(d, l)) {
		strbuf_puts(out, " [");
		strbuf_hex(out, l->vaddr);
		strbuf_putc(out, ']');
	}
	strbuf_putc(out, '\n');
}

static bool is_whole(enum stack_verdict verdict)
{
	return verdict == STACK_COMPLETE;
}

void stack_text_put(const struct dict *d, stack_id stack, enum stack_verdict verdict,
		    struct strbuf *out)
{
	for (; stack.ix; stack = dict_stack_parent(d, stack)) {
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, stack));

		for (uint32_t i = 0; i < l->n_lines; i++)
			line_put(d, l, &l->lines[i], out);
	}
	if (!is_whole(verdict))
		strbuf_printf(out, " > (incomplete: %s)\n", stack_verdict_names[verdict]);
}

/* What is escaped has backslashes and quotes: they are so once more. */
static void json_text(struct strbuf *out, const char *key, const char *s)
{
	struct strbuf text = { 0 };

	text_put(&text, s);
	strbuf_printf(out, "\"%s\":\"", key);
	for (size_t i = 0; i < text.len; i++) {
		if (text.s[i] == '"' || text.s[i] == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, text.s[i]);
	}
	strbuf_putc(out, '"');
	out->oom |= strbuf_oom(&text);
	strbuf_free(&text);
}

static void json_line(const struct dict *d, const struct location *l, const struct line *line,
		      struct strbuf *out)
{
	strbuf_putc(out, '{');
	json_text(out, "function", function_of(d, l, line));
	strbuf_putc(out, ',');
	json_text(out, "module", dict_str(d, dict_module_get(d, l->module)->path));
	strbuf_putc(out, ',');
	if (is_of_language(d, l, line)) {
		json_text(out, "file", dict_str(d, line->file));
		strbuf_printf(out, ",\"line\":%u}", line->line);
	} else {
		strbuf_printf(out, "\"address\":\"0x%llx\"}",
			      has_address(d, l) ? (unsigned long long)l->vaddr : 0ULL);
	}
}

void stack_text_json(const struct dict *d, stack_id stack, enum stack_verdict verdict,
		     struct strbuf *out)
{
	bool first = true;

	strbuf_puts(out, ",\"stack\":[");
	for (; stack.ix; stack = dict_stack_parent(d, stack)) {
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, stack));

		for (uint32_t i = 0; i < l->n_lines; i++) {
			strbuf_puts(out, first ? "" : ",");
			json_line(d, l, &l->lines[i], out);
			first = false;
		}
	}
	strbuf_putc(out, ']');
	if (!is_whole(verdict))
		strbuf_printf(out, ",\"stack_incomplete\":\"%s\"", stack_verdict_names[verdict]);
}
