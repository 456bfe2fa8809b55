#include "import_fixture.h"

#define PLACES                                                                                     \
	"X ./t -x\nI 1000 5d2c41\n"                                                                \
	"s 3 ./t\ns 4 main\ns 5 t.cpp\ns 3 inl\ns 6 /lib/c\n"                                      \
	"i 401000 1 2 3 5\n"       /* 1: main, t.cpp:5 */                                          \
	"i 401010 1 4 3 7 2 3 9\n" /* 2: inl, t.cpp:7, inlined into main, t.cpp:9 */               \
	"i 7f00 5\n"               /* 3: nothing but the library */                                \
	"t 1 0\nt 2 1\nt 3 1\n"                                                                    \
	"a 64 2\na 10 1\na 1000 3\n" /* 0: 100 bytes; 1: 16; 2: 4096 */

/* 100 + 16, the second at once freed (temporary), 4096 at 20 ms: the peak; then that is freed. */
#define EVENTS "R 2\nc a\n+ 0\n+ 1\n- 1\nc 14\n+ 2\n+ 1\nR 3\nc 1e\n- 2\n+ 0\n- 1\nc 28\n"

static void sites_have_what_was_allocated_at_the_peak_and_at_the_end(void **state)
{
	struct profile *p = read_text("v 10400 3\n" PLACES EVENTS, "heaptrack");
	const char *inl = "main;main;inl", *lib = "main;[c]";

	assert_non_null(p);
	assert_int_equal(info.skipped_lines, 0);
	assert_string_equal(info.damage, "");
	assert_int_equal(value_of(p, inl, "alloc_objects"), 2);
	assert_int_equal(value_of(p, inl, "alloc_space"), 200);
	assert_int_equal(value_of(p, inl, "peak_space"), 100);
	assert_int_equal(value_of(p, inl, "inuse_objects"), 2);
	assert_int_equal(value_of(p, inl, "inuse_space"), 200);
	assert_int_equal(value_of(p, lib, "alloc_space"), 4096);
	assert_int_equal(value_of(p, lib, "peak_space"), 4096);
	assert_int_equal(value_of(p, lib, "peak_objects"), 1);
	assert_int_equal(value_of(p, lib, "inuse_space"), 0);
	assert_int_equal(value_of(p, "main", "alloc_objects"), 2);
	assert_int_equal(value_of(p, "main", "temporary"), 1);
	assert_int_equal(total_of(p, "temporary"), 1);
	assert_int_equal(total_of(p, "peak_space"), 100 + 4096 + 16);
	assert_int_equal(profile_get_meta(p)->duration_ns, 40000000);
	profile_free(p);
}

static void places_have_lines_and_images(void **state)
{
	struct profile *p = read_text("v 10400 3\n" PLACES EVENTS, "heaptrack");

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		stack_id s = profile_sample(p, i).stack;
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

		if (strcmp(path_of(s), "main;main;inl") != 0)
			continue;
		assert_int_equal(l->n_lines, 2);
		assert_int_equal(l->lines[0].line, 7);
		assert_int_equal(l->lines[1].line, 9);
		assert_string_equal(dict_str(d, l->lines[0].file), "t.cpp");
		assert_string_equal(dict_str(d, dict_module_get(d, l->module)->path), "./t");
	}
	profile_free(p);
}

static void times_and_levels_are_those_of_its_time_stamps(void **state)
{
	struct profile *p = read_text("v 10400 3\n" PLACES EVENTS, "heaptrack");
	const struct time_table *live = series_of(p, "live_series"), *trend = series_of(p, "trend");
	int64_t all = 0;

	assert_non_null(live);
	assert_float_equal(last_of(live, "main;main;inl"), 200, 0);
	assert_float_equal(last_of(live, "main;[c]"), 0, 0);
	assert_float_equal(last_of(trend, "live_bytes"), 200, 0);
	assert_float_equal(last_of(trend, "rss_kb"), 3 * 4, 0);
	assert_non_null(profile_times(p));
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct sample_time_reader at = sample_times_read(profile_times(p), i);
		struct sample_time entry;
		int64_t sum = 0;

		while (sample_times_next(&at, &entry))
			sum += entry.values[0];
		assert_int_equal(sum, profile_sample(p, i).values[1]);
		all += sum;
	}
	assert_int_equal(all, total_of(p, "alloc_space"));
	profile_free(p);
}

/* Before version 3 strings have no length; before 1.0 the program's version is the file's. */
static void older_versions_say_the_same(void **state)
{
	static const char text[] =
		"X ./t\ns ./t\ns operator new(unsigned long)\ni 401000 1 2\nt 1 0\na 64 1\n+ 0\nc 5\n";
	static const char *const first[] = { "v 10200\n", "v 10000 1\n", "v 10100 2\n" };

	for (int i = 0; i < 3; i++) {
		char all[300];
		struct profile *p;

		snprintf(all, sizeof(all), "%s%s", first[i], text);
		p = read_text(all, "heaptrack");
		assert_non_null(p);
		assert_int_equal(value_of(p, "operator new(unsigned long)", "inuse_space"), 100);
		profile_free(p);
	}
	assert_null(read_text("v 10600 4\nX ./t\n", "heaptrack"));
	assert_non_null(strstr(e.msg, "version 4 of heaptrack's data files"));
}

static void raw_files_are_refused_with_what_to_do(void **state)
{
	assert_null(read_text("v 10400 3\nx 3 ./t\n", "heaptrack"));
	assert_non_null(strstr(e.msg, "line 2: a raw file of heaptrack; heaptrack --interpret"));
}

static void what_is_damaged_is_counted_or_said(void **state)
{
	struct profile *p = read_text(
		"v 10400 3\n" PLACES "+ 0\n+ 77\nt 9 99\n- zz\nq 1\nc 5\n+ 0\n+ 1", "heaptrack");

	assert_non_null(p);
	assert_int_equal(total_of(p, "alloc_space"), 200);
	assert_int_equal(info.skipped_lines, 4);
	assert_non_null(strstr(info.damage, "it ends within line 25"));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(sites_have_what_was_allocated_at_the_peak_and_at_the_end),
		FACT(places_have_lines_and_images),
		FACT(times_and_levels_are_those_of_its_time_stamps),
		FACT(older_versions_say_the_same),
		FACT(raw_files_are_refused_with_what_to_do),
		FACT(what_is_damaged_is_counted_or_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
