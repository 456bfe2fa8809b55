#include "import_fixture.h"
#include "render/tables/profile_text.h"

#define HEAD "desc: (none)\ncmd: ./t -x\ntime_unit: i\n"
#define SNAPSHOT(n, time, heap, extra, stacks, tree)                                               \
	"#-----------\nsnapshot=" n "\n#-----------\ntime=" time "\nmem_heap_B=" heap              \
	"\nmem_heap_extra_B=" extra "\nmem_stacks_B=" stacks "\nheap_tree=" tree "\n"
#define ROOT(kids, bytes)                                                                          \
	"n" kids ": " bytes " (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"

static const char three[] = HEAD SNAPSHOT("0", "0", "0", "0", "0", "empty")
	SNAPSHOT("1", "2000000000", "1000", "24", "8", "peak") ROOT(
		"3",
		"1000") " n1: 600 0x1095BC: inl (t.cpp:7)\n"
			"  n2: 600 0x1095BC: grow(int) (t.cpp:9)\n"
			"   n0: 500 0x109175: main (t.cpp:12)\n"
			"   n0: 60 0x109185: main (t.cpp:13)\n"
			" n0: 300 0x48FC7B9: ??? (in /usr/lib/libstdc++.so.6)\n"
			" n0: 100 in 2 places, all below massif's threshold (1.00%)\n" SNAPSHOT(
				"2", "3000000000", "320", "8", "0", "detailed")
				ROOT("2",
				     "320") " n0: 300 0x48FC7B9: ??? (in /usr/lib/libstdc++.so.6)\n"
					    " n0: 20 0x5: late (t.cpp:1)\n" SNAPSHOT(
						    "3", "4000000000", "100", "8", "0", "empty");

static void the_peak_and_the_last_tree_are_values(void **state)
{
	struct profile *p = read_text(three, "massif");

	assert_non_null(p);
	assert_string_equal(info.damage, "");
	assert_int_equal(info.skipped_lines, 0);
	assert_int_equal(value_of(p, "main;grow(int);inl", "peak_space"), 560);
	/* No caller has the rest: the path was cut. */
	assert_int_equal(value_of(p, "grow(int);inl", "peak_space"), 40);
	assert_int_equal(value_of(p, "main;grow(int);inl", "inuse_space"), 0);
	assert_int_equal(value_of(p, "???", "peak_space"), 300);
	assert_int_equal(value_of(p, "???", "inuse_space"), 300);
	assert_int_equal(value_of(p, "late", "inuse_space"), 20);
	assert_int_equal(
		value_of(p, "[2 places, all below massif's threshold (1.00%)]", "peak_space"), 100);
	assert_int_equal(value_of(p, "[heap administration]", "peak_space"), 24);
	assert_int_equal(value_of(p, "[stacks]", "peak_space"), 8);
	assert_int_equal(total_of(p, "peak_space"), 1032);
	assert_int_equal(total_of(p, "inuse_space"), 328);
	profile_free(p);
}

static void every_snapshot_is_in_a_table(void **state)
{
	struct profile *p = read_text(three, "massif");
	const struct time_table *trend = series_of(p, "trend"), *live = series_of(p, "live_series");

	assert_int_equal(trend->n_rows, 4);
	assert_float_equal(trend->times_s[1], 2, 1e-9);
	assert_float_equal(trend->columns[0].values[1], 1000, 0);
	assert_float_equal(last_of(trend, "live_bytes"), 100, 0);
	assert_float_equal(last_of(trend, "administration_bytes"), 8, 0);
	assert_float_equal(last_of(live, "???"), 300, 0);
	assert_float_equal(last_of(live, "main;grow(int);inl"), 0, 0);
	assert_float_equal(last_of(live, "late"), 20, 0);
	assert_int_equal(profile_get_meta(p)->duration_ns, 4000000000);
	profile_free(p);
}

static void instructions_are_no_seconds(void **state)
{
	const struct profile_text_opts opts = { .type = -1, .rows = 5 };
	struct profile *p = read_text(three, "massif");
	struct sink *out;
	const char *text;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(profile_text_write(p, &opts, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	text = sink_memory(out, &len);
	assert_null(strstr(text, " in 4.0 s"));
	assert_non_null(strstr(text, "\nTimes are instructions: 10^9 are shown as a second\n"));
	sink_close(out);
	profile_free(p);
}

static void lines_of_one_address_are_inlined_calls(void **state)
{
	struct profile *p = read_text(three, "massif");
	uint32_t found = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		stack_id s = profile_sample(p, i).stack;
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

		if (strcmp(path_of(s), "grow(int);inl") != 0)
			continue;
		found++;
		assert_int_equal(dict_stack_depth(d, s), 1);
		assert_int_equal(l->n_lines, 2);
		assert_int_equal(l->lines[0].line, 7);
		assert_int_equal(l->lines[1].line, 9);
		assert_int_equal(l->vaddr, 0x1095bc);
	}
	assert_int_equal(found, 1);
	profile_free(p);
}

static void without_a_peak_the_largest_tree_is_it(void **state)
{
	struct profile *p =
		read_text(HEAD SNAPSHOT("0", "5", "50", "0", "0", "detailed")
				  ROOT("1", "50") " n0: 50 0x1: a (a.c:1)\n" SNAPSHOT(
					  "1", "6", "90", "0", "0", "detailed")
					  ROOT("1", "90") " n0: 90 0x1: a (a.c:1)\n" SNAPSHOT(
						  "2", "7", "70", "0", "0", "detailed")
						  ROOT("1", "70") " n0: 70 0x1: a (a.c:1)\n",
			  "massif");

	assert_int_equal(total_of(p, "peak_space"), 90);
	assert_int_equal(total_of(p, "inuse_space"), 70);
	profile_free(p);
}

static void what_is_cut_is_kept_up_to_there(void **state)
{
	char cut[sizeof(three)];
	struct profile *p;

	strcpy(cut, three);
	*strstr(cut, "0 0x5: late") = '\0';
	p = read_text(cut, "massif");
	assert_non_null(p);
	assert_non_null(
		strstr(info.damage, "it ends within line 37, which was left out; the 3 snapshots"));
	assert_int_equal(total_of(p, "peak_space"), 1032);
	profile_free(p);
	assert_null(read_text(HEAD, "massif"));
	assert_non_null(strstr(e.msg, "without a snapshot"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(the_peak_and_the_last_tree_are_values),
		FACT(instructions_are_no_seconds),
		FACT(every_snapshot_is_in_a_table),
		FACT(lines_of_one_address_are_inlined_calls),
		FACT(without_a_peak_the_largest_tree_is_it),
		FACT(what_is_cut_is_kept_up_to_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
