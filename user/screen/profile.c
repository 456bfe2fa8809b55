#include "base/units.h"
#include "render/code_name.h"
#include "screen/profile_parts.h"

#include <errno.h>
#include <string.h>

static const struct shown_value choices[] = {
	{ { "CPU%", 7, 0, "on a CPU, with all below; 100 is one CPU", false },
	  CALL_CPU,
	  false,
	  AS_CPU },
	{ { "SELF%", 6, 0, "on a CPU, in itself", false }, CALL_CPU, true, AS_CPU },
	{ { "WAIT%", 7, 46, "blocked; 100 is one thread all the time", false },
	  CALL_BLOCKED,
	  false,
	  AS_CPU },
	{ { "RUNQ%", 6, 100, "waited for a CPU", false }, CALL_RUNNABLE, false, AS_CPU },
	{ { "ALLOC/S", 10, 56, "allocated a second", false }, CALL_ALLOC, false, AS_RATE },
	{ { "LIVE", 10, 110, "allocated and not freed, where that is known", false },
	  CALL_LIVE,
	  false,
	  AS_BYTES },
	{ { "RSS+", 11, 0, "memory first touched, less what was released", false },
	  CALL_RSS,
	  false,
	  AS_BYTES },
	{ { "TOTAL", 12, 0, "with all below", false }, CALL_OTHER, false, AS_OTHER },
	{ { "SELF", 12, 0, "in itself", false }, CALL_OTHER, true, AS_OTHER },
};
enum { N_CHOICES = sizeof(choices) / sizeof(*choices) };
_Static_assert((int)N_CHOICES == (int)PROFILE_FIGURES_MAX, "columns have room");

static const struct column image_column = { "IMAGE", 18, 130, "the file that the function is in",
					    true };
static const struct column name_column = { "PROCESS, THREAD, FUNCTION", 0, 0,
					   "who, and in which function", true };

enum { NAME_MAX_SHOWN = 100 }; /* what a name loses beyond that: parameters, template arguments */

/* --- columns --- */

/* Those that there are figures for. Rows stay sorted by the same column. */
void profile_choose_columns(struct profile_view *pv)
{
	const char *sorted =
		pv->view.sort < pv->view.n_columns ? pv->columns[pv->view.sort].title : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_CHOICES; i++)
		if (pv->tree.has[choices[i].value])
			pv->shown[n++] = choices[i];
	for (uint32_t i = 0; i < n; i++)
		pv->columns[i] = pv->shown[i].column;
	/* On a narrow screen one figure of memory is enough. */
	for (uint32_t i = 0; i < n; i++)
		if (pv->shown[i].value == CALL_RSS && pv->tree.has[CALL_ALLOC])
			pv->columns[i].from_width = 95;
	pv->columns[n] = image_column;
	pv->columns[n + 1] = name_column;
	pv->n_figures = n;
	pv->view.columns = pv->columns;
	pv->view.n_columns = n + 2;
	pv->view.sort = 0;
	for (uint32_t i = 0; sorted && i < n + 2; i++)
		if (pv->columns[i].title == sorted)
			pv->view.sort = i;
}

static int64_t value_of(const struct profile_view *pv, const struct call_node *n, uint32_t column)
{
	const struct shown_value *s = &pv->shown[column];

	if (pv->mark.shown)
		return profile_moment_change(pv, n, s);
	return s->self ? n->self[s->value] : n->total[s->value];
}

/* With a sign; a change that would be shown as 0.0 is left out. */
static void put_change(const struct shown_value *s, int64_t value, struct strbuf *to)
{
	double percent = (double)value / 1e7; /* ns a second */

	if (s->as != AS_CPU)
		view_bytes((double)value, true, to);
	else if (percent >= 0.05 || percent <= -0.05)
		strbuf_printf(to, "%+.1f", percent);
}

void profile_put_value(const struct profile_view *pv, const struct call_node *n, uint32_t column,
		       struct strbuf *to)
{
	const struct shown_value *s = &pv->shown[column];
	int64_t value = value_of(pv, n, column), ns = pv->shown_ns;
	int64_t all = pv->tree.nodes[0].total[s->value];

