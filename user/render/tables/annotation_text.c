#include "render/tables/annotation_text.h"

#include "analyse/jump_lanes.h"
#include "base/strbuf.h"
#include "render/formats/source_line.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 120, NO_LINE = UINT32_MAX };

struct writer {
	const struct annotation_opts *o;
	const struct function_cost *f;
	const struct dict *d;
	struct shown shown;
	struct strbuf out;
};

static int64_t base_of(const struct writer *w, int64_t part)
{
	return w->o->of_all ? w->o->costs->all : part;
}

static void add_name(struct writer *w, const char *name)
{
	text_add(&w->out, TEXT_PLAIN, name, NAME_COLUMNS);
}

static void add_percent(struct writer *w, int64_t value, int64_t whole)
{
	strbuf_printf(&w->out, "%7s ", value ? unit_percent(value, whole).s : "");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void add_value(struct writer *w, int64_t value)
{
	strbuf_printf(&w->out, "%s%s%s (%s of all)", shown_text(&w->shown, NULL, value).s,
		      *w->shown.noun ? " " : "", w->shown.noun,
		      unit_percent(value, w->o->costs->all).s);
}

/* What its own self cost does not have, although it is among its instructions. */
static void add_inlined(struct writer *w)
{
	const struct line_costs *c = w->o->costs;
	int64_t sum = 0;

	for (uint32_t i = 0; i < c->n_places; i++) {
		const struct place_cost *p = &c->places[i];

		if (p->module.ix == w->f->module.ix && place_cost_is_of(p, w->d, w->f->function) &&
		    dict_location_get(w->d, p->location)->lines[0].function.ix != w->f->function.ix)
			sum += p->self;
	}
	if (!sum)
		return;
	add_value(w, sum);
	strbuf_puts(&w->out, " more in functions inlined into it, whose lines are their own\n");
}

static void add_heading(struct writer *w)
{
	const char *module = dict_str(w->d, dict_module_get(w->d, w->f->module)->path);

	add_name(w, dict_str(w->d, w->f->function));
	strbuf_puts(&w->out, *module == '[' ? "  " : "  [");
	add_name(w, base_name(module));
	strbuf_puts(&w->out, *module == '[' ? "" : "]");
	strbuf_puts(&w->out, "\nself ");
	add_value(w, w->f->self);
	strbuf_puts(&w->out, ", total ");
	add_value(w, w->f->total);
	strbuf_puts(&w->out, w->o->of_all ? "; percentages are of all\n"
					  : "; percentages of lines are of its total\n");
	add_inlined(w);
}

/* --- source --- */

struct shown_lines {
	const struct source_text *text;
	const struct line_cost *costs; /* of this file, by line */
	uint32_t n;
};

static void add_source_line(struct writer *w, const struct line_cost *c, uint32_t line,
			    const char *text)
{
	int64_t whole = base_of(w, w->f->total);

	add_percent(w, c ? c->self : 0, whole);
	add_percent(w, c ? c->total : 0, whole);
	strbuf_printf(&w->out, "%6" PRIu32 "  ", line);
	source_line_add(&w->out, TEXT_PLAIN, text);
	while (w->out.len && w->out.s[w->out.len - 1] == ' ')
		w->out.s[--w->out.len] = 0;
	strbuf_putc(&w->out, '\n');
}

static void add_lines(struct writer *w, const struct shown_lines *l)
{
	uint32_t context = w->o->context, next = 1, k = 0;

	while (k < l->n && !l->costs[k].key.line)
		k++;
	while (k < l->n) {
		uint32_t line = l->costs[k].key.line, first = line > context ? line - context : 1,
			 last;

		if (line > l->text->n) {
			strbuf_printf(&w->out,
				      "        its text has no line %" PRIu32 ": it is another\n",
				      line);
			return;
		}
		first = first < next ? next : first;
		if (next > 1 && first > next)
			strbuf_puts(&w->out, "                    …\n");
		for (next = first; next < line; next++)
			add_source_line(w, NULL, next, l->text->lines[next - 1]);
		add_source_line(w, &l->costs[k], line, l->text->lines[line - 1]);
		next = line + 1;
		k++;
		last = line + context < l->text->n ? line + context : l->text->n;
		if (k < l->n && l->costs[k].key.line <= last)
			last = l->costs[k].key.line - 1;
		for (; next <= last; next++)
			add_source_line(w, NULL, next, l->text->lines[next - 1]);
	}
}

/* Without its text: the numbers alone. */
static void add_numbers(struct writer *w, const struct shown_lines *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->costs[i].self || l->costs[i].total)
			add_source_line(w, &l->costs[i], l->costs[i].key.line, "");
}

