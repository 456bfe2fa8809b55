#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proc/smaps.h"

struct seen {
	uint32_t n;
	struct smaps_entry entry[4];
	char path[4][64];
};

static int keep(void *ctx, const struct smaps_entry *entry)
{
	struct seen *seen = ctx;

	if (seen->n == 4)
		return -1;
	snprintf(seen->path[seen->n], sizeof(seen->path[0]), "%s", entry->map.path);
	seen->entry[seen->n++] = *entry;
	return 0;
}

static void read_text(const char *text, struct seen *seen)
{
	_cleanup_(fclosep) FILE *f = fmemopen((void *)text, strlen(text), "r");

	assert_non_null(f);
	*seen = (struct seen){ 0 };
	assert_int_equal(smaps_read(f, keep, seen), 0);
}

static void rows_belong_to_the_mapping_above_them(void **state)
{
	struct seen s;

	read_text("1000-3000 r-xp 00000000 fe:00 7    /bin/cat\n"
		  "Size:                  8 kB\nRss:    4 kB\nPss:       2 kB\n"
		  "Shared_Clean:       3 kB\nShared_Dirty:    1 kB\n"
		  "VmFlags: rd ex mr mw me sd \n"
		  "5000-6000 rw-p 00000000 00:00 0    [heap]\n"
		  "Size:  4 kB\nRss:  4 kB\nPrivate_Clean:  1 kB\nPrivate_Dirty:   3 kB\n"
		  "Anonymous:  4 kB\nAnonHugePages:         0 kB\nSwap:   8 kB\n",
		  &s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.path[0], "/bin/cat");
	assert_int_equal(s.entry[0].map.start, 0x1000);
	assert_int_equal(s.entry[0].size_kb, 8);
	assert_int_equal(s.entry[0].rss_kb, 4);
	assert_int_equal(s.entry[0].pss_kb, 2);
	assert_int_equal(s.entry[0].shared_kb, 4);
	assert_int_equal(s.entry[0].dirty_kb, 1);
	assert_int_equal(s.entry[0].anonymous_kb, MEM_UNKNOWN);
	assert_string_equal(s.path[1], "[heap]");
	assert_int_equal(s.entry[1].private_kb, 4);
	assert_int_equal(s.entry[1].dirty_kb, 3);
	assert_int_equal(s.entry[1].anonymous_kb, 4);
	assert_int_equal(s.entry[1].swap_kb, 8);
	assert_int_equal(s.entry[1].shared_kb, MEM_UNKNOWN);
}

static void what_is_no_mapping_is_left_out(void **state)
{
	struct seen s;

	read_text("Rss: 5 kB\n\nno mapping\n1000-2000 r--p 0 0:0 0\nRss: -3 kB\nRss: 4 kB", &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.entry[0].rss_kb, 4);
	assert_string_equal(s.path[0], "");
}

static void a_row_beyond_all_sizes_is_left_out_of_the_sum(void **state)
{
	struct seen s;

	read_text("1000-3000 r-xp 00000000 fe:00 7    /bin/cat\nShared_Clean: 3 kB\n"
		  "Shared_Dirty: 9223372036854775807 kB\nRss: 4 kB\n",
		  &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.entry[0].shared_kb, 3);
	assert_int_equal(s.entry[0].rss_kb, 4);
}

static void a_callback_that_returns_ends_the_reading(void **state)
{
	struct seen s = { .n = 4 };

	assert_int_equal(smaps_each(getpid(), keep, &s, NULL), -1);
}

struct wanted {
	uint64_t at;
	struct smaps_entry entry;
};

static int find(void *ctx, const struct smaps_entry *entry)
{
	struct wanted *w = ctx;

	if (entry->map.start <= w->at && w->at < entry->map.end)
		w->entry = *entry;
	return 0;
}

static void touched_pages_of_our_own_are_found(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	/* Shared, so that no neighbour is merged with it. */
	char *p = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct wanted w = { .at = (uintptr_t)p };

	assert_ptr_not_equal(p, MAP_FAILED);
	for (int i = 0; i < 16; i++)
		p[(size_t)i * page] = 1;
	assert_int_equal(smaps_each(getpid(), find, &w, NULL), 0);
	assert_int_equal(w.entry.size_kb, 64 * page / 1024);
	assert_int_equal(w.entry.rss_kb, 16 * page / 1024);
	assert_int_equal(w.entry.dirty_kb, 16 * page / 1024);
	munmap(p, 64 * page);
}

static void a_process_that_is_gone_is_said_to_be(void **state)
{
	struct err e = { 0 };
	struct seen s = { 0 };

	assert_int_equal(smaps_each(4194305, keep, &s, &e), -3);
	assert_string_equal(e.msg, "process 4194305 is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_belong_to_the_mapping_above_them),
		cmocka_unit_test(what_is_no_mapping_is_left_out),
		cmocka_unit_test(a_row_beyond_all_sizes_is_left_out_of_the_sum),
		cmocka_unit_test(a_callback_that_returns_ends_the_reading),
		cmocka_unit_test(touched_pages_of_our_own_are_found),
		cmocka_unit_test(a_process_that_is_gone_is_said_to_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
