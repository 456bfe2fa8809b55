#include "import_fixture.h"

#define META                                                                                       \
	"{\"meta\":{\"interval\":1,\"startTime\":1700000000000,\"preprocessedProfileVersion\":66,\"product\":\"tsort, on a CPU\"},"
#define TABLES                                                                                     \
	"\"stackTable\":{\"frame\":[0,1,1],\"prefixOffset\":[0,1,1],\"length\":3},"                \
	"\"frameTable\":{\"func\":[0,1],\"line\":[null,12]},"                                      \
	"\"funcTable\":{\"name\":[0,1],\"resource\":[-1,0],\"source\":[0,null]},"                  \
	"\"resourceTable\":{\"name\":[2]},\"sources\":{\"filename\":[3]},"                         \
	"\"stringArray\":[\"main\",\"read\",\"[kernel]\",\"a.c\"]"

static void samples_have_stacks_times_and_weights(void **state)
{
	struct profile *p = read_text(
		META
		"\"shared\":{" TABLES
		"},\"threads\":[{\"name\":\"worker\",\"processName\":\"tsort\",\"pid\":\"7\",\"tid\":8,"
		"\"samples\":{\"weightType\":\"tracing-ms\",\"stack\":[0,1,2,1],\"time\":[0.5,10,1200.25,1300],"
		"\"weight\":[1.5,0.000001,2,1]}}]}",
		"firefox");
	const struct location *l;
	int64_t sum = 0;

	assert_non_null(p);
	assert_string_equal(info.damage, "");
	assert_int_equal(value_of(p, "main", "time/nanoseconds"), 1500000);
	assert_int_equal(value_of(p, "main;read", "time"), 1 + 1000000);
	assert_int_equal(value_of(p, "main;read;read", "time"), 2000000);
	assert_int_equal(profile_get_meta(p)->duration_ns, 1300000000);
	assert_int_equal(profile_get_meta(p)->time_ns, 1700000000000000000);
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct sample_time_reader at = sample_times_read(profile_times(p), i);
		struct profile_sample s = profile_sample(p, i);
		struct sample_time entry;

		while (sample_times_next(&at, &entry))
			sum += entry.values[0];
		assert_string_equal(dict_str(d, dict_label_find(d, s.labels, "thread")->str),
				    "worker");
		assert_int_equal(dict_label_find(d, s.labels, "tid")->num, 8);
		l = dict_location_get(d, dict_stack_leaf(d, s.stack));
		assert_int_equal(dict_module_get(d, l->module)->kind == MODULE_KERNEL,
				 l->lines[0].line == 12);
	}
	assert_int_equal(sum, total_of(p, "time"));
	profile_free(p);
}

/* Versions before 56: each thread has its tables, and prefixes are numbers. */
static void tables_may_be_of_each_thread(void **state)
{
	struct profile *p = read_text(
		"{\"meta\":{\"preprocessedProfileVersion\":44},\"threads\":[{\"pid\":12,\"tid\":13,\"name\":\"GeckoMain\","
		"\"samples\":{\"stack\":[1,0,null],\"timeDeltas\":[5,1000,1],\"weight\":null},"
		"\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0]},\"frameTable\":{\"func\":[0,0],\"line\":[3,4]},"
		"\"funcTable\":{\"name\":[0],\"fileName\":[1],\"resource\":[-1]},\"stringArray\":[\"f\",\"f.js\"]}]}",
		"firefox");
	const struct location *l =
		dict_location_get(d, dict_stack_leaf(d, profile_sample(p, 0).stack));

	assert_int_equal(value_of(p, "f;f", "samples/count"), 1);
	assert_int_equal(value_of(p, "f", "samples"), 1);
	assert_string_equal(dict_str(d, l->lines[0].file), "f.js");
	assert_int_equal(l->lines[0].line, 4);
	assert_int_equal(profile_get_meta(p)->duration_ns, 1005000000);
	profile_free(p);
}

static void damage_is_said(void **state)
{
	struct profile *p =
		read_text(META "\"shared\":{" TABLES
			       "},\"threads\":[{\"samples\":{\"weight\":[4,5],\"stack\":[0,9]",
			  "firefox");

	assert_int_equal(total_of(p, "samples"), 9);
	assert_non_null(strstr(info.damage, "the JSON ends at byte"));
	assert_non_null(strstr(info.damage, "the 2 samples before it were kept"));
	profile_free(p);
	assert_null(read_text(META "\"threads\":[]}", "firefox"));
	assert_non_null(strstr(e.msg, "without a thread"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(samples_have_stacks_times_and_weights),
		FACT(tables_may_be_of_each_thread),
		FACT(damage_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
