#include "screen/profile.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type heap[] = { { "alloc_space", "bytes" }, { "inuse_space", "bytes" } };

static char *shown(struct screen *s, int rows, int columns)
{
	static char buf[1 << 16];
	FILE *to = fmemopen(buf, sizeof(buf), "w");

	assert_int_equal(screen_draw(s, rows, columns), 0);
	for (int y = 0; y < rows; y++)
		canvas_print(&s->canvas, y, to);
	fclose(to);
	return buf;
}

/* A second in which app had a CPU for 0.8 s: 0.6 in parse, 0.2 in write. */
static struct screen screen_of(void)
{
	struct fixture f = fixture_new(cpu, 2);
	struct profile_set set = { .duration_ns = 1000000000 };
	struct screen s = { 0 };

	fixture_add(&f, "app;main;parse", (int64_t[]){ 60, 600000000 });
	fixture_add(&f, "app;main;write", (int64_t[]){ 20, 200000000 });
	assert_int_equal(profile_set_add(&set, "oncpu", f.p), 0);
	profile_free(f.p);
	assert_true(screen_push(&s, profile_view_of(f.d, &set, "test")));
	return s;
}

static void rows_unfold_and_fold(void **state)
{
	struct screen s = screen_of();

	assert_non_null(strstr(shown(&s, 24, 80), "80.0"));
	assert_non_null(strstr(shown(&s, 24, 80), "app"));
	/* One way alone is followed. */
	assert_non_null(strstr(shown(&s, 24, 80), "60.0   60.0"));
	assert_true(strstr(shown(&s, 24, 80), "parse") < strstr(shown(&s, 24, 80), "write"));
	screen_key(&s, KEY_RETURN);
	assert_null(strstr(shown(&s, 24, 80), "parse"));
	screen_key(&s, KEY_MOVE_RIGHT);
	assert_non_null(strstr(shown(&s, 24, 80), "parse"));
	screen_fini(&s);
}

static void a_filter_shows_what_is_folded(void **state)
{
	struct screen s = screen_of();

	screen_draw(&s, 24, 80);
	screen_key(&s, 'f');
	screen_key(&s, 'w');
	screen_key(&s, 'r');
	screen_key(&s, KEY_RETURN);
	assert_non_null(strstr(shown(&s, 24, 80), "write"));
	assert_null(strstr(shown(&s, 24, 80), "parse"));
	screen_fini(&s);
}

static void the_flame_view_zooms_and_comes_back(void **state)
{
	struct screen s = screen_of();

	screen_draw(&s, 24, 80);
	screen_key(&s, 'F');
	assert_non_null(strstr(shown(&s, 24, 80), "\nparse"));
	assert_non_null(strstr(shown(&s, 24, 80), "write"));
	screen_key(&s, KEY_LAST);
	assert_non_null(strstr(shown(&s, 24, 80), " 75.0% 60.0  parse"));
	screen_key(&s, KEY_RETURN);
	assert_null(strstr(shown(&s, 24, 80), "write"));
	screen_key(&s, KEY_ESCAPE);
	assert_non_null(strstr(shown(&s, 24, 80), "write"));
	screen_key(&s, '/');
	screen_key(&s, 'w');
	screen_key(&s, 'r');
	screen_key(&s, KEY_RETURN);
	assert_non_null(strstr(shown(&s, 24, 80), " 25.0% 20.0  write"));
	screen_key(&s, KEY_ESCAPE); /* out of the search */
	screen_key(&s, 'F');
	assert_non_null(strstr(shown(&s, 24, 80), "CPU%▼"));
	screen_fini(&s);
}

static void every_size_is_drawn_in_both_ways(void **state)
{
	struct screen s = screen_of();

	for (int flame = 0; flame < 2; flame++) {
		for (int rows = 1; rows < 30; rows += 3)
			for (int columns = 1; columns < 200; columns += 9)
				assert_int_equal(screen_draw(&s, rows, columns), 0);
		screen_key(&s, 'F');
	}
	screen_fini(&s);
}

/* What is live is of its moment; what was allocated adds up. */
static void live_memory_is_replaced_and_allocated_memory_added(void **state)
{
	struct fixture f = fixture_new(heap, 2);
	struct profile_set set = { 0 };
	struct profile *next = profile_new(f.d, heap, 2);

	fixture_add(&f, "app;main;cache", (int64_t[]){ 100, 100 });
	profile_add(next, profile_sample(f.p, 0).stack, profile_sample(f.p, 0).labels,
		    (int64_t[]){ 50, 30 });
	assert_int_equal(profile_set_add(&set, "heap", f.p), 0);
	assert_int_equal(profile_set_add(&set, "heap", next), 0);
	assert_int_equal(set.n, 1);
	assert_int_equal(profile_total(set.kinds[0].profile, 0), 150);
	assert_int_equal(profile_total(set.kinds[0].profile, 1), 30);
	profile_set_fini(&set);
	profile_free(next);
	fixture_free(&f);
}

static void what_two_profiles_have_is_counted_once(void **state)
{
	struct fixture f = fixture_new(heap, 2);
	struct profile *alloc = profile_new(f.d, heap, 1);
	struct profile_set set = { 0 };
	struct call_tree t;

	fixture_add(&f, "app;main;cache", (int64_t[]){ 100, 70 });
	profile_add(alloc, profile_sample(f.p, 0).stack, profile_sample(f.p, 0).labels,
		    (int64_t[]){ 100 });
	assert_int_equal(profile_set_add(&set, "alloc", alloc), 0);
	assert_int_equal(profile_set_add(&set, "heap", f.p), 0);
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(profile_set_show(&set, &t, 0), 0);
	assert_int_equal(t.nodes[0].total[CALL_ALLOC], 100);
	assert_int_equal(t.nodes[0].total[CALL_LIVE], 70);
	call_tree_fini(&t);
	profile_set_fini(&set);
	profile_free(alloc);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_unfold_and_fold),
		cmocka_unit_test(a_filter_shows_what_is_folded),
		cmocka_unit_test(the_flame_view_zooms_and_comes_back),
		cmocka_unit_test(every_size_is_drawn_in_both_ways),
		cmocka_unit_test(live_memory_is_replaced_and_allocated_memory_added),
		cmocka_unit_test(what_two_profiles_have_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
