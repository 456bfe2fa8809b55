#include "analyse/wakers.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type types[] = { { "wakeups", "count" }, { "blocked", "nanoseconds" } };
static struct waker_row rows[8];
static struct waker_sums sums;

static struct fixture wakers_of(const char *const *stacks, const int64_t (*values)[2])
{
	struct fixture f = fixture_new(types, 2);

	for (uint32_t i = 0; stacks[i]; i++)
		fixture_add(&f, stacks[i], values[i]);
	return f;
}

static void waits_are_ranked_by_where_they_were_and_who_ended_them(void **state)
{
	static const char *const stacks[] = {
		";main;take;read_[k];schedule_[k];[woken by];try_to_wake_up_[k];write_[k];put;main;producer",
		";main;take;read_[k];schedule_[k];[woken by];try_to_wake_up_[k];write_[k];put;other;producer",
		";main;take;read_[k];schedule_[k];[woken by];try_to_wake_up_[k];write_[k];stop;main;main",
		";main;nap;hrtimer_nanosleep_[k];[woken by];try_to_wake_up_[k];hrtimer_wakeup_[k];[interrupt]",
		";main;nap;hrtimer_nanosleep_[k];[woken by];[unknown]",
		NULL,
	};
	static const int64_t values[][2] = {
		{ 3, 30 }, { 1, 12 }, { 1, 50 }, { 9, 900 }, { 1, 7 }
	};
	struct fixture f = wakers_of(stacks, values);

	(void)state;
	assert_int_equal(wakers_rank(f.p, rows, 8, &sums), 2);
	assert_string_equal(rows[0].wait.function, "take");
	assert_string_equal(rows[0].by, "stop");
	assert_string_equal(rows[0].waker, "main");
	assert_string_equal(rows[1].by, "put");
	assert_string_equal(rows[1].waker, "producer");
	assert_true(rows[1].wait.value == 42 && rows[1].wait.count == 4);
	assert_true(sums.total_ns == 999 && sums.interrupt_ns == 900 && sums.unknown_ns == 7 &&
		    sums.other_ns == 0);
	assert_int_equal(wakers_rank(f.p, rows, 1, &sums), 1);
	fixture_free(&f);
}

static void a_waker_without_a_user_stack_goes_by_the_kernels_function(void **state)
{
	static const char *const stacks[] = {
		";main;serve;ep_poll_[k];schedule_[k];[woken by];try_to_wake_up_[k];ep_poll_callback_[k];"
		"__wake_up_common_[k];sock_def_readable_[k];tcp_sendmsg_[k];client",
		NULL,
	};
	static const int64_t values[][2] = { { 3, 30 } };
	struct fixture f = wakers_of(stacks, values);

	(void)state;
	assert_int_equal(wakers_rank(f.p, rows, 8, &sums), 1);
	assert_string_equal(rows[0].by, "tcp_sendmsg");
	assert_string_equal(rows[0].by_module, "[kernel]");
	assert_string_equal(rows[0].waker, "client");
	assert_true(sums.other_ns == 30);
	fixture_free(&f);
}

static void a_wait_without_a_user_stack_goes_by_whose_it_is(void **state)
{
	static const char *const stacks[] = {
		"kworker/1:2;worker_thread_[k];schedule_[k];[woken by];try_to_wake_up_[k];queue_work_[k];main;writer",
		"kworker/0:1;worker_thread_[k];schedule_[k];[woken by];try_to_wake_up_[k];queue_work_[k];main;writer",
		NULL,
	};
	static const int64_t values[][2] = { { 3, 30 }, { 1, 5 } };
	struct fixture f = wakers_of(stacks, values);

	(void)state;
	assert_int_equal(wakers_rank(f.p, rows, 8, &sums), 1);
	assert_string_equal(rows[0].wait.function, "");
	assert_string_equal(rows[0].wait.comm, "kworker");
	assert_int_equal(rows[0].wait.value, 35);
	fixture_free(&f);
}

static void what_is_no_joined_stack_is_in_no_row(void **state)
{
	static const char *const stacks[] = { ";main;take", NULL };
	static const int64_t values[][2] = { { 3, 30 } };
	struct fixture f = wakers_of(stacks, values);

	(void)state;
	assert_int_equal(wakers_rank(f.p, rows, 8, &sums), 0);
	assert_true(sums.total_ns == 0);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_ranked_by_where_they_were_and_who_ended_them),
		cmocka_unit_test(a_waker_without_a_user_stack_goes_by_the_kernels_function),
		cmocka_unit_test(a_wait_without_a_user_stack_goes_by_whose_it_is),
		cmocka_unit_test(what_is_no_joined_stack_is_in_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
