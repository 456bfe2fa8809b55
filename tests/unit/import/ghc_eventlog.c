#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "eventlog_fixture.h"
#include "import/readers.h"
#include "model/about.h"
#include "model/over_time.h"
#include "model/sample_times.h"

#define S 1000000000ull

static struct dict *d;
static struct profile *p;
static struct import_info info;
static struct err e;

static int setup(void **state)
{
	d = dict_new();
	p = NULL;
	memset(&info, 0, sizeof(info));
	memset(&e, 0, sizeof(e));
	eventlog_begin();
	return 0;
}

static int teardown(void **state)
{
	profile_free(p);
	dict_free(d);
	strbuf_free(&eventlog);
	return 0;
}

static int read_log(void)
{
	return import_bytes(d, bytes_of(eventlog.s, eventlog.len), "x", NULL, &p, &info, &e);
}

/* Of the sample `name`, "root;leaf" with files and lines; -1: there is none. */
static int64_t held(const char *name, const char *type)
{
	int t = profile_find_type(p, type);

	assert_true(t >= 0);
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct strbuf stack = { 0 };
		bool same;

		for (uint32_t depth = dict_stack_depth(d, s.stack); depth--;) {
			const struct location *at;
			stack_id k = s.stack;

			for (uint32_t up = 0; up < depth; up++)
				k = dict_stack_parent(d, k);
			at = dict_location_get(d, dict_stack_leaf(d, k));
			strbuf_printf(&stack, "%s%s", stack.len ? ";" : "",
				      dict_str(d, at->lines[0].function));
			if (at->lines[0].file.ix)
				strbuf_printf(&stack, "@%s:%u", dict_str(d, at->lines[0].file),
					      at->lines[0].line);
		}
		same = strcmp(stack.s, name) == 0;
		strbuf_free(&stack);
		if (same)
			return s.values[t];
	}
	return -1;
}

static void parts_are_frames_of_their_names(void **state)
{
	eventlog_census(1 * S);
	eventlog_band(1 * S, "main:Main.Rec", 4000);
	eventlog_band(1 * S, "THUNK", 100);
	eventlog_census_end(1 * S);
	eventlog_census(2 * S);
	eventlog_band(2 * S, "THUNK", 300);
	eventlog_census_end(2 * S);
	eventlog_event(GHC_GC_START, 3 * S);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_string_equal(info.format, "eventlog");
	assert_string_equal(info.damage, "");
	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(held("main:Main.Rec", "peak_space"), 4000);
	assert_int_equal(held("THUNK", "inuse_space"), 300);
	/* 0 at 0 s, 4,000 at 1 s, 0 at 2 s; 0, 100, 300 and 0 at 3 s */
	assert_int_equal(held("main:Main.Rec", "space_time"), 4000 * 1000);
	assert_int_equal(held("THUNK", "space_time"), (50 + 200 + 150) * 1000);
	assert_int_equal(profile_get_meta(p)->duration_ns, 3 * S);
}

static void cost_centre_stacks_are_stacks_with_their_source(void **state)
{
	static const uint32_t deep[] = { 7, 6 };

	eventlog_cost_centre(6, "main", "Main", "work.hs:(20,1)-(23,40)");
	eventlog_cost_centre(7, "build", "Main", "work.hs:9:1-80");
	eventlog_cost_centre(8, "CAF", "GHC.IO", "<entire-module>");
	eventlog_census(S);
	eventlog_stack(S, deep, 2, 70);
	eventlog_stack(S, deep + 1, 1, 5);
	eventlog_stack(S, (const uint32_t[]){ 8 }, 1, 3);
	eventlog_stack(S, (const uint32_t[]){ 99 }, 1, 2);
	eventlog_stack(S, NULL, 0, 1);
	eventlog_census_end(S);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(held("Main.main@work.hs:20;Main.build@work.hs:9", "peak_space"), 70);
	assert_int_equal(held("Main.main@work.hs:20", "peak_space"), 5);
	assert_int_equal(held("GHC.IO.CAF", "peak_space"), 3);
	assert_int_equal(held("cost centre 99", "peak_space"), 2);
	assert_int_equal(held("MAIN", "peak_space"), 1);
}

/* -hi: parts are addresses of info tables, which are named wherever in the file that is. */
static void info_tables_have_their_names_types_and_places(void **state)
{
	eventlog_info_table(0x4a3b20, "sat_s1xC_info", "[Int]", "leak", "Main", "work.hs:18:14-27");
	eventlog_census(S);
	eventlog_band(S, "0x4a3b20", 1000);
	eventlog_band(S, "0x4a3b48", 200);
	eventlog_band(S, "0x99", 10);
	eventlog_band(S, "0xnothing", 1);
	eventlog_census_end(S);
	eventlog_info_table(0x4a3b48, "Rec_con_info", "", "", "Main", ":");
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(held("Main.leak :: [Int]@work.hs:18", "peak_space"), 1000);
	assert_int_equal(held("Main.Rec_con_info", "peak_space"), 200);
	assert_int_equal(held("0x99", "peak_space"), 10);
	assert_int_equal(held("0xnothing", "peak_space"), 1);
}

