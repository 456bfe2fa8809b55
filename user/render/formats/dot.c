/*
 * The call graph for graphviz: a box per function, as large as its own share and as red as its total one; an arrow
 * per pair of caller and callee. A stack counts once for each function and each pair that is on it, also when they
 * are on it more often. As pprof and gprof2dot do, small ones are left out: functions below 0.5 %, calls below
 * 0.1 %, and all but the 80 largest functions and 240 largest calls (graphviz takes minutes for a dense graph); what was left out is said in the title. One value type (shown.h).
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_BOXES = 80, MAX_ARROWS = 240 };
static const double box_share = 0.005, arrow_share = 0.001;

struct box_key {
	const char *name, *module;
};

struct box {
	struct box_key key;
	int64_t self, total;
	uint32_t ix, seen;
	bool drawn;
	UT_hash_handle hh;
};

struct arrow_key {
	uint32_t from, to;
};

struct arrow {
	struct arrow_key key;
	int64_t value;
	uint32_t seen;
	bool drawn;
	UT_hash_handle hh;
};

struct graph {
	const struct profile *p;
	struct shown shown;
	int64_t all;
	struct chunks boxes, arrows;
	struct box *by_key;
	struct arrow *by_ends;
	uint32_t boxes_left_out, arrows_left_out;
	struct strbuf text;
};

static void graph_fini(struct graph *g)
{
	HASH_CLEAR(hh, g->by_key);
	HASH_CLEAR(hh, g->by_ends);
	chunks_free(&g->boxes);
	chunks_free(&g->arrows);
	strbuf_free(&g->text);
}

static struct box *box_of(struct graph *g, const struct frame *f)
{
	struct box_key key = { dict_str(profile_dict(g->p), f->name), f->module };
	struct box *b;

	HASH_FIND(hh, g->by_key, &key, sizeof(key), b);
	if (b)
		return b;
	b = chunks_add(&g->boxes);
	if (!b)
		return NULL;
	b->key = key;
	b->ix = g->boxes.n - 1;
	HASH_ADD(hh, g->by_key, key, sizeof(b->key), b);
	return hash_added(b) ? b : NULL;
}

static struct arrow *arrow_of(struct graph *g, uint32_t from, uint32_t to)
{
	struct arrow_key key = { from, to };
	struct arrow *a;

	HASH_FIND(hh, g->by_ends, &key, sizeof(key), a);
	if (a)
		return a;
	a = chunks_add(&g->arrows);
	if (!a)
		return NULL;
	a->key = key;
	HASH_ADD(hh, g->by_ends, key, sizeof(a->key), a);
	return hash_added(a) ? a : NULL;
}

static void add_value(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = INT64_MAX;
}

/* `number`: of the sample, from 1. */
static int add_path(struct graph *g, const struct frame_path *path, int64_t value, uint32_t number)
{
	struct box *caller = NULL;

	for (uint32_t k = 0; k < path->n; k++) {
		struct box *b = box_of(g, &path->frames[k]);
		struct arrow *a = b && caller ? arrow_of(g, caller->ix, b->ix) : NULL;

		if (!b || (caller && !a))
			return -ENOMEM;
		if (b->seen != number)
			add_value(&b->total, value);
		b->seen = number;
		if (k + 1 == path->n)
			add_value(&b->self, value);
		if (a && a->seen != number)
			add_value(&a->value, value);
		if (a)
			a->seen = number;
		caller = b;
	}
	add_value(&g->all, value);
	return 0;
}

static int gather(struct graph *g)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };

	for (uint32_t i = 0; i < profile_n_samples(g->p); i++) {
		struct profile_sample s = profile_sample(g->p, i);

		if (s.values[g->shown.type] <= 0)
			continue;
		if (frame_path_set(&path, profile_dict(g->p), s.stack) < 0 ||
		    add_path(g, &path, s.values[g->shown.type], i + 1) < 0)
			return -ENOMEM;
	}
	return dict_oom(profile_dict(g->p)) ? -ENOMEM : g->all ? 0 : -ENODATA;
}

static int larger_first(const void *a, const void *b)
{
	const struct box *x = *(struct box *const *)a, *y = *(struct box *const *)b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->key.name, y->key.name) ?: strcmp(x->key.module, y->key.module);
}

static void put_amount(struct graph *g, int64_t value)
{
	const char *noun = shown_noun(&g->shown, NULL);

	text_add(&g->text, TEXT_DOT, shown_text(&g->shown, NULL, value).s, UINT32_MAX);
	strbuf_printf(&g->text, "%s%s (%s)", *noun ? " " : "", noun, unit_percent(value, g->all).s);
}

