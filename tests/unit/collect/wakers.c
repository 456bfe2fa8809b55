#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/stream/stacks_in_use.h"
#include "collect/stream/wakers.h"
#include "collect/wire.h"

static struct {
	drain_fn fn;
	void *ctx;
} on[N_DRAIN_KINDS];

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	(void)d;
	on[kind].fn = fn;
	on[kind].ctx = ctx;
}

static struct waker_event got[4];
static uint32_t n_got;

static void keep(void *ctx, const struct waker_event *event)
{
	(void)ctx;
	assert_true(n_got < 4);
	got[n_got++] = *event;
}

static struct wakers *listened(void)
{
	struct wakers *w = wakers_new(NULL);

	wakers_listen(w, keep, NULL);
	return w;
}

static enum drain_says deliver(enum drain_kind kind, const void *record, const void *more)
{
	return on[kind].fn(on[kind].ctx, record, more);
}

static const struct ms_total total = { .count = 2, .value = 70 };
static const struct ms_waker_rec waker = {
	.kind = MS_EV_WAKER,
	.hash = { 11, 12 },
	.proc = { .tgid = 8 },
	.user = { 21, 22 },
	.kernel = { 31, 32 },
	.as_gen = 3,
	.comm = "producer",
};
static const struct ms_ended_rec ended = { .kind = MS_EV_ENDED,
					   .hash = { 41, 42 },
					   .kernel = { 51, 52 },
					   .waker = { 11, 12 },
					   .lock = 0x1000 | (uint64_t)MS_LOCK_RWLOCK
								    << MS_LOCK_KIND_SHIFT };
static const struct ms_total_key key = {
	.proc = { .tgid = 5 }, .user = { 1, 2 }, .kernel = { 41, 42 }, .tid = 6, .source = MS_WAKERS
};

static void a_wait_is_handed_on_with_who_ended_it(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	struct ms_total_key at;

	(void)state;
	n_got = 0;
	deliver(DRAIN_WAKER, &waker, NULL);
	deliver(DRAIN_ENDED, &ended, NULL);
	assert_int_equal(deliver(DRAIN_TOTAL, &total, &key), DRAIN_TAKEN);
	assert_int_equal(n_got, 1);
	assert_int_equal(got[0].kind, WAKER_TASK);
	assert_true(got[0].count == 2 && got[0].ns == 70 && got[0].pid == 8 && !got[0].of_kernel);
	assert_string_equal(got[0].comm, "producer");
	assert_true(got[0].lock == 0x1000);
	assert_string_equal(got[0].lock_kind, "rwlock");
	at = wire_key(&got[0].at);
	assert_true(at.proc.tgid == 5 && at.user.lo == 1 && at.kernel.lo == 51 && at.tid == 6 &&
		    at.source == MS_OFFCPU);
	at = wire_key(&got[0].waker);
	assert_true(at.proc.tgid == 8 && at.user.lo == 21 && at.kernel.lo == 31 && at.as_gen == 3);
}

static void note_stack(void *ctx, const struct ms_hash *user)
{
	*(uint64_t *)ctx = *(uint64_t *)ctx * 100 + user->lo;
}

/* Its record comes once: what it names has to stay. An interrupt names no stack of a process. */
static void stacks_of_who_ended_waits_are_in_use(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	struct ms_waker_rec interrupt = { .interrupt = 1,
					  .hash = { 13, 14 },
					  .kernel = { 31, 32 } };
	uint64_t named = 0;

	(void)state;
	deliver(DRAIN_WAKER, &waker, NULL);
	deliver(DRAIN_WAKER, &interrupt, NULL);
	wakers_stacks_in_use(w, note_stack, &named);
	assert_int_equal(named, 21);
}

static void totals_of_others_are_left(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	struct ms_total_key other = key;

	(void)state;
	other.source = MS_OFFCPU;
	assert_int_equal(deliver(DRAIN_TOTAL, &total, &other), DRAIN_NEXT);
}

