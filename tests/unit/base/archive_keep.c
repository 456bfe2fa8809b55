/* Which windows are the oldest, whatever the clock has said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dir_fixture.h"

#include "base/archive.h"

static struct archive *run;

static int setup(void **state)
{
	static const char *const no_files[] = { NULL };

	(void)state;
	return dir_fixture_begin(state) == 0 && archive_open(dir, "20260101-000000", no_files,
							     &(struct keep){ 0 }, &run, NULL) == 0
		       ? 0
		       : -1;
}

static int teardown(void **state)
{
	archive_close(run);
	run = NULL;
	return dir_fixture_end(state);
}

/* A window that was written `age_s` ago. */
static void make_window(const char *stamp, int64_t age_s)
{
	static const struct keep keep_all = { 0 };
	const struct timespec at = { .tv_sec = time(NULL) - age_s }, then[2] = { at, at };
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/oncpu-%s.pb.gz", archive_making(run), stamp);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, then), 0);
	close(fd);
	assert_int_equal(archive_commit(run, stamp, &keep_all, NULL), 0);
}

static uint64_t prune_to(uint64_t count)
{
	const struct keep keep = { .count = count };
	struct pruned pruned = { 0 };

	assert_int_equal(archive_prune(dir, &keep, &pruned, NULL), 0);
	return pruned.files;
}

static bool is_there(const char *stamp)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/oncpu-%s.pb.gz", dir, stamp);
	return access(path, F_OK) == 0;
}

/* In the night of 25 October 2026 clocks go back, and a computer may be taken to where it is earlier. */
static void of_an_hour_that_comes_twice_the_second_stays(void **state)
{
	(void)state;
	make_window("20261025-020000", 7200);
	make_window("20261025-025800", 3720);
	make_window("20261025-020100", 3540);
	make_window("20261025-020300", 3420);
	assert_int_equal(prune_to(2), 2);
	assert_true(is_there("20261025-020100"));
	assert_true(is_there("20261025-020300"));
}

/* As after a start with a clock that was years fast: windows of today would go at once, and those stay for years. */
static void what_was_written_later_than_now_goes_first(void **state)
{
	(void)state;
	make_window("20300101-000000", -100000000);
	make_window("20300101-000200", -100000120);
	make_window("20260101-000000", 500);
	make_window("20260101-000200", 380);
	assert_int_equal(prune_to(3), 1);
	assert_true(is_there("20300101-000200"));
	assert_int_equal(prune_to(2), 1);
	assert_true(is_there("20260101-000000"));
	assert_true(is_there("20260101-000200"));
}

static void a_disk_that_is_full_takes_what_was_written_first(void **state)
{
	struct pruned pruned = { 0 };

	(void)state;
	make_window("20261025-025800", 3720);
	make_window("20261025-020100", 3540);
	assert_int_equal(archive_make_room(dir, 1, &pruned, NULL), 0);
	assert_int_equal(pruned.files, 1);
	assert_true(is_there("20261025-020100"));
}

/* Another name of a file that is not ours must not be written through, nor one that nobody reads be waited for. */
static void a_list_written_anew_is_a_file_of_its_own(void **state)
{
	char new[512], other[512];
	struct stat st;

	(void)state;
	snprintf(new, sizeof(new), "%s/.memscope.new", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	make_window("20260101-000000", 500);
	make_window("20260101-000200", 380);
	close(open(other, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(truncate(other, 77), 0);
	assert_int_equal(link(other, new), 0);
	assert_int_equal(prune_to(1), 1);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 77);
	make_window("20260101-000400", 260);
	assert_int_equal(mkfifo(new, 0600), 0);
	alarm(10);
	assert_int_equal(prune_to(1), 1);
	alarm(0);
	assert_true(is_there("20260101-000400"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_an_hour_that_comes_twice_the_second_stays),
		TEST(what_was_written_later_than_now_goes_first),
		TEST(a_list_written_anew_is_a_file_of_its_own),
		TEST(a_disk_that_is_full_takes_what_was_written_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
