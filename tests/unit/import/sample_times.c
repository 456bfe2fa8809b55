#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/sample_times.h"
#include "model/sample_times.h"
#include "render/render.h"

#define SECOND 1000000000ULL

static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };

static stack_id stack(struct dict *d, uint64_t n)
{
	location_id l = dict_location(d, (module_id){ 0 }, n);

	return dict_stack(d, &l, 1);
}

/* Four samples of one profile: 3 of 30 ns, 4 of 40, … */
static struct profile *four(struct dict *d)
{
	struct profile *p = profile_new(d, types, 2);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(profile_add(p, stack(d, 100 + i), (labels_id){ 0 },
					     (int64_t[]){ 3 + (int64_t)i, 30 + 10 * (int64_t)i }),
				 0);
	return p;
}

static const char good[] = "# 4 samples, in bins of 0.5 s\n"
			   "sample,second,cpu/nanoseconds,samples/count\n"
			   "0,0,10,1\n"
			   "1,0,40,4\n"
			   "0,0.5,20,2\n"
			   "2,12,50,5\n"
			   "3,12,-60,6\n"
			   "3,13.5,120,0\n";

static void a_table_gives_a_profile_its_times(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = four(d);
	int64_t sums[SAMPLE_TIMES_TYPES];
	struct err e = { 0 };

	assert_int_equal(sample_times_parse(p, bytes_of(good, strlen(good)), "x", &e), 0);
	assert_int_equal(sample_times_bin_ns(profile_times(p)), SECOND / 2);
	assert_int_equal(sample_times_n_bins(profile_times(p)), 28);
	sample_times_sum(profile_times(p), 0, 1, 2, sums);
	assert_int_equal(sums[0], 20);
	assert_int_equal(sums[1], 2);
	sample_times_sum(profile_times(p), 3, 24, 25, sums);
	assert_int_equal(sums[0], -60);
	profile_free(p);
	dict_free(d);
}

static void what_is_no_such_table_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *find, *put, *says;
	} cases[] = {
		{ "# 4", "# 5", "of a profile of 5 samples" },
		{ "# 4 samples", "hello", "line 1: not a table of times" },
		{ "bins of 0.5", "bins of 0", "line 1: not a table of times" },
		{ "bins of 0.5", "bins of 0.", "line 1: not a table of times" },
		{ "cpu/nano", "gpu/nano", "line 2: a column is of no value type" },
		{ "cpu/nanoseconds", "cpu", "line 2: a column is of no value type" },
		{ "cpu/nanoseconds,samples/count", "samples/count,samples/count",
		  "names of columns" },
		{ "0,0,10,1", "4,0,10,1", "line 3: the profile has no such sample" },
		{ "0,0,10,1", "-1,0,10,1", "line 3: no sample and second" },
		{ "0,0,10,1", "0, 0,10,1", "line 3: no sample and second" },
		{ "0,0,10,1", "0,0.3,10,1", "line 3: no bin begins" },
		{ "0,0,10,1", "0,99999999999999999999,10,1", "line 3: no sample and second" },
		{ "0,0,10,1", "0,4294967295,10,1", "line 3: no bin begins" },
		{ "0,0,10,1", "0,0,10", "line 3: a value is missing" },
		{ "0,0,10,1", "0,0,10,1,1", "line 3: more values" },
		{ "0,0,10,1", "0,0,10,1x", "line 3: more values" },
		{ "1,0,40,4", "0,0,40,4", "line 4: not in the order of time" },
		{ "0,0.5,20,2\n2,12", "2,12,50,5\n0,0.5", "not in the order of time" },
		{ "0,0,10,1", "0,0,11,1", "sample 0 is 31 here and 30 there" },
		{ "0,0,10,1", "0,0,9223372036854775807,1", "sample 0" },
		{ "2,12,50,5\n", "", "sample 2 is 0 here and 50 there" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct dict *d = dict_new();
		struct profile *p = four(d);
		const char *at = strstr(good, cases[i].find);
		struct err e = { 0 };
		char text[512];

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, cases[i].put,
			 at + strlen(cases[i].find));
		assert_int_equal(sample_times_parse(p, bytes_of(text, strlen(text)), "x", &e),
				 -EBADMSG);
		if (!strstr(e.msg, cases[i].says))
			fail_msg("case %zu says: %s", i, e.msg);
		assert_null(profile_times(p));
		profile_free(p);
		dict_free(d);
	}
}