static void add_file(struct writer *w, const struct line_cost *costs, uint32_t n)
{
	const char *path = dict_str(w->d, costs->key.file);
	const struct source_text *text = code_sources_text(w->o->sources, path);
	const struct shown_lines lines = { text, costs, n };

	strbuf_puts(&w->out, "\n");
	if (!*path) {
		strbuf_puts(&w->out, "No file and line is known of");
		add_percent(w, costs->self, base_of(w, w->f->total));
		strbuf_puts(&w->out, "(no debug info?)\n");
		return;
	}
	add_name(w, path);
	if (w->o->no_source)
		strbuf_puts(&w->out, ": its text is left out (--no-source)");
	else if (!text)
		strbuf_puts(&w->out, ": not read, for there are too many files");
	else if (text->problem)
		strbuf_printf(&w->out, ": %s", text->problem);
	else if (text->newer)
		strbuf_puts(&w->out, ": changed after the program was built: lines may have moved");
	strbuf_puts(&w->out, "\n   Self   Total    Line  Source\n");
	if (text && !text->problem)
		add_lines(w, &lines);
	else
		add_numbers(w, &lines);
}

static void add_source(struct writer *w)
{
	const struct line_cost *all = w->o->costs->lines + w->f->first;

	for (uint32_t from = 0, to; from < w->f->n; from = to) {
		for (to = from; to < w->f->n && all[to].key.file.ix == all[from].key.file.ix; to++)
			;
		add_file(w, all + from, to - from);
	}
}

/* --- code --- */

static void add_origin(struct writer *w, const struct code_text *code,
		       const struct code_instruction *in)
{
	const struct code_origin *o = in->origins;
	const struct source_text *text = o->file ? code_sources_text(w->o->sources, o->file) : NULL;

	strbuf_puts(&w->out, "              ");
	add_name(w, o->file ? base_name(o->file) : "?");
	strbuf_printf(&w->out, ":%" PRIu32, o->line);
	if (in->n_origins > 1) {
		strbuf_puts(&w->out, " (");
		add_name(w, o->function ? o->function : "?");
		strbuf_puts(&w->out, ", inlined)");
	}
	if (text && !text->problem && o->line && o->line <= text->n) {
		const char *line = text->lines[o->line - 1];

		strbuf_puts(&w->out, "  ");
		source_line_add(&w->out, TEXT_PLAIN, line + strspn(line, " \t"));
	}
	strbuf_putc(&w->out, '\n');
}

static void add_instruction(struct writer *w, const struct code_text *code, uint32_t i,
			    const struct jump_row *lanes, uint32_t columns, int64_t self,
			    int64_t whole)
{
	const struct code_instruction *in = &code->instructions[i];

	add_percent(w, self, whole);
	strbuf_printf(&w->out, "%10" PRIx64 "  ", in->vaddr);
	for (uint32_t c = JUMP_COLUMNS - columns; c < JUMP_COLUMNS; c++)
		strbuf_puts(&w->out, lanes[i].columns[c]);
	strbuf_puts(&w->out, columns ? " " : "");
	text_add(&w->out, TEXT_PLAIN, in->text, 160);
	if (in->target_name) {
		strbuf_puts(&w->out, " <");
		add_name(w, in->target_name);
		strbuf_puts(&w->out, ">");
	}
	strbuf_putc(&w->out, '\n');
}

