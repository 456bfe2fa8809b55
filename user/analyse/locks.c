#include "analyse/locks.h"

#include "analyse/frame.h"
#include "analyse/sites.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RWLOCK_FUTEX 8   /* bytes from a rwlock to the first of its futexes (bpf/lock_words.h) */
#define MOST         0.8 /* of what the owners did: in one function, with what it calls */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_lock(const void *a, const void *b)
{
	const struct lock_use *x = a, *y = b;
	int r = compare(x->pid, y->pid);

	if (r == 0)
		r = compare(x->lock, y->lock);
	if (r == 0)
		r = (int)x->part - (int)y->part;
	return r ? r : compare(x->owner, y->owner);
}

static bool same_lock(const struct lock_use *a, const struct lock_use *b)
{
	return a->pid == b->pid && a->lock == b->lock;
}

/* Uses of one lock are uses[0 … n-1], waits first, those for one owner together. */
static void add_waits(const struct lock_use *uses, uint32_t n, struct lock_row *row)
{
	int64_t one_ns = 0;

	for (uint32_t i = 0; i < n && uses[i].part == LOCK_WAITED; i++) {
		const struct lock_use *u = &uses[i];

		row->waited_ns += (int64_t)u->ns;
		row->waits += (int64_t)u->count;
		if (*u->kind)
			row->kind = u->kind;
		if (!u->owner)
			continue;
		if (i == 0 || uses[i - 1].owner != u->owner) {
			one_ns = 0;
			row->n_owners++;
		}
		one_ns += (int64_t)u->ns;
		row->known_ns += (int64_t)u->ns;
		if (one_ns > row->owner_ns) {
			row->owner_ns = one_ns;
			row->owner = u->owner;
		}
	}
}

/* One function of the stacks of one lock, with what it calls. */
struct part {
	string_id function;
	const char *module;
	int64_t ns;
};

struct parts {
	struct part *rows;
	uint32_t n, cap;
};

static struct part *part_of(struct parts *p, const struct frame *f)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->rows[i].function.ix == f->name.ix &&
		    strcmp(p->rows[i].module, f->module) == 0)
			return &p->rows[i];
	if (!GROW(p->rows, p->n, p->cap))
		return NULL;
	p->rows[p->n] = (struct part){ f->name, f->module, 0 };
	return &p->rows[p->n++];
}

/* The function that has most of what is of one part, and how much that is. *ret_largest: the largest use. */
static int find_function(struct dict *d, const struct lock_use *uses, uint32_t n, enum lock_part of,
			 struct part *ret_most, const struct lock_use **ret_largest)
{
	struct parts parts = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct site_row site;
		struct part *part;

		if (uses[i].part != of)
			continue;
		if (!*ret_largest || uses[i].ns > (*ret_largest)->ns)
			*ret_largest = &uses[i];
		r = site_of_wait_stack(d, uses[i].stack, &site);
		if (r < 0)
			break;
		part = part_of(&parts, &(struct frame){ .name = dict_string(d, site.function),
							.module = site.module });
		if (!part) {
			r = -ENOMEM;
			break;
		}
		part->ns += (int64_t)uses[i].ns;
		if (part->ns > ret_most->ns)
			*ret_most = *part;
	}
	free(parts.rows);
	return r;
}

/* Where most was waited. */
static int find_waits(struct dict *d, const struct lock_use *uses, uint32_t n, struct lock_row *row)
{
	const struct lock_use *largest = NULL;
	struct part most = { .ns = -1 };
	int r = find_function(d, uses, n, LOCK_WAITED, &most, &largest);

	if (r < 0 || !largest)
		return r;
	row->function = dict_str(d, most.function);
	row->module = most.module;
	return 0;
}

/* Who released it. */
static int find_releases(struct dict *d, const struct lock_use *uses, uint32_t n,
			 struct lock_row *row)
{
	const struct lock_use *largest = NULL;
	struct part most = { .ns = -1 };
	int r = find_function(d, uses, n, LOCK_RELEASED, &most, &largest);

	if (r < 0 || !largest)
		return r;
	for (uint32_t i = 0; i < n; i++)
		if (uses[i].part == LOCK_RELEASED)
			row->released_ns += (int64_t)uses[i].ns;
	row->released_in = dict_str(d, most.function);
	row->released_module = most.module;
	row->released_in_ns = most.ns;
	row->releaser = largest->comm;
	return 0;
}

/* A function that calls itself counts once for a stack. */
static bool stands_before(const struct frame_path *path, uint32_t place)
{
	for (uint32_t i = 0; i < place; i++)
		if (path->frames[i].name.ix == path->frames[place].name.ix)
			return true;
	return false;
}

static int add_frames(struct parts *parts, const struct frame_path *path, int64_t ns)
{
	for (uint32_t i = 0; i < path->n; i++) {
		struct part *part;

		if (stands_before(path, i))
			continue;
		part = part_of(parts, &path->frames[i]);
		if (!part)
			return -ENOMEM;
		part->ns += ns;
	}
	return 0;
}

/* How every thread of Python begins. */
static bool is_of_all_threads(const struct dict *d, const struct frame *f)
{
	const char *name = dict_str(d, f->name);

	return f->kind == FRAME_LANG &&
	       (strstr(name, " (threading.py)") || strstr(name, " (thread.py)"));
}

