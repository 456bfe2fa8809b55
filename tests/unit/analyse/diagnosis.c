/* Each diagnosis at its threshold, and the healthy program that has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "analyse/diagnosis.h"

#define MIB (1 << 20)

static struct diagnosis found[N_DIAGNOSES];

/* A traced program without a fault: 1,000 samples, 120 of them in the allocator:
 * the fewest that a part of less than a tenth gives but once in forty. */
static struct run_summary healthy(void)
{
	struct run_summary s = { .duration_ns = 60000000000 };

	s.oncpu.samples = 1000;
	s.oncpu.allocator_samples = 120;
	s.alloc.tier = ALLOC_TIER_EXACT;
	s.alloc.objects = 100000;
	s.alloc.bytes = 500 * MIB;
	s.alloc.freed_objects = 90000;
	s.alloc.live_objects = 10000;
	s.alloc.live_bytes = 60 * MIB;
	s.alloc.temporary = 10000;
	s.alloc.lives[0] = 30000;
	s.alloc.lives[7] = 60000;
	s.alloc.peak.images = 1;
	s.alloc.peak.bytes = 70 * MIB;
	s.alloc.peak.at_ns = 12300000000;
	s.ledger.now.processes = 1;
	s.ledger.now.parts[LEDGER_TRACED].resident = 60 * MIB;
	s.ledger.now.parts[LEDGER_FREE].resident = 15 * MIB;
	s.ledger.now.parts[LEDGER_METADATA].resident = 2 * MIB;
	return s;
}

static const char *only(const struct run_summary *s, enum diagnosis_kind kind)
{
	assert_int_equal(diagnose(s, found), 1);
	assert_int_equal(found[0].kind, kind);
	return found[0].evidence;
}

static void a_healthy_program_has_none(void **state)
{
	struct run_summary s = healthy();

	assert_int_equal(diagnose(&s, found), 0);
	s = (struct run_summary){ 0 };
	assert_int_equal(diagnose(&s, found), 0);
}

static void a_stack_that_grows_and_keeps_is_a_leak(void **state)
{
	struct run_summary s = healthy();
	const char *text;

	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){
		.site = { .function = "remember" },
		.slope = 1024,
		.slope_low = 1000,
		.slope_high = 1048,
		.survived = 0.98,
		.age_s = 30,
	};
	text = only(&s, DIAGNOSIS_LEAK);
	assert_non_null(strstr(text, "remember"));
	assert_non_null(strstr(text, "60.0 KiB a minute"));
	assert_non_null(strstr(text, "98%"));
	s.alloc.n_leaks = 3;
	assert_non_null(strstr(only(&s, DIAGNOSIS_LEAK), "2 other allocation sites keep growing"));
}

static void a_function_leaks_by_all_its_stacks(void **state)
{
	struct run_summary s = healthy();
	const struct summary_leak one = {
		.site = { .function = "remember", .module = "shop" },
		.live = 1000,
		.slope = 1024,
		.slope_low = 1000,
		.slope_high = 1048,
		.survived = 0.90,
		.age_s = 30,
	};
	const char *text;

	s.alloc.n_leaks = 4;
	s.alloc.leaks[0] = s.alloc.leaks[1] = s.alloc.leaks[2] = s.alloc.leaks[3] = one;
	s.alloc.leaks[1].site.function = "other";
	s.alloc.leaks[2].survived = 1;
	s.alloc.leaks[3].site.module = "other.so";
	text = only(&s, DIAGNOSIS_LEAK);
	assert_non_null(strstr(text, "120.0 KiB a minute"));
	assert_non_null(strstr(text, "117.2 KiB to 122.8 KiB"));
	assert_non_null(strstr(text, "at remember, called on 2 paths; 95% of"));
	assert_non_null(strstr(text, "2 other allocation sites keep growing"));
}

