/* The list of an archive on a disk that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dir_fixture.h"

#include "base/archive.h"
#include "base/archive_list.h"

static const char *const no_files[] = { NULL };
static const struct keep keep_all = { 0 };

static struct archive *run;

static const char *path(const char *name)
{
	static char buf[256];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

static void make_window(const char *stamp, const struct keep *keep)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/oncpu-%s.pb.gz", archive_making(run), stamp);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(archive_commit(run, stamp, keep, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	return dir_fixture_begin(state) == 0 && archive_open(dir, "20260101-000000", no_files,
							     &keep_all, &run, NULL) == 0
		       ? 0
		       : -1;
}

static int teardown(void **state)
{
	archive_close(run);
	run = NULL;
	return dir_fixture_end(state);
}

static bool has_room(void)
{
	struct stat st;

	assert_int_equal(stat(path(".memscope"), &st), 0);
	return st.st_blocks * 512 >= st.st_size + LIST_SLACK;
}

static void there_is_room_to_say_what_went(void **state)
{
	const struct keep one = { .count = 1 };
	int fd = open(path("tried"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int r = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4096);

	(void)state;
	close(fd);
	unlink(path("tried"));
	if (r < 0)
		skip(); /* a file system that cannot */
	make_window("20260101-000100", &keep_all);
	assert_true(has_room());
	make_window("20260101-000200", &keep_all);
	make_window("20260101-000300", &one); /* the list is written anew */
	assert_true(has_room());
}

static unsigned missing;

static int count_missing(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	missing++;
	return 0;
}

static void where_it_cannot_be_written_anew_lines_say_what_went(void **state)
{
	struct pruned pruned = { 0 };

	(void)state;
	make_window("20260101-000100", &keep_all);
	make_window("20260101-000200", &keep_all);
	make_window("20260101-000300", &keep_all);
	assert_int_equal(mkdir(path(".memscope.new"), 0700), 0); /* in its way, as a full disk is */
	assert_int_equal(archive_make_room(dir, 2, &pruned, NULL), 0);
	assert_int_equal(pruned.files, 2);
	missing = 0;
	assert_int_equal(archive_each_missing(dir, count_missing, NULL), 0);
	assert_int_equal(missing, 0);
	assert_int_equal(access(path("oncpu-20260101-000300.pb.gz"), F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_is_room_to_say_what_went, setup, teardown),
		cmocka_unit_test_setup_teardown(where_it_cannot_be_written_anew_lines_say_what_went,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
