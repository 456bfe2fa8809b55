#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "collect/session/own_functions.h"
#include "model/dict.h"
#include "run/own_names.h"

#define HERE 0xffffffffc0030000ULL

static uint32_t asked;

/* The session's, in no order; there is a gap between the two. */
void own_functions_each(const struct session *s, own_function_fn fn, void *ctx)
{
	asked++;
	fn(ctx, HERE + 0x200, 0x80, "bpf_prog_on_cpu");
	fn(ctx, HERE, 0x100, "bpf_prog_walk");
}

static const char *name_at(struct dict *d, module_id module, uint64_t vaddr)
{
	const struct location *l = dict_location_get(d, dict_location(d, module, vaddr));
	static char name[64];

	if (!l->named)
		return NULL;
	snprintf(name, sizeof(name), "%s", dict_str(d, l->lines[0].function));
	return name;
}

static void places_in_own_programs_are_named_and_no_others(void **state)
{
	struct dict *d = dict_new();
	struct own_names *own = own_names_read(NULL);
	module_id kernel = dict_module(d, &(struct module){ .kind = MODULE_KERNEL });
	module_id other = dict_module(d, &(struct module){ .kind = MODULE_ANON });
	static const uint64_t at[] = { HERE - 1,     HERE,         HERE + 0xff,  HERE + 0x100,
				       HERE + 0x1ff, HERE + 0x200, HERE + 0x27f, HERE + 0x280 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		dict_location(d, kernel, at[i]);
		dict_location(d, other, at[i]);
	}
	assert_int_equal(asked, 1);
	own_names(own, d);
	assert_int_equal(asked, 1);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		assert_null(name_at(d, other, at[i]));
	assert_null(name_at(d, kernel, HERE - 1));
	assert_string_equal(name_at(d, kernel, HERE), "bpf_prog_walk");
	assert_string_equal(name_at(d, kernel, HERE + 0xff), "bpf_prog_walk");
	assert_null(name_at(d, kernel, HERE + 0x100));
	assert_null(name_at(d, kernel, HERE + 0x1ff));
	assert_string_equal(name_at(d, kernel, HERE + 0x200), "bpf_prog_on_cpu");
	assert_string_equal(name_at(d, kernel, HERE + 0x27f), "bpf_prog_on_cpu");
	assert_null(name_at(d, kernel, HERE + 0x280));
	own_names_free(own);
	dict_free(d);
}

static void without_a_list_nothing_is_named(void **state)
{
	struct dict *d = dict_new();
	module_id kernel = dict_module(d, &(struct module){ .kind = MODULE_KERNEL });

	(void)state;
	dict_location(d, kernel, HERE);
	own_names(NULL, d);
	assert_null(name_at(d, kernel, HERE));
	own_names_free(NULL);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_in_own_programs_are_named_and_no_others),
		cmocka_unit_test(without_a_list_nothing_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
