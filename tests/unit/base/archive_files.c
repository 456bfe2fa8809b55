/* The files of a window, in few bytes and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/archive_files.h"

#define STAMP "20260101-000000"

static struct archive_folders folders;
static struct window_files files;
static struct strbuf out;

static int teardown(void **state)
{
	(void)state;
	window_files_fini(&files);
	archive_folders_fini(&folders);
	strbuf_free(&out);
	return 0;
}

static void add(const char *name)
{
	assert_int_equal(window_files_add(&files, &folders, name), 0);
}

static int join(void *ctx, const char *name)
{
	(void)ctx;
	strbuf_printf(&out, "%s ", name);
	return 0;
}

static void names_that_folders_share_stand_once(void **state)
{
	(void)state;
	for (int i = 1; i <= 50; i++) {
		char name[64];

		for (int kind = 0; kind < 2; kind++) {
			snprintf(name, sizeof(name), "web-%d/%s-" STAMP ".pb.gz", i,
				 kind ? "offcpu" : "oncpu");
			add(name);
		}
	}
	add("oncpu-" STAMP ".pb.gz");
	add("offcpu-" STAMP ".pb.gz");
	add("web-7/growth-" STAMP ".pb.gz");
	assert_int_equal(window_files_print(&files, &out), 103);
	assert_string_equal(out.s, "growth-.pb.gz,offcpu-.pb.gz,oncpu-.pb.gz:7;"
				   "offcpu-.pb.gz,oncpu-.pb.gz:0-6,8-50;");
	assert_int_equal(window_groups_count(out.s, &folders, STAMP), 103);
	assert_true(window_groups_have(out.s, 7, "growth-" STAMP ".pb.gz"));
	assert_false(window_groups_have(out.s, 8, "growth-" STAMP ".pb.gz"));
	assert_true(window_groups_have(out.s, 50, "oncpu-" STAMP ".pb.gz"));
	assert_false(window_groups_have(out.s, 50, "oncpu-" STAMP ".svg"));
	assert_false(window_groups_have(out.s, 51, "oncpu-" STAMP ".pb.gz"));
}

static void each_file_has_its_name_again(void **state)
{
	static const char text[] = "a_b_c-.pb.gz,oncpu-.svg:0,2;x%2Cy%3A%25-.pb.gz:1;";

	(void)state;
	assert_int_equal(archive_folders_set(&folders, 1, "db;:,"), 0);
	assert_int_equal(archive_folders_set(&folders, 2, "web"), 0);
	assert_int_equal(window_groups_count(text, &folders, STAMP "-2"), 5);
	assert_int_equal(window_groups_each(text, &folders, STAMP "-2", join, NULL), 0);
	assert_string_equal(out.s, "a_b_c-" STAMP "-2.pb.gz oncpu-" STAMP "-2.svg "
				   "web/a_b_c-" STAMP "-2.pb.gz web/oncpu-" STAMP "-2.svg "
				   "db;:,/x,y:%-" STAMP "-2.pb.gz ");
	strbuf_reset(&out);
	add("db;:,/x,y:%-" STAMP ".pb.gz");
	window_files_print(&files, &out);
	assert_string_equal(out.s, "x%2Cy%3A%25-.pb.gz:1;");
	assert_true(window_groups_have(out.s, 1, "x,y:%-" STAMP ".pb.gz"));
}

static void a_file_is_counted_once(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		add("oncpu-" STAMP ".pb.gz");
	assert_int_equal(window_files_print(&files, &out), 1);
	assert_string_equal(out.s, "oncpu-.pb.gz:0;");
}

static void what_is_no_window_s_file_is_refused(void **state)
{
	static const char *const bad[] = { "notes.txt",
					   "a/b/oncpu-" STAMP ".pb.gz",
					   "../oncpu-" STAMP ".pb.gz",
					   "/oncpu-" STAMP ".pb.gz",
					   "-" STAMP ".pb.gz",
					   "oncpu-2026010a-000000.pb.gz" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(window_files_add(&files, &folders, bad[i]), -EINVAL);
	assert_int_equal(files.n, 0);
}

static void groups_that_lead_elsewhere_or_are_cut_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"oncpu-.pb.gz:0",
		"oncpu-.pb.gz;",
		":0;",
		"oncpu-.pb.gz:;",
		"oncpu-.pb.gz:2;",   /* nobody's number */
		"oncpu-.pb.gz:0-2;", /* … among others  */
		"oncpu-.pb.gz:1-0;",
		"oncpu-.pb.gz:-1;",
		"oncpu-.pb.gz: 1;",
		"oncpu-.pb.gz:0,;x-.pb.gz",
		"oncpu-.pb.gz:99999999999999999999;",
		"oncpu-.pb.gz:0-99999999;",
		"oncpu.pb.gz:0;",
		"notes.txt:0;",
		"../x-.pb.gz:0;",
		"..%2Fx-.pb.gz:0;",
		"x/y-.pb.gz:0;",
		".x-.pb.gz:0;",
		"x%2-.pb.gz:0;",
		"x%-.pb.gz:0;",
		"x%00-.pb.gz:0;",
		"x%0A-.pb.gz:0;",
		",oncpu-.pb.gz:0;",
	};

	(void)state;
	assert_int_equal(archive_folders_set(&folders, 1, "web"), 0);
	assert_int_equal(window_groups_count("oncpu-.pb.gz:0-1;", &folders, STAMP), 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (window_groups_count(bad[i], &folders, STAMP) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
}

static void a_folder_keeps_its_number(void **state)
{
	(void)state;
	assert_int_equal(archive_folders_add(&folders, "web"), 1);
	assert_int_equal(archive_folders_add(&folders, "db"), 2);
	assert_int_equal(archive_folders_add(&folders, "web"), 1);
	assert_int_equal(archive_folders_set(&folders, 2, "web"), -EINVAL);
	assert_int_equal(archive_folders_set(&folders, 2, "db"), 0);
	assert_int_equal(archive_folders_set(&folders, 100, "far"), 0);
	assert_int_equal(archive_folders_add(&folders, "next"), 3);
	assert_int_equal(archive_folders_find(&folders, "far"), 100);
	assert_int_equal(archive_folders_find(&folders, "none"), -ENOENT);
	assert_int_equal(archive_folders_set(&folders, 4, "../etc"), -EINVAL);
	assert_int_equal(archive_folders_set(&folders, 4, "a/b"), -EINVAL);
	assert_int_equal(archive_folders_set(&folders, 4, ""), -EINVAL);
	assert_int_equal(archive_folders_set(&folders, 0, "x"), -EINVAL);
	assert_int_equal(archive_folders_set(&folders, 1ull << 40, "x"), -EINVAL);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_that_folders_share_stand_once),
		TEST(each_file_has_its_name_again),
		TEST(a_file_is_counted_once),
		TEST(what_is_no_window_s_file_is_refused),
		TEST(groups_that_lead_elsewhere_or_are_cut_are_refused),
		TEST(a_folder_keeps_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
