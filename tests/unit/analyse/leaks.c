/*
 * Days of programs whose truth is known, by a faked clock and through the code of a run: what is said to leak, by
 * sites and by private memory alone, and what memory that takes. Five leak; five have caches, tables and queues.
 * MEMSCOPE_TEST_DAYS: days of each, 20 without it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/alloc_series.h"
#include "analyse/diagnosis.h"
#include "analyse/leaks.h"
#include "simulate.h"

#include <malloc.h>
#include <stdlib.h>

#define DAY_S  86400.0
#define TICK_S 60.0
#define TICKS  1440
#define WORK   240 /* points of work: every sixth tick */
#define KEPT_S 30.0
#define BLOCK  200.0 /* bytes of one                                  */
#define MIB    1048576.0

/* A moment. Requests come by day and not at night, wherever in it the run begins; sessions rise in the end. */
struct moment {
	double t_s, requests, rush, sessions; /* rush: the rate of half an hour */
	double all_requests;                  /* of the day */
};

/* What a program's function holds at a moment, and has made of blocks; drawn for each day: a and b, in (0, 1). */
struct holds {
	double live, made, old; /* old: blocks, live and older than KEPT_S */
};

struct program {
	const char *name;
	bool leaks, by_time; /* by_time: said without any knowledge of work, too */
	void (*at)(const struct moment *m, double a, double b, struct holds *h);
};

static void keeps_all(struct holds *h, double live)
{
	*h = (struct holds){ live, live / BLOCK, live / BLOCK };
}

static void leaks_all_day(const struct moment *m, double a, double b, struct holds *h)
{
	(void)b;
	keeps_all(h, (60 + 500 * a) * MIB * m->t_s / DAY_S);
}

static void leaks_with_each_request(const struct moment *m, double a, double b, struct holds *h)
{
	(void)b;
	keeps_all(h, (60 + 500 * a) * MIB * m->requests / m->all_requests);
}

static void leaks_in_jobs(const struct moment *m, double a, double b, struct holds *h)
{
	keeps_all(h, (4 + 20 * a) * MIB * floor(m->t_s / 3600 + b));
}

/* What it collects now and then takes half as much as it leaks meanwhile. */
static void leaks_below_a_saw(const struct moment *m, double a, double b, struct holds *h)
{
	double every = 3600 + 7200 * b, saws = m->t_s / every, step = (20 + 20 * a) * MIB;

	h->live = step * saws + step / 2 * (saws - floor(saws));
	h->made = (step + step / 2) * saws / BLOCK;
	h->old = step * saws / BLOCK;
}

static void leaks_from_some_hour_on(const struct moment *m, double a, double b, struct holds *h)
{
	keeps_all(h, fmax(0, m->t_s / 3600 - 4 - 8 * b) * (6 + 20 * a) * MIB);
}

/* Its oldest entries make room for new ones. */
static void lru_fills(const struct moment *m, double a, double b, struct holds *h)
{
	double cap = (60 + 500 * a) * MIB, rate = cap / (3600 + 5 * 3600 * b);

	h->live = fmin(cap, rate * m->t_s);
	h->made = rate * m->t_s / BLOCK;
	h->old = fmax(0, h->live - rate * KEPT_S) / BLOCK;
}

/* Nothing is replaced: it knows all that it will ever know when a part of the day's requests has come. */
static void cache_fills_with_requests(const struct moment *m, double a, double b, struct holds *h)
{
	double full = (0.2 + 0.3 * b) * m->all_requests;

	keeps_all(h, (60 + 500 * a) * MIB * fmin(1, m->requests / full));
}

static void table_learns_ever_fewer_keys(const struct moment *m, double a, double b,
					 struct holds *h)
{
	double of = (0.08 + 0.17 * b) * m->all_requests;

	keeps_all(h, (60 + 500 * a) * MIB * (1 - exp(-m->requests / of)));
}