static void the_program_is_the_process_of_the_samples(void **state)
{
	size_t begin = eventlog_varying(GHC_PROGRAM_ARGS, 1);
	const struct label *comm;

	eventlog_put(0, 4);
	eventlog_text("/opt/bin/server");
	eventlog_text("+RTS");
	eventlog_size(begin);
	eventlog_event(GHC_OSPROCESS_PID, 1);
	eventlog_put(0, 4);
	eventlog_put(4711, 4);
	eventlog_event(GHC_WALL_CLOCK_TIME, 2 * S);
	eventlog_put(0, 4);
	eventlog_put(1800000000, 8);
	eventlog_put(500000000, 4);
	eventlog_census(3 * S);
	eventlog_band(3 * S, "A", 1);
	eventlog_census_end(3 * S);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	comm = dict_label_find(d, profile_sample(p, 0).labels, "comm");
	assert_non_null(comm);
	assert_string_equal(dict_str(d, comm->str), "server");
	assert_int_equal(dict_label_find(d, profile_sample(p, 0).labels, "pid")->num, 4711);
	assert_string_equal(profile_about(p, ABOUT_TARGET, 0), "server (pid 4711)");
	assert_int_equal(profile_get_meta(p)->time_ns, 1799999998500000000);
}

static const struct time_table *table_of(const char *id)
{
	const struct over_time *o = profile_over_time(p);

	for (uint32_t i = 0; i < o->n_series; i++)
		if (strcmp(o->series[i].id, id) == 0)
			return o->series[i].table;
	return NULL;
}

static double last(const struct time_table *t, const char *column)
{
	for (uint32_t c = 0; c < t->n_columns; c++)
		if (strcmp(t->columns[c].name, column) == 0)
			return t->columns[c].values[t->n_rows - 1];
	return -1;
}

/* Blocks of two capabilities, the one written first has the later times. */
static void what_the_collector_says_is_a_table_in_the_order_of_time(void **state)
{
	const struct time_table *t;

	eventlog_block(2 * 22 + 10 + 10, 1, 9 * S);
	eventlog_event(GHC_GC_START, 8 * S);
	eventlog_event(GHC_GC_END, 8 * S + 250000000);
	eventlog_bytes(GHC_HEAP_LIVE, 8 * S + 250000000, 3 << 20);
	eventlog_bytes(GHC_HEAP_SIZE, 8 * S + 250000000, 9 << 20);
	eventlog_block(22 + 10 + 10, 0, 4 * S);
	eventlog_event(GHC_GC_START, 1 * S);
	eventlog_event(GHC_GC_END, 1 * S + 50000000);
	eventlog_bytes(GHC_BLOCKS_SIZE, 1 * S, 8 << 20);
	eventlog_bytes(GHC_HEAP_ALLOCATED, 10 * S, 12345);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(profile_n_samples(p), 0);
	t = table_of("trend");
	assert_non_null(t);
	assert_int_equal(t->n_rows, 3);
	assert_true(fabs(t->times_s[0] - (1)) <= 0);
	assert_true(fabs(last(t, "gc_live_kb") - (3 << 10)) <= 0);
	assert_true(fabs(last(t, "gc_heap_kb") - (9 << 10)) <= 0);
	assert_true(fabs(last(t, "gc_count") - (2)) <= 0);
	assert_true(fabs(last(t, "gc_ms") - (300)) <= 1e-9);
	assert_true(fabs(last(table_of("workload"), "heap_allocated_bytes_total") - (12345)) <= 0);
}

static void marks_and_messages_are_kept_by_time(void **state)
{
	const struct over_time *o;

	eventlog_message(GHC_USER_MSG, 3 * S, "at 3");
	eventlog_message(GHC_USER_MARKER, 2 * S, "phase");
	for (int i = 0; i < OVER_TIME_MARKS; i++)
		eventlog_message(GHC_USER_MSG, 4 * S, "more");
	eventlog_message(GHC_USER_MARKER, 9 * S, "last phase");
	eventlog_end();
	assert_int_equal(read_log(), 0);
	o = profile_over_time(p);
	assert_int_equal(o->n_marks, OVER_TIME_MARKS);
	assert_int_equal(o->omitted, 3);
	assert_string_equal(dict_str(d, o->marks[0].text), "phase");
	assert_false(o->marks[0].message);
	assert_true(o->marks[1].message);
	assert_string_equal(dict_str(d, o->marks[o->n_marks - 1].text), "last phase");
}