	if (!value)
		return;
	if (pv->mark.shown && s->as != AS_OTHER) {
		put_change(s, value, to);
		return;
	}
	switch (s->as) {
	case AS_CPU: /* without a duration: the share */
		if (ns > 0 || all > 0)
			strbuf_printf(to, "%.1f",
				      100.0 * (double)value / (double)(ns > 0 ? ns : all));
		break;
	case AS_RATE:
		view_bytes(ns > 0 ? (double)value * 1e9 / (double)ns : (double)value, false, to);
		break;
	case AS_BYTES:
		view_bytes((double)value, s->value == CALL_RSS, to);
		break;
	default:
		strbuf_puts(to, unit_value(value, pv->tree.other_unit).s);
	}
}

/* --- rows --- */

struct order {
	const struct profile_view *pv;
	uint32_t column;
};

static int by_column(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	const struct profile_view *pv = o->pv;
	const struct call_node *x = &pv->tree.nodes[*(const uint32_t *)a],
			       *y = &pv->tree.nodes[*(const uint32_t *)b];
	int by = 0;

	if (o->column < pv->n_figures) {
		int64_t p = value_of(pv, x, o->column), q = value_of(pv, y, o->column);

		by = p < q ? 1 : p > q ? -1 : 0;
		for (uint32_t i = 0; !by && i < pv->n_figures; i++) {
			p = value_of(pv, x, i);
			q = value_of(pv, y, i);
			by = p < q ? 1 : p > q ? -1 : 0;
		}
	}
	if (!by)
		by = strcmp(x->name, y->name);
	return pv->view.reverse ? -by : by;
}

static bool is_shown(const struct profile_view *pv, uint32_t node)
{
	return !call_node_empty(&pv->tree.nodes[node]) && (!pv->passes || pv->passes[node]);
}

