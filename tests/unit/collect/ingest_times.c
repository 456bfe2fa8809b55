#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ingest_fixture.h"
#include "model/sample_times.h"

static struct profile *new_profile(struct dict *d, enum profile_kind kind)
{
	const struct profile_row *row = &profile_rows[kind];
	struct profile *p = profile_new(d, row->types, row->n_types);

	profile_set_times(p, sample_times_new(row->times, row->n_times, SAMPLE_TIMES_BIN_NS, 1000));
	return p;
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(new_profile);

	f->in = ingest_new(f->d, f->procs, &f->p, 0);
	*state = f;
	return 0;
}

static struct ms_total_key key_of(enum ms_source source, enum ms_state state, uint64_t user)
{
	return (struct ms_total_key){ .proc = self,
				      .user = { user, user },
				      .tid = 4000000,
				      .source = (uint8_t)source,
				      .state = state };
}

static void add_total(struct fixture *f, struct ms_total_key key, uint64_t count, uint64_t value)
{
	struct ms_total total = { .count = count, .value = value };

	assert_int_equal(ingest_total(f->in, &key, &total), 0);
}

#define SECOND 1000000000ULL

static void set_stretch(struct fixture *f, uint64_t from_s, uint64_t to_s)
{
	ingest_stretch(f->in, &(struct ingest_stretch){ .begin_ns = 7,
							.from_ns = 7 + from_s * SECOND,
							.to_ns = 7 + to_s * SECOND });
}

static int64_t in_bin(const struct profile *p, uint32_t sample, uint32_t bin, int type)
{
	int64_t sums[SAMPLE_TIMES_TYPES];

	sample_times_sum(profile_times(p), sample, bin, bin + 1, sums);
	return sums[type];
}

/* Its key has the low 16 bits of the second: 65,536 seconds are 18 hours. */
static void a_total_is_in_the_second_of_its_key(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_ONCPU, MS_STATE_NONE, 0);

	set_stretch(f, 4, 5);
	key.slot = 4;
	add_total(f, key, 3, 30);
	key.slot = 2;
	add_total(f, key, 1, 10);
	set_stretch(f, 65539, 65540);
	key.slot = 3;
	add_total(f, key, 5, 50);
	key.slot = 65535;
	add_total(f, key, 6, 60);
	assert_int_equal(in_bin(f->p.oncpu, 0, 4, 0), 30);
	assert_int_equal(in_bin(f->p.oncpu, 0, 4, 1), 3);
	assert_int_equal(in_bin(f->p.oncpu, 0, 2, 0), 10);
	assert_int_equal(in_bin(f->p.oncpu, 0, 65539, 0), 50);
	assert_int_equal(in_bin(f->p.oncpu, 0, 65535, 0), 60);
}

static void a_wait_is_in_all_seconds_that_it_spans(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_OFFCPU, MS_BLOCKED, 0);
	struct ms_total total = { .count = 2,
				  .value = 3 * SECOND + SECOND / 2,
				  .before = 3 * SECOND + SECOND / 4 };

	set_stretch(f, 4, 5);
	key.slot = 4;
	assert_int_equal(ingest_total(f->in, &key, &total), 0);
	assert_int_equal(in_bin(f->p.offcpu, 0, 0, 0), SECOND / 4);
	for (uint32_t s = 1; s < 4; s++)
		assert_int_equal(in_bin(f->p.offcpu, 0, s, 0), SECOND);
	assert_int_equal(in_bin(f->p.offcpu, 0, 4, 0), SECOND / 4);
	key.state = MS_RUNNABLE;
	total = (struct ms_total){ .count = 1, .value = 20, .before = 5 };
	assert_int_equal(ingest_total(f->in, &key, &total), 0);
	assert_int_equal(in_bin(f->p.offcpu, 0, 3, 1), 5);
	assert_int_equal(in_bin(f->p.offcpu, 0, 4, 1), 15);
	/* One that began before the run counts from its begin. */
	key.slot = 0;
	total = (struct ms_total){ .count = 1, .value = 20, .before = 15 };
	assert_int_equal(ingest_total(f->in, &key, &total), 0);
	assert_int_equal(in_bin(f->p.offcpu, 0, 0, 1), 20);
	assert_int_equal(profile_fit_times(f->p.offcpu), 0);
	assert_int_equal(in_bin(f->p.offcpu, 0, 0, 1), 20);
}