static void queue_is_as_long_as_the_rush(const struct moment *m, double a, double b,
					 struct holds *h)
{
	(void)b;
	h->live = (60 + 500 * a) * MIB * m->rush / 50;
	h->made = m->requests;
	h->old = 0.1 * h->live / BLOCK;
}

static void each_session_has_its_own(const struct moment *m, double a, double b, struct holds *h)
{
	(void)b;
	keeps_all(h, (100 + 500 * a) * MIB * m->sessions / 1000);
}

static const struct program programs[] = {
	{ "leaks_all_day", true, true, leaks_all_day },
	{ "leaks_with_each_request", true, false, leaks_with_each_request },
	{ "leaks_in_jobs", true, true, leaks_in_jobs },
	{ "leaks_below_a_saw", true, true, leaks_below_a_saw },
	{ "leaks_from_some_hour_on", true, true, leaks_from_some_hour_on },
	{ "lru_fills", false, true, lru_fills },
	{ "cache_fills_with_requests", false, false, cache_fills_with_requests },
	{ "table_learns_ever_fewer_keys", false, false, table_learns_ever_fewer_keys },
	{ "queue_is_as_long_as_the_rush", false, false, queue_is_as_long_as_the_rush },
	{ "each_session_has_its_own", false, false, each_session_has_its_own },
};
enum { N_PROGRAMS = sizeof(programs) / sizeof(*programs) };

static struct moment world[TICKS];

static void draw_world(void)
{
	double phase = sim_uniform(), requests = 0, sessions = 300,
	       drift = 100 + 400 * sim_uniform();

	for (int i = 0; i < TICKS; i++) {
		double t = (i + 1) * TICK_S, s = sin(M_PI * (t / DAY_S + phase));
		double rate = 50 * s * s * (0.7 + 0.6 * sim_uniform());

		world[i].t_s = t;
		world[i].rush = i ? world[i - 1].rush + (rate - world[i - 1].rush) / 30 : rate;
		requests += rate * TICK_S;
		sessions = fmax(50, sessions + drift / TICKS + 6 * sim_normal());
		world[i].requests = requests;
		world[i].sessions = sessions;
	}
	for (int i = 0; i < TICKS; i++)
		world[i].all_requests = requests;
}

/* The series that a run keeps. */
struct watch {
	struct dict *dict;
	struct live_series *live;
	struct alloc_series *rates;
	struct trend private;
	double of[3]; /* bytes of each site, as the series have them */
	struct point requests[WORK], sessions[WORK], cpu[WORK];
	uint32_t n_work;
};

/* What f0 grows by, what f1 uses and f2 holds. `noise`: of estimates, a part of each. */
static void watch_tick(struct watch *w, int i, const struct holds *h, double noise)
{
	const struct moment *m = &world[i];
	double now[3] = { h->live, (2 + 0.2 * sim_normal()) * MIB, (20 + sim_normal()) * MIB };
	double all = 40 * MIB;

	for (int f = 0; f < 3; f++) {
		stack_id stack = sim_stack(w->dict, f);
		double seen = now[f] * (1 + noise * sim_normal());

		all += now[f];
		assert_int_equal(live_series_add(w->live, 1, stack, 1, llround(seen - w->of[f])),
				 0);
		assert_int_equal(
			alloc_series_add(w->rates, &stack, 1000 * (f + 1), m->t_s - TICK_S, m->t_s),
			0);
		w->of[f] = w->of[f] + llround(seen - w->of[f]);
	}
	live_series_tick(w->live, m->t_s);
	alloc_series_tick(w->rates, m->t_s);
	trend_add(&w->private, llround(all / 1024));
	if (i % (TICKS / WORK))
		return;
	w->requests[w->n_work] = (struct point){ m->t_s, m->requests };
	w->sessions[w->n_work] = (struct point){ m->t_s, m->sessions };
	w->cpu[w->n_work] = (struct point){ m->t_s, 0.01 * m->t_s + 0.002 * m->requests };
	w->n_work++;
}

