#include "base/page.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static const char page[] = "what it is about\n"
			   "\n"
			   "# One thing\n"
			   "A paragraph whose lines are joined,\n"
			   "with `--words to type` in it.\n"
			   "    as  it stands\n"
			   "\n"
			   "    'quoted'\n"
			   "\n"
			   "- an item,\n"
			   "  continued\n"
			   "- another\n"
			   "\n"
			   "= term\n"
			   "what it means\n"
			   "\n"
			   ".begins with a dot\n";

static char *text_of(int width, bool bold)
{
	char *s = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&s, &len);

	page_print_text(page, f, width, bold);
	fclose(f);
	return s;
}

static char *man_of(void)
{
	char *s = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&s, &len);

	page_print_man("a-topic", page, f);
	fclose(f);
	return s;
}

static void text_is_wrapped_and_indented(void **state)
{
	_cleanup_(freep) char *s = text_of(44, false);

	assert_string_equal(s, "what it is about\n"
			       "\n"
			       "One thing\n"
			       "  A paragraph whose lines are joined, with\n"
			       "  --words to type in it.\n"
			       "\n"
			       "    as  it stands\n"
			       "\n"
			       "    'quoted'\n"
			       "\n"
			       "  - an item, continued\n"
			       "  - another\n"
			       "\n"
			       "  term\n"
			       "      what it means\n"
			       "\n"
			       "  .begins with a dot\n");
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	_cleanup_(freep) char *s = text_of(40, false);

	for (const char *line = s; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 40);
}

static void bold_is_switched_off_again(void **state)
{
	_cleanup_(freep) char *s = text_of(80, true);
	int on = 0, off = 0;

	for (const char *c = s; (c = strchr(c, '\033')); c++) {
		on += c[2] == '1';
		off += c[2] == '0';
	}
	assert_int_equal(on, 3);
	assert_int_equal(off, 3);
	assert_non_null(strstr(s, "\033[1m--words to type\033[0m in it"));
}

static void man_page_has_the_same_parts(void **state)
{
	_cleanup_(freep) char *s = man_of();

	assert_non_null(strstr(s, ".TH MEMSCOPE\\-A\\-TOPIC 7"));
	assert_non_null(strstr(s, "memscope\\-a\\-topic \\- what it is about\n"));
	assert_non_null(strstr(s, ".SS \"One thing\"\n"));
	assert_non_null(strstr(s, "joined, with \\fB\\-\\-words to type\\fR in it.\n"));
	assert_non_null(strstr(s, ".nf\n\\&as  it stands\n\\&\n\\&\\(aqquoted\\(aq\n.fi\n"));
	assert_non_null(strstr(s, ".IP \\(bu 2\n\\&an item, continued\n"));
	assert_non_null(strstr(s, ".TP\n\\&term\n\\&what it means\n"));
}

/* A line of text that begins with a dot is not a request. */
static void man_page_takes_no_text_for_a_request(void **state)
{
	_cleanup_(freep) char *s = man_of();

	assert_non_null(strstr(s, "\n\\&.begins with a dot\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_wrapped_and_indented),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(bold_is_switched_off_again),
		cmocka_unit_test(man_page_has_the_same_parts),
		cmocka_unit_test(man_page_takes_no_text_for_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
