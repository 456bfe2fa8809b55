#include "analyse/lock_chain.h"

#include <errno.h>
#include <string.h>

#define CALLERS 3 /* of what takes the lock: a guard's constructor, what it is in, and one more */

/* The program's own functions that led to the lock, the one nearest to it first. */
struct askers {
	struct frame frames[CALLERS];
	uint32_t n;
};

/* What is waited for below one of them, each kind named after the largest of its stacks. */
struct below {
	struct site_row rows[N_WAIT_KINDS];
	int64_t largest[N_WAIT_KINDS];
};

static bool same_function(const struct frame *a, const struct frame *b)
{
	return a->name.ix == b->name.ix && strcmp(a->module, b->module) == 0;
}

static void askers_set(struct askers *a, const struct dict *d, const struct frame_path *path)
{
	/* The function that says that it is a lock is not one that has it. */
	uint32_t by = wait_meaning_of(d, path).by, place = by ? by - 1 : path->n;

	a->n = 0;
	while (place-- > 0 && a->n < CALLERS) {
		const struct frame *f = &path->frames[place];

		if (site_is_own(d, path, place) &&
		    !(a->n && same_function(f, &a->frames[a->n - 1])))
			a->frames[a->n++] = *f;
	}
}

/* By the largest of the lock's stacks. */
static int find_askers(const struct profile *p, uint32_t type, const struct site_row *lock,
		       struct frame_path *path, struct askers *ret_askers)
{
	struct dict *d = profile_dict(p);
	int64_t most = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct site_row row;

		if (s.values[type] <= most)
			continue;
		if (site_of_wait_stack(d, s.stack, &row) < 0)
			return -ENOMEM;
		if (!site_row_same(&row, lock))
			continue;
		if (frame_path_set(path, d, s.stack) < 0)
			return -ENOMEM;
		most = s.values[type];
		askers_set(ret_askers, d, path);
	}
	return 0;
}

static bool is_on_path(const struct frame_path *path, const struct frame *f)
{
	for (uint32_t i = 0; i < path->n; i++)
		if (same_function(&path->frames[i], f))
			return true;
	return false;
}

static void below_add(struct below *b, const struct site_row *wait, int64_t value, int64_t count)
{
	struct site_row *row = &b->rows[wait->wait];
	int64_t before = row->value, times = row->count;

	if (value > b->largest[wait->wait]) {
		b->largest[wait->wait] = value;
		*row = *wait;
	}
	row->value = before + value;
	row->count = times + count;
}

static const struct site_row *largest_of(const struct below *b)
{
	const struct site_row *row = &b->rows[0];

	for (uint32_t i = 1; i < N_WAIT_KINDS; i++)
		if (b->rows[i].value > row->value)
			row = &b->rows[i];
	return row->value > 0 ? row : NULL;
}

int lock_chain_find(const struct profile *p, uint32_t type, const struct site_row *lock,
		    struct site_row *ret_wait)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct below below[CALLERS] = { 0 };
	struct askers askers = { .n = 0 };
	const struct site_row *found = NULL;
	struct dict *d = profile_dict(p);
	int r = find_askers(p, type, lock, &path, &askers);

	for (uint32_t i = 0; r == 0 && askers.n && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct site_row row;

		if (s.values[type] <= 0)
			continue;
		r = site_of_wait_stack(d, s.stack, &row);
		if (r < 0 || !wait_kind_is_hold_up(row.wait))
			continue;
		r = frame_path_set(&path, d, s.stack);
		for (uint32_t k = 0; r == 0 && k < askers.n; k++) {
			if (!is_on_path(&path, &askers.frames[k]))
				continue;
			below_add(&below[k], &row, s.values[type], s.values[0]);
			break;
		}
	}
	if (r < 0)
		return r;
	for (uint32_t k = 0; k < askers.n; k++) {
		const struct site_row *row = largest_of(&below[k]);

		if (row && (!found || row->value > found->value))
			found = row;
	}
	if (!found)
		return 0;
	*ret_wait = *found;
	return 1;
}
