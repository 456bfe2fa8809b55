#include "symbolize/symbolize.h"

#include "symbolize/image_names.h"
#include "symbolize/same_image.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { GIVE_BACK_BYTES = 4 << 20 };

/* One location to be named. */
struct todo {
	uint64_t vaddr;
	uint32_t image; /* the module by which it is read: same_image.h */
	uint32_t module, location;
};

/* What is at hand while the locations of one image are named. */
struct group {
	struct dict *d;
	const struct symbolize_opts *opts;
	struct symbolize_stats *st;
	struct image_question question;
	const struct todo *todo; /* of the image, by address     */
	uint32_t n, next;        /* the first that is not named  */
	uint64_t *vaddrs;        /* of the image, each once      */
	uint64_t *missed;        /* by module: without a name    */
};

static int compare_todo(const void *pa, const void *pb)
{
	const struct todo *a = pa, *b = pb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
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

static void count(struct group *g, uint32_t module, enum found found)
{
	struct symbolize_stats *st = g->st;
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

static void note_misses(struct group *g, const char *why)
{
	for (uint32_t i = 0; i < g->n; i++) {
		module_id m = { g->todo[i].module };

		if (!g->missed[m.ix])
			continue;
		note_miss(g->st, (struct symbolize_miss){ m, g->missed[m.ix], why });
		g->missed[m.ix] = 0;
	}
}

/* It had a name by symbols alone, and now, that its file was to say more, it says less: it is gone, or its reading failed. */
static bool keeps_its_name(const struct dict *d, uint32_t location, const struct image_place *p)
{
	const struct location *l = dict_location_get(d, (location_id){ location });

	return l->lines_unread && l->n_lines && p->found != FOUND_NAME &&
	       *dict_str(d, l->lines[l->n_lines - 1].system_name);
}

/* All locations at one address of the image. */
static void name_place(void *ctx, const struct image_place *p)
{
	struct group *g = ctx;
	uint64_t vaddr = g->vaddrs[p->ix];

	for (; g->next < g->n && g->todo[g->next].vaddr == vaddr; g->next++) {
		const struct todo *t = &g->todo[g->next];

		if (keeps_its_name(g->d, t->location, p)) {
			count(g, t->module, FOUND_NAME);
			continue;
		}
		count(g, t->module, p->found);
		if (p->unread)
			dict_location_name_unread(g->d, (location_id){ t->location }, p->lines,
						  p->n_lines);
		else
			dict_location_name(g->d, (location_id){ t->location }, p->lines,
					   p->n_lines);
	}
}

/* Others' bytes: files, and what programs wrote about code that they made. */
static bool is_foreign(const struct dict *d, module_id image)
{
	enum module_kind kind = dict_module_get(d, image)->kind;

	return kind == MODULE_ELF || kind == MODULE_ANON;
}

/* The locations of one image, whose modules may be several. */
static int name_group(struct group *g, const struct todo *todo, uint32_t n)
{
	struct image_question *q = &g->question;
	struct image_end end;
	int r;

	g->todo = todo;
	g->n = n;
	g->next = 0;
	q->module = (module_id){ todo[0].image };
	q->n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!i || todo[i].vaddr != todo[i - 1].vaddr)
			g->vaddrs[q->n++] = todo[i].vaddr;
	r = is_foreign(g->d, q->module) ? image_names_in_cell(q, name_place, g, &end)
					: image_names_here(q, name_place, g, &end);
	if (r < 0)
		return r;
	note_misses(g, end.why_unnamed);
	if (end.lines_problem && !g->st->lines_problem) {
		g->st->lines_problem = end.lines_problem;
		g->st->lines_module = q->module;
	}
	g->st->images++;
	return 0;
}

static bool may_read_lines(const struct symbolize_opts *opts)
{
	return !opts->no_lines && (!opts->lines_within || opts->lines_within->cpu_ns > 0);
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

		if (l->named && !(l->lines_unread && may_read_lines(opts)))
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

/* What the kernel's symbols took is free again, in blocks too small to go back by themselves. */
static void give_back_memory(void)
{
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
	struct symbolize_stats st = { 0 };
	int64_t dwarf_ms_left = SYMBOLIZE_DWARF_MS_MAX;
	struct group g = {
		.d = d,
		.opts = opts,
		.st = &st,
		.vaddrs = vaddrs,
		.missed = missed,
		.question = { .d = d,
			      .opts = opts,
			      .vaddrs = vaddrs,
			      .servers = servers,
			      .dwarf_ms_left = &dwarf_ms_left },
	};
	int r = 0;

	if (!todo || !vaddrs || !missed || list_todo(d, opts, todo, &n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0, end; i < n && r == 0; i = end) {
		for (end = i + 1; end < n && todo[end].image == todo[i].image; end++)
			;
		r = name_group(&g, todo + i, end - i);
	}
	if (n)
		give_back_memory();
	st.locations = n;
	if (r < 0 || dict_oom(d))
		return -ENOMEM;
	if (ret_stats)
		*ret_stats = st;
	return 0;
}