static void watch_open(struct watch *w)
{
	*w = (struct watch){ .dict = dict_new(),
			     .live = live_series_new(),
			     .rates = alloc_series_new() };
	assert_non_null(w->dict);
	assert_non_null(w->live);
	assert_non_null(w->rates);
}

static void watch_close(struct watch *w)
{
	live_series_free(w->live);
	alloc_series_free(w->rates);
	dict_free(w->dict);
}

/* The facts that a run reports. `work`: requests and sessions are known. */
static void facts(struct watch *w, bool traced, bool work, struct summary_workload rows[3],
		  struct run_summary *s)
{
	struct point p[TREND_POINTS];
	uint32_t n = trend_points(&w->private, TICK_S, p);

	*s = (struct run_summary){ .duration_ns = (int64_t)(DAY_S * 1e9) };
	rows[0] = (struct summary_workload){ "cpu_seconds", .own = true, .points = w->cpu };
	rows[1] = (struct summary_workload){ "requests_total", .counter = true,
					     .points = w->requests };
	rows[2] = (struct summary_workload){ "sessions", .points = w->sessions };
	for (int i = 0; i < 3; i++)
		rows[i].n_points = w->n_work;
	s->workload = rows;
	s->n_workload = work ? 3 : 1;
	s->memory = trend_rise(&w->private, false);
	trend_shape_of(p, n, &s->shape);
	leaks_private(p, n, &s->shape, &s->private);
	if (traced) {
		s->alloc.tier = ALLOC_TIER_EXACT;
		s->alloc.objects = 1000000;
		leaks_of(w->live, w->dict, KEPT_S, &s->alloc);
	}
	leaks_against_work(s);
}

static bool is_said_to_leak(const struct run_summary *s)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);

	for (uint32_t i = 0; i < n; i++)
		if (found[i].kind == DIAGNOSIS_LEAK)
			return true;
	return false;
}

static const char *first(const struct run_summary *s)
{
	static char text[300];

	*text = '\0';
	if (s->alloc.n_leaks)
		leak_sentence(s, &s->alloc.leaks[0], text, sizeof(text));
	else if (s->alloc.n_no_leaks)
		leak_sentence(s, &s->alloc.no_leaks[0], text, sizeof(text));
	else
		leak_sentence(s, &s->private, text, sizeof(text));
	return text;
}

/* How often what is said is wrong: by sites, and by private memory alone. */
static uint32_t judge_day(const struct program *prog, struct watch *w, bool work)
{
	struct summary_workload rows[3];
	static struct run_summary s;
	uint32_t wrong = 0;

	for (int traced = 1; traced >= 0; traced--) {
		bool right;

		facts(w, traced, work, rows, &s);
		right = is_said_to_leak(&s) == prog->leaks;
		if (traced)
			right &= s.alloc.n_leaks == prog->leaks;
		if (traced && prog->leaks && s.alloc.n_leaks)
			right &= strcmp(s.alloc.leaks[0].site.function, "f0") == 0;
		if (!right)
			print_message("%s, %s, %s: %u leaks, private %s: %s\n", prog->name,
				      traced ? "sites" : "private", work ? "work" : "no work",
				      s.alloc.n_leaks, trend_shape_name(s.shape.kind), first(&s));
		wrong += !right;
	}
	return wrong;
}

static uint32_t a_day(const struct program *prog, double noise)
{
	double a = sim_uniform(), b = sim_uniform();
	struct holds h = { 0 };
	struct watch w;
	uint32_t wrong;

	watch_open(&w);
	draw_world();
	for (int i = 0; i < TICKS; i++) {
		double before = h.made;

		prog->at(&world[i], a, b, &h);
		/* Its blocks: one each was counted with its bytes. */
		live_series_add(w.live, 1, sim_stack(w.dict, 0),
				llround(fmax(0, h.made - before)) - 1, 0);
		watch_tick(&w, i, &h, noise);
	}
	live_series_old(w.live, 1, sim_stack(w.dict, 0), (uint64_t)llround(h.old));
	wrong = judge_day(prog, &w, true);
	if (prog->by_time)
		wrong += judge_day(prog, &w, false);
	watch_close(&w);
	return wrong;
}

