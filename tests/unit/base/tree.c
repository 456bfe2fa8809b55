/* Which windows may go, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/tree.h"

static char dir[] = "/tmp/memscope-tree-XXXXXX";

static int setup(void **state)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static const char *path(const char *name)
{
	static char buf[256];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

static bool is_there(const char *name)
{
	return access(path(name), F_OK) == 0;
}

/* A file of `bytes`, last written `age_s` ago; `ours`: listed. */
static void make_file(const char *name, size_t bytes, int age_s, bool ours)
{
	struct timespec then[2] = { { .tv_sec = time(NULL) - age_s },
				    { .tv_sec = time(NULL) - age_s } };
	int fd;

	if (ours)
		assert_int_equal(tree_note(dir, name, NULL), 0);
	fd = open(path(name), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(futimens(fd, then), 0);
	close(fd);
}

static struct pruned prune(const char *what, const char *but)
{
	struct pruned pruned = { 0 };
	struct keep keep;
	struct err e = { 0 };

	assert_int_equal(keep_parse(what, "--keep", &keep, &e), 0);
	assert_int_equal(tree_prune(dir, &keep, but, &pruned, &e), 0);
	return pruned;
}

static void make_three(void)
{
	make_file("oncpu-20260101-000000.pb.gz", 100, 3000, true);
	make_file("offcpu-20260101-000000.pb.gz", 50, 3000, true);
	make_file("oncpu-20260101-000100.pb.gz", 200, 2000, true);
	make_file("oncpu-20260101-000200.pb.gz", 400, 1000, true);
}

static void an_age_a_number_and_a_size_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum keep_kind kind;
		uint64_t n;
	} good[] = {
		{ "30s", KEEP_SECONDS, 30 },      { "90m", KEEP_SECONDS, 5400 },
		{ "12h", KEEP_SECONDS, 43200 },   { "7d", KEEP_SECONDS, 604800 },
		{ "200", KEEP_WINDOWS, 200 },     { "500M", KEEP_BYTES, 524288000 },
		{ "2G", KEEP_BYTES, 2147483648 }, { "1K", KEEP_BYTES, 1024 },
	};
	static const char *const bad[] = { "",    "0",    "-1",  "7x",  "d7",
					   "7dd", "1.5d", " 7d", "7 d", "99999999999999999999" };
	struct keep keep;
	struct err e = { 0 };

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(keep_parse(good[i].text, "--keep", &keep, &e), 0);
		assert_int_equal(keep.kind, good[i].kind);
		assert_int_equal(keep.n, good[i].n);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(keep_parse(bad[i], "--keep", &keep, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "--keep"));
	}
}

static void what_is_older_goes_window_by_window(void **state)
{
	struct pruned pruned;

	make_three();
	pruned = prune("2500s", NULL);
	assert_int_equal(pruned.files, 2);
	assert_int_equal(pruned.bytes, 150);
	assert_false(is_there("oncpu-20260101-000000.pb.gz"));
	assert_false(is_there("offcpu-20260101-000000.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
	assert_int_equal(prune("2500s", NULL).files, 0);
}

static void a_number_of_windows_stays(void **state)
{
	make_three();
	assert_int_equal(prune("1", NULL).files, 3);
	assert_true(is_there("oncpu-20260101-000200.pb.gz"));
}

static void a_number_of_bytes_stays(void **state)
{
	make_three();
	assert_int_equal(prune("1K", NULL).files, 0);
	make_file("oncpu-20260101-000300.pb.gz", 400, 10, true);
	/* 400 + 400 + 200 fit, the 150 before them do not. */
	assert_int_equal(prune("1K", NULL).files, 2);
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
}

static void the_window_in_the_making_stays(void **state)
{
	make_three();
	assert_int_equal(prune("1s", "20260101-000000").files, 2);
	assert_true(is_there("offcpu-20260101-000000.pb.gz"));
	assert_false(is_there("oncpu-20260101-000200.pb.gz"));
}

static void what_is_not_listed_stays(void **state)
{
	make_three();
	make_file("oncpu-20250101-000000.pb.gz", 10, 9000, false);
	make_file("notes.txt", 10, 9000, false);
	assert_int_equal(prune("1s", NULL).files, 4);
	assert_true(is_there("oncpu-20250101-000000.pb.gz"));
	assert_true(is_there("notes.txt"));
}

static void a_list_that_was_tampered_with_leads_nowhere(void **state)
{
	FILE *f;

	make_three();
	make_file("notes.txt", 10, 9000, false);
	assert_int_equal(symlink("notes.txt", path("oncpu-20250101-000000.svg")), 0);
	f = fopen(path(".memscope"), "a");
	assert_non_null(f);
	fputs("notes.txt\n../notes.txt\n/etc/passwd\nx-20250101-000000/../notes.txt\n"
	      "oncpu-20250101-000000.svg\noncpu-2025010a-000000.svg\n-20250101-000000.svg\n\n",
	      f);
	fclose(f);
	assert_int_equal(prune("1s", NULL).files, 4);
	assert_true(is_there("notes.txt"));
	assert_true(is_there("oncpu-20250101-000000.svg"));
}

static void a_name_is_listed_before_its_file_is_there(void **state)
{
	make_three();
	assert_int_equal(tree_note(dir, "oncpu-20260101-000300.pb.gz", NULL), 0);
	assert_int_equal(prune("7d", NULL).files, 0);
	make_file("oncpu-20260101-000300.pb.gz", 10, 9000, false);
	assert_int_equal(prune("8000s", NULL).files, 1);
	assert_int_equal(tree_note(dir, "notes.txt", NULL), -EINVAL);
	assert_int_equal(tree_note(dir, "../oncpu-20260101-000300.pb.gz", NULL), -EINVAL);
}

static void a_directory_without_a_list_is_said_to_have_none(void **state)
{
	struct keep keep = { KEEP_SECONDS, 1 };
	struct pruned pruned = { 0 };

	assert_int_equal(tree_prune(dir, &keep, NULL, &pruned, NULL), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_age_a_number_and_a_size_are_told_apart),
		TEST(what_is_older_goes_window_by_window),
		TEST(a_number_of_windows_stays),
		TEST(a_number_of_bytes_stays),
		TEST(the_window_in_the_making_stays),
		TEST(what_is_not_listed_stays),
		TEST(a_list_that_was_tampered_with_leads_nowhere),
		TEST(a_name_is_listed_before_its_file_is_there),
		TEST(a_directory_without_a_list_is_said_to_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
