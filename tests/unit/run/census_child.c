#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/memory/census_child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

/* A pid that nobody has: of a child that was reaped. */
static pid_t nobody(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void what_the_child_cannot_do_comes_back_as_a_sentence(void **state)
{
	struct census_child c = { 0 };
	const struct census_result *found;

	(void)state;
	assert_null(census_ended(&c, 0));
	assert_int_equal(census_begin(&c, nobody(), 0, NULL), 0);
	found = census_ended(&c, PATIENCE_MS);
	assert_non_null(found);
	assert_true(found->error < 0);
	assert_true(strlen(found->sentence) > 0);
	assert_int_equal(c.kid, 0);
	census_child_fini(&c);
}

static void a_child_that_is_killed_is_an_error_of_that_census(void **state)
{
	struct census_child c = { 0 };
	const struct census_result *found;

	(void)state;
	assert_int_equal(census_begin(&c, nobody(), 0, NULL), 0);
	/* Whatever it had found by then: it is another's that never ends by itself. */
	assert_int_equal(waitpid(c.kid, NULL, 0), c.kid);
	c.kid = fork();
	if (c.kid == 0)
		for (;;)
			pause();
	assert_null(census_ended(&c, 0));
	kill(c.kid, SIGKILL);
	found = census_ended(&c, PATIENCE_MS);
	assert_non_null(found);
	assert_int_equal(found->error, -EIO);
	assert_non_null(strstr(found->sentence, "the target runs on"));
	census_child_fini(&c);
}

static void one_that_is_at_work_ends_with_its_owner(void **state)
{
	struct census_child c = { 0 };
	pid_t kid;

	(void)state;
	c.kid = fork();
	if (c.kid == 0)
		for (;;)
			pause();
	kid = c.kid;
	census_child_fini(&c);
	assert_int_equal(waitpid(kid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_child_cannot_do_comes_back_as_a_sentence),
		cmocka_unit_test(a_child_that_is_killed_is_an_error_of_that_census),
		cmocka_unit_test(one_that_is_at_work_ends_with_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
