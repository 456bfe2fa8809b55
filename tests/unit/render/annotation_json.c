/* The same function as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/tables/annotation_text.h"
#include "unit/source_fixture.h"

#include <cjson/cJSON.h>

static cJSON *json_of(const struct source_fixture *s, const char *function)
{
	const struct annotation_opts o = { .p = s->f.p,
					   .costs = &s->costs,
					   .sources = &s->sources };
	const struct function_cost *f = source_fixture_function(s, function);
	_cleanup_(sink_closep) struct sink *sink = NULL;
	cJSON *json;
	size_t len;

	assert_int_equal(sink_open_memory(&sink, NULL), 0);
	assert_int_equal(annotation_json_write(&o, &f, 1, sink, NULL), 0);
	assert_int_equal(sink_commit(sink, NULL), 0);
	json = cJSON_ParseWithOpts(sink_memory(sink, &len), NULL, true);
	assert_non_null(json);
	return json;
}

static const cJSON *at(const cJSON *json, const char *key, int i)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItem(json, key), i);
}

static int number(const cJSON *json, const char *key)
{
	assert_true(cJSON_IsNumber(cJSON_GetObjectItem(json, key)));
	return cJSON_GetObjectItem(json, key)->valueint;
}

static const char *text(const cJSON *json, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
}

static void lines_and_instructions_have_their_costs(void **state)
{
	const cJSON *function, *line, *code, *in;
	struct source_fixture s;
	cJSON *json;

	source_fixture_make(&s, "\"</script>\"\033");
	json = json_of(&s, "mix");
	assert_int_equal(number(json, "all"), 8);
	function = at(json, "functions", 0);
	assert_string_equal(text(function, "module"), "prog");
	assert_int_equal(number(function, "self"), 2);
	assert_int_equal(number(function, "total"), 7);
	line = at(function, "lines", 1);
	assert_int_equal(number(line, "line"), 4);
	assert_int_equal(number(line, "total"), 5);
	assert_string_equal(text(line, "text"), "        x = step(x);");
	code = at(function, "code", 0);
	assert_int_equal(number(code, "self"), 7);
	in = at(code, "instructions", 1);
	assert_int_equal(number(in, "address"), 0x1003);
	assert_int_equal(number(in, "self"), 5);
	assert_int_equal(number(in, "line"), 7);
	assert_string_equal(cJSON_GetStringValue(at(in, "inlined", 0)), "step");
	assert_int_equal(number(at(code, "instructions", 2), "jump"), 0x1003);
	assert_string_equal(text(at(json, "problems", 0), "problem"), "file changed");
	cJSON_Delete(json);
	source_fixture_free(&s);
}

static void a_text_that_was_not_read_is_null(void **state)
{
	struct source_fixture s;
	cJSON *json;

	source_fixture_make(&s, "");
	s.text.problem = "there is no such file here";
	json = json_of(&s, "step");
	assert_true(cJSON_IsNull(
		cJSON_GetObjectItem(at(at(json, "functions", 0), "lines", 0), "text")));
	assert_string_equal(text(at(json, "files", 0), "problem"), "there is no such file here");
	cJSON_Delete(json);
	source_fixture_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_instructions_have_their_costs),
		cmocka_unit_test(a_text_that_was_not_read_is_null),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
