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

#include "dir_fixture.h"

#include "symbolize/kernel_modules.h"

static void make(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, folder);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* 0: they have no number. */
static uint64_t sign_of(const char *list)
{
	char path[256];
	uint64_t sign;
	FILE *f;

	snprintf(path, sizeof(path), "%s/modules", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(list, f);
	fclose(f);
	return kernel_modules_read(path, dir, &sign) ? sign : 0;
}

static const char two[] = "ext4 1130496 1 - Live 0xffffffffc0a8b000\n"
			  "jbd2 204800 1 ext4, Live 0xffffffffc0a40000 (OE)\n";

static void their_number_is_the_same_until_one_is_loaded_or_removed(void **state)
{
	uint64_t sign;
	char path[256], other[256];

	(void)state;
	make("ext4");
	make("jbd2");
	sign = sign_of(two);
	assert_true(sign);
	/* Used more often. */
	assert_int_equal(sign_of("ext4 1130496 3 - Live 0xffffffffc0a8b000\n"
				 "jbd2 204800 2 ext4,ocfs2, Live 0xffffffffc0a40000 (OE)\n"),
			 sign);
	assert_true(sign_of("ext4 1130496 1 - Live 0xffffffffc0a8b000\n") != sign);
	assert_true(sign_of("ext4 1130496 1 - Live 0xffffffffc0a8b000\n"
			    "jbd2 204800 1 ext4, Live 0xffffffffc0a50000 (OE)\n") != sign);
	assert_true(sign_of("ext4 1134592 1 - Live 0xffffffffc0a8b000\n"
			    "jbd2 204800 1 ext4, Live 0xffffffffc0a40000 (OE)\n") != sign);
	assert_int_equal(sign_of(two), sign);
	/* Another one of the same size at the same place: its folder is a new one, while the old one's number is not used again. */
	snprintf(path, sizeof(path), "%s/jbd2", dir);
	snprintf(other, sizeof(other), "%s/removed", dir);
	assert_int_equal(rename(path, other), 0);
	make("jbd2");
	assert_true(sign_of(two) && sign_of(two) != sign);
}

static void what_is_hidden_or_on_its_way_has_none(void **state)
{
	uint64_t sign;

	(void)state;
	make("ext4");
	assert_int_equal(sign_of("ext4 1130496 1 - Live 0x0000000000000000\n"), 0);
	assert_int_equal(sign_of("ext4 1130496 1 - Loading 0xffffffffc0a8b000\n"), 0);
	assert_int_equal(sign_of(two), 0); /* one has no folder */
	assert_int_equal(sign_of("nonsense\n"), 0);
	assert_int_equal(sign_of(""), 0);
	assert_false(kernel_modules_read("/nonexistent", dir, &sign));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			their_number_is_the_same_until_one_is_loaded_or_removed, dir_fixture_begin,
			dir_fixture_end),
		cmocka_unit_test_setup_teardown(what_is_hidden_or_on_its_way_has_none,
						dir_fixture_begin, dir_fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
