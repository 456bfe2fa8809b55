#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "collect/stream/lock_waits.h"
#include "collect/wire.h"
#include "lock_words.h"

#define TEXT(x)   #x
#define NUMBER(x) TEXT(x) /* of a system call on this machine */

/* --- what is in memory (bpf/lock_words.h) --- */

static void words_of(const void *lock, uint64_t futex, uint32_t words[LOCK_WORDS])
{
	memcpy(words, (const char *)lock + (lock_words_of_futex(futex) - (uintptr_t)lock),
	       LOCK_WORDS * sizeof(*words));
}

/* As the C library that this is linked with lays them out: what waits for it sees 2 in the first word. */
static void the_owner_of_a_mutex_is_beside_its_futex(void **state)
{
	static pthread_mutex_t lock __attribute__((aligned(16))) = PTHREAD_MUTEX_INITIALIZER;
	uint64_t futex = (uintptr_t)&lock;
	uint32_t words[LOCK_WORDS], owner;

	(void)state;
	pthread_mutex_lock(&lock);
	words_of(&lock, futex, words);
	words[0] = 2;
	assert_true(lock_is_wanted(FUTEX_OP_WAIT | 128, 2));
	assert_true(lock_recognize(futex, 128, 2, words, &owner) ==
		    lock_make(futex, MS_LOCK_MUTEX));
	assert_int_equal(owner, (uint32_t)lock.__data.__owner);
	assert_true(owner != 0);
	assert_true(lock_is_owned(lock_make(futex, MS_LOCK_MUTEX), words, owner));
	assert_false(lock_is_owned(lock_make(futex, MS_LOCK_MUTEX), words, owner + 1));
	words[0] = 1; /* nobody waits any more */
	assert_false(lock_is_owned(lock_make(futex, MS_LOCK_MUTEX), words, owner));
	pthread_mutex_unlock(&lock);
	words_of(&lock, futex, words);
	assert_true(lock_recognize(futex, 128, 2, words, &owner) ==
		    lock_make(futex, MS_LOCK_OTHER));
	assert_int_equal(owner, 0);
}

static void the_writer_of_a_rwlock_is_behind_its_futexes(void **state)
{
	static pthread_rwlock_t lock __attribute__((aligned(16))) = PTHREAD_RWLOCK_INITIALIZER;
	uint64_t at = (uintptr_t)&lock, found;
	uint32_t words[LOCK_WORDS], owner;

	(void)state;
	pthread_rwlock_wrlock(&lock);
	for (int i = 0; i < 2; i++) { /* where readers wait, and writers */
		words_of(&lock, at + 8 + 4 * (uint64_t)i, words);
		words[i] |= 2;
		assert_true(lock_is_wanted(FUTEX_OP_WAIT_BITSET | 128 | 256, 3));
		found = lock_recognize(at + 8 + 4 * (uint64_t)i, FUTEX_OP_WAIT_BITSET, 3, words,
				       &owner);
		assert_true(found == lock_make(at, MS_LOCK_RWLOCK));
		assert_int_equal(owner, (uint32_t)lock.__data.__cur_writer);
		assert_true(owner != 0);
		assert_true(lock_words_at(found) == at + 8);
		assert_true(lock_is_owned(found, words, owner));
	}
	pthread_rwlock_unlock(&lock);
	words_of(&lock, at + 8, words);
	assert_true(lock_kind(lock_recognize(at + 8, 9, 2, words, &owner)) == MS_LOCK_OTHER);
}

static void the_owner_of_a_pi_futex_is_in_it(void **state)
{
	uint32_t words[LOCK_WORDS] = { 0, FUTEX_HAS_WAITERS | 4711 }, owner;

	(void)state;
	assert_true(lock_is_wanted(FUTEX_OP_LOCK_PI2 | 128, 0));
	assert_true(lock_recognize(0x1004, FUTEX_OP_LOCK_PI, 0, words, &owner) ==
		    lock_make(0x1004, MS_LOCK_WORD));
	assert_int_equal(owner, 4711);
	assert_true(lock_is_owned(lock_make(0x1004, MS_LOCK_WORD), words, 4711));
	assert_true(lock_words_at(lock_make(0x1004, MS_LOCK_WORD)) == 0x1000);
	/* A robust mutex, by the value that its waiter expects. */
	assert_true(lock_is_wanted(FUTEX_OP_WAIT, FUTEX_HAS_WAITERS | 4711));
	/* A thread of Rust that is parked waits while the word is -1: for no lock. */
	assert_false(lock_is_wanted(FUTEX_OP_WAIT_BITSET | 128, UINT32_MAX));
	assert_false(lock_is_wanted(FUTEX_OP_WAIT, FUTEX_HAS_WAITERS));
}

static void waits_for_conditions_and_threads_are_for_no_lock(void **state)
{
	(void)state;
	assert_false(lock_is_wanted(FUTEX_OP_WAIT | 128, 0)); /* a condition, a semaphore */
	assert_false(
		lock_is_wanted(FUTEX_OP_WAIT_BITSET | 256, 4711)); /* pthread_join()           */
	assert_false(lock_is_wanted(1, 2));                        /* FUTEX_WAKE               */
}

/* --- */

