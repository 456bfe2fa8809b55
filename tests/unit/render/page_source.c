/* The page's lines and instructions, by the specification in page_data.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/html/page_source.h"
#include "unit/source_fixture.h"

#include <cjson/cJSON.h>
#include <stdio.h>

static struct page_run run_of(const struct source_fixture *s)
{
	struct page_run run = { .n_profiles = 1, .sources = &s->sources };

	run.profiles[0] = (struct page_profile){ .id = "oncpu", .p = s->f.p, .costs = &s->costs };
	return run;
}

static cJSON *json_of(const struct page_run *run, struct page_instructions *ret_shown)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	cJSON *json;

	assert_int_equal(page_source_json(run, &out, ret_shown), 0);
	assert_null(strchr(out.s, '<'));
	json = cJSON_ParseWithOpts(out.s, NULL, true);
	assert_non_null(json);
	return json;
}

static const cJSON *at(const cJSON *json, const char *key, int i)
{
	const cJSON *list = key ? cJSON_GetObjectItem(json, key) : json;

	assert_non_null(list);
	return cJSON_GetArrayItem(list, i);
}

static void instructions_have_texts_jumps_and_origins(void **state)
{
	struct page_instructions shown;
	struct source_fixture s;
	struct page_run run;
	const cJSON *code, *row;
	cJSON *json;

	source_fixture_make(&s, "</script><script>x");
	run = run_of(&s);
	json = json_of(&run, &shown);
	code = at(json, "codes", 0);
	assert_string_equal(cJSON_GetObjectItem(code, "name")->valuestring, "mix");
	assert_string_equal(cJSON_GetObjectItem(code, "module")->valuestring, "prog");
	assert_string_equal(cJSON_GetObjectItem(code, "start")->valuestring, "1000");
	row = at(code, "rows", 2);
	assert_int_equal(at(row, NULL, 1)->valueint, 7);
	assert_string_equal(at(row, NULL, 2)->valuestring, "jnz 0x1003");
	assert_int_equal(at(row, NULL, 4)->valueint, 1);
	assert_string_equal(at(row, NULL, 5)->valuestring, "└──");
	row = at(at(code, "rows", 1), NULL, 6);
	assert_int_equal(cJSON_GetArraySize(row), 2);
	assert_string_equal(at(at(row, NULL, 0), NULL, 0)->valuestring, "step");
	assert_int_equal(at(at(row, NULL, 0), NULL, 1)->valueint, 0);
	assert_int_equal(at(at(row, NULL, 0), NULL, 2)->valueint, 7);
	assert_int_equal(shown.n, 3);
	/* Lines around those with cost, as text. */
	row = at(at(at(json, "texts", 0), "parts", 0), NULL, 1);
	assert_int_equal(cJSON_GetArraySize(row), 9);
	assert_string_equal(at(row, NULL, 3)->valuestring, "        x = step(x);");
	assert_string_equal(at(row, NULL, 6)->valuestring, "</script><script>x");
	assert_string_equal(at(at(json, "problems", 0), NULL, 1)->valuestring, "file changed");
	assert_int_equal(cJSON_GetObjectItem(json, "functions_left_out")->valueint, 4);
	cJSON_Delete(json);
	page_instructions_fini(&shown);
	source_fixture_free(&s);
}

static void each_sample_knows_its_instruction(void **state)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	const struct page_row rows[] = { { .sample = 2 }, { .sample = 0 }, { .sample = 1 } };
	struct page_instructions shown;
	struct source_fixture s;
	struct page_run run;
	cJSON *json;

	source_fixture_make(&s, "");
	run = run_of(&s);
	json = json_of(&run, &shown);
	assert_int_equal(page_source_rows(&run, &run.profiles[0], rows, &shown, &out), 0);
	/* Version, samples; no node above any; without code, then the first and the second. */
	assert_int_equal(out.len, 8);
	assert_memory_equal(out.s, "\1\3\0\0\0\0\1\2", 8);
	cJSON_Delete(json);
	page_instructions_fini(&shown);
	source_fixture_free(&s);
}

static void what_has_no_room_is_counted(void **state)
{
	enum { LINES = 9000 };
	char *wide = calloc(1, 201);
	const char **lines = calloc(LINES, sizeof(*lines));
	struct page_instructions shown;
	struct source_fixture s;
	struct page_run run;
	cJSON *json;

	assert_true(wide && lines);
	memset(wide, 'x', 200);
	source_fixture_make(&s, "");
	for (uint32_t i = 0; i < LINES; i++) {
		lines[i] = wide;
		source_fixture_add(&s, 0x100000 + i, "/opt/prog",
				   &(struct line){ .function = dict_string(s.f.d, "mix"),
						   .file = dict_string(s.f.d, "/src/prog.c"),
						   .line = i + 1 },
				   1, 1);
	}
	s.text.lines = lines;
	s.text.n = LINES;
	line_costs_fini(&s.costs);
	assert_int_equal(line_costs_make(s.f.p, 0, &s.costs), 0);
	run = run_of(&s);
	json = json_of(&run, &shown);
	assert_int_equal(cJSON_GetObjectItem(json, "texts_left_out")->valueint, 1);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(at(json, "texts", 0), "left_out")));
	assert_int_equal(cJSON_GetObjectItem(json, "codes_left_out")->valueint, 0);
	cJSON_Delete(json);
	page_instructions_fini(&shown);
	source_fixture_free(&s);
	free(lines);
	free(wide);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_have_texts_jumps_and_origins),
		cmocka_unit_test(each_sample_knows_its_instruction),
		cmocka_unit_test(what_has_no_room_is_counted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
