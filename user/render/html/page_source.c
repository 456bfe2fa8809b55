#include "render/html/page_source.h"

#include "analyse/jump_lanes.h"
#include "analyse/line_costs.h"
#include "render/formats/source_line.h"
#include "render/html/packed.h"
#include "render/html/page_data.h"
#include "render/html/page_json.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 4000 }; /* as the frames' names have (packed.c) */

/* What is shown of one function's code. */
struct code_view {
	int64_t self; /* in the profile that has the most of it, as a share of that: only for the order */
	uint32_t number;
	bool *shown; /* by instruction */
	uint32_t n;
};

struct writer {
	const struct page_run *run;
	const struct code_sources *s;
	const struct dict *d;
	struct strbuf *out;
	struct code_view *codes;
	uint8_t **lines; /* by text: 1 for each line that is shown */
	uint32_t codes_left_out, texts_left_out;
};

static void put_text(struct strbuf *out, const char *text)
{
	strbuf_putc(out, '"');
	text_add(out, TEXT_JSON, text, NAME_COLUMNS);
	strbuf_putc(out, '"');
}

static void put_text_or_null(struct strbuf *out, const char *text)
{
	if (text)
		put_text(out, text);
	else
		strbuf_puts(out, "null");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static uint32_t around(uint32_t at, uint32_t context)
{
	return at > context ? at - context : 0;
}

/* --- what is shown --- */

static void mark_code(struct writer *w, const struct line_costs *c)
{
	for (uint32_t i = 0; i < c->n_places; i++) {
		const struct place_cost *p = &c->places[i];
		const struct code_text *code = code_sources_code(w->s, p->module, p->vaddr);
		uint32_t at = code ? code_text_find(code, p->vaddr) : 0;
		struct code_view *v;

		if (!at)
			continue;
		v = &w->codes[code - w->s->codes];
		/* In millionths of the profile: values of several have several units. */
		v->self += (int64_t)(1e6 * (double)p->self / (double)c->all);
		for (uint32_t k = around(at - 1, PAGE_SOURCE_CODE);
		     k < code->n && k <= at - 1 + PAGE_SOURCE_CODE; k++)
			v->shown[k] = true;
	}
}

static void mark_line(struct writer *w, const char *path, uint32_t line, uint32_t context)
{
	const struct source_text *t = *path ? code_sources_text(w->s, path) : NULL;

	if (!t || !line || line > t->n)
		return;
	for (uint32_t k = around(line, context); k <= line + context; k++)
		if (k && k <= t->n)
			w->lines[t - w->s->texts][k - 1] = 1;
}

static void mark_lines(struct writer *w, const struct line_costs *c)
{
	for (uint32_t i = 0; i < c->n_lines; i++)
		mark_line(w, dict_str(w->d, c->lines[i].key.file), c->lines[i].key.line,
			  PAGE_SOURCE_LINES);
}

/* The lines that shown instructions were compiled from. */
static void mark_origins(struct writer *w, const struct code_text *code, const struct code_view *v)
{
	for (uint32_t i = 0; i < code->n; i++) {
		const struct code_instruction *in = &code->instructions[i];

		if (v->shown[i] && in->n_origins && in->origins->file)
			mark_line(w, in->origins->file, in->origins->line, 0);
	}
}

static int mark(struct writer *w)
{
	w->codes = calloc(w->s->n_codes + 1ul, sizeof(*w->codes));
	w->lines = calloc(w->s->n_texts + 1ul, sizeof(*w->lines));
	if (!w->codes || !w->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->s->n_codes; i++) {
		w->codes[i].number = i;
		w->codes[i].n = w->s->codes[i].n;
		w->codes[i].shown = calloc(w->s->codes[i].n + 1ul, sizeof(bool));
		if (!w->codes[i].shown)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->s->n_texts; i++) {
		w->lines[i] = calloc(w->s->texts[i].n + 1ul, 1);
		if (!w->lines[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->run->n_profiles; i++) {
		const struct line_costs *c = w->run->profiles[i].costs;

		if (!c || c->all <= 0)
			continue;
		mark_code(w, c);
		mark_lines(w, c);
	}
	for (uint32_t i = 0; i < w->s->n_codes; i++)
		mark_origins(w, &w->s->codes[i], &w->codes[i]);
	return 0;
}

static void writer_fini(struct writer *w)
{
	for (uint32_t i = 0; w->codes && i < w->s->n_codes; i++)
		free(w->codes[i].shown);
	for (uint32_t i = 0; w->lines && i < w->s->n_texts; i++)
		free(w->lines[i]);
	free(w->codes);
	free(w->lines);
}

/* --- code --- */

static void put_origins(struct writer *w, const struct code_instruction *in)
{
	strbuf_puts(w->out, "[");
	for (uint32_t i = 0; i < in->n_origins; i++) {
		const struct code_origin *o = &in->origins[i];
		const struct source_text *t = o->file ? code_sources_text(w->s, o->file) : NULL;

		strbuf_puts(w->out, i ? ",[" : "[");
		put_text(w->out, o->function ? o->function : "");
		strbuf_puts(w->out, ",");
		/* The whole path of what was not read says nothing here. */
		if (t)
			strbuf_printf(w->out, "%td", t - w->s->texts);
		else
			put_text_or_null(w->out, o->file ? base_name(o->file) : NULL);
		strbuf_printf(w->out, ",%" PRIu32 "]", o->line);
	}
	strbuf_puts(w->out, "]");
}

static void put_lanes(struct strbuf *out, const struct jump_row *row, uint32_t columns)
{
	strbuf_puts(out, "\"");
	for (uint32_t c = JUMP_COLUMNS - columns; c < JUMP_COLUMNS; c++)
		strbuf_puts(out, row->columns[c]);
	strbuf_puts(out, "\"");
}

/* [number, offset, text, target, jump, lanes, origins or 0: as before] */
static void put_instruction(struct writer *w, const struct code_text *code, uint32_t i,
			    const struct jump_row *lanes, uint32_t columns,
			    const struct code_origin *before)
{
	const struct code_instruction *in = &code->instructions[i];

	strbuf_printf(w->out, "[%" PRIu32 ",%" PRIu64 ",", i, in->vaddr - code->start);
	put_text(w->out, in->text);
	strbuf_puts(w->out, ",");
	put_text(w->out, in->target_name ? in->target_name : "");
	strbuf_printf(w->out, ",%" PRId64 ",", (int64_t)in->jump - 1);
	put_lanes(w->out, &lanes[i], columns);
	strbuf_puts(w->out, ",");
	if (before && in->origins == before)
		strbuf_puts(w->out, "0");
	else
		put_origins(w, in);
	strbuf_puts(w->out, "]");
}

static int put_code(struct writer *w, const struct code_text *code, const struct code_view *v)
{
	_cleanup_(freep) struct jump_row *lanes = NULL;
	const struct code_origin *before = NULL;
	const struct module *m = dict_module_get(w->d, code->module);
	uint32_t columns;
	bool first = true;

	lanes = jump_lanes(code, &columns);
	if (!lanes)
		return -ENOMEM;
	strbuf_puts(w->out, "{\"name\":");
	put_text(w->out, code->name);
	strbuf_puts(w->out, ",\"module\":");
	put_text(w->out, base_name(dict_str(w->d, m->path)));
	strbuf_printf(w->out,
		      ",\"start\":\"%" PRIx64 "\",\"n\":%" PRIu32 ",\"cut\":%s,\"no_lines\":",
		      code->start, code->n, code->cut ? "true" : "false");
	put_text_or_null(w->out, code->no_lines);
	strbuf_puts(w->out, ",\"rows\":[");
	for (uint32_t i = 0; i < code->n; i++) {
		if (!v->shown[i]) {
			before = NULL;
			continue;
		}
		strbuf_puts(w->out, first ? "" : ",");
		put_instruction(w, code, i, lanes, columns, before);
		before = code->instructions[i].origins;
		first = false;
	}
	strbuf_puts(w->out, "]}");
	return 0;
}

static int by_self(const void *a, const void *b)
{
	const struct code_view *x = a, *y = b;

	return x->self != y->self ? (x->self > y->self ? -1 : 1)
				  : (x->number > y->number) - (x->number < y->number);
}

static int add_shown(struct page_instructions *list, const struct code_view *v)
{
	struct page_instruction *grown =
		reallocarray(list->at, list->n + v->n + 1ul, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->at = grown;
	for (uint32_t i = 0; i < v->n; i++)
		if (v->shown[i])
			list->at[list->n++] = (struct page_instruction){ v->number, i };
	return 0;
}

static int put_codes(struct writer *w, struct page_instructions *ret_shown)
{
	size_t begin = w->out->len;
	bool first = true;
	int r = 0;

	if (w->s->n_codes)
		qsort(w->codes, w->s->n_codes, sizeof(*w->codes), by_self);
	strbuf_puts(w->out, "\"codes\":[");
	for (uint32_t i = 0; i < w->s->n_codes && r == 0; i++) {
		const struct code_view *v = &w->codes[i];
		size_t before = w->out->len;

		if (v->self <= 0)
			continue;
		strbuf_puts(w->out, first ? "" : ",");
		r = put_code(w, &w->s->codes[v->number], v);
		if (r == 0 && w->out->len - begin > PAGE_SOURCE_BYTES / 2) {
			w->out->s[w->out->len = before] = 0;
			w->codes_left_out++;
			continue;
		}
		r = r == 0 ? add_shown(ret_shown, v) : r;
		first = false;
	}
	strbuf_puts(w->out, "]");
	return r;
}

/* --- texts --- */

static void put_parts(struct writer *w, const struct source_text *t, const uint8_t *shown)
{
	bool first = true;

	strbuf_puts(w->out, ",\"parts\":[");
	for (uint32_t i = 0; i < t->n; i++) {
		if (!shown[i])
			continue;
		if (!i || !shown[i - 1]) {
			strbuf_printf(w->out, "%s[%" PRIu32 ",[", first ? "" : "]],", i + 1);
			first = false;
		} else {
			strbuf_puts(w->out, ",");
		}
		strbuf_puts(w->out, "\"");
		source_line_add(w->out, TEXT_JSON, t->lines[i]);
		strbuf_puts(w->out, "\"");
	}
	strbuf_puts(w->out, first ? "]" : "]]]");
}

static void put_texts(struct writer *w)
{
	size_t begin = w->out->len;

	strbuf_puts(w->out, ",\"texts\":[");
	for (uint32_t i = 0; i < w->s->n_texts; i++) {
		const struct source_text *t = &w->s->texts[i];
		size_t before;

		strbuf_puts(w->out, i ? ",{\"path\":" : "{\"path\":");
		put_text(w->out, t->path);
		strbuf_printf(w->out, ",\"newer\":%s,\"problem\":", t->newer ? "true" : "false");
		put_text_or_null(w->out, t->problem);
		before = w->out->len;
		put_parts(w, t, w->lines[i]);
		if (w->out->len - begin > PAGE_SOURCE_BYTES / 2 && w->out->s) {
			w->out->s[w->out->len = before] = 0;
			strbuf_puts(w->out, ",\"parts\":[],\"left_out\":true");
			w->texts_left_out++;
		}
		strbuf_puts(w->out, "}");
	}
	strbuf_puts(w->out, "]");
}

int page_source_json(const struct page_run *run, struct strbuf *out,
		     struct page_instructions *ret_shown)
{
	_cleanup_(writer_fini) struct writer w = { .run = run, .s = run->sources, .out = out };
	int r;

	w.d = profile_dict(run->profiles[0].p);
	*ret_shown = (struct page_instructions){ 0 };
	r = mark(&w);
	if (r < 0)
		return r;
	strbuf_puts(out, "{");
	r = put_codes(&w, ret_shown);
	put_texts(&w);
	strbuf_puts(out, ",\"problems\":[");
	for (uint32_t i = 0; i < w.s->n_problems; i++) {
		const struct module *m = dict_module_get(w.d, w.s->problems[i].module);

		strbuf_puts(out, i ? ",[" : "[");
		put_text(out, dict_str(w.d, m->path));
		strbuf_puts(out, ",");
		put_text(out, w.s->problems[i].why);
		strbuf_puts(out, "]");
	}
	strbuf_printf(out,
		      "],\"functions_left_out\":%" PRIu32 ",\"codes_left_out\":%" PRIu32
		      ",\"texts_left_out\":%" PRIu32 "}",
		      w.s->left_out, w.codes_left_out, w.texts_left_out);
	return r == 0 && strbuf_oom(out) ? -ENOMEM : r;
}

/* --- of each sample --- */

/* Of code_sources' order they are not: by code as they were written. */
static uint32_t number_of(const struct page_instructions *shown, const uint32_t *first_of,
			  uint32_t code, uint32_t instruction)
{
	for (uint32_t i = first_of[code]; i && i <= shown->n && shown->at[i - 1].code == code; i++)
		if (shown->at[i - 1].instruction == instruction)
			return i;
	return 0;
}

int page_source_rows(const struct page_run *run, const struct page_profile *pp,
		     const struct page_row *rows, const struct page_instructions *shown,
		     struct strbuf *out)
{
	_cleanup_(freep) uint32_t *first_of =
		calloc(run->sources->n_codes + 1ul, sizeof(*first_of));
	_cleanup_(strbuf_free) struct strbuf numbers = { 0 };
	uint32_t n = profile_n_samples(pp->p), type = shown_pick(pp->p, -1).type;

	if (!first_of)
		return -ENOMEM;
	for (uint32_t i = shown->n; i-- > 0;)
		first_of[shown->at[i].code] = i + 1;
	packed_number(out, PAGE_DATA_VERSION);
	packed_number(out, n);
	for (uint32_t i = 0; i < n; i++) {
		stack_id stack = profile_sample(pp->p, rows[i].sample).stack;
		uint32_t from_leaf = 0, at = 0;
		const struct code_text *code;
		const struct location *l;
		location_id location;
		int r = line_costs_place(pp->p, type, stack, &location, &from_leaf);

		if (r == -ENOMEM)
			return r;
		l = r == 0 ? dict_location_get(profile_dict(pp->p), location) : NULL;
		code = l ? code_sources_code(run->sources, l->module, l->vaddr) : NULL;
		at = code ? code_text_find(code, l->vaddr) : 0;
		packed_number(out, from_leaf);
		packed_number(&numbers,
			      at ? number_of(shown, first_of,
					     (uint32_t)(code - run->sources->codes), at - 1)
				 : 0);
	}
	strbuf_add(out, numbers.s ? numbers.s : "", numbers.len);
	return strbuf_oom(out) || strbuf_oom(&numbers) ? -ENOMEM : 0;
}

void page_instructions_fini(struct page_instructions *list)
{
	free(list->at);
	*list = (struct page_instructions){ 0 };
}