static void an_interrupt_is_nobodys_doing(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	struct ms_waker_rec interrupt = { .interrupt = 1,
					  .hash = { 11, 12 },
					  .kernel = { 31, 32 } };

	(void)state;
	n_got = 0;
	deliver(DRAIN_WAKER, &interrupt, NULL);
	deliver(DRAIN_ENDED, &ended, NULL);
	deliver(DRAIN_TOTAL, &total, &key);
	assert_int_equal(n_got, 1);
	assert_true(got[0].kind == WAKER_INTERRUPT && got[0].pid == 0);
}

static void a_wait_whose_waker_was_not_seen_is_of_nobody(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	struct ms_ended_rec by_nobody = ended;

	(void)state;
	n_got = 0;
	by_nobody.waker = (struct ms_hash){ 0, 0 };
	deliver(DRAIN_ENDED, &by_nobody, NULL);
	deliver(DRAIN_TOTAL, &total, &key);
	assert_int_equal(n_got, 1);
	assert_true(got[0].kind == WAKER_UNKNOWN && wire_key(&got[0].at).kernel.lo == 51);
}

static void records_that_come_late_are_waited_for_until_the_end(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();

	(void)state;
	n_got = 0;
	deliver(DRAIN_TOTAL, &total, &key);
	assert_int_equal(n_got, 0);
	deliver(DRAIN_ENDED, &ended, NULL);
	wakers_waiting(w);
	assert_int_equal(n_got, 0);
	wakers_finish(w); /* the waker never came */
	assert_int_equal(n_got, 1);
	assert_true(got[0].kind == WAKER_UNKNOWN && wire_key(&got[0].at).kernel.lo == 51);
	wakers_finish(w);
	assert_int_equal(n_got, 1);
	assert_true(wakers_left_out(w) == 0);
}

static void sent_again(void *ctx, const struct ms_hash *hash)
{
	++*(uint32_t *)ctx;
}

/* Two records: of the wait's end, and of its waker. */
static void records_that_nobody_used_are_forgotten_by_both_sides(void **state)
{
	_cleanup_(wakers_freep) struct wakers *w = listened();
	uint32_t again = 0;

	(void)state;
	n_got = 0;
	deliver(DRAIN_WAKER, &waker, NULL);
	deliver(DRAIN_ENDED, &ended, NULL);
	assert_int_equal(wakers_age(w, 2, sent_again, &again), 0);
	assert_int_equal(wakers_age(w, 2, sent_again, &again), 0);
	assert_int_equal(again, 0);
	assert_int_equal(wakers_age(w, 2, sent_again, &again), 0);
	assert_int_equal(again, 2);
	deliver(DRAIN_TOTAL, &total, &key); /* it was on its way: both stay */
	assert_int_equal(n_got, 1);
	assert_int_equal(wakers_age(w, 2, sent_again, &again), 0);
	for (int i = 0; i < 3; i++)
		again = wakers_age(w, 2, sent_again, &again);
	assert_int_equal(again, 2);
	deliver(DRAIN_TOTAL, &total, &key);
	assert_int_equal(n_got, 1); /* it waits for them */
	deliver(DRAIN_WAKER, &waker, NULL);
	deliver(DRAIN_ENDED, &ended, NULL);
	wakers_waiting(w);
	assert_int_equal(n_got, 2);
	assert_true(got[1].kind == WAKER_TASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_handed_on_with_who_ended_it),
		cmocka_unit_test(stacks_of_who_ended_waits_are_in_use),
		cmocka_unit_test(totals_of_others_are_left),
		cmocka_unit_test(an_interrupt_is_nobodys_doing),
		cmocka_unit_test(a_wait_whose_waker_was_not_seen_is_of_nobody),
		cmocka_unit_test(records_that_come_late_are_waited_for_until_the_end),
		cmocka_unit_test(records_that_nobody_used_are_forgotten_by_both_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
