#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/homes.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char passwd[] = "/tmp/memscope-unit-homes-XXXXXX";
static struct passwd users[] = {
	{ .pw_uid = 0, .pw_dir = (char *)"/root" },
	{ .pw_uid = 1, .pw_dir = (char *)"/nonexistent" },
	{ .pw_uid = 1000, .pw_dir = (char *)"/home/ann" },
	{ .pw_uid = 2, .pw_dir = (char *)"/nonexistent" },
	{ .pw_uid = 3, .pw_dir = (char *)"/" },
	{ .pw_uid = 4, .pw_dir = NULL },
	{ .pw_uid = 1001, .pw_dir = (char *)"/home/bob" },
};
static uint32_t n_users = sizeof(users) / sizeof(*users), next, times;

void setpwent(void)
{
	next = 0;
	times++;
}

struct passwd *getpwent(void)
{
	return next < n_users ? &users[next++] : NULL;
}

void endpwent(void)
{
}

static uint32_t homes_at(uint64_t now_ns)
{
	uint32_t n;

	homes_of_users(passwd, now_ns, &n);
	return n;
}

static void homes_are_of_users_each_once_without_roots(void **state)
{
	const char *const *homes;
	uint32_t n;

	(void)state;
	homes = homes_of_users(passwd, 1, &n);
	assert_int_equal(n, 3);
	assert_string_equal(homes[0], "/home/ann");
	assert_string_equal(homes[1], "/home/bob");
	assert_string_equal(homes[2], "/nonexistent");
}

static void users_are_listed_again_when_the_file_changes_or_after_a_while(void **state)
{
	FILE *f;

	(void)state;
	times = 0;
	homes_at(HOMES_NS * 10);
	assert_int_equal(times, 1);
	n_users = 6;
	assert_int_equal(homes_at(HOMES_NS * 10 + HOMES_NS - 1), 3);
	assert_int_equal(times, 1);
	assert_int_equal(homes_at(HOMES_NS * 11), 2);
	assert_int_equal(times, 2);
	n_users = 7;
	f = fopen(passwd, "a");
	assert_non_null(f);
	fputs("bob", f);
	fclose(f);
	assert_int_equal(homes_at(HOMES_NS * 11 + 1), 3);
	assert_int_equal(times, 3);
	/* Where there is none, as in a container of one program, that is what it was. */
	unlink(passwd);
	assert_int_equal(homes_at(HOMES_NS * 11 + 2), 3);
	assert_int_equal(times, 4);
	homes_at(HOMES_NS * 11 + 3);
	assert_int_equal(times, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(homes_are_of_users_each_once_without_roots),
		cmocka_unit_test(users_are_listed_again_when_the_file_changes_or_after_a_while),
	};
	int fd = mkstemp(passwd);

	if (fd < 0)
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
