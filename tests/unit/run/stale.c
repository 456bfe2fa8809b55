/* What a run takes away that an earlier one has left in the same directory, and what is the user's. */
#include "run/stale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/memscope-unit-stale-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static bool is_there(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void files_of_the_run_before_go_and_those_of_the_user_stay(void **state)
{
	static const char *const all[] = { "oncpu.pb.gz",           "offcpu.pb.gz",
					   "page-faults.pb.gz",     "baseline.pb.gz",
					   "baseline.svg",          "notes.txt",
					   "summary.json",          "rss-20261122-195000.pb.gz",
					   "listed-and-written.svg" };
	static const char *const written[] = { "summary.json", "oncpu.pb.gz",
					       "listed-and-written.svg" };
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		put(all[i], "x");
	put(".memscope",
	    ":oncpu.pb.gz\n:page-faults.pb.gz\n:gone.pb.gz\n:../escape\n:listed-and-written.svg\n"
	    ":rss-20261122-195000.pb.gz\n=trend.csv\nnotes.txt\n");
	stale_remove(dir, written, 3, &removed);
	assert_string_equal(removed.s, "page-faults.pb.gz offcpu.pb.gz");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		assert_int_equal(is_there(all[i]), strcmp(all[i], "page-faults.pb.gz") != 0 &&
							   strcmp(all[i], "offcpu.pb.gz") != 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", dir, all[i]);
		unlink(path);
	}
}

static void without_a_list_only_names_that_are_always_ours_go(void **state)
{
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	put("baseline.pb.gz", "x");
	put("summary.txt", "x");
	stale_remove(dir, NULL, 0, &removed);
	assert_string_equal(removed.s, "summary.txt");
	assert_true(is_there("baseline.pb.gz"));
}

/* Whoever may write there could name anything in a directory that others use, too. */
static void a_list_that_others_can_have_written_names_nothing_of_ours(void **state)
{
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };
	char path[512];

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	put("payroll.db", "x");
	put(".memscope", ":payroll.db\n");
	snprintf(path, sizeof(path), "%s/.memscope", dir);
	assert_int_equal(chmod(path, 0666), 0);
	stale_remove(dir, NULL, 0, &removed);
	assert_true(is_there("payroll.db"));
	assert_int_equal(chmod(path, 0600), 0);
	stale_remove(dir, NULL, 0, &removed);
	assert_false(is_there("payroll.db"));
}

static void what_a_killed_run_was_about_to_name_goes(void **state)
{
	static const char *const ours[] = { ".oncpu.svg.a1B2c3", ".summary.json.zzzzzz",
					    ".page-faults.svg.000000" };
	static const char *const theirs[] = { ".oncpu.svg.a1b2c",  ".oncpu.svg.a1b2c3d",
					      ".notes.txt.abcdef", ".oncpu.svg.a1b2-3",
					      "oncpu.svg.a1b2c3",  ".profile.config" };
	static const char *const written[] = { "page-faults.svg" };
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		put(ours[i], "x");
	for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++)
		put(theirs[i], "x");
	stale_remove(dir, written, 1, &removed);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		assert_false(is_there(ours[i]));
	for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++)
		assert_true(is_there(theirs[i]));
	assert_int_equal(removed.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_the_run_before_go_and_those_of_the_user_stay),
		cmocka_unit_test(a_list_that_others_can_have_written_names_nothing_of_ours),
		cmocka_unit_test(without_a_list_only_names_that_are_always_ours_go),
		cmocka_unit_test(what_a_killed_run_was_about_to_name_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
