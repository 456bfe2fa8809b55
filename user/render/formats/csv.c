#include "analyse/functions.h"
#include "render/formats/text.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* What one value type says of one function. */
struct cell {
	struct function function;
	uint32_t type;
};

struct cells {
	struct cell *all;
	uint32_t n;
};

static int add_type(struct cells *c, const struct profile *p, uint32_t type)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(functions_fini) struct functions f = { 0 };
	struct cell *all;
	int r = frame_tree_build(p, &(struct frame_tree_opts){ .type = type }, &tree);

	if (r == 0)
		r = functions_make(tree, &f);
	if (r < 0)
		return r;
	all = reallocarray(c->all, c->n + (size_t)f.n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	c->all = all;
	for (uint32_t i = 0; i < f.n; i++)
		all[c->n++] = (struct cell){ f.rows[i], type };
	return 0;
}

static int compare_cells(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return function_compare(&x->function, &y->function)
		       ?: (x->type > y->type) - (x->type < y->type);
}

/* A line: cells [first, end), and what it is sorted by. */
struct csv_line {
	const struct cell *cells;
	uint32_t first, end;
	int64_t total;
};

static int compare_lines(const void *a, const void *b)
{
	const struct csv_line *x = a, *y = b;
	const struct function *f = &x->cells[x->first].function, *g = &y->cells[y->first].function;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(f->name, g->name) ?: strcmp(f->module, g->module);
}

static uint32_t make_lines(const struct cells *c, uint32_t sort_by, struct csv_line *lines)
{
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < c->n; i = end) {
		struct csv_line line = { c->all, i, 0, 0 };

		for (end = i;
		     end < c->n && !function_compare(&c->all[i].function, &c->all[end].function);
		     end++)
			if (c->all[end].type == sort_by)
				line.total = c->all[end].function.total;
		line.end = end;
		lines[n++] = line;
	}
	if (n)
		qsort(lines, n, sizeof(*lines), compare_lines);
	return n;
}

static void add_header(struct strbuf *b, const struct profile *p)
{
	char name[256];

	strbuf_puts(b, "function,module,kind");
	for (uint32_t t = 0; t < profile_n_types(p); t++) {
		for (int total = 0; total < 2; total++) {
			snprintf(name, sizeof(name), "%.100s/%.100s %s", profile_type(p, t)->name,
				 profile_type(p, t)->unit, total ? "total" : "self");
			strbuf_putc(b, ',');
			text_add_csv(b, name);
		}
	}
	strbuf_putc(b, '\n');
}

static void add_line(struct strbuf *b, const struct csv_line *line, uint32_t n_types)
{
	const struct cell *cell = &line->cells[line->first], *end = &line->cells[line->end];

	text_add_csv(b, cell->function.name);
	strbuf_putc(b, ',');
	text_add_csv(b, cell->function.module);
	strbuf_printf(b, ",%s", frame_kind_name(cell->function.kind));
	for (uint32_t t = 0; t < n_types; t++) {
		bool has = cell < end && cell->type == t;

		strbuf_printf(b, ",%" PRId64 ",%" PRId64, has ? cell->function.self : 0,
			      has ? cell->function.total : 0);
		cell += has;
	}
	strbuf_putc(b, '\n');
}

static int write_table(const struct profile *p, struct cells *c, struct sink *out)
{
	_cleanup_(freep) struct csv_line *lines = NULL;
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	uint32_t n;
	int r = 0;

	for (uint32_t t = 0; r == 0 && t < profile_n_types(p); t++)
		r = add_type(c, p, t);
	lines = r < 0 ? NULL : calloc(c->n + 1ul, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	if (c->n)
		qsort(c->all, c->n, sizeof(*c->all), compare_cells);
	n = make_lines(c, profile_get_meta(p)->default_type, lines);
	add_header(&text, p);
	for (uint32_t i = 0; i < n; i++) {
		add_line(&text, &lines[i], profile_n_types(p));
		if (text.len < 1 << 16 && i + 1 < n)
			continue;
		if (strbuf_oom(&text))
			break;
		sink_write(out, text.s, text.len);
		strbuf_reset(&text);
	}
	if (text.len && !strbuf_oom(&text))
		sink_write(out, text.s, text.len);
	return strbuf_oom(&text) ? -ENOMEM : 0;
}

int csv_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	      struct err *e)
{
	struct cells c = { 0 };
	int r = write_table(p, &c, out);

	free(c.all);
	return r < 0 ? err_set(e, r, "out of memory for a table") : 0;
}
