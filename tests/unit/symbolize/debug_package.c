#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/debug_package.h"

static char dir[] = "/tmp/memscope-unit-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	put("libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n");
	put("liblzma5:amd64.list", "/usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1\n");
	put("sqlite3.list", "/usr/bin/sqlite3-old\n/usr/bin/sqlite3");
	put("openjdk-17-jre-headless:amd64.list", "/usr/lib/jvm/libjvm.so\n");
	put("liblzma5:amd64.md5sums", "/usr/bin/hidden\n");
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static const char *package_of(const char *path)
{
	static struct debug_package p;

	p.path = path;
	debug_packages_find(dir, &p, 1);
	return p.name;
}

static void a_package_has_its_symbols_in_dbgsym(void **state)
{
	assert_string_equal(package_of("/usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1"),
			    "liblzma5-dbgsym");
	assert_string_equal(package_of("/usr/bin/sqlite3"), "sqlite3-dbgsym");
}

static void some_packages_have_them_elsewhere(void **state)
{
	assert_string_equal(package_of("/usr/lib/jvm/libjvm.so"), "openjdk-17-dbg");
}

static void a_file_of_merged_usr_is_found_by_its_old_path(void **state)
{
	assert_string_equal(package_of("/usr/lib/x86_64-linux-gnu/libc.so.6"), "libc6-dbg");
}

static void only_a_whole_line_of_a_list_is_a_file(void **state)
{
	assert_string_equal(package_of("/usr/bin/sqlite"), "");
	assert_string_equal(package_of("/bin/sqlite3"), "");
	assert_string_equal(package_of("/usr/bin/hidden"), "");
	assert_string_equal(package_of("//anon"), "");
}

static void several_files_are_found_in_one_pass(void **state)
{
	struct debug_package p[] = { { .path = "/usr/bin/sqlite3" },
				     { .path = "/nowhere" },
				     { .path = "/lib/x86_64-linux-gnu/libc.so.6" } };

	debug_packages_find(dir, p, 3);
	assert_string_equal(p[0].name, "sqlite3-dbgsym");
	assert_string_equal(p[1].name, "");
	assert_string_equal(p[2].name, "libc6-dbg");
}

static void without_dpkg_nothing_is_found(void **state)
{
	struct debug_package p = { .path = "/usr/bin/sqlite3" };

	debug_packages_find("/nonexistent", &p, 1);
	assert_string_equal(p.name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_package_has_its_symbols_in_dbgsym),
		cmocka_unit_test(some_packages_have_them_elsewhere),
		cmocka_unit_test(a_file_of_merged_usr_is_found_by_its_old_path),
		cmocka_unit_test(only_a_whole_line_of_a_list_is_a_file),
		cmocka_unit_test(several_files_are_found_in_one_pass),
		cmocka_unit_test(without_dpkg_nothing_is_found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