static void memory_that_grows_untraced_is_a_leak_whose_stacks_are_not_known(void **state)
{
	struct run_summary s = healthy();

	s.shape.kind = TREND_SHAPE_GROWING;
	s.memory = (struct trend_rise){ .known = true, .base = 100 << 10, .last = 116 << 10 };
	assert_int_equal(diagnose(&s, found), 0); /* traced: no stack keeps it, so it is no leak */
	s.alloc.tier = ALLOC_TIER_DECLINED;
	assert_non_null(strstr(only(&s, DIAGNOSIS_LEAK), "16.0 MiB"));
	assert_non_null(strstr(only(&s, DIAGNOSIS_LEAK), "--alloc=exact"));
	s.alloc.unnamed = true;
	assert_non_null(strstr(only(&s, DIAGNOSIS_LEAK), "growth shows"));
	assert_null(strstr(only(&s, DIAGNOSIS_LEAK), "--alloc=exact"));
	s.target = RUN_COMMAND;
	assert_int_equal(diagnose(&s, found), 1);
	s.end = RUN_END_TARGET; /* it was work to be done, and has ended */
	assert_int_equal(diagnose(&s, found), 0);
	s.end = RUN_END_DURATION;
	s.memory.last -= 1;
	assert_int_equal(diagnose(&s, found), 0);
}

static void room_that_a_collector_makes_late_in_the_run_is_no_leak(void **state)
{
	struct run_summary s = healthy();

	s.alloc.tier = ALLOC_TIER_DECLINED;
	s.memory = (struct trend_rise){ .known = true, .base = 80 << 10, .last = 116 << 10 };
	s.shape.kind = TREND_SHAPE_GROWING;
	s.shape.span_s = 12;
	s.shape.since_s = 7;
	s.growth.known = true;
	s.growth.on_stacks = 40 << 20;
	assert_int_equal(diagnose(&s, found), 1);
	s.growth.collector_bytes = 36 << 20;
	assert_int_equal(diagnose(&s, found), 0);
	s.shape.since_s = 1; /* what it keeps grows with every collection */
	assert_int_equal(diagnose(&s, found), 1);
}

static void what_ruby_may_not_have_collected_yet_is_no_leak(void **state)
{
	struct run_summary s = healthy();

	s.langs.name = "Ruby 3.1.2";
	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] =
		(struct summary_leak){ .site = { .function = "keep (app.rb)", .module = "[Ruby]" },
				       .slope = 7e6,
				       .slope_low = 6e6,
				       .slope_high = 8e6,
				       .live = 150 << 20 };
	assert_int_equal(diagnose(&s, found), 0);
	s.alloc.leaks[0].live = 165 << 20;
	assert_int_equal(diagnose(&s, found), 1);
	/* The same of the process, where its sites are not known. */
	s.alloc.n_leaks = 0;
	s.alloc.tier = ALLOC_TIER_BURSTS;
	s.shape.kind = TREND_SHAPE_GROWING;
	s.memory = (struct trend_rise){ .known = true, .base = 250 << 10, .last = 390 << 10 };
	assert_int_equal(diagnose(&s, found), 0);
	s.memory.last = 420 << 10; /* more than that */
	assert_int_equal(diagnose(&s, found), 1);
}

static void a_site_that_grows_in_a_process_that_stays_level_is_no_leak(void **state)
{
	struct run_summary s = healthy();

	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){
		.site = { .function = "put" }, .slope = 12e6, .slope_low = 11e6, .slope_high = 13e6
	};
	s.shape.kind = TREND_SHAPE_SETTLED;
	s.shape.span_s = 12;
	s.shape.since_s = 9;
	s.shape.matters = 5000;
	assert_int_equal(diagnose(&s, found), 0);
	s.shape.since_s = 11.5; /* hardly long enough to show */
	assert_int_equal(diagnose(&s, found), 1);
	s.shape.since_s = 9;
	s.shape.kind = TREND_SHAPE_FLAT; /* memory that nobody touches is never resident */
	assert_int_equal(diagnose(&s, found), 1);
	/* One that has been level as long, by its own series, grows with work that has paused. */
	s.shape.kind = TREND_SHAPE_SETTLED;
	s.alloc.leaks[0].n_points = 4;
	for (int i = 0; i < 4; i++)
		s.alloc.leaks[0].points[i] =
			(struct point){ 100 + 4 * i, i < 2 ? 70e6 * i : 140e6 };
	assert_int_equal(diagnose(&s, found), 1);
	s.alloc.leaks[0].points[2].y = 100e6;
	assert_int_equal(diagnose(&s, found), 0);
	s.shape.tail.slope = 8000; /* kB a second: the process has grown by most of it */
	assert_int_equal(diagnose(&s, found), 1);
}

