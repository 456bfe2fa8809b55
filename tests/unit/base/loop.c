#include "base/loop.h"
#include "base/clock.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
	struct loop *loop;
	char order[64];
	int calls, end_after, signal;
	uint64_t due_ns;
	int fd;
};

static void note(struct seen *s, char what)
{
	size_t n = strlen(s->order);

	if (n + 1 < sizeof(s->order))
		s->order[n] = what;
	if (++s->calls >= s->end_after)
		loop_end(s->loop);
}

static int on_fd(void *ctx, struct err *e)
{
	struct seen *s = ctx;
	char c;

	assert_int_equal(read(s->fd, &c, 1), 1);
	note(s, 'f');
	return 0;
}

static int on_time(void *ctx, struct err *e)
{
	note(ctx, 't');
	return 0;
}

static int on_due(void *ctx, struct err *e)
{
	struct seen *s = ctx;

	s->due_ns = LOOP_NEVER;
	note(s, 'd');
	return 0;
}

static int on_round(void *ctx, struct err *e)
{
	note(ctx, 'r');
	return 0;
}

static int fails(void *ctx, struct err *e)
{
	return err_set(e, -EIO, "the handler's own sentence");
}

static void on_signal(void *ctx, int number)
{
	struct seen *s = ctx;

	s->signal = number;
	loop_end(s->loop);
}

static uint64_t due(void *ctx)
{
	return ((struct seen *)ctx)->due_ns;
}

static int make(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));

	s->end_after = 1000;
	s->due_ns = LOOP_NEVER;
	assert_int_equal(loop_new(&s->loop, NULL), 0);
	*state = s;
	return 0;
}

static int drop(void **state)
{
	struct seen *s = *state;

	loop_free(s->loop);
	free(s);
	return 0;
}

static void descriptors_come_before_timers_and_those_before_the_end_of_the_round(void **state)
{
	struct seen *s = *state;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	s->fd = ends[0];
	s->end_after = 3;
	s->due_ns = 0;
	assert_int_equal(loop_each(s->loop, on_round, s), 0);
	assert_int_equal(loop_at(s->loop, due, on_due, s), 0);
	assert_int_equal(loop_fd(s->loop, s->fd, on_fd, s), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_string_equal(s->order, "fdr");
	close(ends[0]);
	close(ends[1]);
}

static void a_timer_is_called_once_a_period_and_never_early(void **state)
{
	struct seen *s = *state;
	uint64_t from = now_ns();

	s->end_after = 3;
	assert_int_equal(loop_every(s->loop, 10000000, on_time, s), 0);
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_string_equal(s->order, "ttt");
	assert_true(now_ns() - from >= 30000000);
}

static void periods_that_were_missed_are_not_made_up_for(void **state)
{
	struct seen *s = *state;
	uint64_t from = now_ns();

	s->end_after = 2;
	assert_int_equal(loop_every(s->loop, 20000000, on_time, s), 0);
	usleep(90000); /* four periods, and half of the fifth */
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_true(now_ns() - from >= 100000000);
	/* The second call is at the end of the fifth period, not at once. */
	assert_string_equal(s->order, "tt");
}

static void an_error_of_a_handler_ends_the_loop_with_its_sentence(void **state)
{
	struct seen *s = *state;
	struct err e = { 0 };

	s->due_ns = 0;
	assert_int_equal(loop_at(s->loop, due, fails, s), 0);
	assert_int_equal(loop_each(s->loop, on_round, s), 0);
	assert_int_equal(loop_run(s->loop, &e), -EIO);
	assert_string_equal(e.msg, "the handler's own sentence");
	assert_string_equal(s->order, "");
}

static void a_descriptor_that_was_forgotten_calls_nobody(void **state)
{
	struct seen *s = *state;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	s->fd = ends[0];
	s->end_after = 1;
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_fd(s->loop, s->fd, on_fd, s), 0);
	loop_fd_forget(s->loop, s->fd);
	assert_int_equal(loop_every(s->loop, 1000000, on_time, s), 0);
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_string_equal(s->order, "t");
	close(ends[0]);
	close(ends[1]);
}

/* Watches one more in each round, and no longer in the next. */
static int come_and_go(void *ctx, struct err *e)
{
	struct seen *s = ctx;

	loop_fd_forget(s->loop, s->fd);
	assert_int_equal(loop_fd(s->loop, s->fd, on_fd, s), 0);
	note(s, ' ');
	return 0;
}

static void descriptors_that_come_and_go_leave_nothing_behind(void **state)
{
	struct seen *s = *state;
	struct mallinfo2 before;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	s->fd = ends[0];
	s->due_ns = 0;
	s->end_after = 2000;
	assert_int_equal(loop_at(s->loop, due, come_and_go, s), 0);
	before = mallinfo2();
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_true(mallinfo2().uordblks < before.uordblks + 4096);
	close(ends[0]);
	close(ends[1]);
}

static void a_signal_waits_until_the_loop_hands_it_over(void **state)
{
	struct seen *s = *state;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(loop_signals(s->loop, &set, on_signal, s), 0);
	assert_false(loop_signal_waits(s->loop, 0));
	raise(SIGUSR2);
	assert_true(loop_signal_waits(s->loop, 0));
	assert_int_equal(s->signal, 0);
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_int_equal(s->signal, SIGUSR2);
	loop_signals_end(s->loop, true);
	assert_false(loop_signal_waits(s->loop, 0));
}

static void a_signal_of_its_own_is_no_reason_to_end_a_wait(void **state)
{
	struct seen *s = *state;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(loop_signals(s->loop, &set, on_signal, s), 0);
	assert_int_equal(loop_signal(s->loop, SIGUSR1, on_signal, s), 0);
	raise(SIGUSR1);
	assert_false(loop_signal_waits(s->loop, 0));
	assert_int_equal(loop_run(s->loop, NULL), 0);
	assert_int_equal(s->signal, SIGUSR1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(descriptors_come_before_timers_and_those_before_the_end_of_the_round),
		TEST(a_timer_is_called_once_a_period_and_never_early),
		TEST(periods_that_were_missed_are_not_made_up_for),
		TEST(an_error_of_a_handler_ends_the_loop_with_its_sentence),
		TEST(a_descriptor_that_was_forgotten_calls_nobody),
		TEST(descriptors_that_come_and_go_leave_nothing_behind),
		TEST(a_signal_waits_until_the_loop_hands_it_over),
		TEST(a_signal_of_its_own_is_no_reason_to_end_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
