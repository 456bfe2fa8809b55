#include "import_fixture.h"

#define NAMES                                                                                      \
	"\"ftbl\":[\"[root]\",\"0x1095BC: inl (t.cpp:7)\",\"0x1095BC: grow(int) (t.cpp:9)\","      \
	"\"0x109175: main (t.cpp:12)\",\"0x48FC7B9: ??? (in /usr/lib/libx.so)\"]"
#define POINTS                                                                                     \
	"\"pps\":[{\"tb\":400,\"tbk\":4,\"tl\":900,\"mb\":200,\"mbk\":2,\"gb\":100,\"gbk\":1,"     \
	"\"eb\":0,\"ebk\":0,\"rb\":77,\"wb\":400,\"acc\":[-4,2],\"fs\":[1,2,3]},"                  \
	"{\"tb\":50,\"tbk\":1,\"tl\":1,\"mb\":50,\"mbk\":1,\"gb\":50,\"gbk\":1,\"eb\":50,"         \
	"\"ebk\":1,\"rb\":0,\"wb\":0,\"fs\":[4,3]}"
#define HEAD "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"cmd\":\"./t\",\"te\":4000,\"tg\":2000,"

static void every_value_of_a_stack_is_there(void **state)
{
	struct profile *p = read_text(HEAD "\"tu\":\"instrs\"," POINTS "]," NAMES "}", "dhat");
	const char *inl = "main;grow(int);inl";

	assert_non_null(p);
	assert_string_equal(info.damage, "");
	assert_int_equal(value_of(p, inl, "alloc_space/bytes"), 400);
	assert_int_equal(value_of(p, inl, "alloc_objects"), 4);
	assert_int_equal(value_of(p, inl, "lifetime/nanoseconds"), 900);
	assert_int_equal(value_of(p, inl, "most_space"), 200);
	assert_int_equal(value_of(p, inl, "peak_space"), 100);
	assert_int_equal(value_of(p, inl, "read_space"), 77);
	assert_int_equal(value_of(p, inl, "written_space"), 400);
	assert_int_equal(value_of(p, "main;???", "inuse_space"), 50);
	assert_int_equal(total_of(p, "inuse_objects"), 1);
	assert_int_equal(profile_get_meta(p)->duration_ns, 4000);
	profile_free(p);
}

static void times_are_in_its_unit(void **state)
{
	struct profile *p = read_text(HEAD "\"tu\":\"µs\"," POINTS "]," NAMES "}", "dhat");

	assert_int_equal(total_of(p, "lifetime"), 901000);
	assert_int_equal(profile_get_meta(p)->duration_ns, 4000000);
	profile_free(p);
}

static void places_of_one_address_are_inlined_calls(void **state)
{
	struct profile *p = read_text(HEAD "\"tu\":\"instrs\"," POINTS "]," NAMES "}", "dhat");
	stack_id s = profile_sample(p, 0).stack;
	const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

	assert_int_equal(dict_stack_depth(d, s), 2);
	assert_int_equal(l->n_lines, 2);
	assert_int_equal(l->lines[0].line, 7);
	assert_string_equal(dict_str(d, l->lines[1].file), "t.cpp");
	l = dict_location_get(d, dict_stack_leaf(d, profile_sample(p, 1).stack));
	assert_string_equal(dict_str(d, dict_module_get(d, l->module)->path), "/usr/lib/libx.so");
	profile_free(p);
}

static void other_modes_count_other_things(void **state)
{
	struct profile *p = read_text(
		"{\"dhatFileVersion\":2,\"mode\":\"ad-hoc\",\"bklt\":false,\"pps\":[{\"tb\":7,\"tbk\":2,\"fs\":[1]}],"
		"\"ftbl\":[\"[root]\",\"0x1: f (a.c:1)\"]}",
		"dhat");

	assert_int_equal(value_of(p, "f", "units/count"), 7);
	assert_int_equal(value_of(p, "f", "events/count"), 2);
	profile_free(p);
}

static void damage_is_said_with_its_byte(void **state)
{
	struct profile *p = read_text(HEAD "\"tu\":\"instrs\"," POINTS
					   "],\"ftbl\":[\"[root]\",\"0x1: f (a.c:1)\"",
				      "dhat");

	assert_non_null(p);
	assert_int_equal(total_of(p, "alloc_space"), 450);
	assert_non_null(strstr(info.damage, "the JSON ends at byte"));
	assert_non_null(strstr(
		info.damage, "the 2 stacks before it were kept, with the 1 names that are there"));
	profile_free(p);
	assert_null(read_text("{\"dhatFileVersion\":1,\"pps\":[]}", "dhat"));
	assert_non_null(strstr(e.msg, "version 1 of DHAT's file; 2 is known"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(every_value_of_a_stack_is_there),
		FACT(times_are_in_its_unit),
		FACT(places_of_one_address_are_inlined_calls),
		FACT(other_modes_count_other_things),
		FACT(damage_is_said_with_its_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
