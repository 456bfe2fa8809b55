#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/stream/run_delays.h"
#include "collect/wire.h"

static drain_fn on_total;
static void *on_total_ctx;
static struct run_delay_event got;
static uint32_t n_got;

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	(void)d;
	assert_int_equal(kind, DRAIN_TOTAL);
	on_total = fn;
	on_total_ctx = ctx;
}

static void keep(void *ctx, const struct run_delay_event *event)
{
	(void)ctx;
	got = *event;
	n_got++;
}

static enum drain_says deliver(uint8_t source, uint8_t state, uint32_t tgid, uint32_t kernel,
			       const char *comm)
{
	struct ms_total_key key = { .proc = { .tgid = 5, .start_ns = 50 },
				    .user = { 77, 0 },
				    .tid = tgid,
				    .as_gen = kernel,
				    .source = source,
				    .state = state };
	const struct ms_total total = { .count = 2, .value = 70 };

	memcpy(&key.kernel, comm, strlen(comm));
	return on_total(on_total_ctx, &total, &key);
}

static void totals_say_who_ran(void **state)
{
	_cleanup_(run_delays_freep) struct run_delays *r = run_delays_new(NULL, keep, NULL);

	(void)state;
	n_got = 0;
	assert_int_equal(deliver(MS_RUN_DELAYS, MS_RAN, 8, 0, "stress"), DRAIN_TAKEN);
	assert_int_equal(got.by, RUN_DELAY_PROCESS);
	assert_true(got.proc.pid == 5 && got.other.pid == 8 && got.other.start_ns == 77);
	assert_true(got.count == 2 && got.ns == 70);
	assert_string_equal(got.comm, "stress");
	deliver(MS_RUN_DELAYS, MS_RAN, 30, 1, "kworker/1:2");
	assert_int_equal(got.by, RUN_DELAY_KERNEL);
	assert_string_equal(got.comm, "kworker");
	assert_int_equal(got.other.pid, 0);
	deliver(MS_RUN_DELAYS, MS_RAN, 0, 1, "swapper/1");
	assert_int_equal(got.by, RUN_DELAY_IDLE);
	deliver(MS_RUN_DELAYS, MS_RAN_ELSEWHERE, 0, 0, "");
	assert_int_equal(got.by, RUN_DELAY_ELSEWHERE);
	deliver(MS_RUN_DELAYS, MS_RAN_UNKNOWN, 0, 0, "");
	assert_int_equal(got.by, RUN_DELAY_UNKNOWN);
	assert_int_equal(n_got, 5);
	assert_int_equal(deliver(MS_OFFCPU, MS_RUNNABLE, 8, 0, "stress"), DRAIN_NEXT);
	assert_int_equal(n_got, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_say_who_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
