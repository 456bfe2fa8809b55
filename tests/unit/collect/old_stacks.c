/* Who is asked: the kernel's tables, and who ended waits. What is played here is the kernel's list of what it has sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include "collect/stream/old_stacks.h"
#include "collect/stream/stacks_in_use.h"
#include "ingest_fixture.h"

enum { ADDR = 0x1000, ENDS = OLD_STACKS_CALLS + 2 };

static uint64_t waits_with; /* the stack of a wait that has not ended, by its hash's lo; 0: none */
static uint64_t sent_again[64];
static uint32_t n_sent_again;
static int answer;

int drain_stacks_in_use(struct drain *d, stack_hash_fn fn, void *ctx)
{
	(void)d;
	if (waits_with)
		fn(ctx, &(struct ms_hash){ waits_with, 0 });
	return answer;
}

void drain_send_again(const struct drain *d, const struct ms_hash *stack)
{
	(void)d;
	sent_again[n_sent_again++ % 64] = stack->lo;
}

static struct profile *new_profile(struct dict *d, enum profile_kind kind)
{
	return profile_new(d, profile_rows[kind].types, profile_rows[kind].n_types);
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(new_profile);

	f->in = ingest_new(f->d, f->procs, &f->p, 0);
	*state = f;
	waits_with = n_sent_again = 0;
	answer = 0;
	return 0;
}

static void send_stack(struct fixture *f, uint64_t lo, uint8_t flags)
{
	const struct ms_stack_rec rec = {
		.kind = MS_EV_STACK, .n_frames = 1, .flags = flags, .hash = { lo, 0 }
	};
	const uint64_t frames[] = { ADDR };

	assert_int_equal(ingest_stack(f->in, &rec, frames), 0);
}

static void name(struct fixture *f, uint64_t user, uint64_t kernel)
{
	const struct ms_total_key key = { .proc = self,
					  .user = { user, 0 },
					  .kernel = { kernel, 0 },
					  .tid = 4000000,
					  .source = MS_ONCPU };

	assert_int_equal(ingest_total(f->in, &key, &(struct ms_total){ .count = 1 }), 0);
}

static bool is_there(struct fixture *f, uint64_t lo)
{
	const struct ms_total_key key = { .proc = self, .user = { lo, 0 } };
	struct event_key event = wire_event(&key);

	return ingest_place_verdict(f->in, &event) != STACK_LOST;
}

static uint32_t forget(struct fixture *f, int times)
{
	uint32_t n = 0;

	for (int i = 0; i < times; i++)
		n += old_stacks_forget(NULL, f->in, NULL);
	return n;
}

static void a_stack_that_is_not_named_is_sent_again_and_then_forgotten(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	name(f, 1, 0);
	assert_int_equal(forget(f, OLD_STACKS_CALLS), 0);
	assert_int_equal(n_sent_again, 0);
	assert_int_equal(forget(f, 1), 0);
	assert_int_equal(n_sent_again, 1);
	assert_int_equal(sent_again[0], 1);
	assert_int_equal(forget(f, 1), 1);
	assert_false(is_there(f, 1));
	assert_int_equal(profile_total(f->p.oncpu, 0), 1);
}

static void a_stack_that_is_named_stays(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	for (int i = 0; i < ENDS; i++) {
		assert_int_equal(forget(f, OLD_STACKS_CALLS - 1), 0);
		name(f, 1, 0);
	}
	assert_int_equal(n_sent_again, 0);
	assert_true(is_there(f, 1));
}

/* A total that was made just before the kernel's list was changed names it, and it has not been sent since. */
static void a_stack_that_is_named_after_all_stays(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	forget(f, OLD_STACKS_CALLS + 1);
	assert_int_equal(n_sent_again, 1);
	name(f, 1, 0);
	assert_int_equal(forget(f, 1), 0);
	assert_true(is_there(f, 1));
	assert_int_equal(profile_n_samples(f->p.oncpu), 1);
}

static void the_stack_of_a_wait_that_has_not_ended_stays(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	send_stack(f, 2, 0);
	waits_with = 2;
	assert_int_equal(forget(f, 5 * ENDS), 1);
	waits_with = 0;
	assert_int_equal(forget(f, OLD_STACKS_CALLS), 0);
	assert_true(is_there(f, 2));
	forget(f, ENDS);
	assert_false(is_there(f, 2));
}

/* What waits is not known: it may be any of them. */
static void nothing_is_forgotten_where_the_kernel_does_not_answer(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	answer = -EFAULT;
	assert_int_equal(forget(f, 5 * ENDS), 0);
	assert_int_equal(n_sent_again, 0);
	assert_true(is_there(f, 1));
}

static void stacks_of_the_kernel_stay(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	send_stack(f, 2, MS_STACK_KERNEL);
	assert_int_equal(forget(f, 5 * ENDS), 1);
	name(f, 0, 2);
	assert_int_equal(profile_n_samples(f->p.oncpu), 1);
	assert_true(is_there(f, 2));
}

/* Its total came before it, and is added in the end. */
static void a_stack_that_a_total_waits_for_stays(void **state)
{
	struct fixture *f = *state;
	struct ingest_stats st;

	name(f, 1, 0);
	send_stack(f, 1, 0);
	assert_int_equal(forget(f, 5 * ENDS), 0);
	assert_int_equal(ingest_finish(f->in), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.lost_stacks, 0);
	assert_int_equal(profile_total(f->p.oncpu, 0), 1);
}

/* The kernel sends it again; what had it before is the same sample. */
static void a_stack_that_comes_back_is_the_same(void **state)
{
	struct fixture *f = *state;

	send_stack(f, 1, 0);
	name(f, 1, 0);
	assert_int_equal(forget(f, ENDS), 1);
	ingest_forget(f->in);
	send_stack(f, 1, 0);
	name(f, 1, 0);
	assert_int_equal(profile_n_samples(f->p.oncpu), 1);
	assert_int_equal(profile_total(f->p.oncpu, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)
		TEST(a_stack_that_is_not_named_is_sent_again_and_then_forgotten),
		TEST(a_stack_that_is_named_stays),
		TEST(a_stack_that_is_named_after_all_stays),
		TEST(the_stack_of_a_wait_that_has_not_ended_stays),
		TEST(nothing_is_forgotten_where_the_kernel_does_not_answer),
		TEST(stacks_of_the_kernel_stay),
		TEST(a_stack_that_a_total_waits_for_stays),
		TEST(a_stack_that_comes_back_is_the_same),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