static void days_of_five_leaks_and_of_five_that_fill(void **state)
{
	const char *days = getenv("MEMSCOPE_TEST_DAYS");
	int n = days ? atoi(days) : 20;
	uint32_t wrong = 0;

	(void)state;
	assert_true(n > 0);
	for (int i = 0; i < n; i++)
		for (int p = 0; p < N_PROGRAMS; p++)
			wrong += a_day(&programs[p], i % 2 ? 0.01 : 0);
	assert_int_equal(wrong, 0);
}

/* What is allocated is what the series take: sites come and go all day, thousands of them. */
static size_t taken_after(struct watch *w, int from, int end)
{
	const struct holds h = { .live = 30 * MIB };

	for (int i = from; i < end; i++) {
		for (uint32_t k = 0; k < 200; k++) { /* kept until the next tick */
			stack_id stack = { 1000 + 200 * (uint32_t)i + k };

			live_series_add(w->live, 1, stack, 1, 1000);
			alloc_series_add(w->rates, &stack, 1000, world[i].t_s - TICK_S,
					 world[i].t_s);
		}
		watch_tick(w, i, &h, 0);
		for (uint32_t k = 0; k < 200; k++)
			live_series_add(w->live, 1, (stack_id){ 1000 + 200 * (uint32_t)i + k }, -1,
					-1000);
	}
	return mallinfo2().uordblks;
}

static void a_day_takes_no_more_memory_than_an_hour(void **state)
{
	struct watch w;
	size_t hour, day;

	(void)state;
	watch_open(&w);
	draw_world();
	hour = taken_after(&w, 0, 60);
	day = taken_after(&w, 60, TICKS);
	print_message("after an hour %zu KiB, after a day %zu KiB\n", hour / 1024, day / 1024);
	assert_true(live_series_moved(w.live).rows > 100000);
	assert_true(alloc_series_moved(w.rates).rows > 100000);
	assert_in_range(day, hour * 99 / 100, hour * 101 / 100);
	watch_close(&w);
}

static struct summary_leak line(double per_s, double per_unit, const struct point *work, uint32_t n)
{
	struct summary_leak leak = { .site = { .function = "handler" },
				     .slope = 70000,
				     .slope_low = 65000,
				     .slope_high = 75000,
				     .survived = 1,
				     .n_points = n };

	for (uint32_t i = 0; i < n; i++)
		leak.points[i] =
			(struct point){ work[i].t, per_s * work[i].t + per_unit * work[i].y +
							   1000 * sim_normal() };
	return leak;
}

