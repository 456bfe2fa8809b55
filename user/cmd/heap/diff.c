/* memscope heap diff: what came, what stayed and what is gone between snapshots, and who keeps what came. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/compare.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/retainers.h"

#include <errno.h>
#include <string.h>

enum { KEEPERS_SHOWN = 3 };

static const struct answer_column columns[] = {
	{ "change", "change", ANSWER_CHANGE, 0 }, { "before", "before", ANSWER_BYTES, 0 },
	{ "after", "after", ANSWER_BYTES, 0 },    { "came", "came", ANSWER_COUNT, 0 },
	{ "gone", "gone", ANSWER_COUNT, 0 },      { "objects", "objects", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 0 },       { 0 },
}, site_columns[] = {
	{ "bytes", "came", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "site", "allocated at", ANSWER_NAME, 0 },
	{ 0 },
};

static int64_t change_of(const struct compare_row *row)
{
	return (int64_t)(row->bytes[1] - row->bytes[0]);
}

static bool changed(const struct compare_row *row)
{
	return change_of(row) != 0 || row->came || row->gone;
}

static void put_rows(const struct heap_view *v, const struct compare *c)
{
	uint32_t shown = 0;

	answer_table(v->out, "types", columns);
	for (uint32_t i = 0; i < c->n && shown < v->args->top; i++) {
		const struct compare_row *row = &c->rows[i];

		if (!changed(row))
			continue;
		answer_cell(v->out, (uint64_t)change_of(row));
		answer_cell(v->out, row->bytes[0]);
		answer_cell(v->out, row->bytes[1]);
		answer_cell(v->out, row->moves ? ANSWER_NONE : row->came);
		answer_cell(v->out, row->moves ? ANSWER_NONE : row->gone);
		answer_cell(v->out, row->objects[1]);
		answer_text(v->out, row->name);
		shown++;
	}
}

/* The type that grew most, of those whose objects are known again; one that has a name, if there is one. */
static const struct compare_row *most_grown(const struct heap_view *v, const struct compare *c)
{
	const char *unknown = v->s->types.type[0].name;
	const struct compare_row *found = NULL;

	for (uint32_t i = 0; i < c->n && change_of(&c->rows[i]) > 0; i++) {
		const struct compare_row *row = &c->rows[i];

		if (!row->came || row->moves)
			continue;
		if (strcmp(row->name, unknown) != 0)
			return row;
		found = row;
	}
	return found;
}

/* What keeps those of that type that came. */
static int put_keepers(const struct heap_view *v, const struct compare *c,
		       const struct compare_row *row, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(retainers_fini) struct retainers found = { 0 };
	_cleanup_(freep) uint32_t *objects = calloc(row->came + 1, sizeof(*objects));
	uint64_t n = 0;

	for (uint32_t i = 0; objects && i < s->blocks.n && n < row->came; i++)
		if (c->came[i] &&
		    strcmp(compare_type_name(&s->types, s->types.of[i]), row->name) == 0)
			objects[n++] = i;
	if (!objects || retainers_find(s, objects, n, ~0u, &found) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	answer_say(v->out, "%s", "");
	answer_say(v->out, "what keeps the %s of %s that came", unit_count((int64_t)n).s,
		   row->name);
	heap_put_retainers(v, &found, KEEPERS_SHOWN);
	return 0;
}

/* --- who allocated what came --- */

struct site_sum {
	uint32_t site;
	uint64_t objects, bytes;
};

static int by_site_bytes(const void *a, const void *b)
{
	const struct site_sum *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
				    : (x->site > y->site) - (x->site < y->site);
}

static int put_sites(const struct heap_view *v, const struct compare *c, struct err *e)
{
	const struct snapshot *s = v->s;
	uint32_t n = s->sites->n_sites;
	_cleanup_(freep) struct site_sum *sums = calloc(n, sizeof(*sums));
	char name[SITE_NAME_MAX];

	if (!sums)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		sums[i].site = i;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		if (c->came[i]) {
			sums[sites_of(s->sites, i)].objects++;
			sums[sites_of(s->sites, i)].bytes += snapshot_bytes(s, i);
		}
	qsort(sums, n, sizeof(*sums), by_site_bytes);
	answer_say(v->out, "%s", "");
	answer_say(v->out, "%s", "what came and is there, by who allocated it");
	answer_table(v->out, "sites", site_columns);
	for (uint32_t i = 0; i < n && i < v->args->top && sums[i].objects; i++) {
		sites_name(s->sites, sums[i].site, name);
		answer_cell(v->out, sums[i].bytes);
		answer_cell(v->out, sums[i].objects);
		answer_text(v->out, *name ? name : "(not known)");
	}
	return 0;
}

/* Types that have more bytes in each snapshot than in the one before: what leaks does that, and what fills. */
static void put_steady(const struct heap_view *v, const struct compare *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->rows[i].always_more;
	if (v->n_before > 1)
		answer_say(v->out, "%u of the types grew from each snapshot to the next", n);
}

/* When the older ones were taken, and how much there was. */
static void put_older(const struct heap_view *v)
{
	for (uint32_t i = 0; i < v->n_before; i++) {
		const struct snapshot *s = v->before[i];
		uint64_t now = v->s->facts.taken_ns, then = s->facts.taken_ns;

		answer_say(v->out, "%s %s: %s blocks in use, %s",
			   unit_ns(now > then ? (int64_t)(now - then) : (int64_t)(then - now)).s,
			   now >= then ? "before" : "after it (the newer one is named first)",
			   unit_count((int64_t)s->blocks.n).s,
			   unit_bytes(8 * (int64_t)s->blocks.all.words).s);
	}
	answer_say(v->out, "%s", "");
}

/* Another process's objects have nothing to do with these but their types. */
static void put_caveat(const struct heap_view *v)
{
	for (uint32_t i = 0; i < v->n_before; i++)
		if (v->before[i]->facts.pid != v->s->facts.pid) {
			answer_say(
				v->out,
				"these are snapshots of different processes, %d and %d: their sums can be compared, objects that came or are gone say nothing",
				(int)v->before[i]->facts.pid, (int)v->s->facts.pid);
			return;
		}
}

int heap_diff(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *all[HEAP_BEFORE_MAX + 1];
	_cleanup_(compare_fini) struct compare c = { 0 };
	const struct compare_row *grown;
	uint32_t n = v->n_before;

	(void)what;
	for (uint32_t i = 0; i < n; i++)
		all[i] = v->before[i];
	all[n] = v->s;
	if (compare_snapshots(all, n + 1, &c) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	put_older(v);
	put_caveat(v);
	put_rows(v, &c);
	put_steady(v, &c);
	if (v->s->sites && put_sites(v, &c, e) < 0)
		return -ENOMEM;
	grown = most_grown(v, &c);
	return grown ? put_keepers(v, &c, grown, e) : 0;
}
