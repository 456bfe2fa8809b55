/* Who is looked at again, and how often. */
#include "run/look_again.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct {
	uint32_t looks;
	uint32_t ready_after; /* looks; 0: at once */
	uint64_t last_ns;
} program;

static bool look(void *self, pid_t pid, uint64_t now_ns)
{
	(void)self;
	(void)pid;
	program.last_ns = now_ns;
	return program.looks++ >= program.ready_after;
}

static void begins(struct look_again *l, enum process_event_kind kind, bool target)
{
	look_again_process(l, &(struct process_event){ .kind = kind, .pid = 7, .target = target },
			   look, NULL, 1);
}

static void a_program_that_cannot_be_read_yet_is_looked_at_until_it_can(void **state)
{
	struct look_again l = { 0 };

	(void)state;
	memset(&program, 0, sizeof(program));
	program.ready_after = 3;
	begins(&l, PROCESS_EXEC, true);
	for (uint64_t t = 2; t < 10; t++)
		look_again_tick(&l, look, NULL, t);
	assert_int_equal(program.looks, 4);
	assert_int_equal(program.last_ns, 4);
	assert_int_equal(l.n, 0);
}

static void one_that_never_can_is_given_up(void **state)
{
	struct look_again l = { 0 };

	(void)state;
	memset(&program, 0, sizeof(program));
	program.ready_after = UINT32_MAX;
	begins(&l, PROCESS_ADDED, true);
	for (uint64_t t = 0; t < 2 * LOOK_AGAIN_TRIES; t++)
		look_again_tick(&l, look, NULL, t);
	assert_int_equal(program.looks, 1 + LOOK_AGAIN_TRIES);
	assert_int_equal(l.n, 0);
}

static void others_and_ends_are_not_looked_at(void **state)
{
	struct look_again l = { 0 };

	(void)state;
	memset(&program, 0, sizeof(program));
	begins(&l, PROCESS_EXEC, false);
	begins(&l, PROCESS_ENDED, true);
	assert_int_equal(program.looks, 0);
}

static void no_more_wait_than_there_is_room_for(void **state)
{
	struct look_again l = { 0 };

	(void)state;
	memset(&program, 0, sizeof(program));
	program.ready_after = UINT32_MAX;
	for (int i = 0; i < LOOK_AGAIN_MAX + 10; i++)
		begins(&l, PROCESS_EXEC, true);
	assert_int_equal(l.n, LOOK_AGAIN_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_cannot_be_read_yet_is_looked_at_until_it_can),
		cmocka_unit_test(one_that_never_can_is_given_up),
		cmocka_unit_test(others_and_ends_are_not_looked_at),
		cmocka_unit_test(no_more_wait_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