static void a_site_that_explains_hardly_any_growth_is_not_the_leak(void **state)
{
	struct run_summary s = healthy();
	const struct site_row site = { .function = "rememberVisit (service.js)",
				       .module = "[JavaScript]" };
	char text[400];

	s.alloc.tier = ALLOC_TIER_BURSTS;
	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){ .site = { .function = "listOnTimeout" },
						  .slope = 36000,
						  .slope_low = 22000,
						  .slope_high = 50000 };
	s.shape.kind = TREND_SHAPE_GROWING;
	s.memory = (struct trend_rise){ .known = true, .base = 22 << 10, .last = 400 << 10 };
	s.private.slope = s.private.slope_low = s.private.slope_high = 16e6;
	s.growth.known = true;
	s.growth.sites = &site;
	s.growth.n_sites = 1;
	assert_true(diagnosis_leak_sentence(&s, text, sizeof(text)));
	assert_non_null(strstr(text, "rememberVisit"));
	assert_null(strstr(text, "listOnTimeout"));
	/* It is most of it. */
	s.alloc.leaks[0].slope = 14e6;
	assert_true(diagnosis_leak_sentence(&s, text, sizeof(text)));
	assert_non_null(strstr(text, "listOnTimeout"));
	assert_null(strstr(text, "rememberVisit"));
}

static void leak_without_a_site_is_said_with_who_touches_new_memory(void **state)
{
	struct run_summary s = healthy();
	const struct site_row sites[] = {
		{ .function = "G1ParScanThreadState::trim_queue", .module = "libjvm.so" },
		{ .function = "Service.lambda", .module = "[Java]" },
	};
	char text[280];

	s.shape.kind = TREND_SHAPE_GROWING;
	s.memory = (struct trend_rise){ .known = true, .base = 100 << 10, .last = 116 << 10 };
	s.alloc.tier = ALLOC_TIER_DECLINED;
	s.growth.known = true;
	s.growth.n_growing = 1;
	s.growth.growing[0].site.function = "rememberOrder";
	assert_true(diagnosis_leak_sentence(&s, text, sizeof(text)));
	assert_non_null(strstr(text, "first touched in rememberOrder"));
	/* Code without a name says nothing; a site that is known says more. */
	s.growth.growing[0].site.function = "[anon]";
	assert_true(diagnosis_leak_sentence(&s, text, sizeof(text)));
	assert_null(strstr(text, "first touched"));
	assert_null(diagnosis_toucher(&s));
	/* Of all that touched memory, a function of a language goes before a collector that moves it. */
	s.growth.sites = sites;
	s.growth.n_sites = 1;
	assert_string_equal(diagnosis_toucher(&s), "G1ParScanThreadState::trim_queue");
	s.growth.n_sites = 2;
	assert_string_equal(diagnosis_toucher(&s), "Service.lambda");
}

static void brief_blocks_are_churn_where_they_cost(void **state)
{
	struct run_summary s = healthy();

	s.alloc.temporary = 25000;
	assert_non_null(strstr(only(&s, DIAGNOSIS_CHURN), "25% of 100,000"));
	s.oncpu.allocator_samples = 119;
	assert_int_equal(diagnose(&s, found), 0);
	s.oncpu.allocator_samples = 120;
	s.alloc.temporary = 24000;
	assert_int_equal(diagnose(&s, found), 0);
	s.alloc.lives[2] = 45000; /* with those of the first class 75 % */
	only(&s, DIAGNOSIS_CHURN);
	s.oncpu.samples = 20; /* few tell less of what it costs: a quarter is not surely a tenth */
	s.oncpu.allocator_samples = 5;
	assert_int_equal(diagnose(&s, found), 0);
	s.oncpu.allocator_samples = 6;
	only(&s, DIAGNOSIS_CHURN);
	s.oncpu.samples = s.oncpu.probe_samples = 1000;
	assert_int_equal(diagnose(&s, found), 0); /* and none nothing */
}

static void time_in_our_own_probes_is_not_the_programs(void **state)
{
	struct run_summary s = healthy();

	s.alloc.temporary = 50000;
	s.oncpu.samples = 2000;
	assert_int_equal(diagnose(&s, found), 0);
	s.oncpu.probe_samples = 1000;
	only(&s, DIAGNOSIS_CHURN);
}