static void arguments_are_those_of_waits_for_a_futex_alone(void **state)
{
	struct futex_args args = { 0, 0, 0 };

	(void)state;
	assert_true(futex_args_parse(
		NUMBER(SYS_futex) " 0x7ffd1000 0x80 0x2 0x0 0x0 0x0 0x7ffd0000 0x7f0012345678\n",
		&args));
	assert_true(args.futex == 0x7ffd1000 && args.op == 0x80 && args.expected == 2);
	assert_true(futex_args_parse(
		"455 0x7ffd2000 0x2 0xffffffff 0x82 0x0 0x0 0x7ffd0000 0x7f0012345678\n", &args));
	assert_true(args.futex == 0x7ffd2000 && args.op == FUTEX_OP_WAIT && args.expected == 2);
	assert_false(futex_args_parse("running\n", &args));
	assert_false(futex_args_parse("-1 0x7ffd0000 0x7f0012345678\n", &args));
	assert_false(futex_args_parse("0 0x3 0x7f00 0x1000 0x0 0x0 0x0 0x1 0x2\n", &args));
}

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

/* All of the time is in slices. */
uint64_t drain_wait_clock(const struct drain *d, uint64_t ns)
{
	(void)d;
	return ns;
}

static struct lock_event got[4];
static uint32_t n_got;

static void keep(void *ctx, const struct lock_event *event)
{
	(void)ctx;
	assert_true(n_got < 4);
	got[n_got++] = *event;
}

static void totals_of_locks_are_taken_and_others_left(void **state)
{
	struct ms_total_key key = {
		.proc = { .tgid = 5 },
		.user = { 1, 2 },
		.kernel = { 0x1000 | (uint64_t)MS_LOCK_RWLOCK << MS_LOCK_KIND_SHIFT, 9 },
		.tid = 6,
		.source = MS_LOCKS,
		.state = MS_LOCK_HOLD,
		.bucket = 3
	};
	const struct ms_total total = { .count = 2, .value = 70 };
	uint64_t end_ns = 0;
	_cleanup_(lock_waits_freep) struct lock_waits *l =
		lock_waits_new(NULL, &end_ns, keep, NULL);
	struct ms_total_key at;

	(void)state;
	n_got = 0;
	assert_int_equal(on[DRAIN_TOTAL].fn(on[DRAIN_TOTAL].ctx, &total, &key), DRAIN_TAKEN);
	assert_int_equal(n_got, 1);
	assert_true(got[0].lock == 0x1000 && got[0].owner == 9 && got[0].tid == 6 && got[0].hold);
	assert_true(got[0].count == 2 && got[0].ns == 70 && got[0].proc.pid == 5);
	assert_string_equal(got[0].kind, "rwlock");
	at = wire_key(&got[0].at);
	assert_true(at.user.lo == 1 && !at.kernel.lo && !at.tid && !at.bucket &&
		    at.source == MS_OFFCPU);
	key.source = MS_OFFCPU;
	assert_int_equal(on[DRAIN_TOTAL].fn(on[DRAIN_TOTAL].ctx, &total, &key), DRAIN_NEXT);
	assert_int_equal(n_got, 1);
}

static void a_wait_that_goes_on_at_the_end_counts_up_to_there(void **state)
{
	struct ms_thread t = { .proc = { .tgid = 5 },
			       .state = MS_RUN_BLOCKED,
			       .since_ns = 100,
			       .first_ns = 50,
			       .lock = 0x1000 | (uint64_t)MS_LOCK_MUTEX << MS_LOCK_KIND_SHIFT,
			       .owner = 9,
			       .owned = 0x2000 | (uint64_t)MS_LOCK_MUTEX << MS_LOCK_KIND_SHIFT,
			       .owned_ns = 130,
			       .ns_tid = 7 };
	const uint32_t tid = 70;
	uint64_t end_ns = 0;
	_cleanup_(lock_waits_freep) struct lock_waits *l =
		lock_waits_new(NULL, &end_ns, keep, NULL);

	(void)state;
	n_got = 0;
	on[DRAIN_THREAD].fn(on[DRAIN_THREAD].ctx, &t, &tid);
	assert_int_equal(n_got, 0); /* the run goes on */
	end_ns = 150;
	assert_int_equal(on[DRAIN_THREAD].fn(on[DRAIN_THREAD].ctx, &t, &tid), DRAIN_NEXT);
	assert_int_equal(n_got, 2);
	assert_true(!got[0].hold && got[0].lock == 0x1000 && got[0].owner == 9 && got[0].ns == 50 &&
		    got[0].open);
	assert_true(got[1].hold && got[1].lock == 0x2000 && got[1].owner == 7 && got[1].ns == 20);
	t.wake_ns = 140;
	on[DRAIN_THREAD].fn(on[DRAIN_THREAD].ctx, &t, &tid);
	t.wake_ns = 0;
	t.state = MS_RUN_RUNNABLE;
	on[DRAIN_THREAD].fn(on[DRAIN_THREAD].ctx, &t, &tid);
	assert_int_equal(n_got, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_of_a_mutex_is_beside_its_futex),
		cmocka_unit_test(the_writer_of_a_rwlock_is_behind_its_futexes),
		cmocka_unit_test(the_owner_of_a_pi_futex_is_in_it),
		cmocka_unit_test(waits_for_conditions_and_threads_are_for_no_lock),
		cmocka_unit_test(arguments_are_those_of_waits_for_a_futex_alone),
		cmocka_unit_test(totals_of_locks_are_taken_and_others_left),
		cmocka_unit_test(a_wait_that_goes_on_at_the_end_counts_up_to_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
