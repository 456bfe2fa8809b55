#include "analyse/functions.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static const struct function *find(const struct functions *f, const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (strcmp(f->rows[i].name, name) == 0)
			return &f->rows[i];
	fail_msg("there is no row %s", name);
	return NULL;
}

static void images_count_once_per_path_whatever_calls_back(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct functions by_module;
	struct frame_tree *t;

	fixture_add1(&f, "comm;main;lib+0x10;callback", 3);
	fixture_add1(&f, "comm;main;lib+0x20", 4);
	fixture_add1(&f, "comm;main;read_[k]", 2);
	assert_int_equal(frame_tree_build(f.p, &(struct frame_tree_opts){ 0 }, &t), 0);
	assert_int_equal(functions_make_modules(t, &by_module), 0);
	assert_int_equal(by_module.n, 3);
	assert_int_equal(find(&by_module, "prog")->total, 9);
	assert_int_equal(find(&by_module, "prog")->self, 3);
	assert_int_equal(find(&by_module, "lib")->total, 7);
	assert_int_equal(find(&by_module, "lib")->self, 4);
	assert_int_equal(find(&by_module, "[kernel]")->self, 2);
	functions_fini(&by_module);
	frame_tree_free(t);
	fixture_free(&f);
}

static void a_function_of_the_same_name_in_another_image_is_another(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct functions all;
	struct frame_tree *t;

	fixture_add1(&f, "comm;main;read", 3);
	fixture_add1(&f, "comm;main;read;read_[k]", 4);
	assert_int_equal(frame_tree_build(f.p, &(struct frame_tree_opts){ 0 }, &t), 0);
	assert_int_equal(functions_make(t, &all), 0);
	assert_int_equal(all.n, 3);
	assert_int_equal(find(&all, "main")->total, 7);
	functions_fini(&all);
	frame_tree_free(t);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_count_once_per_path_whatever_calls_back),
		cmocka_unit_test(a_function_of_the_same_name_in_another_image_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
