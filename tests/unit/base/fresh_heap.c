#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fresh_heap.h"

enum { PIECES = 2000, BYTES = 2000, OURS = 3, THEIRS = 4 };

static char *pieces[PIECES];

/* Every second one is free again, so that none of them grows together with its neighbours. */
static void leave_gaps(void)
{
	for (int i = 0; i < PIECES; i++)
		pieces[i] = malloc(BYTES);
	for (int i = 0; i < PIECES; i += 2)
		free(pieces[i]);
}

static int whose_memory(void)
{
	const char *at = malloc(BYTES);

	for (int i = 0; i < PIECES; i += 2)
		if (at == pieces[i])
			return THEIRS;
	return at ? OURS : EXIT_FAILURE;
}

static void end_with_whose(void *ctx)
{
	(void)ctx;
	_exit(whose_memory());
}

static int status_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void what_a_child_allocates_is_not_among_what_its_parent_had_freed(void **state)
{
	pid_t pid;

	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip(); /* its allocator is another */
#endif
	if (getenv("MEMSCOPE_VALGRIND"))
		skip();
	leave_gaps();
	pid = fork();
	if (pid == 0)
		_exit(whose_memory());
	assert_int_equal(status_of(pid), THEIRS);
	pid = fork();
	if (pid == 0) {
		with_fresh_heap(end_with_whose, NULL);
		_exit(EXIT_FAILURE);
	}
	assert_int_equal(status_of(pid), OURS);
}

static void note(void *ctx)
{
	*(int *)ctx += 1;
}

static void what_returns_has_been_waited_for(void **state)
{
	int called = 0;

	(void)state;
	with_fresh_heap(note, &called);
	assert_int_equal(called, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_child_allocates_is_not_among_what_its_parent_had_freed),
		cmocka_unit_test(what_returns_has_been_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
