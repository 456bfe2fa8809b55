/* What stacks of waits wait for, by addresses of kernel functions. */
#include "run/serve/wait_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t asked;

static const char *name_of(const struct kallsyms *k, uint64_t addr)
{
	asked++;
	switch (addr) {
	case 0x100:
		return "__schedule";
	case 0x200:
		return "futex_wait_queue";
	case 0x300:
		return "io_schedule";
	case 0x400:
		return "ext4_file_write_iter";
	default:
		return NULL;
	}
}

static stack_id stack(struct dict *d, const uint64_t *kernel, uint32_t n, uint64_t user)
{
	module_id k = dict_module(
		d, &(struct module){ .kind = MODULE_KERNEL, .path = dict_string(d, "[kernel]") });
	module_id u = dict_module(
		d, &(struct module){ .kind = MODULE_ELF, .path = dict_string(d, "/bin/app") });
	location_id frames[8];

	for (uint32_t i = 0; i < n; i++)
		frames[i] = dict_location(d, k, kernel[i]);
	frames[n] = dict_location(d, u, user);
	return dict_stack(d, frames, n + 1);
}

static enum wait_kind kind_of(struct wait_kinds *w, const struct dict *d, stack_id s)
{
	enum wait_kind kind;

	assert_int_equal(wait_kinds_of(w, d, s, &kind), 0);
	return kind;
}

static void the_function_nearest_to_the_leaf_decides(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct wait_kinds w = { .name = name_of, .tried = true };
	const uint64_t futex[] = { 0x100, 0x200 }, disk[] = { 0x100, 0x300, 0x400 },
		       module[] = { 0x100, 0xffff, 0x400 }, none[] = { 0x100 };

	assert_int_equal(kind_of(&w, d, stack(d, futex, 2, 0x1)), WAIT_LOCK);
	assert_int_equal(kind_of(&w, d, stack(d, disk, 3, 0x1)), WAIT_DISK);
	assert_int_equal(kind_of(&w, d, stack(d, module, 3, 0x1)), WAIT_DISK);
	/* An address of the program that a kernel function has, too. */
	assert_int_equal(kind_of(&w, d, stack(d, none, 1, 0x200)), WAIT_OTHER);
	assert_int_equal(kind_of(&w, d, (stack_id){ 0 }), WAIT_OTHER);
	wait_kinds_fini(&w);
}

static void a_stack_is_asked_about_once(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct wait_kinds w = { .name = name_of, .tried = true };
	const uint64_t futex[] = { 0x100, 0x200 };
	stack_id s = stack(d, futex, 2, 0x1);

	asked = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(kind_of(&w, d, s), WAIT_LOCK);
	assert_int_equal(asked, 2);
	wait_kinds_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_nearest_to_the_leaf_decides),
		cmocka_unit_test(a_stack_is_asked_about_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
