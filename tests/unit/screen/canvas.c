#include "screen/canvas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *line(const struct canvas *c, int y)
{
	static char buf[256];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	canvas_print(c, y, f);
	fclose(f);
	return buf;
}

static void what_is_too_long_is_cut_and_says_so(void **state)
{
	struct canvas c = { 0 };

	assert_int_equal(canvas_begin(&c, 2, 20), 0);
	assert_int_equal(canvas_put(&c, 0, 0, 5, STYLE_TEXT, "redis"), 5);
	assert_string_equal(line(&c, 0), "redis\n");
	assert_int_equal(canvas_put(&c, 0, 6, 5, STYLE_TEXT, "postgres"), 5);
	assert_string_equal(line(&c, 0), "redis post…\n");
	canvas_put(&c, 1, 15, 50, STYLE_TEXT, "beyond the end");
	assert_string_equal(line(&c, 1), "               beyon\n");
	assert_int_equal(canvas_put(&c, 7, 0, 5, STYLE_TEXT, "nowhere"), 0);
	canvas_fini(&c);
}

static void ascii_terminals_get_ascii(void **state)
{
	struct canvas c = { .ascii = true };

	assert_int_equal(canvas_begin(&c, 1, 20), 0);
	canvas_put(&c, 0, 0, 8, STYLE_TEXT, "Grüße an alle");
	assert_string_equal(line(&c, 0), "Gr??e a~\n");
	for (int g = 0; g < N_GLYPHS; g++)
		for (const char *s = canvas_glyph(&c, (enum glyph)g); *s; s++)
			assert_true((unsigned char)*s < 0x80);
	canvas_fini(&c);
}

/* Names are the target's: an escape sequence in one must not reach the terminal. */
static void no_control_character_is_shown(void **state)
{
	struct canvas c = { 0 };

	assert_int_equal(canvas_begin(&c, 1, 20), 0);
	canvas_put(&c, 0, 0, 20, STYLE_TEXT,
		   "a\x1b[2J\xff\xc2\x9b"
		   "b\xe2\x82");
	for (int x = 0; x < 20; x++) {
		assert_true(c.cells[x].c >= 0x20);
		assert_true(c.cells[x].c < 0x7f || c.cells[x].c >= 0xa0);
	}
	assert_string_equal(line(&c, 0), "a�[2J��b��\n");
	canvas_fini(&c);
}

static void numbers_stand_at_the_right(void **state)
{
	struct canvas c = { 0 };

	assert_int_equal(canvas_begin(&c, 1, 20), 0);
	canvas_put_right(&c, 0, 2, 6, STYLE_TEXT, "12.5");
	assert_string_equal(line(&c, 0), "    12.5\n");
	canvas_style(&c, 0, 0, 99, STYLE_CURSOR);
	assert_int_equal(c.cells[19].style, STYLE_CURSOR);
	canvas_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_long_is_cut_and_says_so),
		cmocka_unit_test(ascii_terminals_get_ascii),
		cmocka_unit_test(no_control_character_is_shown),
		cmocka_unit_test(numbers_stand_at_the_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
