#include "run/output/profile_ring.h"
#include "run_fixture.h"

static struct run_config cfg = { .hz = 99, .mem_mb = 64 };
static uint64_t part_ns;
static int64_t each; /* bytes in each part */
static bool last;

/* A part has `each` samples of a stack of its own, and of one that all have. */
int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e)
{
	const int64_t values[4] = { 1, each, 1, since->no_live ? 0 : 1000 };
	const struct value_error error = { .samples = 1, .v = 4 };
	static uint64_t nth;
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	struct profile *p = profile_new(r->dict, profile_rows[PROFILE_HEAP].types, 4);

	called(since->no_live ? "part" : "window");
	assert_int_equal(
		profile_add(p, dict_stack(r->dict, &at, 1), dict_labels(r->dict, NULL, 0), values),
		0);
	assert_int_equal(profile_add_error(p, dict_stack(r->dict, &at, 1),
					   dict_labels(r->dict, NULL, 0), 1, &error),
			 0);
	at = dict_location(r->dict, (module_id){ 0 }, 8192 + nth++);
	assert_int_equal(
		profile_add(p, dict_stack(r->dict, &at, 1), dict_labels(r->dict, NULL, 0), values),
		0);
	*ret_now = (struct profile_now){ .time_ns = since->begin.wall_ns,
					 .duration_ns = (int64_t)(part_ns - since->begin.ns),
					 .end_ns = part_ns,
					 .last = last };
	ret_now->profiles[PROFILE_HEAP] = p;
	since->begin.ns = part_ns;
	since->begin.wall_ns = (int64_t)part_ns;
	return 0;
}

/* Parts, a second each, of which the first begins at `from_s`. */
static void turn(struct profile_ring *ring, struct run *r, int n)
{
	for (int i = 0; i < n; i++) {
		part_ns += 1000000000;
		assert_int_equal(profile_ring_turn(ring, r, NULL), 0);
	}
}

static void a_window_is_what_is_kept_and_what_came_since(void **state)
{
	struct run *r = bare_run(&cfg);
	_cleanup_(profile_ring_freep) struct profile_ring *ring = profile_ring_new(6, 1 << 20);
	_cleanup_(profile_now_fini) struct profile_now now = { 0 }, again = { 0 };
	struct profile_sample first;
	struct value_error error;

	each = 10;
	last = false;
	part_ns = now_ns() - 100000000;
	r->clock.end_ns = 0;
	turn(ring, r, 20);
	/* The clock of the test runs ahead of that of the machine: nothing gets old meanwhile. */
	r->clock.end_ns = part_ns;
	assert_int_equal(profile_ring_take(ring, r, &now, NULL), 0);
	/* Seven parts reach six seconds back or more; the window itself is one. */
	assert_int_equal(profile_total(now.profiles[PROFILE_HEAP], 0), 2 * 8);
	assert_int_equal(profile_total(now.profiles[PROFILE_HEAP], 1), 2 * 10 * 8);
	/* What lives is that of its end, and not of each part. */
	assert_int_equal(profile_total(now.profiles[PROFILE_HEAP], 3), 2 * 1000);
	assert_int_equal(profile_n_samples(now.profiles[PROFILE_HEAP]), 1 + 8);
	assert_int_equal(now.duration_ns, 7000000000);
	/* The next has all of it, and the part that ended with the first. */
	assert_int_equal(profile_ring_take(ring, r, &again, NULL), 0);
	assert_int_equal(profile_total(again.profiles[PROFILE_HEAP], 0), 2 * 9);
	assert_int_equal(profile_total(again.profiles[PROFILE_HEAP], 3), 2 * 1000);
	/* Estimates stay estimates: the first sample is the one that all parts have. */
	first = profile_sample(again.profiles[PROFILE_HEAP], 0);
	assert_true(profile_error(&first, 1, &error));
	assert_true(error.v == 9 * 4);
	bare_run_free(r);
	(void)state;
}

static void without_room_it_goes_less_far_back_and_says_so(void **state)
{
	struct run *r = bare_run(&cfg);
	_cleanup_(profile_ring_freep) struct profile_ring *ring = profile_ring_new(6, 700);
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	struct profile_ring_stats stats;

	part_ns = now_ns();
	turn(ring, r, 10);
	profile_ring_stats(ring, &stats);
	assert_int_equal(stats.max_bytes, 700);
	assert_true(stats.cut_short > 0);
	/* Two samples of four values, 192 bytes, and a variance of one, 16 + 48: without it a third part would
	 * have room. A part is there until it is noticed that there is none. */
	assert_int_equal(stats.peak_bytes, 3 * (192 + 64));
	r->clock.end_ns = part_ns;
	assert_int_equal(profile_ring_take(ring, r, &now, NULL), 0);
	assert_int_equal(profile_total(now.profiles[PROFILE_HEAP], 0), 2 * 3);
	bare_run_free(r);
	(void)state;
}

static void before_anything_was_kept_a_window_is_what_came_since(void **state)
{
	struct run *r = bare_run(&cfg);
	_cleanup_(profile_ring_freep) struct profile_ring *ring = profile_ring_new(30, 1 << 20);
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };

	assert_true(profile_ring_due(ring) > now_ns() + 4000000000); /* a sixth of 30 s */
	part_ns = now_ns();
	assert_int_equal(profile_ring_take(ring, r, &now, NULL), 0);
	assert_int_equal(profile_total(now.profiles[PROFILE_HEAP], 0), 2);
	assert_string_equal(fake.calls, "window");
	bare_run_free(r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_is_what_is_kept_and_what_came_since),
		cmocka_unit_test(without_room_it_goes_less_far_back_and_says_so),
		cmocka_unit_test(before_anything_was_kept_a_window_is_what_came_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