/* Is an instruction with cost so near that this one is shown? */
static bool *near_cost(const struct writer *w, const int64_t *self, uint32_t n)
{
	bool *shown = calloc(n + 1ul, sizeof(*shown));
	uint32_t context = w->o->context;

	for (uint32_t i = 0; shown && i < n; i++)
		for (uint32_t k = i > context ? i - context : 0;
		     self[i] && k < n && k <= i + context; k++)
			shown[k] = true;
	return shown;
}

static int add_code(struct writer *w, const struct code_text *code)
{
	_cleanup_(freep) int64_t *self = calloc(code->n + 1ul, sizeof(*self));
	_cleanup_(freep) struct jump_row *lanes = NULL;
	_cleanup_(freep) bool *shown = NULL;
	uint32_t columns = 0, left_out = 0;
	const struct code_origin *last = NULL;
	int64_t sum;

	if (!self)
		return -ENOMEM;
	if (!line_costs_of_code(w->o->costs, w->d, code, w->f->function, self, &sum))
		return 0;
	lanes = jump_lanes(code, &columns);
	shown = near_cost(w, self, code->n);
	if (!lanes || !shown)
		return -ENOMEM;
	strbuf_puts(&w->out, "\nInstructions of ");
	add_name(w, code->name);
	strbuf_printf(&w->out, ": 0x%" PRIx64 " to 0x%" PRIx64 ", self ", code->start, code->end);
	add_value(w, sum);
	strbuf_printf(&w->out, "%s%s%s\n   Self    Address  Instruction\n",
		      w->o->of_all ? "" : ", of which percentages are",
		      code->no_lines ? "; no lines: " : "", code->no_lines ? code->no_lines : "");
	for (uint32_t i = 0; i < code->n; i++) {
		const struct code_instruction *in = &code->instructions[i];

		if (!shown[i]) {
			left_out++;
			last = NULL;
			continue;
		}
		if (left_out)
			strbuf_printf(&w->out, "              … %" PRIu32 " without samples\n",
				      left_out);
		left_out = 0;
		if (in->n_origins && in->origins != last)
			add_origin(w, code, in);
		last = in->origins;
		add_instruction(w, code, i, lanes, columns, self[i], base_of(w, sum));
	}
	if (left_out)
		strbuf_printf(&w->out, "              … %" PRIu32 " without samples\n", left_out);
	if (code->cut)
		strbuf_puts(&w->out, "              the rest of the function is too long\n");
	return 0;
}

static void add_problems(struct writer *w)
{
	for (uint32_t i = 0; i < w->o->sources->n_problems; i++) {
		const struct code_problem *p = &w->o->sources->problems[i];

		strbuf_puts(&w->out, "\nNot all instructions are here: ");
		add_name(w, dict_str(w->d, dict_module_get(w->d, p->module)->path));
		strbuf_printf(&w->out, ": %s\n", p->why);
	}
}

int annotation_text_write(const struct annotation_opts *o, const struct function_cost *function,
			  struct sink *out, struct err *e)
{
	struct writer w = { .o = o,
			    .f = function,
			    .d = profile_dict(o->p),
			    .shown = shown_pick(o->p, (int)o->type) };
	int r = 0;

	add_heading(&w);
	add_source(&w);
	for (uint32_t i = 0; i < o->sources->n_codes && r == 0; i++)
		if (o->sources->codes[i].module.ix == function->module.ix)
			r = add_code(&w, &o->sources->codes[i]);
	if (r == 0)
		add_problems(&w);
	if (r < 0 || strbuf_oom(&w.out))
		r = err_set(e, -ENOMEM, "out of memory for an annotation");
	else
		sink_write(out, w.out.s, w.out.len);
	strbuf_free(&w.out);
	return r;
}
