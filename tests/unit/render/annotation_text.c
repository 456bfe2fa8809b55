/* A function as text: lines with what they cost, then instructions with the lines that they were compiled from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/tables/annotation_text.h"
#include "unit/source_fixture.h"

#include <stdio.h>

static const char *write_text(const struct source_fixture *s, const char *function,
			      struct annotation_opts o, struct sink **ret_sink)
{
	size_t len;

	o.p = s->f.p;
	o.costs = &s->costs;
	o.sources = &s->sources;
	assert_int_equal(sink_open_memory(ret_sink, NULL), 0);
	assert_int_equal(
		annotation_text_write(&o, source_fixture_function(s, function), *ret_sink, NULL),
		0);
	assert_int_equal(sink_commit(*ret_sink, NULL), 0);
	return sink_memory(*ret_sink, &len);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void lines_have_their_costs_and_instructions_their_lines(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct source_fixture s;
	const char *text;

	source_fixture_make(&s, "return x * 3;");
	text = write_text(&s, "mix", (struct annotation_opts){ .context = 1 }, &sink);
	assert_has(text,
		   "mix  [prog]\nself 2 samples (25.0% of all), total 7 samples (87.5% of all)");
	assert_has(text, "5 samples (62.5% of all) more in functions inlined into it");
	assert_has(text, "  28.6%   28.6%      3\n          71.4%      4          x = step(x);\n");
	assert_has(text, "Instructions of mix: 0x1000 to 0x1009, self 7 samples (87.5% of all)");
	assert_has(text, "              prog.c:7 (step, inlined)  return x * 3;\n"
			 "  71.4%       1003  ┌─► imul %rcx, %rbx\n"
			 "              prog.c:4  x = step(x);\n"
			 "              1007  └── jnz 0x1003\n");
	assert_has(text, "Not all instructions are here: /opt/lib.so: file changed");
	source_fixture_free(&s);
}

static void an_inlined_function_is_shown_where_it_was_inlined(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct source_fixture s;
	const char *text;

	source_fixture_make(&s, "return x * 3;");
	text = write_text(&s, "step", (struct annotation_opts){ .of_all = true }, &sink);
	assert_has(text, "  62.5%   62.5%      7  return x * 3;\n");
	assert_has(text, "Instructions of mix");
	/* Without context, what has no samples is counted only. */
	assert_has(text, "… 1 without samples\n");
	assert_null(strstr(text, "jnz"));
	source_fixture_free(&s);
}

static void a_file_that_cannot_be_shown_says_why(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL, *left_out = NULL, *newer = NULL,
					   *far = NULL;
	struct source_fixture s;
	const char *text;

	source_fixture_make(&s, "");
	s.text.problem = "there is no such file here";
	text = write_text(&s, "step", (struct annotation_opts){ 0 }, &sink);
	assert_has(text, "/src/prog.c: there is no such file here\n");
	assert_has(text, " 100.0%  100.0%      7\n");
	text = write_text(&s, "step", (struct annotation_opts){ .no_source = true }, &left_out);
	assert_has(text, "its text is left out (--no-source)");
	s.text.problem = NULL;
	s.text.newer = true;
	text = write_text(&s, "step", (struct annotation_opts){ 0 }, &newer);
	assert_has(text, "changed after the program was built");
	text = write_text(&s, "far", (struct annotation_opts){ 0 }, &far);
	assert_has(text, "No file and line is known of");
	source_fixture_free(&s);
}

static void bytes_of_a_hostile_file_are_no_commands_to_the_terminal(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct source_fixture s;
	const char *text;

	source_fixture_make(&s, "\033]0;evil\007\xff \xe2\x80\xae");
	text = write_text(&s, "step", (struct annotation_opts){ 0 }, &sink);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\007'));
	assert_null(strstr(text, "\xe2\x80\xae"));
	assert_has(text, "]0;evil");
	source_fixture_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_their_costs_and_instructions_their_lines),
		cmocka_unit_test(an_inlined_function_is_shown_where_it_was_inlined),
		cmocka_unit_test(a_file_that_cannot_be_shown_says_why),
		cmocka_unit_test(bytes_of_a_hostile_file_are_no_commands_to_the_terminal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