/* While its stack is awaited, hours go by. */
static void a_total_that_waited_for_its_stack_keeps_its_second(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_ONCPU, MS_STATE_NONE, 1);

	set_stretch(f, 4, 5);
	key.slot = 4;
	add_total(f, key, 1, 10);
	set_stretch(f, 65539, 65540);
	assert_int_equal(ingest_finish(f->in), 0);
	assert_int_equal(in_bin(f->p.oncpu, 0, 4, 0), 10);
}

static void growth_has_a_second_as_well(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_GROWTH, MS_RETURNED, 0);

	set_stretch(f, 4, 5);
	key.slot = 3;
	add_total(f, key, 1, 4096);
	assert_int_equal(in_bin(f->p.growth, 0, 3, 1), 4096);
	assert_int_equal(in_bin(f->p.growth, 0, 3, 0), 0);
}

static void what_has_no_time_of_its_own_is_of_the_time_since_the_last_drain(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_ALLOC, MS_STATE_NONE, 0);
	struct event_key of = wire_event(&key);
	labels_id labels;
	stack_id stack;

	set_stretch(f, 4, 5);
	assert_int_equal(
		ingest_estimate(f->in, &of, (int64_t[]){ 2, 100, 0, 0 }, 1, &stack, &labels), 0);
	assert_int_equal(in_bin(f->p.alloc, 0, 4, 0), 100);
	assert_int_equal(in_bin(f->p.alloc, 0, 4, 1), 2);
	ingest_between(f->in, 7 + SECOND / 2, 7 + 3 * SECOND / 2);
	assert_int_equal(
		ingest_estimate(f->in, &of, (int64_t[]){ 2, 100, 0, 0 }, 1, &stack, &labels), 0);
	assert_int_equal(in_bin(f->p.alloc, 0, 0, 0), 50);
	assert_int_equal(in_bin(f->p.alloc, 0, 1, 0), 50);
}

static void a_wait_that_goes_on_is_in_the_seconds_up_to_the_end(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = { .proc = self,
			       .state = MS_RUN_BLOCKED,
			       .first_ns = 7,
			       .since_ns = 7 + SECOND / 2,
			       .wake_ns = 7 + 3 * SECOND + SECOND / 4 };

	set_stretch(f, 4, 5);
	assert_int_equal(ingest_thread(f->in, 4000000, &t, 7 + 5 * SECOND), 0);
	assert_int_equal(in_bin(f->p.offcpu, 0, 0, 0), SECOND / 2);
	assert_int_equal(in_bin(f->p.offcpu, 0, 2, 0), SECOND);
	assert_int_equal(in_bin(f->p.offcpu, 0, 3, 0), SECOND / 4);
	assert_int_equal(in_bin(f->p.offcpu, 0, 3, 1), 3 * SECOND / 4);
	assert_int_equal(in_bin(f->p.offcpu, 0, 4, 1), SECOND);
	assert_int_equal(in_bin(f->p.offcpu, 0, 5, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_total_is_in_the_second_of_its_key, setup,
						fixture_free),
		cmocka_unit_test_setup_teardown(a_wait_is_in_all_seconds_that_it_spans, setup,
						fixture_free),
		cmocka_unit_test_setup_teardown(a_total_that_waited_for_its_stack_keeps_its_second,
						setup, fixture_free),
		cmocka_unit_test_setup_teardown(growth_has_a_second_as_well, setup, fixture_free),
		cmocka_unit_test_setup_teardown(
			what_has_no_time_of_its_own_is_of_the_time_since_the_last_drain, setup,
			fixture_free),
		cmocka_unit_test_setup_teardown(a_wait_that_goes_on_is_in_the_seconds_up_to_the_end,
						setup, fixture_free),
	};

	return cmocka_run_group_tests_name("collect/ingest_times", tests, NULL, NULL);
}
