#include "base/units.h"
#include "screen/profile_parts.h"

#include <string.h>

static void flame_title(const struct view *v, struct strbuf *to)
{
	const struct profile_view *pv = profile_view(v);

	profile_title(v, to);
	if (v->sort < pv->n_figures)
		strbuf_printf(to, "  %s", pv->shown[v->sort].column.title);
}

/* The block under the cursor, and its share. */
static void flame_status(const struct view *v, struct strbuf *to)
{
	const struct profile_view *pv = profile_view(v);
	const struct call_node *n = &pv->tree.nodes[pv->blocks.at < pv->tree.n ? pv->blocks.at : 0];

	strbuf_printf(
		to, "%s ",
		unit_percent(n->total[pv->blocks.value], pv->tree.nodes[0].total[pv->blocks.value])
			.s);
	if (v->sort < pv->n_figures)
		profile_put_value(pv, n, v->sort, to);
	if (*pv->state) {
		strbuf_add_clean(to, pv->state, strlen(pv->state));
		return;
	}
	strbuf_printf(to, "  %s", n->name);
	if (*n->module)
		strbuf_printf(to, "  [%s]", n->module);
}

static int flame_arrange(struct view *v)
{
	(void)v;
	return 0; /* blocks are laid out when the width is known */
}

static void draw(struct view *v, struct canvas *c, int from, int to)
{
	struct profile_view *pv = profile_view(v);

	pv->blocks.value = profile_value_sorted(pv);
	if (flame_layout(&pv->blocks, &pv->tree, c->columns) == 0)
		flame_draw(&pv->blocks, &pv->tree, v->search, c, from, to);
}

static bool click(struct view *v, int y, int x)
{
	struct flame *f = &profile_view(v)->blocks;
	uint32_t node = flame_node_at(f, y + f->top, x);

	if (!node && y + f->top != 0)
		return false;
	f->at = node ? node : f->root;
	return true;
}

/* The next block behind the cursor whose name has what is searched for. */
static void next_match(const struct view *v, struct flame *f, const struct call_tree *t,
		       struct screen *s)
{
	const struct flame_block *b = flame_block_of(f, f->at);
	uint32_t from = b ? (uint32_t)(b - f->blocks) + 1 : 0;

	for (uint32_t i = 0; *v->search && i < f->n; i++) {
		uint32_t node = f->blocks[(from + i) % f->n].node;

		if (view_contains(t->nodes[node].name, v->search)) {
			f->at = node;
			return;
		}
	}
	screen_say(s, "\"%s\" is in no block", v->search);
}

/* Out of a zoom; out of the view where there is none. */
static void zoom_out(struct view *v)
{
	struct profile_view *pv = profile_view(v);
	struct flame *f = &pv->blocks;

	if (*v->search) {
		*v->search = '\0';
	} else if (f->zooms) {
		f->at = f->root;
		f->root = f->zoomed[--f->zooms];
	} else {
		profile_show_list(pv);
	}
}

static bool flame_act(struct view *v, struct screen *s, enum action action)
{
	struct profile_view *pv = profile_view(v);
	struct flame *f = &pv->blocks;

	switch (action) {
	case ACT_FLAME:
		profile_show_list(pv);
		return true;
	case ACT_ENTER:
		if (f->at != f->root && f->zooms < FLAME_ZOOMS)
			f->zoomed[f->zooms++] = f->root;
		f->root = f->at;
		return true;
	case ACT_BACK:
		zoom_out(v);
		return true;
	case ACT_UP:
		if (f->at == f->root && f->root) /* out of it, to what it is in */
			f->root = pv->tree.nodes[f->root].parent;
		f->at = flame_neighbour(f, &pv->tree, action);
		return true;
	case ACT_DOWN:
	case ACT_OPEN:
	case ACT_CLOSE:
		f->at = flame_neighbour(f, &pv->tree, action);
		return true;
	case ACT_PAGE_UP:
	case ACT_PAGE_DOWN:
		for (int i = 0; i < 10; i++)
			f->at = flame_neighbour(f, &pv->tree,
						action == ACT_PAGE_UP ? ACT_UP : ACT_DOWN);
		return true;
	case ACT_FIRST:
		f->at = f->root;
		return true;
	case ACT_LAST:
		for (uint32_t was = UINT32_MAX; was != f->at;) {
			was = f->at;
			f->at = flame_neighbour(f, &pv->tree, ACT_DOWN);
		}
		return true;
	case ACT_NEXT_MATCH:
		next_match(v, f, &pv->tree, s);
		return true;
	case ACT_WINDOW:
	case ACT_ZERO:
	case ACT_SAVE:
		return profile_act(v, s, action);
	default:
		return false;
	}
}

const struct view_ops profile_flame_ops = {
	.kind = IN_FLAME,
	.name = "Flame graph",
	.arrange = flame_arrange,
	.title = flame_title,
	.status = flame_status,
	.act = flame_act,
	.draw = draw,
	.click = click,
	.fd = profile_fd,
	.tick = profile_tick,
	.ready = profile_ready,
	.ended = profile_ended,
	.free = profile_view_free,
};
