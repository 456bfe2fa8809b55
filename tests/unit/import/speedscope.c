#include "import_fixture.h"

#define SCHEMA "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\""
#define FRAMES                                                                                     \
	"\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.c\",\"line\":3},{\"name\":\"f\"}]}"

static void samples_have_their_weights_whatever_comes_first(void **state)
{
	static const char *const files[] = {
		"{" SCHEMA "," FRAMES
		",\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"bytes\","
		"\"samples\":[[0,1],[0],[0,1]],\"weights\":[10,5,7]}]}",
		" {\"profiles\":[{\"weights\":[10,5,7],\"samples\":[[0,1],[0],[0,1]],\"unit\":\"bytes\","
		"\"type\":\"sampled\"}]," FRAMES "," SCHEMA "}",
	};

	for (int i = 0; i < 2; i++) {
		struct profile *p = read_text(files[i], "speedscope");

		assert_non_null(p);
		assert_string_equal(info.damage, "");
		assert_int_equal(value_of(p, "main;f", "space/bytes"), 17);
		assert_int_equal(value_of(p, "main", "space/bytes"), 5);
		assert_int_equal(profile_n_samples(p), 2);
		profile_free(p);
	}
}

static void events_give_time_to_what_is_open(void **state)
{
	struct profile *p = read_text(
		"{" SCHEMA "," FRAMES
		",\"profiles\":[{\"type\":\"evented\",\"name\":\"t\",\"startValue\":0,\"endValue\":3.5,\"events\":["
		"{\"type\":\"O\",\"frame\":0,\"at\":0.5},{\"at\":1,\"type\":\"O\",\"frame\":1},{\"type\":\"C\",\"frame\":1,\"at\":2.25},"
		"{\"type\":\"C\",\"frame\":0,\"at\":3.5}],\"unit\":\"milliseconds\"}]}",
		"speedscope");

	assert_non_null(p);
	assert_int_equal(value_of(p, "main", "time/nanoseconds"), 500000 + 1250000);
	assert_int_equal(value_of(p, "main;f", "time/nanoseconds"), 1250000);
	profile_free(p);
}

static void profiles_of_other_programs_are_threads_of_each_kind_of_unit(void **state)
{
	struct profile *p = read_text(
		"{" SCHEMA "," FRAMES
		",\"profiles\":[{\"type\":\"sampled\",\"name\":\"a\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[2]},"
		"{\"type\":\"sampled\",\"name\":\"b\",\"unit\":\"microseconds\",\"samples\":[[0]],\"weights\":[3.5]},"
		"{\"type\":\"sampled\",\"name\":\"c\",\"unit\":\"none\",\"samples\":[[1],[1]],\"weights\":[1,1]}]}",
		"speedscope");

	assert_int_equal(profile_n_types(p), 2);
	assert_int_equal(total_of(p, "time"), 2000000000 + 3500);
	assert_int_equal(value_of(p, "f", "samples/count"), 2);
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		const char *thread = dict_str(d, dict_label_find(d, s.labels, "thread")->str);

		assert_int_equal(s.values[0], *thread == 'a'   ? 2000000000
					      : *thread == 'b' ? 3500
							       : 0);
	}
	profile_free(p);
}

static void our_own_profiles_are_value_types_with_every_digit(void **state)
{
	struct profile *p = read_text(
		"{" SCHEMA
		",\"shared\":{\"frames\":[{\"name\":\"tsort\"},{\"name\":\"do_read\",\"file\":\"[kernel]\"}]},"
		"\"profiles\":[{\"type\":\"sampled\",\"name\":\"samples\",\"unit\":\"none\",\"samples\":[[0,1]],\"weights\":[2]},"
		"{\"type\":\"sampled\",\"name\":\"cpu\",\"unit\":\"nanoseconds\",\"samples\":[[0,1]],\"weights\":[9007199254740993]}],"
		"\"activeProfileIndex\":1,\"exporter\":\"memscope\"}",
		"speedscope");
	const struct location *l =
		dict_location_get(d, dict_stack_leaf(d, profile_sample(p, 0).stack));

	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(value_of(p, "tsort;do_read", "cpu/nanoseconds"), 9007199254740993);
	assert_int_equal(value_of(p, "tsort;do_read", "samples/count"), 2);
	assert_int_equal(profile_get_meta(p)->default_type, 1);
	assert_int_equal(dict_module_get(d, l->module)->kind, MODULE_KERNEL);
	profile_free(p);
}

static void damage_is_said_with_its_byte(void **state)
{
	struct profile *p = read_text("{" SCHEMA "," FRAMES
				      ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"bytes\","
				      "\"weights\":[10,5,7],\"samples\":[[0,1],[0],[0,",
				      "speedscope");

	assert_non_null(p);
	assert_int_equal(total_of(p, "space"), 15);
	assert_non_null(strstr(info.damage, "the JSON ends at byte "));
	assert_non_null(strstr(info.damage, "the 2 samples and events before it were kept"));
	profile_free(p);
	assert_null(read_text("{" SCHEMA "," FRAMES ",\"profiles\":[}", "speedscope"));
	assert_non_null(strstr(e.msg, "no JSON at byte 1"));
	memset(&info, 0, sizeof(info));
	memset(&e, 0, sizeof(e));
	p = read_text("{" SCHEMA "," FRAMES
		      ",\"profiles\":[{\"type\":\"sampled\",\"samples\":[[0,9]],\"weights\":[1]}]}",
		      "speedscope");
	assert_int_equal(value_of(p, "main;[unknown]", "samples"), 1);
	assert_non_null(strstr(info.damage, "1 frames, weights or events that make no sense"));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(samples_have_their_weights_whatever_comes_first),
		FACT(events_give_time_to_what_is_open),
		FACT(profiles_of_other_programs_are_threads_of_each_kind_of_unit),
		FACT(our_own_profiles_are_value_types_with_every_digit),
		FACT(damage_is_said_with_its_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
