/* A profile's parts, by a label of its samples or by the image that its functions are in. */
#include "analyse/functions.h"
#include "base/saturate.h"
#include "render/formats/text.h"
#include "render/tables/profile_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct part {
	const char *name;
	int64_t self, total;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The first level of the tree: its totals are what the parts have. */
static uint32_t label_parts(const struct frame_tree *t, struct part *parts)
{
	uint32_t n = 0;

	for (uint32_t i = t->nodes[0].first_child; i; i = t->nodes[i].next_sibling)
		parts[n++] =
			(struct part){ t->nodes[i].name, t->nodes[i].total, t->nodes[i].total };
	return n;
}

static int module_parts(const struct frame_tree *t, struct part *parts)
{
	_cleanup_(functions_fini) struct functions f = { 0 };
	uint32_t n = 0;

	if (functions_make_modules(t, &f) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < f.n; i++)
		if (f.rows[i].total > 0)
			parts[n++] = (struct part){ *f.rows[i].name ? f.rows[i].name : "[unknown]",
						    f.rows[i].self, f.rows[i].total };
	return (int)n;
}

static bool by_module(const struct report *r)
{
	return strcmp(r->o->by, "module") == 0;
}

static int make_parts(struct report *r, struct frame_tree **tree, struct part **parts)
{
	bool processes = strcmp(r->o->by, "process") == 0;
	struct frame_tree_opts opts = {
		.type = r->shown.type,
		.by = processes || by_module(r) ? NULL : r->o->by,
		.root_comm = processes,
	};
	int n = frame_tree_build(r->p, &opts, tree);

	if (n < 0)
		return n;
	if (by_module(r) && sites_charge(*tree, r->sites) < 0)
		return -ENOMEM;
	*parts = calloc((*tree)->n_nodes, sizeof(**parts));
	if (!*parts)
		return -ENOMEM;
	n = by_module(r) ? module_parts(*tree, *parts) : (int)label_parts(*tree, *parts);
	if (n > 0)
		qsort(*parts, (size_t)n, sizeof(**parts), compare_parts);
	return n;
}

static void json_parts(struct report *r, const struct part *parts, uint32_t n, uint32_t more,
		       int64_t rest)
{
	strbuf_puts(&r->out, ",\n\"by\":\"");
	text_add(&r->out, TEXT_JSON, r->o->by, UINT32_MAX);
	strbuf_puts(&r->out, "\",\"parts\":[");
	for (uint32_t i = 0; i < n; i++) {
		strbuf_puts(&r->out, i ? ",\n{\"name\":\"" : "\n{\"name\":\"");
		text_add(&r->out, TEXT_JSON, parts[i].name, UINT32_MAX);
		strbuf_puts(&r->out, "\",");
		if (by_module(r))
			strbuf_printf(&r->out, "\"self\":%" PRId64 ",", parts[i].self);
		strbuf_printf(&r->out, "\"total\":%" PRId64 "}", parts[i].total);
	}
	strbuf_printf(&r->out, "],\n\"not_shown\":{\"parts\":%u,\"%s\":%" PRId64 "}", more,
		      by_module(r) ? "self" : "total", rest);
}

static void csv_parts(struct report *r, const struct part *parts, uint32_t n, int64_t rest)
{
	for (uint32_t i = 0; i < n; i++) {
		profile_csv_begin(r);
		text_add_csv(&r->out, r->o->by);
		strbuf_putc(&r->out, ',');
		text_add_csv(&r->out, parts[i].name);
		if (by_module(r))
			strbuf_printf(&r->out, ",%" PRId64, parts[i].self);
		else
			strbuf_putc(&r->out, ',');
		strbuf_printf(&r->out, ",%" PRId64 "\n", parts[i].total);
	}
	if (rest <= 0)
		return;
	profile_csv_begin(r);
	text_add_csv(&r->out, r->o->by);
	if (by_module(r))
		strbuf_printf(&r->out, ",\"\",%" PRId64 ",\n", rest);
	else
		strbuf_printf(&r->out, ",\"\",,%" PRId64 "\n", rest);
}

static void text_parts(struct report *r, const struct part *parts, uint32_t n, uint32_t more,
		       int64_t rest)
{
	uint32_t used = (by_module(r) ? 2 : 1) * (r->style.value_columns + 8) + 1;
	char text[80];

	snprintf(text, sizeof(text), "By %.60s", r->o->by);
	strbuf_putc(&r->out, '\n');
	row_heading(&r->out, &r->style, text);
	if (by_module(r))
		row_value_heading(&r->out, &r->style, "self");
	row_value_heading(&r->out, &r->style, "total");
	strbuf_puts(&r->out, by_module(r) ? " module\n" : " part\n");
	for (uint32_t i = 0; i < n; i++) {
		row_value(&r->out, &r->style, parts[i].self, r->whole);
		if (by_module(r))
			row_value(&r->out, &r->style, parts[i].total, r->whole);
		strbuf_putc(&r->out, ' ');
		row_name(&r->out, &r->style, used, parts[i].name, NULL);
	}
	if (more || rest > 0) {
		row_value(&r->out, &r->style, rest, r->whole);
		if (by_module(r))
			row_no_value(&r->out, &r->style);
		snprintf(text, sizeof(text),
			 more ? " (%u more; -n %u shows all)" : " (without a stack)", more,
			 n + more);
		row_note(&r->out, &r->style, text);
	}
	row_unselected(r, by_module(r));
}

int profile_labels_write(struct report *r)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(freep) struct part *parts = NULL;
	int n = make_parts(r, &tree, &parts);
	int64_t rest = r->part;
	uint32_t rows;

	if (n < 0)
		return n;
	rows = r->o->rows && (uint32_t)n > r->o->rows ? r->o->rows : (uint32_t)n;
	for (uint32_t i = 0; i < rows; i++)
		rest = subtract_saturating(rest, parts[i].self);
	if (r->form == REPORT_JSON)
		json_parts(r, parts, rows, (uint32_t)n - rows, rest);
	else if (r->form == REPORT_CSV)
		csv_parts(r, parts, rows, rest + r->whole - r->part);
	else
		text_parts(r, parts, rows, (uint32_t)n - rows, rest);
	return 0;
}
