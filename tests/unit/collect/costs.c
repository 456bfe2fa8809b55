#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "collect/overhead/costs.h"
#include "collect/overhead/counter.h"
#include "collect/session/session_wire.h"

#define MS  1000000ull
#define SEC (1000 * MS)

/* --- the kernel's account: programs that run all the time, and are counted while that is on --- */

enum { FD = 500 };

static const char *const names[] = { "on_cpu_work",      "on_switch",   "on_wakeup",
				     "both_ends_malloc", "enter_size",  "exit_new",
				     "return_ptr",       "sampled_add", "on_rss_stat",
				     "on_call_exit",     "on_fork" };
enum { N = sizeof(names) / sizeof(*names) };
static const int owners[N] = { SOURCE_ONCPU,  SOURCE_OFFCPU,   SOURCE_OFFCPU, SOURCE_ALLOC,
			       SOURCE_ALLOC,  SOURCE_ALLOC,    SOURCE_ALLOC,  SOURCE_ALLOC,
			       SOURCE_GROWTH, SOURCE_SYSCALLS, COST_EVENTS };

static uint64_t runs[N];
static uint64_t rests[N_SOURCES]; /* so many runs returned at once, between two slices */
static int stats_fd, has_account, opened;

int session_program(const struct session *s, uint32_t i, const char **ret_name)
{
	/* The third is not loaded. */
	if (i >= N || i == 2)
		return -1;
	*ret_name = names[i];
	return FD + (int)i;
}

int bpf_enable_stats(enum bpf_stats_type type)
{
	assert_int_equal(type, BPF_STATS_RUN_TIME);
	opened++;
	stats_fd = has_account ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -EINVAL;
	return stats_fd;
}

struct program_cost session_rest_cost(struct session *s, enum source source)
{
	(void)s;
	return (struct program_cost){ rests[source], rests[source] * 40 };
}

void counters_read(const struct session *s, enum session_map map, uint32_t n, uint64_t *ret_sums)
{
	(void)s;
	(void)map;
	memset(ret_sums, 0, n * sizeof(*ret_sums));
}

static bool is_counted(void)
{
	return stats_fd >= 0 && fcntl(stats_fd, F_GETFD) >= 0;
}

/* What a program has been run since it was loaded: those before count nothing here. */
int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *info_len)
{
	struct bpf_prog_info *to = info;

	assert_in_range(fd, FD, FD + N - 1);
	to->run_cnt = 1000 + runs[fd - FD];
	to->run_time_ns = 5000 + runs[fd - FD] * (100 + (uint64_t)(fd - FD));
	return 0;
}

static void run_all(uint64_t n)
{
	for (int i = 0; i < N && is_counted(); i++)
		runs[i] += n;
}

static int setup(void **state)
{
	(void)state;
	memset(runs, 0, sizeof(runs));
	memset(rests, 0, sizeof(rests));
	has_account = 1;
	opened = 0;
	return 0;
}

static void a_kernel_without_an_account_is_said_to_have_none(void **state)
{
	(void)state;
	has_account = 0;
	assert_null(costs_new(NULL));
}

static void runs_in_windows_are_with_the_source_of_their_program(void **state)
{
	_cleanup_(costs_freep) struct costs *c = costs_new(NULL);
	struct program_cost got[N_COSTS], want[N_COSTS] = { 0 };

	(void)state;
	assert_non_null(c);
	assert_false(is_counted()); /* to ask whether there is an account leaves it off */
	costs_tick(c, 10 * SEC);
	assert_true(is_counted());
	run_all(7);
	costs_tick(c, 10 * SEC + 120 * MS);
	assert_false(is_counted());
	run_all(1000); /* between windows: nobody counts */
	for (int i = 0; i < N; i++) {
		if (i == 2)
			continue;
		want[owners[i]].runs += 7;
		want[owners[i]].run_ns += 7 * (100 + (uint64_t)i);
	}
	assert_int_equal(costs_read(c, got), 120 * MS);
	assert_memory_equal(got, want, sizeof(got));
}

/* They are among their source's, and said apart. */
static void runs_at_rest_in_a_window_are_apart(void **state)
{
	_cleanup_(costs_freep) struct costs *c = costs_new(NULL);
	const struct costs_window *last;

	(void)state;
	rests[SOURCE_OFFCPU] = 1000;
	rests[SOURCE_GROWTH] = 2000;
	costs_tick(c, 10 * SEC);
	run_all(7);
	rests[SOURCE_OFFCPU] += 5;
	rests[SOURCE_ALLOC] += 3;
	costs_tick(c, 10 * SEC + 120 * MS);
	last = costs_last(c);
	assert_int_equal(last->no, 1);
	assert_int_equal(last->rest[SOURCE_OFFCPU].runs, 5);
	assert_int_equal(last->rest[SOURCE_OFFCPU].run_ns, 5 * 40);
	assert_int_equal(last->rest[SOURCE_GROWTH].runs, 0);
	assert_int_equal(last->rest[SOURCE_ALLOC].runs, 0); /* has no slices */
	assert_int_equal(last->costs[SOURCE_OFFCPU].runs, 7);
}

static void a_window_is_a_tenth_of_a_second_in_each_second(void **state)
{
	_cleanup_(costs_freep) struct costs *c = costs_new(NULL);
	struct program_cost got[N_COSTS];
	uint64_t counted_ns = 0;

	(void)state;
	for (uint64_t t = 0; t < 3 * SEC; t += 10 * MS) {
		costs_tick(c, SEC + t);
		counted_ns += is_counted() ? 10 * MS : 0;
	}
	assert_int_equal(counted_ns, 300 * MS);
	assert_int_equal(costs_read(c, got), 300 * MS);
	assert_int_equal(opened, 1 + 3);
}

static void the_end_closes_the_open_window_and_opens_none(void **state)
{
	_cleanup_(costs_freep) struct costs *c = costs_new(NULL);
	struct program_cost got[N_COSTS];

	(void)state;
	costs_tick(c, SEC);
	run_all(3);
	costs_stop(c, SEC + 40 * MS);
	assert_false(is_counted());
	costs_tick(c, 100 * SEC);
	costs_stop(c, 200 * SEC);
	assert_false(is_counted());
	assert_int_equal(costs_read(c, got), 40 * MS);
	assert_int_equal(got[SOURCE_ONCPU].runs, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_kernel_without_an_account_is_said_to_have_none, setup),
		cmocka_unit_test_setup(runs_in_windows_are_with_the_source_of_their_program, setup),
		cmocka_unit_test_setup(runs_at_rest_in_a_window_are_apart, setup),
		cmocka_unit_test_setup(a_window_is_a_tenth_of_a_second_in_each_second, setup),
		cmocka_unit_test_setup(the_end_closes_the_open_window_and_opens_none, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
