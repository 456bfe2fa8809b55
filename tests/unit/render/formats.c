#include "render/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static void choices_are_the_table_in_order(void **state)
{
	char copy[] = FORMAT_CHOICES, *save = NULL;
	int n = 0;

	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
		assert_string_equal(formats[n++].name, w);
	assert_null(formats[n].name);
}

static void a_format_is_found_by_name_and_by_ending(void **state)
{
	for (const struct format *f = formats; f->name; f++) {
		char path[64];

		assert_ptr_equal(format_find(f->name), f);
		snprintf(path, sizeof(path), "dir.svg/x.1%s", f->ext);
		assert_ptr_equal(format_for_path(path), f);
	}
	assert_null(format_find("png"));
	assert_null(format_for_path("x.png"));
	assert_null(format_for_path("svg"));
	assert_null(format_for_path("x.gz"));
}

static void every_row_is_whole(void **state)
{
	for (const struct format *f = formats; f->name; f++) {
		assert_non_null(f->ext);
		assert_non_null(f->help);
		assert_non_null(f->write);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices_are_the_table_in_order),
		cmocka_unit_test(a_format_is_found_by_name_and_by_ending),
		cmocka_unit_test(every_row_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
