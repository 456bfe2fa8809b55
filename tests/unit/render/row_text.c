#include "analyse/selection.h"
#include "render/formats/text.h"
#include "render/tables/call_tree.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static struct row_style style(const struct shown *shown, uint32_t width, bool colour)
{
	return (struct row_style){ shown, 5, width, colour };
}

static void a_line_fits_the_terminal_and_keeps_a_name(void **state)
{
	struct shown shown = { .unit = "count", .noun = "samples", .divisor = 1 };
	const char *name =
		"ns::Reader<std::vector<int>>::read_all(std::vector<int> const&, unsigned long)";

	for (uint32_t width = 40; width <= 200; width++) {
		struct row_style s = style(&shown, width, false);
		struct strbuf out = { 0 };

		strbuf_printf(&out, "%20s", "");
		row_name(&out, &s, 20, name, "libsomething-very-long.so.3.2.1");
		assert_true(text_columns(out.s) - 1 <= width);
		assert_non_null(strstr(out.s, "ns::Reader"));
		assert_true(width < 160 || strstr(out.s, "libsomething-very-long.so.3.2.1]"));
		strbuf_free(&out);
	}
}

static void colours_are_only_there_where_they_are_asked_for(void **state)
{
	struct shown shown = { .unit = "count", .noun = "samples", .divisor = 1 };
	struct strbuf plain = { 0 }, coloured = { 0 };
	struct row_style s = style(&shown, 0, false), c = style(&shown, 0, true);

	row_heading(&plain, &s, "Top");
	row_value(&plain, &s, 50, 100);
	row_name(&plain, &s, 14, "f\033[31m", "lib");
	assert_null(strchr(plain.s, '\033'));
	row_heading(&coloured, &c, "Top");
	row_value(&coloured, &c, 50, 100);
	row_value(&coloured, &c, 1, 100);
	assert_non_null(strstr(coloured.s, "\033[31m  50.0%\033[0m"));
	assert_null(strstr(coloured.s, "\033[31m   1.0%"));
	strbuf_free(&plain);
	strbuf_free(&coloured);
}

static struct strbuf tree_text(struct fixture *f, double min_percent, uint32_t width,
			       struct call_tree_rest *rest)
{
	static struct shown shown = { .unit = "count", .noun = "samples", .divisor = 1 };
	struct row_style s = style(&shown, width, false);
	struct call_tree_opts o = { &s, profile_positive_total(f->p, 0), min_percent, false };
	struct frame_tree *t;
	struct strbuf out = { 0 };

	assert_int_equal(frame_tree_build(f->p, &(struct frame_tree_opts){ 0 }, &t), 0);
	assert_int_equal(call_tree_text(t, &o, &out, rest), 0);
	frame_tree_free(t);
	return out;
}

static void small_branches_are_summed_behind_their_siblings(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct call_tree_rest rest;
	struct strbuf out;

	fixture_add1(&f, ";main;large", 90);
	fixture_add1(&f, ";main;a", 4);
	fixture_add1(&f, ";main;b;c", 3);
	fixture_add1(&f, ";main;large;d", 3);
	out = tree_text(&f, 5, 0, &rest);
	assert_string_equal(out.s, "       total         self  function\n"
				   "  100 100.0%               main  [prog]\n"
				   "   93  93.0%    90  90.0%  ├─ large\n"
				   "    7   7.0%               └─ (2 more)\n");
	assert_int_equal(rest.branches, 3);
	assert_int_equal(rest.total, 10);
	assert_int_equal(rest.in_no_row, 3); /* d alone is too small for a row */
	strbuf_free(&out);
	fixture_free(&f);
}

static void deep_trees_keep_their_names_on_the_line(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct call_tree_rest rest;
	struct strbuf out, stack = { 0 };
	char *save = NULL;
	uint32_t lines = 0;

	for (int depth = 0; depth < 60; depth++) {
		strbuf_printf(&stack, ";f%d", depth);
		fixture_add1(&f, stack.s, 1);
		strbuf_puts(
			&stack,
			";x"); /* a sibling at each depth: each one is a column further to the right */
		fixture_add1(&f, stack.s, 1);
		stack.len -= 2;
		stack.s[stack.len] = 0;
	}
	out = tree_text(&f, 0, 80, &rest);
	for (char *line = strtok_r(out.s, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save), lines++)
		assert_true(text_columns(line) <= 80);
	assert_int_equal(lines, 121);
	strbuf_free(&out);
	strbuf_free(&stack);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_fits_the_terminal_and_keeps_a_name),
		cmocka_unit_test(colours_are_only_there_where_they_are_asked_for),
		cmocka_unit_test(small_branches_are_summed_behind_their_siblings),
		cmocka_unit_test(deep_trees_keep_their_names_on_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
