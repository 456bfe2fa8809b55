#include "screen/flame.h"
#include "base/grow.h"
#include "render/code_name.h"

#include <errno.h>
#include <string.h>

enum { LEVELS_MAX = 512 };

void flame_fini(struct flame *f)
{
	free(f->blocks);
	*f = (struct flame){ 0 };
}

static int add_block(struct flame *f, uint32_t node, int level, int from, int to)
{
	if (!GROW(f->blocks, f->n, f->cap))
		return -ENOMEM;
	f->blocks[f->n++] = (struct flame_block){ node, level, from, to };
	return 0;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct call_tree *t = ctx;
	const struct call_node *x = &t->nodes[*(const uint32_t *)a],
			       *y = &t->nodes[*(const uint32_t *)b];
	int by = strcmp(x->name, y->name);

	return by ? by : (int)x->frame - (int)y->frame;
}

/* Children of a block, in its width. Each begins where the shares before it end, rounded: no error adds up. */
static int add_children(struct flame *f, const struct call_tree *t, struct flame_block of)
{
	const struct call_node *n = &t->nodes[of.node];
	_cleanup_(freep) uint32_t *children = NULL;
	int64_t all = n->total[f->value], before = 0;
	uint32_t count = 0;
	int r = 0;

	for (uint32_t c = n->first_child; c; c = t->nodes[c].next_sibling)
		count += t->nodes[c].total[f->value] > 0;
	if (!count || all <= 0 || of.level + 1 >= LEVELS_MAX)
		return 0;
	children = malloc(count * sizeof(*children));
	if (!children)
		return -ENOMEM;
	count = 0;
	for (uint32_t c = n->first_child; c; c = t->nodes[c].next_sibling)
		if (t->nodes[c].total[f->value] > 0)
			children[count++] = c;
	qsort_r(children, count, sizeof(*children), by_name, (void *)(uintptr_t)t);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		int64_t value = t->nodes[children[i]].total[f->value];
		double width = of.to - of.from;
		int from = of.from + (int)(width * (double)before / (double)all + 0.5);
		int to = of.from + (int)(width * (double)(before + value) / (double)all + 0.5);

		before += value;
		if (to > of.to)
			to = of.to; /* values that were taken at different moments */
		if (to > from)
			r = add_block(f, children[i], of.level + 1, from, to);
	}
	return r;
}

int flame_layout(struct flame *f, const struct call_tree *t, int columns)
{
	int r;

	f->n = 0;
	if (f->root >= t->n)
		f->root = 0;
	r = add_block(f, f->root, 0, 0, columns);
	for (uint32_t i = 0; r == 0 && i < f->n; i++)
		r = add_children(f, t, f->blocks[i]);
	if (r == 0 && !flame_block_of(f, f->at))
		f->at = f->root;
	return r;
}

const struct flame_block *flame_block_of(const struct flame *f, uint32_t node)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->blocks[i].node == node)
			return &f->blocks[i];
	return NULL;
}

uint32_t flame_node_at(const struct flame *f, int level, int column)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->blocks[i].level == level && f->blocks[i].from <= column &&
		    column < f->blocks[i].to)
			return f->blocks[i].node;
	return 0;
}

static uint32_t widest_child(const struct flame *f, const struct call_tree *t, uint32_t node)
{
	uint32_t best = node;
	int width = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct flame_block *b = &f->blocks[i];

		if (b->node != node && t->nodes[b->node].parent == node &&
		    b->to - b->from > width) {
			best = b->node;
			width = b->to - b->from;
		}
	}
	return best;
}

uint32_t flame_neighbour(const struct flame *f, const struct call_tree *t, enum action to)
{
	const struct flame_block *b = flame_block_of(f, f->at);
	uint32_t i;

	if (!b)
		return f->root;
	i = (uint32_t)(b - f->blocks);
	if (to == ACT_UP)
		return f->at == f->root ? f->at : t->nodes[f->at].parent;
	if (to == ACT_DOWN)
		return widest_child(f, t, f->at);
	if (to == ACT_OPEN && i + 1 < f->n && f->blocks[i + 1].level == b->level)
		return f->blocks[i + 1].node;
	if (to == ACT_CLOSE && i > 0 && f->blocks[i - 1].level == b->level)
		return f->blocks[i - 1].node;
	return f->at;
}

/* Two shades of each kind, so that neighbours differ. */
static enum style style_of(const struct call_node *n, uint32_t which)
{
	enum style first = n->kind != CALL_FRAME       ? STYLE_FLAME_OTHER
			   : n->frame == FRAME_KERNEL  ? STYLE_FLAME_KERNEL
			   : n->frame == FRAME_LANG    ? STYLE_FLAME_LANG
			   : n->frame == FRAME_UNKNOWN ? STYLE_FLAME_OTHER
						       : STYLE_FLAME_USER;

	return first + (which & 1);
}

/* As much of a name as distinguishes it from others. */
static void put_name(struct canvas *c, int y, int x, int width, enum style style, const char *name)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	code_name_shorten(&text, name, (size_t)width);
	canvas_put(c, y, x, width, style, text.s ? text.s : name);
}

void flame_draw(struct flame *f, const struct call_tree *t, const char *search, struct canvas *c,
		int from, int to)
{
	const struct flame_block *at = flame_block_of(f, f->at);
	int lines = to - from;

	if (at && at->level < f->top)
		f->top = at->level;
	if (at && at->level >= f->top + lines)
		f->top = at->level - lines + 1;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct flame_block *b = &f->blocks[i];
		const struct call_node *n = &t->nodes[b->node];
		enum style style = b->node == f->at                            ? STYLE_CURSOR
				   : *search && view_contains(n->name, search) ? STYLE_MATCH
									       : style_of(n, i);
		int y = from + b->level - f->top, width = b->to - b->from;

		if (y < from || y >= to)
			continue;
		for (int x = 0; x < width; x++)
			canvas_put(c, y, b->from + x, 1, style, " ");
		if (width > 2)
			put_name(c, y, b->from, width - (width > 4), style, n->name);
		else
			canvas_put(c, y, b->from, 1, style, c->ascii ? "|" : "▏");
	}
}