/* "": there is none of the program's own. */
static const char *find_caller(const struct dict *d, const struct frame_path *path, uint32_t place)
{
	while (place-- > 0)
		if (site_is_own(d, path, place) && !is_of_all_threads(d, &path->frames[place]))
			return dict_str(d, path->frames[place].name);
	return "";
}

/*
 * The function of an owner: of those in which it was for most of the time, the one nearest the leaf that is the
 * program's own. What the leaf does is often one of many things done under the lock.
 */
static int find_held_in(struct dict *d, const struct lock_use *uses, uint32_t n,
			struct lock_row *row)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	const struct lock_use *largest = NULL;
	struct parts parts = { 0 };
	struct site_row site;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (uses[i].part != LOCK_HELD)
			continue;
		row->held_ns += (int64_t)uses[i].ns;
		if (!largest || uses[i].ns > largest->ns)
			largest = &uses[i];
		r = frame_path_set(&path, d, uses[i].stack);
		if (r == 0)
			r = add_frames(&parts, &path, (int64_t)uses[i].ns);
	}
	if (r == 0 && largest)
		r = frame_path_set(&path, d, largest->stack);
	for (uint32_t place = path.n; r == 0 && largest && place > 0; place--) {
		const struct part *part = part_of(&parts, &path.frames[place - 1]);

		if (!part || (double)part->ns < MOST * (double)row->held_ns ||
		    !site_is_own(d, &path, place - 1) ||
		    is_of_all_threads(d, &path.frames[place - 1]))
			continue;
		row->held_in = dict_str(d, part->function);
		row->held_module = part->module;
		row->held_in_ns = part->ns;
		row->held_caller = find_caller(d, &path, place - 1);
		break;
	}
	if (r == 0 && largest && !*row->held_in) {
		r = site_of_wait_stack(d, largest->stack, &site);
		if (r == 0) {
			const struct part *part = part_of(
				&parts, &(struct frame){ .name = dict_string(d, site.function),
							 .module = site.module });

			row->held_in = site.function;
			row->held_module = site.module;
			row->held_in_ns = part ? part->ns : 0;
		}
	}
	free(parts.rows);
	return r;
}

static int by_waited(const void *a, const void *b)
{
	const struct lock_row *x = a, *y = b;
	int r = compare((uint64_t)y->waited_ns, (uint64_t)x->waited_ns);

	if (r == 0)
		r = compare(x->pid, y->pid);
	return r ? r : compare(x->lock, y->lock);
}

static int name_functions(struct dict *d, const struct lock_use *uses, uint32_t n,
			  struct lock_row *row)
{
	uint32_t first = 0, end;
	int r;

	while (first < n && (uses[first].pid != row->pid || uses[first].lock != row->lock))
		first++;
	for (end = first; end < n && same_lock(&uses[first], &uses[end]);)
		end++;
	r = find_waits(d, uses + first, end - first, row);
	if (r == 0)
		r = find_releases(d, uses + first, end - first, row);
	return r < 0 ? r : find_held_in(d, uses + first, end - first, row);
}

/*
 * A rwlock that is being handed on, or that readers have, is recognized by none of its words: it is known by the
 * address of one of its two futexes alone, some bytes behind another wait's rwlock.
 */
static void join_rwlocks(struct lock_use *uses, uint32_t n)
{
	const struct lock_use *rwlock = NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct lock_use *u = &uses[i];

		if (strcmp(u->kind, "rwlock") == 0)
			rwlock = u;
		else if (rwlock && !*u->kind && u->pid == rwlock->pid &&
			 (u->lock - rwlock->lock == RWLOCK_FUTEX ||
			  u->lock - rwlock->lock == RWLOCK_FUTEX + 4))
			u->lock = rwlock->lock;
	}
}

static void sort_uses(struct lock_use *uses, uint32_t n)
{
	if (n)
		qsort(uses, n, sizeof(*uses), by_lock);
}

int locks_rank(struct dict *d, struct lock_use *uses, uint32_t n, struct lock_row *out,
	       uint32_t cap)
{
	_cleanup_(freep) struct lock_row *rows = calloc(n + 1ul, sizeof(*rows));
	uint32_t n_rows = 0, n_out;
	int r = 0;

	if (!rows)
		return -ENOMEM;
	sort_uses(uses, n);
	join_rwlocks(uses, n);
	sort_uses(uses, n);
	for (uint32_t i = 0, end; i < n; i = end) {
		struct lock_row *row = &rows[n_rows];

		for (end = i + 1; end < n && same_lock(&uses[i], &uses[end]);)
			end++;
		*row = (struct lock_row){ .pid = uses[i].pid,
					  .lock = uses[i].lock,
					  .kind = "",
					  .name = "",
					  .place = "",
					  .function = "",
					  .module = "",
					  .owner_name = "",
					  .held_in = "",
					  .held_caller = "",
					  .held_module = "",
					  .released_in = "",
					  .released_module = "",
					  .releaser = "" };
		add_waits(uses + i, end - i, row);
		n_rows += row->waited_ns > 0;
	}
	if (n_rows)
		qsort(rows, n_rows, sizeof(*rows), by_waited);
	n_out = n_rows < cap ? n_rows : cap;
	for (uint32_t i = 0; r == 0 && i < n_out; i++) {
		r = name_functions(d, uses, n, &rows[i]);
		out[i] = rows[i];
	}
	return r < 0 ? r : (int)n_out;
}