/* From pale to full as its total share grows; dark text on it is readable throughout (WCAG 2: above 7 to 1). */
static void put_box(struct graph *g, const struct box *b)
{
	double self = (double)b->self / (double)g->all, total = (double)b->total / (double)g->all;

	strbuf_printf(&g->text, "n%" PRIu32 " [label=\"", b->ix);
	text_add(&g->text, TEXT_DOT, *b->key.name ? b->key.name : "[unknown]", 80);
	if (*b->key.module) {
		strbuf_puts(&g->text, "\\n");
		text_add(&g->text, TEXT_DOT, b->key.module, 60);
	}
	if (b->self) {
		strbuf_puts(&g->text, "\\nself ");
		put_amount(g, b->self);
	}
	if (b->total != b->self) {
		strbuf_puts(&g->text, "\\ntotal ");
		put_amount(g, b->total);
	}
	strbuf_printf(&g->text, "\" fontsize=%.0f fillcolor=\"0.04 %.2f 1.0\"]\n",
		      10 + 30 * sqrt(self), 0.03 + 0.5 * total);
}

static void put_arrow(struct graph *g, const struct arrow *a)
{
	double share = (double)a->value / (double)g->all;

	strbuf_printf(&g->text, "n%" PRIu32 " -> n%" PRIu32 " [label=\" ", a->key.from, a->key.to);
	put_amount(g, a->value);
	strbuf_printf(&g->text, "\" weight=%.0f penwidth=%.1f]\n", 1 + 99 * share, 0.6 + 5 * share);
}

static int choose_boxes(struct graph *g, struct box ***ret_sorted)
{
	struct box **sorted = calloc(g->boxes.n + 1ul, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->boxes.n; i++)
		sorted[i] = chunks_at(&g->boxes, i);
	qsort(sorted, g->boxes.n, sizeof(*sorted), larger_first);
	for (uint32_t i = 0; i < g->boxes.n; i++) {
		sorted[i]->drawn =
			i < MAX_BOXES && (double)sorted[i]->total >= box_share * (double)g->all;
		g->boxes_left_out += !sorted[i]->drawn;
	}
	*ret_sorted = sorted;
	return 0;
}

static int heavier_first(const void *a, const void *b)
{
	const struct arrow *x = *(struct arrow *const *)a, *y = *(struct arrow *const *)b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int choose_arrows(struct graph *g)
{
	_cleanup_(freep) struct arrow **sorted = calloc(g->arrows.n + 1ul, sizeof(*sorted));
	uint32_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->arrows.n; i++) {
		struct arrow *a = chunks_at(&g->arrows, i);
		const struct box *from = chunks_at(&g->boxes, a->key.from);
		const struct box *to = chunks_at(&g->boxes, a->key.to);

		if (from->drawn && to->drawn && (double)a->value >= arrow_share * (double)g->all)
			sorted[n++] = a;
	}
	qsort(sorted, n, sizeof(*sorted), heavier_first);
	for (uint32_t i = 0; i < n && i < MAX_ARROWS; i++)
		sorted[i]->drawn = true;
	g->arrows_left_out = g->arrows.n - (n < MAX_ARROWS ? n : MAX_ARROWS);
	return 0;
}

static void put_title(struct graph *g, const struct render_opts *opts)
{
	struct strbuf title = { 0 };

	if (opts->title)
		strbuf_puts(&title, opts->title);
	else
		title_add(&title, g->p, opts, &g->shown, g->all);
	strbuf_puts(
		&g->text,
		"digraph memscope {\n"
		"nslimit=2 nslimit1=2 /* a dense graph takes minutes otherwise */\nlabelloc=t fontname=\"Helvetica\" label=\"");
	text_add(&g->text, TEXT_DOT, title.s ? title.s : "", UINT32_MAX);
	if (g->boxes_left_out || g->arrows_left_out)
		strbuf_printf(&g->text,
			      "\\nleft out: %" PRIu32 " small functions, %" PRIu32 " small calls",
			      g->boxes_left_out, g->arrows_left_out);
	strbuf_puts(&g->text, "\"\nnode [shape=box style=filled fontname=\"Helvetica\"]\n"
			      "edge [fontname=\"Helvetica\" fontsize=9]\n");
	g->text.oom |= title.oom;
	strbuf_free(&title);
}

int dot_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	      struct err *e)
{
	_cleanup_(graph_fini) struct graph g = {
		.p = p,
		.shown = shown_pick(p, opts->value_type),
		.boxes = CHUNKS_OF(struct box),
		.arrows = CHUNKS_OF(struct arrow),
	};
	_cleanup_(freep) struct box **sorted = NULL;
	int r = gather(&g);

	if (r == 0)
		r = choose_boxes(&g, &sorted);
	if (r == -ENODATA)
		return err_set(e, r, "there is nothing to draw");
	if (r == 0)
		r = choose_arrows(&g);
	if (r == 0)
		put_title(&g, opts);
	for (uint32_t i = 0; r == 0 && i < g.boxes.n; i++)
		if (sorted[i]->drawn)
			put_box(&g, sorted[i]);
	for (uint32_t i = 0; r == 0 && i < g.arrows.n; i++)
		if (((const struct arrow *)chunks_at(&g.arrows, i))->drawn)
			put_arrow(&g, chunks_at(&g.arrows, i));
	strbuf_puts(&g.text, "}\n");
	if (r < 0 || strbuf_oom(&g.text))
		return err_set(e, -ENOMEM, "out of memory for the call graph");
	sink_write(out, g.text.s, g.text.len);
	return 0;
}
