#include "base/sink.h"
#include "model/pprof.h"
#include "screen/profile_parts.h"
#include "unit/profile_fixture.h"

#include <poll.h>
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

static void send_second(int out, int64_t parse_ns, int64_t write_ns)
{
	struct fixture f = fixture_new(cpu, 2);
	struct sink *sink = NULL;
	struct err e = { 0 };
	uint64_t ns = 1000000000;
	const char *data;
	size_t len;

	fixture_add(&f, "app;main;parse", (int64_t[]){ parse_ns / 10000000, parse_ns });
	fixture_add(&f, "app;main;write", (int64_t[]){ write_ns / 10000000, write_ns });
	assert_int_equal(sink_open_memory(&sink, &e), 0);
	sink_write(sink, "oncpu", 6);
	assert_int_equal(pprof_write(f.p, (module_id){ 0 }, sink, &e), 0);
	assert_int_equal(sink_commit(sink, &e), 0);
	data = sink_memory(sink, &len);
	worker_send(out, WORKER_PROFILE, data, len);
	worker_send(out, WORKER_WINDOW, &ns, sizeof(ns));
	sink_close(sink);
	fixture_free(&f);
}

/* Two seconds of the one, and when it is asked one of the other. */
static int work(void *ctx, int in, int out)
{
	char c;

	send_second(out, 600000000, 200000000);
	send_second(out, 600000000, 200000000);
	while (read(in, &c, 1) == 1)
		if (c == '\n')
			send_second(out, 100000000, 300000000);
	return 0;
}

static int save(const struct profile_set *set, const char *title, char *ret_path, size_t cap,
		struct err *e)
{
	return 0;
}

static void wait_seconds(struct screen *s, int seconds)
{
	struct profile_view *pv = profile_view(screen_top(s));
	struct pollfd fd = { .fd = pv->worker.from, .events = POLLIN };

	while (pv->all.duration_ns < seconds * 1000000000LL) {
		assert_int_equal(poll(&fd, 1, 60000), 1);
		profile_tick(&pv->view, s);
	}
}

static void a_mark_shows_what_changed_since_as_rates(void **state)
{
	struct screen s = { 0 };
	struct view *v;
	struct err e = { 0 };

	assert_int_equal(profile_view_live(work, NULL, &(struct screen_target){ .title = "app" },
					   save, &v, &e),
			 0);
	assert_true(screen_push(&s, v));
	wait_seconds(&s, 2);
	screen_draw(&s, 24, 80);
	screen_key(&s, 'd');
	assert_non_null(strstr(shown(&s, 24, 80), "m marks a moment"));
	screen_key(&s, 'm');
	screen_key(&s, 'd');
	assert_non_null(strstr(shown(&s, 24, 80), "nothing was gathered since"));
	worker_ask(&profile_view(v)->worker, "more");
	wait_seconds(&s, 3);
	assert_non_null(strstr(shown(&s, 24, 80), "marked at"));
	screen_key(&s, 'd');
	/* 80 % of a CPU before, 40 % since. */
	assert_non_null(strstr(shown(&s, 24, 80), "CHANGE: last 1.0 s less 2.0 s before"));
	assert_non_null(strstr(shown(&s, 24, 80), "CPU% -40.0"));
	assert_non_null(strstr(shown(&s, 24, 80), "-50.0  -50.0"));
	assert_non_null(strstr(shown(&s, 24, 80), "+10.0  +10.0"));
	/* The largest increase first. */
	assert_true(strstr(shown(&s, 24, 80), "write") < strstr(shown(&s, 24, 80), "parse"));
	screen_key(&s, KEY_ESCAPE);
	assert_non_null(strstr(shown(&s, 24, 80), "CPU% 66.7"));
	screen_key(&s, 'z');
	screen_key(&s, 'd');
	assert_non_null(strstr(shown(&s, 24, 80), "m marks a moment"));
	screen_fini(&s);
	workers_wait(5000);
}

/* What is shown while it is paused stays so: rates, too. */
static void a_pause_holds_rates(void **state)
{
	struct screen s = { 0 };
	struct view *v;
	struct err e = { 0 };

	assert_int_equal(profile_view_live(work, NULL, &(struct screen_target){ .title = "app" },
					   save, &v, &e),
			 0);
	assert_true(screen_push(&s, v));
	wait_seconds(&s, 2);
	screen_key(&s, 'p');
	worker_ask(&profile_view(v)->worker, "more");
	wait_seconds(&s, 3);
	assert_non_null(strstr(shown(&s, 24, 80), "CPU% 80.0"));
	screen_fini(&s);
	workers_wait(5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_unfold_and_fold),
		cmocka_unit_test(a_filter_shows_what_is_folded),
		cmocka_unit_test(the_flame_view_zooms_and_comes_back),
		cmocka_unit_test(every_size_is_drawn_in_both_ways),
		cmocka_unit_test(a_mark_shows_what_changed_since_as_rates),
		cmocka_unit_test(a_pause_holds_rates),
		cmocka_unit_test(live_memory_is_replaced_and_allocated_memory_added),
		cmocka_unit_test(what_two_profiles_have_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
