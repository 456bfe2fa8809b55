#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/overhead/counter.h"
#include "collect/overhead/exact_limiter.h"
#include "collect/overhead/realtime.h"

/* --- what it does to the kernel's programs, by call: there is no session here --- */

static struct {
	uint64_t hits;
	int64_t left; /* what the programs have */
	int64_t opened_with, refilled_with;
	uint32_t refills, gate_closed, bursts;
	uint32_t order, closed_at, burst_at; /* of calls */
} k;

#define GET(x) __atomic_load_n(&k.x, __ATOMIC_SEQ_CST)

static void set(void *to, int64_t value)
{
	__atomic_store_n((int64_t *)to, value, __ATOMIC_SEQ_CST);
}

uint64_t counter_read(const struct session *s, enum stat_id id)
{
	assert_int_equal(id, STAT_PROBE_HITS);
	return GET(hits);
}

void session_trace_open(struct session *s, int64_t hits)
{
	k.opened_with = hits;
	set(&k.left, hits);
}

void session_trace_refill(struct session *s, int64_t hits)
{
	set(&k.refilled_with, hits);
	set(&k.left, hits);
	__atomic_fetch_add(&k.refills, 1, __ATOMIC_SEQ_CST);
}

int64_t session_burst_left(const struct session *s)
{
	return GET(left);
}

void session_gate_alloc(struct session *s, bool open)
{
	k.gate_closed += !open;
	k.closed_at = ++k.order;
}

void alloc_probes_burst(struct alloc_probes *ap)
{
	k.bursts++;
	k.burst_at = ++k.order;
}

struct realtime realtime_begin(void)
{
	return (struct realtime){ .policy = -1 };
}

/* --- */

static void wait_for(bool (*holds)(struct exact_limiter *), struct exact_limiter *w)
{
	uint64_t until = now_ns() + 60 * 1000000000ull;

	while (!holds(w)) {
		assert_true(now_ns() < until);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

static bool looked_again(struct exact_limiter *w)
{
	static uint32_t before;
	bool did = before && GET(refills) >= before + 2;

	if (!before)
		before = GET(refills) + 1; /* one may have been under way */
	if (did)
		before = 0;
	return did;
}

static bool is_over(struct exact_limiter *w)
{
	return exact_limiter_over(w);
}

static struct exact_limiter *start(double max_percent, double hit_ns)
{
	struct exact_limiter *w = NULL;

	k = (typeof(k)){ .hits = 1000 };
	assert_int_equal(exact_limiter_start(NULL, NULL, max_percent, hit_ns, &w, NULL), 0);
	return w;
}

static void a_run_begins_with_the_hits_that_a_second_of_the_limit_pays(void **state)
{
	struct exact_limiter *w = start(5, 1000);

	(void)state;
	assert_int_equal(k.opened_with, 50000);
	exact_limiter_free(w);
	w = start(0.0001, 1e9);
	assert_int_equal(k.opened_with, 1); /* 0 would be a closed gate */
	exact_limiter_free(w);
}

static void what_is_within_the_limit_goes_on(void **state)
{
	struct exact_limiter *w = start(5, 1000);

	(void)state;
	for (int i = 0; i < 3; i++) {
		set(&k.hits, (int64_t)GET(hits) + 100);
		wait_for(looked_again, w);
	}
	assert_false(exact_limiter_over(w));
	exact_limiter_free(w);
	/* Hits of before it began cost nothing; credit is not saved beyond a second of the limit. */
	assert_true(k.refilled_with > 49000 && k.refilled_with <= 50000);
	assert_int_equal(k.gate_closed, 0);
	assert_int_equal(k.bursts, 0);
}

static void more_than_there_is_credit_for_closes_the_gate_and_then_takes_the_probes(void **state)
{
	struct exact_limiter *w = start(5, 1000);

	(void)state;
	wait_for(looked_again, w);     /* it has seen what was there before it began */
	set(&k.hits, 1000 + 10000000); /* 10 s of hits: no credit of a slow machine is as much */
	wait_for(is_over, w);
	exact_limiter_free(w);
	assert_int_equal(k.gate_closed, 1);
	assert_int_equal(k.bursts, 1);
	assert_true(k.closed_at < k.burst_at);
}

static void a_gate_that_the_programs_closed_is_the_end_of_it_too(void **state)
{
	struct exact_limiter *w = start(5, 1000);

	(void)state;
	/* It may be refilled in between, and is closed again. */
	while (!exact_limiter_over(w)) {
		set(&k.left, 0);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	exact_limiter_free(w);
	assert_int_equal(k.bursts, 1);
}

static void a_hit_that_is_dearer_than_assumed_is_found_so(void **state)
{
	struct exact_limiter *w = start(5, 1);

	(void)state;
	wait_for(looked_again, w);
	set(&k.hits, 1000 + 1000000); /* a millisecond, as it is assumed */
	wait_for(looked_again, w);
	assert_false(exact_limiter_over(w));
	exact_limiter_hit_costs(w, 1e6);
	set(&k.hits, 1000 + 1000000 + 10000); /* ten seconds */
	wait_for(is_over, w);
	exact_limiter_free(w);
	assert_int_equal(k.bursts, 1);
}

static void a_limit_of_nothing_gives_no_more_credit(void **state)
{
	struct exact_limiter *w = start(5, 1000);
	int64_t hits = 1000;

	(void)state;
	exact_limiter_limit(w, 0);
	wait_for(looked_again, w);
	/* 50,000 were paid in advance; of what comes after them not one is. */
	for (int i = 0; i < 51 && !exact_limiter_over(w); i++) {
		set(&k.hits, hits += 1000);
		if (i < 45)
			wait_for(looked_again, w);
	}
	wait_for(is_over, w);
	exact_limiter_free(w);
	assert_int_equal(k.bursts, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_begins_with_the_hits_that_a_second_of_the_limit_pays),
		cmocka_unit_test(what_is_within_the_limit_goes_on),
		cmocka_unit_test(
			more_than_there_is_credit_for_closes_the_gate_and_then_takes_the_probes),
		cmocka_unit_test(a_gate_that_the_programs_closed_is_the_end_of_it_too),
		cmocka_unit_test(a_hit_that_is_dearer_than_assumed_is_found_so),
		cmocka_unit_test(a_limit_of_nothing_gives_no_more_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
