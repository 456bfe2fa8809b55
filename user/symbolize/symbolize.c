#include "symbolize/symbolize.h"

#include "elf/demangle.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RESOLVERS_MAX = 8,     /* open for one image at a time */
	NAME_MAX_BYTES = 4096, /* of a symbol that is not demangled; the rest is cut */
};

/* One location to be named. */
struct todo {
	uint64_t vaddr;
	uint32_t module, location;
};

struct opened {
	const struct resolver *resolver;
	void *state;
};

/* What is at hand while the locations of one image are named. */
struct group {
	struct dict *d;
	const struct symbolize_opts *opts;
	module_id module;
	struct opened opened[RESOLVERS_MAX];
	uint32_t n_opened;
	uint32_t next;             /* resolver to open when those opened do not know */
	bool asked;                /* one of its kind was tried …                    */
	const char *why_not;       /* … and the first of them could not be opened    */
	struct sym_name last_name; /* neighbours often share one, and demangling is dear */
	struct line last_line;
};

static int compare_todo(const void *pa, const void *pb)
{
	const struct todo *a = pa, *b = pb;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Opens the next resolver for this kind of image. False: there are no more. */
static bool open_next(struct group *g)
{
	const struct module *m = dict_module_get(g->d, g->module);

	while (resolvers[g->next] && g->n_opened < RESOLVERS_MAX) {
		const struct resolver *res = resolvers[g->next++];
		const char *why = NULL;
		void *state;
		int r;

		if (!(res->kinds & RESOLVES(m->kind)))
			continue;
		r = res->open(g->opts, g->d, g->module, &state, &why);
		if (r < 0 && !g->asked)
			g->why_not = why;
		g->asked = true;
		if (r == 0) {
			g->opened[g->n_opened++] = (struct opened){ res, state };
			return true;
		}
	}
	return false;
}

static void group_close(struct group *g)
{
	for (uint32_t i = 0; i < g->n_opened; i++)
		g->opened[i].resolver->close(g->opened[i].state);
}

static bool find(struct group *g, uint64_t vaddr, struct sym_name *ret_name)
{
	for (uint32_t i = 0; i < g->n_opened || open_next(g); i++)
		if (g->opened[i].resolver->find(g->opened[i].state, vaddr, ret_name))
			return true;
	return false;
}

static string_id with_suffix(struct dict *d, const char *name, size_t len, const char *suffix)
{
	char whole[DEMANGLE_OUT_MAX + 16];

	if (!suffix)
		return dict_string_n(d, name, len);
	snprintf(whole, sizeof(whole), "%.*s%s", (int)len, name, suffix);
	return dict_string(d, whole);
}

static struct line line_of(struct group *g, struct sym_name name)
{
	char shown[DEMANGLE_OUT_MAX];

	if (name.name == g->last_name.name && name.len == g->last_name.len &&
	    name.suffix == g->last_name.suffix)
		return g->last_line;
	g->last_name = name;
	if (name.len > NAME_MAX_BYTES)
		name.len = NAME_MAX_BYTES;
	g->last_line =
		(struct line){ .system_name = with_suffix(g->d, name.name, name.len, name.suffix) };
	if (!g->opts->no_demangle && demangle(name.name, name.len, shown))
		g->last_line.function = with_suffix(g->d, shown, strlen(shown), name.suffix);
	else
		g->last_line.function = g->last_line.system_name;
	return g->last_line;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct line made_up_line(struct dict *d, const struct module *m, uint64_t vaddr)
{
	char name[512];

	switch (m->kind) {
	case MODULE_NONE:
		return (struct line){ .function = dict_string(d, "[unknown]") };
	case MODULE_ANON:
		return (struct line){ .function = dict_string(d, "[anon]") };
	default:
		snprintf(name, sizeof(name), "%.480s+0x%" PRIx64, base_name(dict_str(d, m->path)),
			 vaddr);
		return (struct line){ .function = dict_string(d, name) };
	}
}

static const char *why_unnamed(const struct group *g, enum module_kind kind)
{
	if (kind == MODULE_ANON)
		return "memory without a file (generated code?)";
	if (g->why_not)
		return g->why_not;
	return g->n_opened ? g->opened[0].resolver->why_not(g->opened[0].state)
			   : "no source of names for it";
}

/* Keeps the modules with most unnamed locations, most first. */
static void note_miss(struct symbolize_stats *st, struct symbolize_miss miss)
{
	const uint32_t cap = sizeof(st->worst) / sizeof(st->worst[0]);
	uint32_t at = st->n_worst;

	while (at > 0 && st->worst[at - 1].locations < miss.locations)
		at--;
	if (at == cap)
		return;
	if (st->n_worst < cap)
		st->n_worst++;
	memmove(&st->worst[at + 1], &st->worst[at], (st->n_worst - 1 - at) * sizeof(miss));
	st->worst[at] = miss;
}

static void name_group(struct dict *d, const struct symbolize_opts *opts, const struct todo *todo,
		       uint32_t n, struct symbolize_stats *st)
{
	struct group g = { .d = d, .opts = opts, .module = { todo[0].module } };
	const struct module *m = dict_module_get(d, g.module);
	uint64_t missed = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sym_name name;
		struct line line;

		if (find(&g, todo[i].vaddr, &name)) {
			line = line_of(&g, name);
			st->named++;
		} else {
			line = made_up_line(d, m, todo[i].vaddr);
			missed++;
		}
		dict_location_name(d, (location_id){ todo[i].location }, &line, 1);
	}
	if (m->kind == MODULE_NONE)
		st->no_module += missed;
	else
		st->offset_only += missed;
	if (missed && m->kind != MODULE_NONE)
		note_miss(st,
			  (struct symbolize_miss){ g.module, missed, why_unnamed(&g, m->kind) });
	group_close(&g);
}

int symbolize(struct dict *d, const struct symbolize_opts *opts, struct symbolize_stats *ret_stats)
{
	uint32_t count = dict_location_count(d), n = 0;
	_cleanup_(freep) struct todo *todo = calloc(count ? count : 1, sizeof(*todo));
	struct symbolize_stats st = { 0 };

	if (!todo)
		return -ENOMEM;
	for (uint32_t i = 1; i <= count; i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });

		if (!l->named)
			todo[n++] = (struct todo){ l->vaddr, l->module.ix, i };
	}
	qsort(todo, n, sizeof(*todo), compare_todo);

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && todo[end].module == todo[i].module; end++)
			;
		name_group(d, opts, todo + i, end - i, &st);
	}
	st.locations = n;
	if (dict_oom(d))
		return -ENOMEM;
	if (ret_stats)
		*ret_stats = st;
	return 0;
}
