#include "import/windows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>

#include <cmocka.h>

#include "windows_fixture.h"

static struct windows w;
static struct err e;

static void files_of_one_stamp_are_one_window_with_its_sources(void **state)
{
	char names[64];

	window_file("oncpu", "20261122-194800", 0, 120);
	window_file("offcpu", "20261122-194800", 0, 120);
	window_file("oncpu", "20261122-195000", 0, 120);
	trigger_file("oncpu", "rss_4G", "20261122-195000", 30);
	profile_file("sites-20261122-190000.pb.gz", NS, NS);
	profile_file("oncpu-20261122-195000.folded", NS, NS);
	profile_file("oncpu.pb.gz", NS, NS);
	assert_int_equal(windows_read(windows_dir, NULL, &w, &e), 0);
	assert_int_equal(w.n, 3);
	assert_string_equal(w.all[0].stamp, "20261122-194800");
	windows_list_sources(&w, w.all[0].sources, names, sizeof(names));
	assert_non_null(strstr(names, "oncpu"));
	assert_non_null(strstr(names, "offcpu"));
	assert_string_equal(w.all[1].word, "");
	assert_string_equal(w.all[2].word, "rss_4G");
	assert_int_equal(w.all[2].sources, 1u << windows_source(&w, "oncpu"));
	assert_int_equal(windows_source(&w, "sites"), -1);
	windows_fini(&w);
}

static void windows_are_by_time_and_those_of_one_second_by_number(void **state)
{
	window_file("oncpu", "20261122-195000-10", 0, 1);
	window_file("oncpu", "20261122-195000-2", 0, 1);
	window_file("oncpu", "20261122-195000", 0, 1);
	assert_int_equal(windows_read(windows_dir, "", &w, &e), 0);
	assert_int_equal(w.n, 3);
	assert_string_equal(w.all[0].stamp, "20261122-195000");
	assert_string_equal(w.all[1].stamp, "20261122-195000-2");
	assert_string_equal(w.all[2].stamp, "20261122-195000-10");
	windows_fini(&w);
}

static void begin_and_end_are_those_of_any_profile_that_can_be_read(void **state)
{
	char path[256];

	profile_file("web/alloc-20261122-195000.pb.gz", NS, NS);
	profile_file("web/oncpu-20261122-195000.pb.gz", stamp_time("20261122-195000") * NS + 5, 7);
	assert_int_equal(windows_read(windows_dir, "web", &w, &e), 0);
	assert_int_equal(w.n, 1);
	windows_path(&w, 0, (uint32_t)windows_source(&w, "alloc"), ".pb.gz", path, sizeof(path));
	assert_non_null(strstr(path, "/web/alloc-20261122-195000.pb.gz"));
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(windows_measure(&w, 0, &e), 0);
	assert_true(w.all[0].begin_ns == stamp_time("20261122-195000") * NS + 5);
	assert_true(w.all[0].end_ns == w.all[0].begin_ns + 7);
	windows_fini(&w);
}

static void a_window_none_of_whose_profiles_can_be_read_says_which(void **state)
{
	char path[256];

	window_file("oncpu", "20261122-195000", 0, 1);
	assert_int_equal(windows_read(windows_dir, NULL, &w, &e), 0);
	windows_path(&w, 0, 0, ".pb.gz", path, sizeof(path));
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(windows_measure(&w, 0, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "oncpu-20261122-195000.pb.gz"));
	windows_fini(&w);
	assert_int_equal(windows_read(windows_dir, "nothing", &w, &e), -ENOENT);
	windows_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, windows_dir_make, windows_dir_remove)
		TEST(files_of_one_stamp_are_one_window_with_its_sources),
		TEST(windows_are_by_time_and_those_of_one_second_by_number),
		TEST(begin_and_end_are_those_of_any_profile_that_can_be_read),
		TEST(a_window_none_of_whose_profiles_can_be_read_says_which),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
