/* Answers: the same said as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "render/tables/answer.h"

static const struct answer_column columns[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },  { "share", "share", ANSWER_PERCENT, 8 },
	{ "at", "address", ANSWER_ADDRESS, 0 }, { "type", "type", ANSWER_NAME, 0 },
	{ "chain", "", ANSWER_LINES, 0 },       { 0 },
};

static struct answer *answer_of(enum answer_form form)
{
	struct answer *a = answer_begin(form);

	assert_non_null(a);
	answer_say(a, "%d objects", 2);
	answer_figure(a, "objects", 2);
	answer_word(a, "process", "redis");
	answer_table(a, "rows", columns);
	answer_cell(a, 2048);
	answer_real(a, 12.34);
	answer_cell(a, 0x7f00);
	answer_text(a, "Session");
	answer_line(a, "list[…]");
	answer_line(a, "an escape \x1b here");
	answer_lines_end(a);
	answer_cell(a, 7);
	answer_real(a, 0.5);
	answer_cell(a, 1);
	answer_text(a, NULL);
	answer_lines_end(a);
	return a;
}

static void assert_written(struct answer *a, const char *want)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct err e = { 0 };
	size_t n;

	assert_int_equal(sink_open_memory(&out, &e), 0);
	assert_int_equal(answer_write(a, out, &e), 0);
	assert_int_equal(sink_commit(out, &e), 0);
	assert_string_equal(sink_memory(out, &n), want);
}

static void text_has_sentences_and_rows_in_columns(void **state)
{
	_cleanup_(answer_freep) struct answer *a = answer_of(ANSWER_TEXT);

	assert_written(a, "2 objects\n"
			  "       bytes   share  address             type\n"
			  "     2.0 KiB   12.3%  0x7f00              Session\n"
			  "    list[…]\n"
			  "    an escape \xef\xbf\xbd here\n"
			  "         7 B    0.5%  0x1                 -\n");
}

static void json_has_figures_in_base_units_and_each_row_as_an_object(void **state)
{
	_cleanup_(answer_freep) struct answer *a = answer_of(ANSWER_JSON);

	assert_written(a, "{\n"
			  "\t\"notes\":\t[\"2 objects\"],\n"
			  "\t\"objects\":\t2,\n"
			  "\t\"process\":\t\"redis\",\n"
			  "\t\"rows\":\t[{\n"
			  "\t\t\t\"bytes\":\t2048,\n"
			  "\t\t\t\"share\":\t12.34,\n"
			  "\t\t\t\"at\":\t\"0x7f00\",\n"
			  "\t\t\t\"type\":\t\"Session\",\n"
			  "\t\t\t\"chain\":\t[\"list[…]\", \"an escape \xef\xbf\xbd here\"]\n"
			  "\t\t}, {\n"
			  "\t\t\t\"bytes\":\t7,\n"
			  "\t\t\t\"share\":\t0.5,\n"
			  "\t\t\t\"at\":\t\"0x1\",\n"
			  "\t\t\t\"type\":\tnull,\n"
			  "\t\t\t\"chain\":\t[]\n"
			  "\t\t}]\n"
			  "}\n");
}

static const struct answer_column changes[] = {
	{ "change", "change", ANSWER_CHANGE, 0 },
	{ "came", "came", ANSWER_COUNT, 8 },
	{ 0 },
};

static struct answer *changes_of(enum answer_form form)
{
	struct answer *a = answer_begin(form);

	assert_non_null(a);
	answer_table(a, "rows", changes);
	answer_cell(a, 2048);
	answer_cell(a, 3);
	answer_cell(a, (uint64_t)-2048);
	answer_cell(a, ANSWER_NONE);
	return a;
}

static void changes_have_their_sign_and_what_is_unknown_is_no_number(void **state)
{
	_cleanup_(answer_freep) struct answer *text = changes_of(ANSWER_TEXT),
					      *json = changes_of(ANSWER_JSON);

	assert_written(text, "      change    came\n"
			     "    +2.0 KiB       3\n"
			     "    -2.0 KiB       -\n");
	assert_written(json, "{\n"
			     "\t\"rows\":\t[{\n"
			     "\t\t\t\"change\":\t2048,\n"
			     "\t\t\t\"came\":\t3\n"
			     "\t\t}, {\n"
			     "\t\t\t\"change\":\t-2048,\n"
			     "\t\t\t\"came\":\tnull\n"
			     "\t\t}]\n"
			     "}\n");
}

static const struct answer_column branches[] = { { "type", "type", ANSWER_TREE, 0 }, { 0 } };

static void a_tree_is_moved_to_the_right_and_has_its_depth_in_json(void **state)
{
	_cleanup_(answer_freep) struct answer *text = answer_begin(ANSWER_TEXT),
					      *json = answer_begin(ANSWER_JSON);

	for (uint32_t i = 0; i < 2; i++) {
		struct answer *a = i ? json : text;

		answer_table(a, "rows", branches);
		answer_tree(a, 0, "dict");
		answer_tree(a, 1, "list");
	}
	assert_written(text, "type\ndict\n  list\n");
	assert_written(json, "{\n"
			     "\t\"rows\":\t[{\n"
			     "\t\t\t\"type\":\t\"dict\",\n"
			     "\t\t\t\"depth\":\t0\n"
			     "\t\t}, {\n"
			     "\t\t\t\"type\":\t\"list\",\n"
			     "\t\t\t\"depth\":\t1\n"
			     "\t\t}]\n"
			     "}\n");
}

static void a_table_without_rows_is_an_empty_array(void **state)
{
	_cleanup_(answer_freep) struct answer *a = answer_begin(ANSWER_JSON);

	answer_say(a, "%s", "");
	answer_table(a, "rows", columns);
	assert_written(a, "{\n\t\"rows\":\t[]\n}\n");
}

static void json_says_what_its_columns_are_if_asked(void **state)
{
	_cleanup_(answer_freep) struct answer *a = answer_begin(ANSWER_JSON);
	static const struct answer_column two[] = { { "bytes", "bytes", ANSWER_BYTES, 0 },
						    { "type", "kind", ANSWER_NAME, 0 },
						    { 0 } };
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct err e = { 0 };
	const char *text;
	char want[64];
	size_t n;

	answer_describe(a);
	answer_table(a, "types", two);
	answer_cell(a, 5);
	answer_text(a, "str");
	assert_int_equal(sink_open_memory(&out, &e), 0);
	assert_int_equal(answer_write(a, out, &e), 0);
	assert_int_equal(sink_commit(out, &e), 0);
	text = sink_memory(out, &n);
	assert_non_null(strstr(text, "\"columns\""));
	snprintf(want, sizeof(want), "[\"type\", \"kind\", %d]", ANSWER_NAME);
	assert_non_null(strstr(text, want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_says_what_its_columns_are_if_asked),
		cmocka_unit_test(text_has_sentences_and_rows_in_columns),
		cmocka_unit_test(json_has_figures_in_base_units_and_each_row_as_an_object),
		cmocka_unit_test(changes_have_their_sign_and_what_is_unknown_is_no_number),
		cmocka_unit_test(a_tree_is_moved_to_the_right_and_has_its_depth_in_json),
		cmocka_unit_test(a_table_without_rows_is_an_empty_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
