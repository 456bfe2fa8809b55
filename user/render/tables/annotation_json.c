#include "base/strbuf.h"
#include "render/formats/source_line.h"
#include "render/tables/annotation_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	const struct annotation_opts *o;
	const struct dict *d;
	struct strbuf out;
};

static void put_text(struct writer *w, const char *key, const char *text)
{
	strbuf_printf(&w->out, "\"%s\":", key);
	if (!text) {
		strbuf_puts(&w->out, "null");
		return;
	}
	strbuf_puts(&w->out, "\"");
	text_add(&w->out, TEXT_JSON, text, UINT32_MAX);
	strbuf_puts(&w->out, "\"");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_line(struct writer *w, const struct line_cost *c)
{
	const char *path = dict_str(w->d, c->key.file);
	const struct source_text *t = code_sources_text(w->o->sources, path);

	strbuf_puts(&w->out, "{");
	put_text(w, "file", path);
	strbuf_printf(&w->out,
		      ",\"line\":%" PRIu32 ",\"self\":%" PRId64 ",\"total\":%" PRId64 ",\"text\":",
		      c->key.line, c->self, c->total);
	if (t && !t->problem && c->key.line && c->key.line <= t->n) {
		strbuf_puts(&w->out, "\"");
		source_line_add(&w->out, TEXT_JSON, t->lines[c->key.line - 1]);
		strbuf_puts(&w->out, "\"}");
	} else {
		strbuf_puts(&w->out, "null}");
	}
}

static void put_instruction(struct writer *w, const struct code_text *code, uint32_t i,
			    int64_t self)
{
	const struct code_instruction *in = &code->instructions[i];

	strbuf_printf(&w->out, "{\"address\":%" PRIu64 ",\"self\":%" PRId64 ",", in->vaddr, self);
	put_text(w, "text", in->text);
	strbuf_puts(&w->out, ",");
	put_text(w, "target", in->target_name);
	if (in->jump)
		strbuf_printf(&w->out, ",\"jump\":%" PRIu64 ",",
			      code->instructions[in->jump - 1].vaddr);
	else
		strbuf_puts(&w->out, ",\"jump\":null,");
	put_text(w, "file", in->n_origins ? in->origins->file : NULL);
	strbuf_printf(&w->out, ",\"line\":%" PRIu32 ",\"inlined\":[",
		      in->n_origins ? in->origins->line : 0);
	for (uint32_t k = 0; k + 1 < in->n_origins; k++) {
		strbuf_puts(&w->out, k ? ",\"" : "\"");
		text_add(&w->out, TEXT_JSON, in->origins[k].function ? in->origins[k].function : "",
			 UINT32_MAX);
		strbuf_puts(&w->out, "\"");
	}
	strbuf_puts(&w->out, "]}");
}

static int put_codes(struct writer *w, const struct function_cost *f)
{
	uint32_t n = 0;

	strbuf_puts(&w->out, "],\n\"code\":[");
	for (uint32_t i = 0; i < w->o->sources->n_codes; i++) {
		const struct code_text *code = &w->o->sources->codes[i];
		_cleanup_(freep) int64_t *self = calloc(code->n + 1ul, sizeof(*self));
		int64_t sum;

		if (!self)
			return -ENOMEM;
		if (code->module.ix != f->module.ix ||
		    !line_costs_of_code(w->o->costs, w->d, code, f->function, self, &sum))
			continue;
		strbuf_puts(&w->out, n++ ? ",\n{" : "{");
		put_text(w, "name", code->name);
		strbuf_printf(&w->out, ",\"start\":%" PRIu64 ",\"self\":%" PRId64 ",", code->start,
			      sum);
		put_text(w, "no_lines", code->no_lines);
		strbuf_puts(&w->out, ",\"instructions\":[");
		for (uint32_t k = 0; k < code->n; k++) {
			strbuf_puts(&w->out, k ? ",\n" : "");
			put_instruction(w, code, k, self[k]);
		}
		strbuf_puts(&w->out, "]}");
	}
	strbuf_puts(&w->out, "]}");
	return 0;
}

static int put_function(struct writer *w, const struct function_cost *f)
{
	strbuf_puts(&w->out, "{");
	put_text(w, "function", dict_str(w->d, f->function));
	strbuf_puts(&w->out, ",");
	put_text(w, "module", base_name(dict_str(w->d, dict_module_get(w->d, f->module)->path)));
	strbuf_printf(&w->out, ",\"self\":%" PRId64 ",\"total\":%" PRId64 ",\"lines\":[", f->self,
		      f->total);
	for (uint32_t i = 0; i < f->n; i++) {
		strbuf_puts(&w->out, i ? ",\n" : "");
		put_line(w, &w->o->costs->lines[f->first + i]);
	}
	return put_codes(w, f);
}

int annotation_json_write(const struct annotation_opts *o,
			  const struct function_cost *const *functions, uint32_t n,
			  struct sink *out, struct err *e)
{
	struct writer w = { .o = o, .d = profile_dict(o->p) };
	const struct value_type *type = profile_type(o->p, o->type);
	int r = 0;

	strbuf_puts(&w.out, "{");
	put_text(&w, "type", type->name);
	strbuf_puts(&w.out, ",");
	put_text(&w, "unit", type->unit);
	strbuf_printf(&w.out, ",\"all\":%" PRId64 ",\n\"functions\":[", o->costs->all);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		strbuf_puts(&w.out, i ? ",\n" : "");
		r = put_function(&w, functions[i]);
	}
	strbuf_puts(&w.out, "],\n\"files\":[");
	for (uint32_t i = 0; i < o->sources->n_texts; i++) {
		const struct source_text *t = &o->sources->texts[i];

		strbuf_puts(&w.out, i ? ",\n{" : "{");
		put_text(&w, "path", t->path);
		strbuf_puts(&w.out, ",");
		put_text(&w, "problem", t->problem);
		strbuf_printf(&w.out, ",\"newer\":%s}", t->newer ? "true" : "false");
	}
	strbuf_puts(&w.out, "],\n\"problems\":[");
	for (uint32_t i = 0; i < o->sources->n_problems; i++) {
		const struct code_problem *p = &o->sources->problems[i];

		strbuf_puts(&w.out, i ? ",\n{" : "{");
		put_text(&w, "image", dict_str(w.d, dict_module_get(w.d, p->module)->path));
		strbuf_puts(&w.out, ",");
		put_text(&w, "problem", p->why);
		strbuf_puts(&w.out, "}");
	}
	strbuf_puts(&w.out, "]}\n");
	if (r < 0 || strbuf_oom(&w.out))
		r = err_set(e, -ENOMEM, "out of memory for an annotation");
	else
		sink_write(out, w.out.s, w.out.len);
	strbuf_free(&w.out);
	return r;
}
