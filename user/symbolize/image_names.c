#include "symbolize/image_names.h"

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

struct opened {
	const struct resolver *resolver;
	void *state;
};

/* The resolvers of one role, opened one after the other as they are needed. */
struct asked {
	enum sym_role role;
	struct opened opened[RESOLVERS_MAX];
	uint32_t n_opened;
	uint32_t next;       /* resolver to open when those opened do not know         */
	bool any;            /* one of the image's kind was tried …                    */
	const char *why_not; /* … and the first of them could not be opened            */
};

struct last_name {
	const char *name, *suffix;
	size_t len;
	string_id function, system_name;
};

/* What is at hand while the locations of one image are named. */
struct naming {
	const struct image_question *q;
	struct sym_image image;
	struct asked names, lines, ranges;
	struct last_name last; /* neighbours often share one, and demangling costs much */
	struct sym_answer answer, named;
	struct line shown[SYM_FRAMES_MAX];
};

/* Opens the next resolver of this role for this kind of image. False: there are no more. */
static bool open_next(struct naming *g, struct asked *asked)
{
	const struct module *m = dict_module_get(g->q->d, g->q->module);

	while (resolvers[asked->next] && asked->n_opened < RESOLVERS_MAX) {
		const struct resolver *res = resolvers[asked->next++];
		const char *why = NULL;
		void *state;
		int r;

		if (res->role != asked->role || !(res->kinds & RESOLVES(m->kind)))
			continue;
		r = res->open(&g->image, &state, &why);
		if (r < 0 && !asked->any)
			asked->why_not = why;
		asked->any = true;
		if (r == 0) {
			asked->opened[asked->n_opened++] = (struct opened){ res, state };
			return true;
		}
	}
	return false;
}

static void asked_close(struct asked *asked)
{
	for (uint32_t i = 0; i < asked->n_opened; i++)
		asked->opened[i].resolver->close(asked->opened[i].state);
}

static bool ask(struct naming *g, struct asked *asked, uint64_t vaddr,
		struct sym_answer *ret_answer)
{
	for (uint32_t i = 0; i < asked->n_opened || open_next(g, asked); i++)
		if (asked->opened[i].resolver->find(asked->opened[i].state, vaddr, ret_answer))
			return true;
	return false;
}

/*
 * Lines and inlined calls from one source, the name of the function around them from another: a
 * symbol distinguishes clones (f.cold, f.constprop.0) and is what other tools show. Only a label
 * without type or size yields to what the debug info says.
 */
static enum found find(struct naming *g, uint64_t vaddr, bool *ret_unread)
{
	struct sym_answer *a = &g->answer;
	struct sym_frame *outer;
	enum found found = FOUND_NAME;

	*ret_unread = false;
	if (g->q->opts->no_lines || !ask(g, &g->lines, vaddr, a)) {
		*ret_unread = g->image.lines_unread;
		a->n = 1;
		a->sure = false;
		a->frames[0] = (struct sym_frame){ 0 };
	}
	outer = &a->frames[a->n - 1];
	if (outer->name && a->sure)
		return FOUND_NAME;
	if (!ask(g, &g->names, vaddr, &g->named)) {
		if (outer->name)
			return FOUND_NAME;
		found = ask(g, &g->ranges, vaddr, &g->named) ? FOUND_RANGE : FOUND_NOTHING;
		if (found == FOUND_NOTHING)
			return FOUND_NOTHING;
	}
	if (!outer->name || !g->named.frames[0].label) {
		outer->name = g->named.frames[0].name;
		outer->len = g->named.frames[0].len;
		outer->suffix = g->named.frames[0].suffix;
	}
	return found;
}

static string_id with_suffix(struct dict *d, const char *name, size_t len, const char *suffix)
{
	char whole[DEMANGLE_OUT_MAX + 16];

	if (!suffix)
		return dict_string_n(d, name, len);
	snprintf(whole, sizeof(whole), "%.*s%s", (int)len, name, suffix);
	return dict_string(d, whole);
}

