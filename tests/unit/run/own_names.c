#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "collect/session/own_functions.h"
#include "run/output/own_names.h"
#include "run/run.h"

#define HERE 0xffffffffc0030000ULL

static uint32_t asked;

/* The session's, in no order; there is a gap between the two. */
void own_functions_each(const struct session *s, own_function_fn fn, void *ctx)
{
	asked++;
	fn(ctx, HERE + 0x200, 0x80, "bpf_prog_on_cpu");
	fn(ctx, HERE, 0x100, "bpf_prog_walk");
}

static const char *name_at(struct run *r, module_id module, uint64_t vaddr)
{
	const struct location *l =
		dict_location_get(r->dict, dict_location(r->dict, module, vaddr));
	static char name[64];

	if (!l->named)
		return NULL;
	snprintf(name, sizeof(name), "%s", dict_str(r->dict, l->lines[0].function));
	return name;
}

static void places_in_own_programs_are_named_and_no_others(void **state)
{
	struct run r = { .dict = dict_new(), .session = (struct session *)(uintptr_t)1 };
	module_id kernel = dict_module(r.dict, &(struct module){ .kind = MODULE_KERNEL });
	module_id other = dict_module(r.dict, &(struct module){ .kind = MODULE_ANON });
	static const uint64_t at[] = { HERE - 1,     HERE,         HERE + 0xff,  HERE + 0x100,
				       HERE + 0x1ff, HERE + 0x200, HERE + 0x27f, HERE + 0x280 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		dict_location(r.dict, kernel, at[i]);
		dict_location(r.dict, other, at[i]);
	}
	own_names(&r);
	assert_int_equal(asked, 1);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		assert_null(name_at(&r, other, at[i]));
	assert_null(name_at(&r, kernel, HERE - 1));
	assert_string_equal(name_at(&r, kernel, HERE), "bpf_prog_walk");
	assert_string_equal(name_at(&r, kernel, HERE + 0xff), "bpf_prog_walk");
	assert_null(name_at(&r, kernel, HERE + 0x100));
	assert_null(name_at(&r, kernel, HERE + 0x1ff));
	assert_string_equal(name_at(&r, kernel, HERE + 0x200), "bpf_prog_on_cpu");
	assert_string_equal(name_at(&r, kernel, HERE + 0x27f), "bpf_prog_on_cpu");
	assert_null(name_at(&r, kernel, HERE + 0x280));
	dict_free(r.dict);
}

static void without_a_session_nobody_is_asked(void **state)
{
	struct run r = { .dict = dict_new() };

	(void)state;
	asked = 0;
	own_names(&r);
	assert_int_equal(asked, 0);
	dict_free(r.dict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_in_own_programs_are_named_and_no_others),
		cmocka_unit_test(without_a_session_nobody_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
