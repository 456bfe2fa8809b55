/* A file appears under its name when it is complete; until then there is nothing. */
#include "base/new_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char folder[64], path[128];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/memscope-new-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x", folder);
	return 0;
}

/* Fails where anything but x is left. */
static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_text(const char *text, bool commit)
{
	struct new_file f;
	struct err e = { 0 };

	assert_int_equal(new_file_open(path, &f, &e), 0);
	assert_int_equal(new_file_put(&f, 2, text, strlen(text)), 0);
	assert_true(!commit || new_file_commit(&f, &e) == 0);
	new_file_close(&f);
}

static void what_is_committed_has_its_name_and_is_private(void **state)
{
	char text[8] = "";
	struct stat st;
	FILE *f;

	(void)state;
	write_text("abc", true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 5);
	f = fopen(path, "re");
	assert_int_equal(fread(text, 1, sizeof(text), f), 5);
	fclose(f);
	assert_string_equal(text + 2, "abc");
}

static void what_is_not_committed_is_not_there(void **state)
{
	(void)state;
	write_text("abc", false);
	assert_int_equal(access(path, F_OK), -1);
}

static void the_older_one_is_replaced_by_what_is_complete(void **state)
{
	struct stat st;

	(void)state;
	write_text("a longer text", true);
	write_text("abc", false);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 15);
	write_text("abc", true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 5);
}

static void what_does_not_fit_is_said_with_both_figures(void **state)
{
	struct new_file f;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(new_file_open(path, &f, &e), 0);
	assert_int_equal(new_file_check_room(&f, "a snapshot", 1, &e), 0);
	assert_int_equal(new_file_check_room(&f, "a snapshot", 1ull << 60, &e), -ENOSPC);
	assert_non_null(
		strstr(e.msg, "a snapshot of about 1099511627776 MiB does not fit into the "));
	new_file_close(&f);
}

static void a_folder_or_a_device_is_no_place_for_it(void **state)
{
	struct new_file f;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(new_file_open(folder, &f, &e), -EEXIST);
	new_file_close(&f);
	assert_int_equal(new_file_open("/dev/null", &f, &e), -EEXIST);
	new_file_close(&f);
	assert_int_equal(new_file_open("/nowhere/x", &f, &e), -ENOENT);
	new_file_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		FACT(what_is_committed_has_its_name_and_is_private),
		FACT(what_is_not_committed_is_not_there),
		FACT(the_older_one_is_replaced_by_what_is_complete),
		FACT(what_does_not_fit_is_said_with_both_figures),
		FACT(a_folder_or_a_device_is_no_place_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
