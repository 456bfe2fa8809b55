#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/perf_map.h"

static const uint64_t asked[] = { 0x1000, 0x100f, 0x1010, 0x2000, 0x7fff00000008 };

enum { N = sizeof(asked) / sizeof(asked[0]) };

static struct perf_map *map;

static int parse(const char *text)
{
	perf_map_free(map);
	map = NULL;
	return perf_map_parse(text, strlen(text), asked, N, &map);
}

static void assert_name(uint64_t vaddr, const char *want)
{
	size_t len;
	const char *name = perf_map_find(map, vaddr, &len);

	if (!want) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(name, want, len);
}

static int teardown(void **state)
{
	perf_map_free(map);
	map = NULL;
	return 0;
}

static void a_line_names_its_addresses_and_no_others(void **state)
{
	assert_int_equal(parse("1000 10 JS:*fib /app.js:3:19\n7fff00000000 9 Interpreter\n"), 0);
	assert_name(0x1000, "JS:*fib /app.js:3:19");
	assert_name(0x100f, "JS:*fib /app.js:3:19");
	assert_name(0x1010, NULL);
	assert_name(0x2000, NULL);
	assert_name(0x7fff00000008, "Interpreter");
	assert_name(0x1001, NULL); /* was not asked for */
}

static void numbers_of_java_have_a_prefix(void **state)
{
	assert_int_equal(parse("0x0000000000001000 0x0000000000000010 int Hot.fib(int)\n"), 0);
	assert_name(0x1000, "int Hot.fib(int)");
}

static void the_last_line_wins_where_memory_was_used_again(void **state)
{
	assert_int_equal(parse("1000 20 old\n1000 10 new\n2000 1 other\n"), 0);
	assert_name(0x1000, "new");
	assert_name(0x100f, "new");
	assert_name(0x1010, "old");
}

static void a_line_still_being_written_does_not_count(void **state)
{
	assert_int_equal(parse("1000 10 whole\n1000 10 ha"), 0);
	assert_name(0x1000, "whole");
}

static void lines_that_are_none_are_passed_over(void **state)
{
	assert_int_equal(parse("\nnonsense\n1000\n1000 10\n1000 10 \n1000 zz name\n 1000 10 name\n"
			       "11111111111111111 10 long\n1000 10 good\r\n1000 0 empty\n"),
			 0);
	assert_name(0x1000, "good");
}

static void a_range_past_the_end_of_memory_is_no_harm(void **state)
{
	assert_int_equal(parse("1000 ffffffffffffffff all\n"), 0);
	assert_name(0x2000, "all");
	assert_name(0x7fff00000008, "all");
}

static void a_map_of_other_addresses_says_nothing(void **state)
{
	assert_int_equal(parse("3000 10 elsewhere\n"), -ENOENT);
	assert_int_equal(parse(""), -ENOENT);
}

static void a_file_is_read_whole(void **state)
{
	int fd = memfd_create("perf.map", MFD_CLOEXEC);

	for (int i = 0; i < 100000; i++)
		dprintf(fd, "%x 10 f%d\n", 0x10000 + 16 * i, i);
	dprintf(fd, "2000 4 last\n");
	perf_map_free(map);
	map = NULL;
	assert_int_equal(perf_map_read(fd, asked, N, &map), 0);
	assert_name(0x2000, "last");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_names_its_addresses_and_no_others),
		cmocka_unit_test(numbers_of_java_have_a_prefix),
		cmocka_unit_test(the_last_line_wins_where_memory_was_used_again),
		cmocka_unit_test(a_line_still_being_written_does_not_count),
		cmocka_unit_test(lines_that_are_none_are_passed_over),
		cmocka_unit_test(a_range_past_the_end_of_memory_is_no_harm),
		cmocka_unit_test(a_map_of_other_addresses_says_nothing),
		cmocka_unit_test(a_file_is_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
