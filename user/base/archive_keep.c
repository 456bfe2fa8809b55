/* Which windows and runs stay, and the removal of others. */
#include "base/archive.h"
#include "base/archive_list.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_STEP_S 60 /* a clock that is set right in steps as small as that was not wrong */

/* --- what to keep --- */

static const struct {
	char unit;
	size_t limit; /* in struct keep */
	uint64_t factor;
} units[] = {
	{ '\0', offsetof(struct keep, count), 1 },
	{ 's', offsetof(struct keep, age_s), 1 },
	{ 'm', offsetof(struct keep, age_s), 60 },
	{ 'h', offsetof(struct keep, age_s), 3600 },
	{ 'd', offsetof(struct keep, age_s), 86400 },
	{ 'K', offsetof(struct keep, bytes), 1ull << 10 },
	{ 'M', offsetof(struct keep, bytes), 1ull << 20 },
	{ 'G', offsetof(struct keep, bytes), 1ull << 30 },
	{ 'T', offsetof(struct keep, bytes), 1ull << 40 },
};

/* One limit, the `len` bytes at `text`, into `keep`. -EINVAL; -EEXIST: there is one of its kind. */
static int parse_limit(const char *text, size_t len, struct keep *keep)
{
	unsigned long long n;
	char unit, *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	unit = end < text + len ? *end : '\0';
	if (text[0] < '0' || text[0] > '9' || errno || !n || n >= 1ull << 40 ||
	    end + (unit != '\0') != text + len)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		uint64_t *limit = (uint64_t *)((char *)keep + units[i].limit);

		if (units[i].unit != unit || n > UINT64_MAX / units[i].factor)
			continue;
		if (*limit)
			return -EEXIST;
		*limit = n * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

int keep_parse(const char *text, const char *option, struct keep *ret_keep, struct err *e)
{
	struct keep keep = { 0 };
	const char *at = text;

	for (;;) {
		size_t len = strcspn(at, ",");
		int r = parse_limit(at, len, &keep);

		if (r == -EEXIST)
			return err_set(
				e, -EINVAL,
				"%s takes one age, one number and one size at most, and \"%.64s\" has "
				"two of a kind",
				option, text);
		if (r < 0)
			return err_set(
				e, -EINVAL,
				"%s takes an age (30s, 90m, 12h, 7d), a number of windows or runs (200), "
				"a size (500M, 2G), or several of them (7d,20G), not \"%.64s\"",
				option, text);
		if (!at[len])
			break;
		at += len + 1;
	}
	*ret_keep = keep;
	return 0;
}

bool keep_is_all(const struct keep *keep)
{
	return !keep->age_s && !keep->count && !keep->bytes;
}

/* --- removing --- */

/* Of runs that ended in one second; where the file system has no more than that, names say it: RUN, RUN-2, … RUN-10. */
static int newest_run_first(const struct entry *x, const struct entry *y)
{
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? 1 : -1;
	return strverscmp(y->name, x->name);
}

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by_stamp = strcmp(y->stamp, x->stamp);

	if (x->order_s != y->order_s)
		return x->order_s < y->order_s ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->kind == RUN_DIR)
		return newest_run_first(x, y);
	return by_stamp ? by_stamp : strcmp(x->name, y->name);
}

/* Windows of one stamp, and files of a run, are of one time, that of the last that was written. */
static void join_times(struct list *l)
{
	qsort(l->entries, l->n, sizeof(*l->entries), list_by_kind_and_stamp);
	for (size_t i = 0, end; i < l->n; i = end) {
		size_t last = i;

		for (end = i;
		     end < l->n && list_by_kind_and_stamp(&l->entries[i], &l->entries[end]) == 0;
		     end++)
			if (l->entries[end].there &&
			    l->entries[end].time_s > l->entries[last].time_s)
				last = end;
		for (size_t j = i; l->entries[i].kind != RUN_DIR && j < end; j++)
			l->entries[j].time_s = l->entries[last].time_s;
	}
}

void list_sort(struct list *l)
{
	int64_t now = (int64_t)time(NULL) + CLOCK_STEP_S;

	if (!l->n)
		return;
	join_times(l);
	for (size_t i = 0; i < l->n; i++) {
		struct entry *entry = &l->entries[i];

		entry->order_s = entry->time_s > now ? INT64_MIN : entry->time_s;
	}
	qsort(l->entries, l->n, sizeof(*l->entries), newest_first);
}

/* Of the window, or the files of runs, at [i, end): may they go? */
static bool may_go(const struct list *l, size_t i, size_t end, const struct keep *keep,
		   uint64_t nth, uint64_t bytes_newer, time_t now)
{
	uint64_t bytes = 0;
	int64_t newest = INT64_MIN;

	for (size_t j = i; j < end; j++) {
		bytes += l->entries[j].bytes;
		if (l->entries[j].there && l->entries[j].time_s > newest)
			newest = l->entries[j].time_s;
	}
	if (keep->age_s && newest != INT64_MIN && (int64_t)now - newest > (int64_t)keep->age_s)
		return true;
	if (keep->count && nth >= keep->count)
		return true;
	return keep->bytes && bytes_newer + bytes > keep->bytes;
}