static int add_children(struct profile_view *pv, uint32_t parent, int depth)
{
	_cleanup_(freep) uint32_t *children = NULL;
	const struct call_tree *t = &pv->tree;
	uint32_t n = 0;

	for (uint32_t c = t->nodes[parent].first_child; c; c = t->nodes[c].next_sibling)
		n += is_shown(pv, c);
	children = malloc((n + 1) * sizeof(*children));
	if (!children)
		return -ENOMEM;
	n = 0;
	for (uint32_t c = t->nodes[parent].first_child; c; c = t->nodes[c].next_sibling)
		if (is_shown(pv, c))
			children[n++] = c;
	qsort_r(children, n, sizeof(*children), by_column, &(struct order){ pv, pv->view.sort });
	for (uint32_t i = 0; i < n; i++) {
		int r = 0;

		pv->rows[pv->view.n_rows++] = (struct profile_line){ children[i], depth };
		if (t->nodes[children[i]].open || pv->passes)
			r = add_children(pv, children[i], depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Nodes with the text in them, and what they are below: those after their parents. */
static int apply_filter(struct profile_view *pv)
{
	const struct call_tree *t = &pv->tree;

	free(pv->passes);
	pv->passes = NULL;
	if (!*pv->view.filter)
		return 0;
	pv->passes = calloc(t->n, sizeof(*pv->passes));
	if (!pv->passes)
		return -ENOMEM;
	for (uint32_t i = t->n - 1; i > 0; i--) {
		pv->passes[i] |= view_passes(&pv->view, t->nodes[i].name) ||
				 view_passes(&pv->view, t->nodes[i].module);
		pv->passes[t->nodes[i].parent] |= pv->passes[i];
	}
	return 0;
}

static int arrange(struct view *v)
{
	struct profile_view *pv = profile_view(v);

	if (pv->cap < pv->tree.n) {
		struct profile_line *rows = reallocarray(pv->rows, pv->tree.cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		pv->rows = rows;
		pv->cap = pv->tree.cap;
	}
	if (apply_filter(pv) < 0)
		return -ENOMEM;
	v->n_rows = 0;
	return add_children(pv, 0, 0);
}

static struct view_row row(const struct view *v, uint32_t i)
{
	const struct profile_view *pv = profile_view(v);
	const struct profile_line *r = &pv->rows[i];
	const struct call_node *n = &pv->tree.nodes[r->node];
	bool below = false;

	for (uint32_t c = n->first_child; c && !below; c = pv->tree.nodes[c].next_sibling)
		below = is_shown(pv, c);
	return (struct view_row){ r->node, r->depth,
				  !below                  ? FOLD_LEAF
				  : n->open || pv->passes ? FOLD_OPEN
							  : FOLD_CLOSED,
				  n->kind == CALL_FRAME && n->frame == FRAME_KERNEL };
}

static void cell(const struct view *v, uint32_t i, uint32_t column, struct strbuf *to)
{
	const struct profile_view *pv = profile_view(v);
	const struct call_node *n = &pv->tree.nodes[pv->rows[i].node];

	if (column < pv->n_figures)
		profile_put_value(pv, n, column, to);
	else if (column == pv->n_figures)
		strbuf_puts(to, n->module);
	else if (n->kind == CALL_FRAME)
		code_name_shorten(to, n->name, NAME_MAX_SHOWN);
	else
		strbuf_puts(to, n->name);
}

void profile_title(const struct view *v, struct strbuf *to)
{
	const struct profile_view *pv = profile_view(v);

	strbuf_add_clean(to, pv->title, strlen(pv->title));
	if (pv->shown_ns > 0 && !pv->mark.shown)
		strbuf_printf(to, "  %s%s", pv->recent ? "the last " : "", unit_ns(pv->shown_ns).s);
	if (pv->ended)
		strbuf_puts(to, "  (ended)");
	profile_moment_title(pv, to);
}

/* Figures of all, and what they lack. */
static void status(const struct view *v, struct strbuf *to)
{
	const struct profile_view *pv = profile_view(v);
	const struct call_node *all = &pv->tree.nodes[0];

	if (*pv->state) {
		strbuf_add_clean(to, pv->state, strlen(pv->state));
		return;
	}
	for (uint32_t i = 0; i < pv->n_figures; i++) {
		if (pv->shown[i].self || !value_of(pv, all, i))
			continue;
		strbuf_printf(to, "%s%s ", to->len ? "  " : "", pv->shown[i].column.title);
		profile_put_value(pv, all, i, to);
	}
	if (*pv->note) {
		strbuf_puts(to, "  ! ");
		strbuf_add_clean(to, pv->note, strlen(pv->note));
	}
}

/* --- what is done --- */

static uint32_t node_at(const struct profile_view *pv)
{
	return pv->view.cursor < pv->view.n_rows ? pv->rows[pv->view.cursor].node : 0;
}

enum call_value profile_value_sorted(const struct profile_view *pv)
{
	return pv->view.sort < pv->n_figures ? pv->shown[pv->view.sort].value : CALL_CPU;
}

/* Where the cursor is, is closed already or has nothing below: the row above it. */
static void close_row(struct profile_view *pv)
{
	uint32_t node = node_at(pv);
	struct call_node *n = &pv->tree.nodes[node];

	if (!node)
		return;
	if (n->open && row(&pv->view, pv->view.cursor).fold == FOLD_OPEN) {
		n->open = false;
		pv->view.stale = true;
		return;
	}
	for (uint32_t i = pv->view.cursor; i-- > 0;)
		if (pv->rows[i].node == n->parent) {
			view_move(&pv->view, (int64_t)i - (int64_t)pv->view.cursor, 1);
			return;
		}
}

static void enter(struct profile_view *pv)
{
	uint32_t node = node_at(pv);

	if (!node)
		return;
	pv->view.moved = true;
	pv->view.at_key = node;
	if (pv->tree.nodes[node].open)
		pv->tree.nodes[node].open = false;
	else
		call_tree_open(&pv->tree, node);
	pv->view.stale = true;
}

static void save_now(struct profile_view *pv, struct screen *s)
{
	struct err e = { 0 };
	char path[200];

	if (!pv->save || !pv->all.n)
		screen_say(s, pv->save ? "nothing was gathered yet" : "this is of files already");
	else if (pv->save(&pv->all, pv->title, path, sizeof(path), &e) < 0)
		screen_say(s, "%s", e.msg);
	else
		screen_say(s, "written to %s", path);
}

static void mark(struct profile_view *pv, struct screen *s)
{
	if (!pv->save) {
		screen_say(s, "a profile of files does not change: memscope diff compares two");
		return;
	}
	if (!pv->all.duration_ns) {
		screen_say(s, "nothing was gathered yet");
		return;
	}
	pv->recent = false;
	if (profile_rebuild(pv) < 0 || profile_moment_set(pv) < 0)
		screen_say(s, "no memory for a mark");
	else
		screen_say(s, "marked; d shows what changed since, against what was before");
}

static void toggle_difference(struct profile_view *pv, struct screen *s)
{
	if (!pv->mark.n) {
		screen_say(
			s,
			pv->save
				? "m marks a moment to compare with"
				: "a profile of files does not change: memscope diff compares two");
		return;
	}
	if (!pv->mark.shown && pv->shown_ns == pv->mark.duration_ns) {
		screen_say(s, "nothing was gathered since the mark");
		return;
	}
	pv->mark.shown = !pv->mark.shown;
	pv->recent = false;
	profile_rebuild(pv);
}

static void begin_again(struct profile_view *pv)
{
	profile_moment_forget(pv);
	profile_set_fini(&pv->all);
	for (uint32_t i = 0; i < WINDOW; i++)
		profile_set_fini(&pv->window[i]);
	profile_rebuild(pv);
}

static void toggle_window(struct profile_view *pv, struct screen *s)
{
	if (!pv->save) {
		screen_say(s, "a profile of files has no last seconds");
		return;
	}
	pv->recent = !pv->recent;
	pv->mark.shown = false;
	profile_rebuild(pv);
}

static void show_flame(struct profile_view *pv)
{
	pv->blocks.root = pv->blocks.at = node_at(pv);
	pv->blocks.zooms = 0;
	pv->blocks.top = 0;
	pv->view.ops = &profile_flame_ops;
	pv->view.stale = true;
}

void profile_show_list(struct profile_view *pv)
{
	pv->view.ops = &profile_list_ops;
	pv->view.stale = true;
}

/* The process that a row is of: its pid stands behind its name. 0: none. */
static pid_t process_at(const struct profile_view *pv, char *name, size_t cap)
{
	const struct call_tree *t = &pv->tree;
	int pid = 0;

	for (uint32_t i = node_at(pv); i; i = t->nodes[i].parent) {
		const char *at = t->nodes[i].kind == CALL_PROCESS
					 ? strstr(t->nodes[i].name, " (pid ")
					 : NULL;

		if (at && sscanf(at, " (pid %d)", &pid) == 1) {
			snprintf(name, cap, "%.*s", (int)(at - t->nodes[i].name), t->nodes[i].name);
			break;
		}
	}
	return pid;
}

static void explore_heap(const struct profile_view *pv, struct screen *s)
{
	char name[128] = "";
	struct screen_target t = { .pid = process_at(pv, name, sizeof(name)), .title = name };

	if (!pv->save || !s->sources || !s->sources->heap)
		screen_say(s, "these are files: the process is not asked");
	else if (!t.pid)
		screen_say(s, "the heap of which process? put the cursor on it");
	else
		s->sources->heap(s, &t);
}

bool profile_act(struct view *v, struct screen *s, enum action action)
{
	struct profile_view *pv = profile_view(v);

	switch (action) {
	case ACT_ENTER:
		enter(pv);
		return true;
	case ACT_OPEN:
		if (node_at(pv) && !pv->tree.nodes[node_at(pv)].open)
			enter(pv);
		return true;
	case ACT_CLOSE:
		close_row(pv);
		return true;
	case ACT_OPEN_HOT:
		v->moved = true;
		v->at_key = node_at(pv);
		call_tree_open_largest(&pv->tree, node_at(pv), profile_value_sorted(pv));
		v->stale = true;
		return true;
	case ACT_WINDOW:
		toggle_window(pv, s);
		return true;
	case ACT_ZERO:
		if (pv->save)
			begin_again(pv);
		return true;
	case ACT_SAVE:
		save_now(pv, s);
		return true;
	case ACT_HEAP:
		explore_heap(pv, s);
		return true;
	case ACT_FLAME:
		pv->mark.shown = false; /* blocks have no width below 0 */
		show_flame(pv);
		return true;
	case ACT_MARK:
		mark(pv, s);
		return true;
	case ACT_DIFFERENCE:
		toggle_difference(pv, s);
		return true;
	case ACT_BACK:
		if (!pv->mark.shown || *v->search || *v->filter)
			return false;
		toggle_difference(pv, s);
		return true;
	default:
		return false;
	}
}

void profile_view_free(struct view *v)
{
	struct profile_view *pv = profile_view(v);

	worker_stop(&pv->worker);
	profile_set_fini(&pv->all);
	profile_set_fini(&pv->coming);
	for (uint32_t i = 0; i < WINDOW; i++)
		profile_set_fini(&pv->window[i]);
	call_tree_fini(&pv->tree);
	flame_fini(&pv->blocks);
	profile_moment_forget(pv);
	dict_free(pv->d);
	free(pv->passes);
	free(pv->rows);
	free(pv);
}

static const char *failed(const struct view *v)
{
	const struct profile_view *pv = profile_view(v);

	return profile_ended(v) && !pv->all.n ? pv->state : NULL;
}

const struct view_ops profile_list_ops = {
	.kind = IN_PROFILE,
	.name = "Profile",
	.columns = &name_column,
	.n_columns = 1,
	.arrange = arrange,
	.row = row,
	.cell = cell,
	.title = profile_title,
	.status = status,
	.act = profile_act,
	.fd = profile_fd,
	.tick = profile_tick,
	.ready = profile_ready,
	.ended = profile_ended,
	.failed = failed,
	.free = profile_view_free,
};

static struct profile_view *make(struct dict *d, const char *title_)
{
	struct profile_view *pv = calloc(1, sizeof(*pv));

	if (!pv || !d || call_tree_init(&pv->tree) < 0) {
		free(pv);
		return NULL;
	}
	view_init(&pv->view, &profile_list_ops);
	pv->d = d;
	pv->worker = (struct worker){ .from = -1, .to = -1 };
	snprintf(pv->title, sizeof(pv->title), "%s", title_);
	return pv;
}

struct view *profile_view_of(struct dict *d, struct profile_set *set, const char *title_)
{
	struct profile_set mine = *set;
	struct profile_view *pv = make(d, title_);

	*set = (struct profile_set){ 0 };
	if (!pv) {
		profile_set_fini(&mine);
		dict_free(d);
		return NULL;
	}
	pv->all = mine;
	if (profile_rebuild(pv) < 0) {
		profile_view_free(&pv->view);
		return NULL;
	}
	profile_choose_columns(pv);
	profile_open_first(pv);
	return &pv->view;
}

int profile_view_live(int (*work)(void *ctx, int in, int out), void *ctx,
		      const struct screen_target *t, profile_save_fn save, struct view **ret_view,
		      struct err *e)
{
	struct dict *d = dict_new();
	struct profile_view *pv = make(d, t->title ? t->title : "all processes");
	int r;

	if (!pv) {
		dict_free(d);
		return err_set(e, -ENOMEM, "out of memory");
	}
	if (t->pid)
		snprintf(pv->title, sizeof(pv->title), "%s (pid %d)",
			 t->title ? t->title : "process", (int)t->pid);
	pv->save = save;
	snprintf(pv->state, sizeof(pv->state), "attaching…");
	r = worker_start(&pv->worker, work, ctx, e);
	if (r < 0) {
		profile_view_free(&pv->view);
		return r;
	}
	*ret_view = &pv->view;
	return 0;
}