/* Every entry, whatever the width of bins, and a second time the same bytes. */
static void what_was_written_is_read_back(void **state)
{
	static const uint64_t widths[] = { SECOND, SAMPLE_TIMES_FINE_NS, 64 * SECOND };
	const struct format *f = format_find("times");

	for (int w = 0; w < 3; w++) {
		struct dict *d = dict_new();
		struct profile *p = profile_new(d, types, 2);
		struct sink *out, *again;
		struct err e = { 0 };
		size_t len, len2;
		const char *text;

		profile_set_times(p, sample_times_new((uint32_t[]){ 1, 0 }, 2, widths[w], 1000));
		srand((unsigned)w);
		for (uint32_t n = 0; n < 700; n++) {
			const int64_t v[] = { 1, rand() };
			uint32_t i;

			assert_int_equal(profile_add_to(p, stack(d, (uint64_t)rand() % 30),
							(labels_id){ 0 }, v, &i),
					 0);
			assert_int_equal(sample_times_add(profile_times(p), i,
							  (uint64_t)rand() * 40,
							  (int64_t[]){ v[1], v[0] }),
					 0);
		}
		assert_int_equal(sink_open_memory(&out, &e), 0);
		assert_int_equal(f->write(p, &(struct render_opts){ 0 }, out, &e), 0);
		assert_int_equal(sink_commit(out, &e), 0);
		text = sink_memory(out, &len);
		assert_int_equal(sample_times_parse(p, bytes_of(text, len), "x", &e), 0);
		assert_int_equal(sample_times_bin_ns(profile_times(p)) % widths[w], 0);
		assert_int_equal(sink_open_memory(&again, &e), 0);
		assert_int_equal(f->write(p, &(struct render_opts){ 0 }, again, &e), 0);
		assert_int_equal(sink_commit(again, &e), 0);
		assert_string_equal(sink_memory(again, &len2), text);
		assert_int_equal(len, len2);
		sink_close(out);
		sink_close(again);
		profile_free(p);
		dict_free(d);
	}
}

/* Samples that differ only by addresses in a process, as those of code made at run time do, are equal when a file is read. */
static void equal_rows_of_a_file_are_one_sample(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	static const char csv[] = "# 4 samples, in bins of 1 s\n"
				  "sample,second,cpu/nanoseconds\n"
				  "0,0,1\n"
				  "1,0,2\n"
				  "2,0,4\n"
				  "3,1,8\n";
	static const uint64_t rows[] = { 100, 101, 100, 102 };
	int64_t sums[SAMPLE_TIMES_TYPES];
	struct err e = { 0 };

	for (int i = 0; i < 4; i++) {
		uint32_t sample;

		assert_int_equal(profile_add_to(p, stack(d, rows[i]), (labels_id){ 0 },
						(int64_t[]){ 1, 1 << i }, &sample),
				 0);
		assert_int_equal(profile_note_row(p, sample), 0);
	}
	assert_int_equal(profile_n_rows(p), 4);
	assert_int_equal(profile_n_samples(p), 3);
	assert_int_equal(sample_times_parse(p, bytes_of(csv, strlen(csv)), "x", &e), 0);
	sample_times_sum(profile_times(p), 0, 0, 1, sums);
	assert_int_equal(sums[0], 5);
	sample_times_sum(profile_times(p), 2, 1, 2, sums);
	assert_int_equal(sums[0], 8);
	profile_free(p);
	dict_free(d);
}

static void a_profile_without_times_has_no_table(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = four(d);
	struct sink *out;
	struct err e = { 0 };

	assert_int_equal(sink_open_memory(&out, &e), 0);
	assert_int_equal(format_find("times")->write(p, &(struct render_opts){ 0 }, out, &e),
			 -ENODATA);
	sink_close(out);
	profile_free(p);
	dict_free(d);
}

static void a_profile_without_a_file_beside_it_says_so(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = four(d);
	struct err e = { 0 };

	assert_int_equal(sample_times_read_beside(p, "/nonexistent/heap.pb.gz", &e), -ENOENT);
	assert_non_null(strstr(e.msg, "/nonexistent/heap.times.csv.gz"));
	e = (struct err){ 0 };
	assert_int_equal(sample_times_read_beside(p, "-", &e), -ENOENT);
	assert_non_null(strstr(e.msg, "not known when"));
	profile_free(p);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_gives_a_profile_its_times),
		cmocka_unit_test(what_is_no_such_table_is_refused_with_its_line),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(equal_rows_of_a_file_are_one_sample),
		cmocka_unit_test(a_profile_without_times_has_no_table),
		cmocka_unit_test(a_profile_without_a_file_beside_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
