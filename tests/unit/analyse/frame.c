#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/frame.h"

static location_id location(struct dict *d, enum module_kind kind, const char *path,
			    const char *function)
{
	struct module m = { .kind = kind, .path = dict_string(d, path) };
	module_id module = kind == MODULE_NONE ? (module_id){ 0 } : dict_module(d, &m);
	location_id id = dict_location(d, module, 0x1000);
	struct line line = { .function = dict_string(d, function) };

	if (function[0])
		dict_location_name(d, id, &line, 1);
	return id;
}

static void frame_without_image_or_name_is_unknown_named_so_or_not(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct frame f;

	f = frame_get(d, location(d, MODULE_NONE, "", ""), 0);
	assert_int_equal(f.kind, FRAME_UNKNOWN);
	assert_string_equal(dict_str(d, f.name), "[unknown]");
	f = frame_get(d, location(d, MODULE_NONE, "", "[unknown]"), 0);
	assert_int_equal(f.kind, FRAME_UNKNOWN);
	f = frame_get(d, location(d, MODULE_ANON, "//anon", "[anon]"), 0);
	assert_int_equal(f.kind, FRAME_UNKNOWN);
}

static void name_from_a_foreign_profile_needs_no_image(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct frame f = frame_get(d, location(d, MODULE_NONE, "", "main"), 0);

	assert_int_equal(f.kind, FRAME_USER);
	assert_string_equal(dict_str(d, f.name), "main");
}

static void jitted_code_with_a_name_is_user_code(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();

	assert_int_equal(frame_get(d, location(d, MODULE_ANON, "//anon", "LazyCompile:f"), 0).kind,
			 FRAME_USER);
}

static void stripped_code_is_named_by_image_and_offset(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct frame f = frame_get(d, location(d, MODULE_ELF, "/usr/bin/app", ""), 0);

	assert_int_equal(f.kind, FRAME_USER);
	assert_string_equal(dict_str(d, f.name), "app+0x1000");
	assert_string_equal(f.module, "app");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_without_image_or_name_is_unknown_named_so_or_not),
		cmocka_unit_test(name_from_a_foreign_profile_needs_no_image),
		cmocka_unit_test(jitted_code_with_a_name_is_user_code),
		cmocka_unit_test(stripped_code_is_named_by_image_and_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