static void name_line(struct naming *g, const struct sym_frame *f, struct line *ret_line)
{
	size_t len = f->len < NAME_MAX_BYTES ? f->len : NAME_MAX_BYTES;
	struct last_name *last = &g->last;
	char shown[DEMANGLE_OUT_MAX];

	if (f->name != last->name || f->len != last->len || f->suffix != last->suffix) {
		*last = (struct last_name){ f->name, f->suffix, f->len, { 0 }, { 0 } };
		last->system_name = with_suffix(g->q->d, f->name, len, f->suffix);
		if (!g->q->opts->no_demangle && demangle(f->name, len, shown))
			last->function = with_suffix(g->q->d, shown, strlen(shown), f->suffix);
		else
			last->function = last->system_name;
	}
	ret_line->function = last->function;
	ret_line->system_name = last->system_name;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* What a place without a name is shown as. */
string_id image_made_up_name(struct dict *d, const struct module *m, uint64_t vaddr)
{
	char name[512];

	switch (m->kind) {
	case MODULE_NONE:
		return dict_string(d, "[unknown]");
	case MODULE_ANON:
		return dict_string(d, "[anon]");
	default:
		snprintf(name, sizeof(name), "%.480s+0x%" PRIx64, base_name(dict_str(d, m->path)),
			 vaddr);
		return dict_string(d, name);
	}
}

/* The answer as lines of the dict. */
static void to_lines(struct naming *g, uint64_t vaddr, enum found found)
{
	const struct module *m = dict_module_get(g->q->d, g->q->module);

	for (uint32_t i = 0; i < g->answer.n; i++) {
		const struct sym_frame *f = &g->answer.frames[i];
		struct line *l = &g->shown[i];

		*l = (struct line){ .line = f->line, .start_line = f->start_line };
		if (f->file)
			l->file = dict_string(g->q->d, f->file);
		if (f->name)
			name_line(g, f, l);
		else
			l->function = i + 1 < g->answer.n ? dict_string(g->q->d, "[inlined]")
							  : image_made_up_name(g->q->d, m, vaddr);
		if (found == FOUND_RANGE && i + 1 == g->answer.n)
			l->system_name = (string_id){ 0 };
	}
}

static const char *why_unnamed(const struct asked *names, enum module_kind kind)
{
	if (names->why_not)
		return names->why_not;
	if (kind == MODULE_ANON)
		return "memory without a file (generated code?)";
	return names->n_opened ? names->opened[0].resolver->why_not(names->opened[0].state)
			       : "no source of names for it";
}

int image_names_here(const struct image_question *q, image_place_fn fn, void *ctx,
		     struct image_end *ret)
{
	_cleanup_(freep) struct naming *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->q = q;
	g->names.role = SYM_NAMES;
	g->lines.role = SYM_LINES;
	g->ranges.role = SYM_RANGES;
	sym_image_init(&g->image, q->opts, q->d, q->module);
	g->image.vaddrs = q->vaddrs;
	g->image.n_vaddrs = q->n;
	g->image.servers = q->servers;
	g->image.dwarf_ms_left = q->dwarf_ms_left;
	g->image.ask_lines = q->ask_lines;
	g->image.ask_server = q->ask_server;
	for (uint32_t i = 0; i < q->n; i++) {
		struct image_place p = { .ix = i, .lines = g->shown };

		p.found = find(g, q->vaddrs[i], &p.unread);
		to_lines(g, q->vaddrs[i], p.found);
		p.n_lines = g->answer.n;
		fn(ctx, &p);
	}
	*ret = (struct image_end){
		.why_unnamed = why_unnamed(&g->names, dict_module_get(q->d, q->module)->kind),
		.lines_problem = g->image.lines_problem,
	};
	asked_close(&g->names);
	asked_close(&g->lines);
	asked_close(&g->ranges);
	sym_image_fini(&g->image);
	return 0;
}
