#include "symbolize/symbolize.h"

#include "elf/demangle.h"
#include "symbolize/resolver.h"
#include "symbolize/same_image.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RESOLVERS_MAX = 8,     /* open for one image at a time */
	NAME_MAX_BYTES = 4096, /* of a symbol that is not demangled; the rest is cut */
	GIVE_BACK_BYTES = 4 << 20,
	GIVE_BACK_AFTER = 16 << 20, /* bytes of images */
};

/* One location to be named. */
struct todo {
	uint64_t vaddr;
	uint32_t image; /* the module by which it is read: same_image.h */
	uint32_t module, location;
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
struct group {
	struct dict *d;
	const struct symbolize_opts *opts;
	struct sym_image image;
	struct debuginfod *servers; /* NULL: none are asked */
	int64_t dwarf_ms_left;
	uint64_t *vaddrs; /* of the image, each once         */
	uint64_t *missed; /* by module: without a name       */
	struct asked names, lines, ranges;
	struct last_name last; /* neighbours often share one, and demangling costs much */
	uint64_t file_bytes;   /* of images that were read since memory was released */
	struct sym_answer answer, named;
	struct line shown[SYM_FRAMES_MAX];
};

static int compare_todo(const void *pa, const void *pb)
{
	const struct todo *a = pa, *b = pb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Opens the next resolver of this role for this kind of image. False: there are no more. */
static bool open_next(struct group *g, struct asked *asked)
{
	const struct module *m = dict_module_get(g->d, g->image.module);

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

static bool ask(struct group *g, struct asked *asked, uint64_t vaddr, struct sym_answer *ret_answer)
{
	for (uint32_t i = 0; i < asked->n_opened || open_next(g, asked); i++)
		if (asked->opened[i].resolver->find(asked->opened[i].state, vaddr, ret_answer))
			return true;
	return false;
}

enum found { FOUND_NAME, FOUND_RANGE, FOUND_NOTHING };

/*
 * Lines and inlined calls from one source, the name of the function around them from another: a
 * symbol distinguishes clones (f.cold, f.constprop.0) and is what other tools show. Only a label
 * without type or size yields to what the debug info says.
 */
static enum found find(struct group *g, uint64_t vaddr, bool *ret_unread)
{
	struct sym_answer *a = &g->answer;
	struct sym_frame *outer;
	enum found found = FOUND_NAME;

	*ret_unread = false;
	if (g->opts->no_lines || !ask(g, &g->lines, vaddr, a)) {
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

static void name_line(struct group *g, const struct sym_frame *f, struct line *ret_line)
{
	size_t len = f->len < NAME_MAX_BYTES ? f->len : NAME_MAX_BYTES;
	struct last_name *last = &g->last;
	char shown[DEMANGLE_OUT_MAX];

	if (f->name != last->name || f->len != last->len || f->suffix != last->suffix) {
		*last = (struct last_name){ f->name, f->suffix, f->len, { 0 }, { 0 } };
		last->system_name = with_suffix(g->d, f->name, len, f->suffix);
		if (!g->opts->no_demangle && demangle(f->name, len, shown))
			last->function = with_suffix(g->d, shown, strlen(shown), f->suffix);
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
static string_id made_up_name(struct dict *d, const struct module *m, uint64_t vaddr)
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
static void to_lines(struct group *g, const struct module *m, uint64_t vaddr, enum found found)
{
	for (uint32_t i = 0; i < g->answer.n; i++) {
		const struct sym_frame *f = &g->answer.frames[i];
		struct line *l = &g->shown[i];

		*l = (struct line){ .line = f->line, .start_line = f->start_line };
		if (f->file)
			l->file = dict_string(g->d, f->file);
		if (f->name)
			name_line(g, f, l);
		else
			l->function = i + 1 < g->answer.n ? dict_string(g->d, "[inlined]")
							  : made_up_name(g->d, m, vaddr);
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

static void count(struct group *g, uint32_t module, enum found found, struct symbolize_stats *st)
{
	bool nowhere = dict_module_get(g->d, (module_id){ module })->kind == MODULE_NONE;

	if (found == FOUND_NAME)
		st->named++;
	else if (found == FOUND_RANGE)
		st->ranges++;
	else if (nowhere)
		st->no_module++;
	else
		st->offset_only++;
	g->missed[module] += found != FOUND_NAME && !nowhere;
}

static void note_misses(struct group *g, const struct todo *todo, uint32_t n,
			struct symbolize_stats *st)
{
	for (uint32_t i = 0; i < n; i++) {
		module_id m = { todo[i].module };
		enum module_kind kind = dict_module_get(g->d, m)->kind;

		if (!g->missed[m.ix])
			continue;
		note_miss(st, (struct symbolize_miss){ m, g->missed[m.ix],
						       why_unnamed(&g->names, kind) });
		g->missed[m.ix] = 0;
	}
}

/* The locations of one image, whose modules may be several. */
static void name_group(struct group *g, const struct todo *todo, uint32_t n,
		       struct symbolize_stats *st)
{
	module_id image = { todo[0].image };
	uint32_t n_vaddrs = 0;

	g->names = (struct asked){ .role = SYM_NAMES };
	g->lines = (struct asked){ .role = SYM_LINES };
	g->ranges = (struct asked){ .role = SYM_RANGES };
	g->last = (struct last_name){ 0 };
	for (uint32_t i = 0; i < n; i++)
		if (!i || todo[i].vaddr != todo[i - 1].vaddr)
			g->vaddrs[n_vaddrs++] = todo[i].vaddr;
	sym_image_init(&g->image, g->opts, g->d, image);
	g->image.vaddrs = g->vaddrs;
	g->image.n_vaddrs = n_vaddrs;
	g->image.servers = g->servers;
	g->image.dwarf_ms_left = &g->dwarf_ms_left;
	for (uint32_t i = 0; i < n; i++) {
		const struct module *m = dict_module_get(g->d, (module_id){ todo[i].module });
		bool unread;
		enum found found = find(g, todo[i].vaddr, &unread);

		if (unread && g->opts->lines_unread)
			g->opts->lines_unread[todo[i].location] = true;
		count(g, todo[i].module, found, st);
		to_lines(g, m, todo[i].vaddr, found);
		dict_location_name(g->d, (location_id){ todo[i].location }, g->shown, g->answer.n);
	}
	note_misses(g, todo, n, st);
	if (g->image.lines_problem && !st->lines_problem) {
		st->lines_problem = g->image.lines_problem;
		st->lines_module = image;
	}
	asked_close(&g->names);
	asked_close(&g->lines);
	asked_close(&g->ranges);
	g->file_bytes += g->image.elf ? elf_file_size(g->image.elf) : GIVE_BACK_BYTES;
	sym_image_fini(&g->image);
	st->images++;
}

/* What is to be named, by image, and in each by address. -ENOMEM. */
static int list_todo(struct dict *d, const struct symbolize_opts *opts, struct todo *todo,
		     uint32_t *ret_n)
{
	_cleanup_(freep) uint32_t *first = calloc(dict_module_count(d) + 1ul, sizeof(*first));
	uint32_t n = 0;
	int r;

	if (!first)
		return -ENOMEM;
	for (uint32_t i = 1; i <= dict_location_count(d); i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });

		if (l->named)
			continue;
		todo[n++] = (struct todo){ l->vaddr, 0, l->module.ix, i };
		first[l->module.ix] = l->module.ix;
	}
	r = same_images_find(opts, d, first);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		todo[i].image = first[todo[i].module];
	qsort(todo, n, sizeof(*todo), compare_todo);
	*ret_n = n;
	return 0;
}

/*
 * What images' symbols took is free again, in blocks too small to go back by themselves. How much that is the allocator finds by
 * walking its free lists: not for every small image.
 */
static void give_back_memory(struct group *g)
{
	if (g->file_bytes < GIVE_BACK_AFTER)
		return;
	g->file_bytes = 0;
	if (mallinfo2().fordblks > GIVE_BACK_BYTES)
		malloc_trim(0);
}

int symbolize(struct dict *d, const struct symbolize_opts *opts, struct symbolize_stats *ret_stats)
{
	uint32_t n_locations = dict_location_count(d), n;
	_cleanup_(freep) struct todo *todo = calloc(n_locations + 1ul, sizeof(*todo));
	_cleanup_(freep) uint64_t *vaddrs = calloc(n_locations + 1ul, sizeof(*vaddrs));
	_cleanup_(freep) uint64_t *missed = calloc(dict_module_count(d) + 1ul, sizeof(*missed));
	_cleanup_(debuginfod_freep) struct debuginfod *servers =
		opts->open_debug ? debuginfod_new() : NULL;
	_cleanup_(freep) struct group *g = calloc(1, sizeof(*g));
	struct symbolize_stats st = { 0 };

	if (!todo || !vaddrs || !missed || !g || list_todo(d, opts, todo, &n) < 0)
		return -ENOMEM;
	g->d = d;
	g->opts = opts;
	g->servers = servers;
	g->vaddrs = vaddrs;
	g->missed = missed;
	g->dwarf_ms_left = SYMBOLIZE_DWARF_MS_MAX;
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && todo[end].image == todo[i].image; end++)
			;
		name_group(g, todo + i, end - i, &st);
		give_back_memory(g);
	}
	st.locations = n;
	if (dict_oom(d))
		return -ENOMEM;
	if (ret_stats)
		*ret_stats = st;
	return 0;
}
