#include "model/about.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static void lines_are_found_by_kind_and_number_among_other_comments(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	const char *comments[] = { "made by hand", "Label: a=1",      "Target: web",
				   "Label: b=2",   "Targets: others", NULL };
	struct profile_meta meta = { .period_type = { "", "" }, .comments = comments };

	assert_null(profile_about(f.p, ABOUT_TARGET, 0));
	assert_int_equal(profile_set_meta(f.p, &meta), 0);
	assert_string_equal(profile_about(f.p, ABOUT_TARGET, 0), "web");
	assert_null(profile_about(f.p, ABOUT_TARGET, 1));
	assert_string_equal(profile_about(f.p, ABOUT_LABEL, 0), "a=1");
	assert_string_equal(profile_about(f.p, ABOUT_LABEL, 1), "b=2");
	assert_null(profile_about(f.p, ABOUT_LABEL, 2));
	assert_null(profile_about(f.p, ABOUT_TITLE, 0));
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_found_by_kind_and_number_among_other_comments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