static void an_allocator_that_is_busy_is_churn_though_nothing_was_traced(void **state)
{
	struct run_summary s = healthy();

	s.alloc.tier = ALLOC_TIER_DECLINED;
	s.oncpu.allocator_samples = 277;
	assert_int_equal(diagnose(&s, found), 0);
	s.oncpu.allocator_samples = 278;
	assert_non_null(strstr(only(&s, DIAGNOSIS_CHURN), "28%"));
}

static void a_spike_is_bloat(void **state)
{
	struct run_summary s = healthy();

	s.alloc.peak.bytes = 120 * MIB;
	assert_non_null(strstr(only(&s, DIAGNOSIS_BLOAT), "12.3 s into the run, 120.0 MiB"));
	s.alloc.peak.bytes -= 1;
	assert_int_equal(diagnose(&s, found), 0);
	s.alloc.live_bytes = 1 * MIB;
	s.alloc.peak.bytes = 16 * MIB; /* sixteen times as much, but of little */
	assert_int_equal(diagnose(&s, found), 0);
}

static void blocks_that_cost_more_than_they_hold_are_bloat(void **state)
{
	struct run_summary s = healthy();

	s.ledger.now.parts[LEDGER_FREE].resident = 0;
	s.ledger.now.parts[LEDGER_METADATA].resident = 29 * MIB;
	assert_int_equal(diagnose(&s, found), 0);
	s.ledger.now.parts[LEDGER_METADATA].resident = 30 * MIB;
	assert_non_null(strstr(only(&s, DIAGNOSIS_BLOAT), "30.0 MiB"));
}

static void a_quarter_of_the_heap_in_no_block_is_fragmentation(void **state)
{
	struct run_summary s = healthy();

	s.ledger.now.parts[LEDGER_FREE].resident = 20 * MIB;
	assert_int_equal(diagnose(&s, found), 0);
	s.ledger.now.parts[LEDGER_FREE].resident = 21 * MIB;
	assert_non_null(strstr(only(&s, DIAGNOSIS_FRAGMENTATION), "21.0 MiB, 25%"));
	s.ledger.now.processes = 0;
	assert_int_equal(diagnose(&s, found), 0);
}

static void none_excludes_another(void **state)
{
	struct run_summary s = healthy();

	s.alloc.n_leaks = 1;
	s.alloc.leaks[0].site.function = "";
	s.alloc.temporary = 50000;
	s.alloc.peak.bytes = 200 * MIB;
	s.ledger.now.parts[LEDGER_FREE].resident = 100 * MIB;
	assert_int_equal(diagnose(&s, found), N_DIAGNOSES);
	for (int i = 0; i < N_DIAGNOSES; i++) {
		assert_int_equal(found[i].kind, i);
		assert_true(strlen(found[i].evidence) > 20);
		assert_true(strlen(diagnosis_name(found[i].kind)) > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_program_has_none),
		cmocka_unit_test(a_stack_that_grows_and_keeps_is_a_leak),
		cmocka_unit_test(a_function_leaks_by_all_its_stacks),
		cmocka_unit_test(memory_that_grows_untraced_is_a_leak_whose_stacks_are_not_known),
		cmocka_unit_test(room_that_a_collector_makes_late_in_the_run_is_no_leak),
		cmocka_unit_test(what_ruby_may_not_have_collected_yet_is_no_leak),
		cmocka_unit_test(a_site_that_grows_in_a_process_that_stays_level_is_no_leak),
		cmocka_unit_test(a_site_that_explains_hardly_any_growth_is_not_the_leak),
		cmocka_unit_test(leak_without_a_site_is_said_with_who_touches_new_memory),
		cmocka_unit_test(brief_blocks_are_churn_where_they_cost),
		cmocka_unit_test(time_in_our_own_probes_is_not_the_programs),
		cmocka_unit_test(an_allocator_that_is_busy_is_churn_though_nothing_was_traced),
		cmocka_unit_test(a_spike_is_bloat),
		cmocka_unit_test(blocks_that_cost_more_than_they_hold_are_bloat),
		cmocka_unit_test(a_quarter_of_the_heap_in_no_block_is_fragmentation),
		cmocka_unit_test(none_excludes_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
