/*
 * The list of a directory of windows, which a crash, or another program, may have damaged: each window that is read has as many files as
 * it says, and the list written anew has the same windows.
 */
#include "base/archive_list.h"

#include "base/hash.h"
#include "scratch_folder.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The windows as one number, whatever their order. Those of an older memscope have neither bytes nor time, and go: their files are
 * not there. */
static uint64_t sum_of(const struct list *l, uint64_t *ret_n)
{
	uint64_t sum = 0;

	*ret_n = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct entry *w = &l->entries[i];
		const uint64_t numbers[] = { w->bytes, (uint64_t)w->time_s, w->files };

		if (w->kind != WINDOW)
			continue;
		if (!is_stamp(w->stamp, strlen(w->stamp)) || !w->there || !w->files ||
		    (!w->unknown &&
		     window_groups_count(w->groups, &l->folders, w->stamp) != (int64_t)w->files))
			abort();
		if (w->unknown)
			continue;
		sum += content_hash(numbers, sizeof(numbers)) +
		       3 * content_hash(w->groups, strlen(w->groups)) +
		       5 * content_hash(w->stamp, strlen(w->stamp));
		++*ret_n;
	}
	return sum;
}

static uint64_t read_list(bool rewrite, uint64_t *ret_n)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	const char *dir = scratch_folder();
	struct err e = { 0 };
	uint64_t sum;

	if (list_open(dir, false, &l, &e) < 0 || list_read(&l, dir, &e) < 0)
		abort();
	sum = sum_of(&l, ret_n);
	l.old = true;
	if (rewrite && list_save(&l, dir, &e) < 0)
		abort();
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t n, again, sum;

	scratch_write(ARCHIVE_LIST, data, size);
	sum = read_list(true, &n);
	if (read_list(false, &again) != sum || again != n)
		abort();
	return 0;
}
