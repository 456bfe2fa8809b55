/* memscope heap retainers: what keeps objects alive. */
#include "heap/snapshot/retainers.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/select.h"

#include <errno.h>
#include <string.h>

static const struct answer_column columns[] = {
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "through", "through", ANSWER_NAME, 0 },
	{ "chain", "", ANSWER_LINES, 0 },
	{ 0 },
};

static bool is_of_thread(uint8_t kind)
{
	return kind == SNAPSHOT_ROOT_STACK || kind == SNAPSHOT_ROOT_REGISTER ||
	       kind == SNAPSHOT_ROOT_TLS;
}

void heap_root_text(const struct heap_view *v, const struct snapshot_root *root,
		    struct strbuf *text)
{
	const struct stopped_thread *threads;
	char name[256] = "";
	uint32_t n;

	strbuf_puts(text, snapshot_root_words(root->kind));
	if (heap_root_name(v, root, name, sizeof(name)))
		strbuf_printf(text, " %s", name);
	else if (root->kind != SNAPSHOT_ROOT_REGISTER)
		strbuf_printf(text, " at 0x%llx", (unsigned long long)root->at);
	threads = copy_threads(v->s->copy, &n);
	if (is_of_thread(root->kind) && root->thread < n)
		strbuf_printf(text, " of thread %d", (int)threads[root->thread].tid);
}

void heap_put_root(const struct heap_view *v, const struct snapshot_root *root)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	heap_root_text(v, root, &text);
	answer_text(v->out, text.s ? text.s : "");
}

static void put_allocated(const struct heap_view *v, const struct retainer *r, uint32_t i,
			  struct strbuf *line)
{
	char name[SITE_NAME_MAX];

	if (!v->s->sites || !r->sites[i])
		return;
	sites_name(v->s->sites, r->sites[i], name);
	strbuf_printf(line, ", allocated at %s%s", name, r->differ[i] ? ", among others" : "");
}

static void put_chain(const struct heap_view *v, const struct retainer *r)
{
	_cleanup_(strbuf_free) struct strbuf line = { 0 };

	if (r->cut)
		answer_line(v->out, "… many more …");
	for (uint32_t i = 0; i < r->n_links; i++) {
		strbuf_reset(&line);
		if (r->left_out && i == r->n_links - 1) {
			strbuf_printf(&line, "… %s more …", unit_count(r->left_out).s);
			answer_line(v->out, line.s ? line.s : "");
			strbuf_reset(&line);
		}
		strbuf_printf(&line, "%s%s", r->links[i], r->repeats[i] ? ", several linked" : "");
		put_allocated(v, r, i, &line);
		answer_line(v->out, line.s ? line.s : "");
	}
	answer_lines_end(v->out);
}

static void put_sums(const struct heap_view *v, const struct retainers *found, const char *what)
{
	answer_say(v->out, "%s %s %s, %s", unit_count((int64_t)found->objects).s,
		   found->objects == 1 ? "object is" : "objects are", what,
		   unit_bytes((int64_t)found->bytes).s);
	if (found->one_in > 1)
		answer_say(v->out, "by a sample of one object in %s:",
			   unit_count((int64_t)found->one_in).s);
	answer_figure(v->out, "objects", found->objects);
	answer_figure(v->out, "bytes", found->bytes);
	answer_figure(v->out, "one_in", found->one_in);
	answer_figure(v->out, "indirections", found->indirections);
	answer_figure(v->out, "unreached_objects", found->unreached);
	answer_figure(v->out, "unreached_bytes", found->unreached_bytes);
}

void heap_put_retainers(const struct heap_view *v, const struct retainers *found, uint32_t top)
{
	if (found->n)
		answer_table(v->out, "retainers", columns);
	for (uint32_t i = 0; i < found->n && i < top; i++) {
		answer_cell(v->out, found->rows[i].objects);
		answer_cell(v->out, found->rows[i].bytes);
		heap_put_root(v, &v->s->roots[found->rows[i].root]);
		put_chain(v, &found->rows[i]);
	}
	if (found->n > top)
		answer_say(v->out, "%s more %s of chains", unit_count(found->n - top).s,
			   found->n - top == 1 ? "kind" : "kinds");
	if (found->indirections)
		answer_say(
			v->out,
			"chains are shortened by %s links: GHC's objects that stand for another (IND, BLACKHOLE, AP, PAP, "
			"THUNK_SELECTOR)",
			unit_count((int64_t)found->indirections).s);
	if (found->unreached)
		answer_say(v->out, "%s, %s: nothing refers to them any more",
			   unit_count((int64_t)found->unreached).s,
			   unit_bytes((int64_t)found->unreached_bytes).s);
}

/* The last part of a type's name: "Session" of web.Session. */
static const char *short_name(const char *name)
{
	const char *last = name;

	for (const char *c = name; *c && !strchr("<({[ ", *c); c++)
		if ((*c == '.' || *c == ':') && c[1])
			last = c + 1;
	return last;
}

/* The type whose short name is that of `what` in other letters' case, or nearly; NULL. */
static const char *nearest_type(const struct types *t, const char *what)
{
	const char *wanted = short_name(strncmp(what, "type:", 5) == 0 ? what + 5 : what);
	_cleanup_(freep) const char **names = calloc(t->n + 1ul, sizeof(*names));

	for (uint32_t i = 1; names && i < t->n; i++) {
		names[i - 1] = short_name(t->type[i].name);
		if (strcasecmp(names[i - 1], wanted) == 0)
			return t->type[i].name;
	}
	return names && t->n > 1 ? opt_nearest(wanted, names, t->n - 1) : NULL;
}

int heap_no_object(const struct heap_view *v, const char *what, struct err *e)
{
	const char *near = nearest_type(&v->s->types, what);

	if (near)
		return err_set(e, -ENOENT,
			       "the heap has no object %.200s (did you mean \"%.200s\"?)", what,
			       near);
	return err_set(e, -ENOENT,
		       "the heap has no object %.200s; memscope heap census lists the types it has",
		       what);
}

int heap_retainers(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(freep) uint32_t *objects = NULL;
	_cleanup_(retainers_fini) struct retainers found = { 0 };
	uint64_t n;
	int r = select_objects(v->s, what, &objects, &n, e);

	if (r == 0 && !n)
		return heap_no_object(v, what, e);
	if (r == 0)
		r = retainers_find(v->s, objects, n, ~0u, &found);
	if (r < 0)
		return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
	put_sums(v, &found, what);
	heap_put_retainers(v, &found, v->args->top);
	return 0;
}