/* Those at [i, end) that are side by side and go together. */
static size_t unit_end(const struct list *l, size_t i)
{
	const struct entry *first = &l->entries[i];
	size_t end = i + 1;

	while (first->kind != RUN_DIR && end < l->n && l->entries[end].kind == first->kind &&
	       strcmp(l->entries[end].stamp, first->stamp) == 0)
		end++;
	return end;
}

/* No window is newer than that at `i`, of entries in their order. */
static bool is_newest(const struct list *l, size_t i)
{
	while (i-- > 0)
		if (l->entries[i].kind == WINDOW)
			return false;
	return true;
}

static void remove_files(struct list *l, size_t i, size_t end, struct pruned *pruned)
{
	for (size_t j = i; j < end; j++) {
		struct entry *entry = &l->entries[j];

		int r;

		if (!entry->there || entry->held)
			continue;
		if (entry->kind == RUN_DIR) {
			entry->there = run_dir_remove(l, entry, pruned);
			continue;
		}
		if (entry->kind == WINDOW) {
			list_remove_window(l, entry, pruned);
			continue;
		}
		r = list_unlink(l, entry->name);
		if (r < 0) {
			pruned->failed++;
			pruned->error = r;
			continue;
		}
		list_remove_folder(l, entry->name);
		entry->there = false;
		pruned->files++;
		pruned->bytes += entry->bytes;
	}
}

/* What `keep` says may go of all entries, the window `but` excepted. */
static void remove_old(struct list *l, const struct keep *keep, const char *but,
		       struct pruned *pruned)
{
	uint64_t nth = 0, bytes_newer = 0;
	time_t now = time(NULL);

	list_sort(l);
	for (size_t i = 0, end; i < l->n; i = end) {
		enum entry_kind kind = l->entries[i].kind;
		bool is_but = but && kind == WINDOW && strcmp(l->entries[i].stamp, but) == 0;
		bool any = false;

		end = unit_end(l, i);
		for (size_t j = i; j < end; j++)
			any |= l->entries[j].there;
		if (kind == MAKING_DIR)
			continue;
		if (!is_but && may_go(l, i, end, keep, nth, bytes_newer, now))
			remove_files(l, i, end, pruned);
		for (size_t j = i; j < end; j++)
			bytes_newer += l->entries[j].there ? l->entries[j].bytes : 0;
		nth += (kind == WINDOW || kind == RUN_DIR) && any;
	}
}

/* With the list locked, open and read: it may have been replaced when this returns. */
int list_prune(struct list *l, const char *dir, const struct keep *keep, const char *but,
	       struct pruned *pruned, struct err *e)
{
	list_find_runs(l);
	if (list_look_at_unknown(l) < 0)
		return err_set(e, -ENOMEM, "out of memory for the list of %s", dir);
	if (!keep_is_all(keep))
		list_find_run_dirs(l);
	remove_old(l, keep, but, pruned);
	return list_save(l, dir, e);
}

/* Of a directory without a list. -ENOENT: there is no run below it either. */
static int prune_run_dirs(const char *dir, const struct keep *keep, struct pruned *pruned)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;

	l.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.dir_fd < 0)
		return -errno;
	list_find_run_dirs(&l);
	if (!l.n)
		return -ENOENT;
	remove_old(&l, keep, NULL, pruned);
	return 0;
}

int archive_prune(const char *dir, const struct keep *keep, struct pruned *pruned, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	struct err why = { 0 };
	int r = list_open(dir, false, &l, &why);

	if (r == 0) {
		r = list_read(&l, dir, e);
		return r < 0 ? r : list_prune(&l, dir, keep, NULL, pruned, e);
	}
	if (r == -ENOENT)
		r = prune_run_dirs(dir, keep, pruned);
	return r < 0 ? err_set(e, r, "%s", why.msg) : 0;
}

bool keep_makes_room(const char *dir, const struct keep *keep, uint64_t n)
{
	struct pruned pruned = { 0 };

	if (!keep_is_all(keep))
		archive_make_room(dir, n, &pruned, NULL);
	return pruned.files;
}

int archive_make_room(const char *dir, uint64_t n, struct pruned *pruned, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	int r = list_open(dir, false, &l, e);

	if (r == 0)
		r = list_read(&l, dir, e);
	if (r < 0)
		return r;
	list_find_runs(&l); /* what is at work stays in the list */
	list_sort(&l);
	for (size_t i = l.n, begin; n && i > 0; i = begin) {
		for (begin = i - 1; begin > 0 && unit_end(&l, begin - 1) > begin;)
			begin--;
		if (l.entries[begin].kind != WINDOW || is_newest(&l, begin))
			continue;
		remove_files(&l, begin, i, pruned);
		n--;
	}
	return list_save(&l, dir, e);
}