/* The same requests, by turns of ten seconds: what is said of memory that grows with them, and without. */
static void the_sentence_says_what_work_says(void **state)
{
	struct point requests[100], level[100];
	struct summary_workload rows[1] = { { "requests", .counter = true, .points = requests } };
	struct run_summary s = { .duration_ns = 100000000000, .workload = rows, .n_workload = 1 };
	struct summary_leak *leak = &s.alloc.leaks[0];
	double sum = 0;
	char text[300];

	(void)state;
	rows[0].n_points = 100;
	for (uint32_t i = 0; i < 100; i++) {
		sum += i / 10 % 2 ? 0 : 100;
		requests[i] = (struct point){ i, sum };
		level[i] = (struct point){ i, 1000 * i };
	}
	s.alloc.n_leaks = 1;
	*leak = line(70000, 0, requests, 100);
	leaks_against_work(&s);
	assert_int_equal(leak->says, GROWTH_LEAK_IDLE);
	leak_sentence(&s, leak, text, sizeof(text));
	assert_string_equal(text, "4.0 MiB a minute (95 % interval 3.7 MiB to 4.3 MiB) retained at "
				  "handler; it grows also without requests");
	*leak = line(0, 1400, requests, 100);
	leaks_against_work(&s);
	assert_int_equal(leak->says, GROWTH_LEAK_WORK);
	leak_sentence(&s, leak, text, sizeof(text));
	assert_non_null(strstr(text, "; it grows with each of requests: 1.4 KiB for each (95 %"));
	/* A level of so much work explains it, and is no leak. */
	rows[0].counter = false;
	*leak = line(0, 1400, requests, 100);
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 0);
	assert_int_equal(s.alloc.n_no_leaks, 1);
	assert_int_equal(s.alloc.no_leaks[0].says, GROWTH_FOLLOWS);
	leak_sentence(&s, &s.alloc.no_leaks[0], text, sizeof(text));
	assert_non_null(strstr(text, "it grows in proportion to requests: 1.4 KiB for each"));
	/* Work that goes on evenly says nothing. */
	rows[0] = (struct summary_workload){ "requests", .counter = true, .points = level,
					     .n_points = 100 };
	s.alloc.n_leaks = 1;
	s.alloc.n_no_leaks = 0;
	*leak = line(0, 1400, level, 100);
	leaks_against_work(&s);
	assert_int_equal(leak->says, GROWTH_LEAK);
	leak_sentence(&s, leak, text, sizeof(text));
	assert_non_null(strstr(text, "; whether with requests or by itself is unknown"));
}

/* A cache that is full, and whose entries are older than the run: each that comes is one of the run. */
static void what_takes_the_place_of_older_memory_is_no_leak(void **state)
{
	struct point level[100];
	struct run_summary s = { .duration_ns = 100000000000 };
	struct summary_leak *leak = &s.alloc.leaks[0];
	char text[300];

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		level[i] = (struct point){ i, 0 };
	s.memory =
		(struct trend_rise){ .known = true, .base = 67956, .last = 67936, .peak = 67984 };
	s.shape = (struct trend_shape){ .kind = TREND_SHAPE_FLAT, .matters = 1024 };
	s.alloc.n_leaks = 1;
	*leak = line(70000, 0, level, 100);
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 0);
	assert_int_equal(s.alloc.n_no_leaks, 1);
	assert_int_equal(s.alloc.no_leaks[0].says, GROWTH_REPLACES);
	leak_sentence(&s, &s.alloc.no_leaks[0], text, sizeof(text));
	assert_non_null(strstr(
		text, "handler has 6.6 MiB more than at the start, and the process has not"));
	/* A process that breathes as far would not show it. */
	s.alloc.n_leaks = 1;
	s.alloc.n_no_leaks = 0;
	s.memory.peak = 71000;
	*leak = line(70000, 0, level, 100);
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 1);
	s.memory.peak = 67984;
	/* Memory that is never written to grows what is in use, and not the process. */
	s.alloc.n_leaks = 1;
	s.alloc.n_no_leaks = 0;
	*leak = line(70000, 0, level, 100);
	leak->held_known = true;
	leak->held_grew = 69000 * 99;
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 1);
	leak->held_grew = 17000 * 99;
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 0);
	/* So little that the process would not show it; a process that grows. */
	s.alloc.n_leaks = 1;
	s.alloc.n_no_leaks = 0;
	*leak = line(20000, 0, level, 100);
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 1);
	s.shape.kind = TREND_SHAPE_GROWING;
	*leak = line(70000, 0, level, 100);
	leaks_against_work(&s);
	assert_int_equal(s.alloc.n_leaks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sentence_says_what_work_says),
		cmocka_unit_test(a_day_takes_no_more_memory_than_an_hour),
		cmocka_unit_test(days_of_five_leaks_and_of_five_that_fill),
		cmocka_unit_test(what_takes_the_place_of_older_memory_is_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