static void a_census_of_biographies_is_where_its_event_says(void **state)
{
	eventlog_event(GHC_HEAP_BIO_PROF_SAMPLE_BEGIN, 9 * S);
	eventlog_put(1, 8);
	eventlog_put(2 * S, 8);
	eventlog_band(9 * S, "DRAG", 100);
	eventlog_census_end(9 * S);
	eventlog_event(GHC_HEAP_BIO_PROF_SAMPLE_BEGIN, 9 * S);
	eventlog_put(1, 8);
	eventlog_put(4 * S, 8);
	eventlog_band(9 * S, "DRAG", 100);
	eventlog_census_end(9 * S);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(held("DRAG", "space_time"), (100 + 200 + 250) * 1000);
}

static void samples_of_the_time_are_a_profile_of_it(void **state)
{
	eventlog_event(GHC_PROF_BEGIN, 1);
	eventlog_put(1000000, 8);
	eventlog_cost_centre(6, "main", "Main", "work.hs:2:1-5");
	for (int i = 1; i <= 3; i++) {
		size_t begin = eventlog_varying(GHC_PROF_SAMPLE_COST_CENTRE, (uint64_t)i * S);

		eventlog_put(0, 4);
		eventlog_put((uint64_t)i, 8);
		eventlog_put(1, 1);
		eventlog_put(6, 4);
		eventlog_size(begin);
	}
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(held("Main.main@work.hs:2", "samples"), 3);
	assert_int_equal(held("Main.main@work.hs:2", "cpu"), 3000000);
}

static void without_an_end_it_says_where_and_what_was_kept(void **state)
{
	char want[200];

	eventlog_census(1 * S);
	eventlog_band(1 * S, "A", 100);
	eventlog_census_end(1 * S);
	eventlog_census(2 * S);
	eventlog_band(2 * S, "A", 900);
	eventlog_band(2 * S, "B", 900);
	eventlog.len -= 4;
	assert_int_equal(read_log(), 0);
	snprintf(
		want, sizeof(want),
		"it ends at byte %zu without an end mark, within an event, as of a program that was killed or still runs; kept: "
		"5 events, 1 whole censuses of the heap; the one that was being written is left out",
		eventlog.len);
	assert_string_equal(info.damage, want);
	assert_int_equal(held("A", "inuse_space"), 100);
	/* What is not known is not taken for nothing: its line ends with the last census. */
	assert_int_equal(held("A", "space_time"), 50 * 1000);
}

static void short_events_are_left_out_and_counted(void **state)
{
	size_t begin = eventlog_varying(GHC_HEAP_PROF_SAMPLE_STRING, 1);

	eventlog_put(0, 3);
	eventlog_size(begin);
	eventlog_census(1 * S);
	eventlog_band(1 * S, "A", 100);
	eventlog_census_end(1 * S);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_non_null(strstr(info.damage, "1 events are too short"));
	assert_int_equal(held("A", "peak_space"), 100);
}

static void a_damaged_header_is_one_sentence(void **state)
{
	eventlog.s[9] ^= 0x7f;
	assert_int_equal(read_log(), -EBADMSG);
	assert_string_equal(e.msg, "x: the header of this eventlog is damaged at byte 8");
}

/* GHC before 8.6 does not say when a census ends. */
static void where_no_end_is_declared_the_next_census_ends_one(void **state)
{
	strbuf_free(&eventlog);
	eventlog_put(0x68647262, 4);
	eventlog_put(0x68657462, 4);
	eventlog_declare(GHC_HEAP_PROF_SAMPLE_BEGIN, 8);
	eventlog_declare(GHC_HEAP_PROF_SAMPLE_STRING, 0xffff);
	eventlog_put(0x68657465, 4);
	eventlog_put(0x68647265, 4);
	eventlog_put(0x64617462, 4);
	eventlog_census(1 * S);
	eventlog_band(1 * S, "A", 100);
	eventlog_census(2 * S);
	eventlog_band(2 * S, "A", 300);
	eventlog_end();
	assert_int_equal(read_log(), 0);
	assert_int_equal(held("A", "peak_space"), 300);
	assert_string_equal(info.damage, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parts_are_frames_of_their_names, setup, teardown),
		cmocka_unit_test_setup_teardown(cost_centre_stacks_are_stacks_with_their_source,
						setup, teardown),
		cmocka_unit_test_setup_teardown(info_tables_have_their_names_types_and_places,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_program_is_the_process_of_the_samples, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_the_collector_says_is_a_table_in_the_order_of_time, setup, teardown),
		cmocka_unit_test_setup_teardown(marks_and_messages_are_kept_by_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_census_of_biographies_is_where_its_event_says,
						setup, teardown),
		cmocka_unit_test_setup_teardown(samples_of_the_time_are_a_profile_of_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_an_end_it_says_where_and_what_was_kept,
						setup, teardown),
		cmocka_unit_test_setup_teardown(short_events_are_left_out_and_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_damaged_header_is_one_sentence, setup, teardown),
		cmocka_unit_test_setup_teardown(where_no_end_is_declared_the_next_census_ends_one,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
