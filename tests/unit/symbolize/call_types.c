/* What calls of this very program return pointers to, asked by locations of a dict. */
#include "symbolize/call_types.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct session {
	struct session *next;
	long id[6];
};

static uintptr_t returns;
static struct session *volatile keep;

static __attribute__((noinline)) void *allocate(void)
{
	static struct session room;

	returns = (uintptr_t)__builtin_return_address(0);
	return &room;
}

__attribute__((noinline, no_sanitize("address", "undefined"))) static void make_session(void)
{
	struct session *s = allocate();

	s->id[3] = 7;
	s->next = keep;
	keep = s;
}

static int open_module(void *ctx, module_id m, struct err *e)
{
	(void)e;
	return m.ix == *(const uint32_t *)ctx ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
					      : -ENOENT;
}

struct found {
	struct call_type type;
	char name[64];
	uint32_t n;
};

static void on_type(void *ctx, const struct call_type *type)
{
	struct found *f = ctx;

	f->type = *type;
	snprintf(f->name, sizeof(f->name), "%s", type->name);
	f->n++;
}

static void a_call_is_known_by_its_location_and_images_that_are_gone_are_left_out(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct module self = { .kind = MODULE_ELF, .path = dict_string(d, "/usr/bin/self") };
	struct module gone = { .kind = MODULE_ELF, .path = dict_string(d, "/usr/bin/gone") };
	struct module jit = { .kind = MODULE_ANON, .path = dict_string(d, "//anon") };
	module_id module = dict_module(d, &self);
	struct symbolize_opts opts = { .open_module = open_module, .ctx = &module.ix };
	struct found found = { 0 };
	struct link_map *map = NULL;
	location_id calls[3];
	Dl_info info;

	(void)state;
	make_session();
	assert_true(dladdr1((void *)returns, &info, (void **)&map, RTLD_DL_LINKMAP));
	calls[0] = dict_location(d, dict_module(d, &gone), 0x1000);
	calls[1] = dict_location(d, module, returns - map->l_addr - 1);
	calls[2] = dict_location(d, dict_module(d, &jit), 0x2000);
	assert_int_equal(call_types_find(d, &opts, calls, 3, on_type, &found), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.type.call.ix, calls[1].ix);
	assert_string_equal(found.name, "session");
	assert_int_equal(found.type.bytes, sizeof(struct session));
	assert_false(found.type.is_guess);
	assert_int_equal(call_types_find(d, &opts, NULL, 0, on_type, &found), 0);
	assert_int_equal(found.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_call_is_known_by_its_location_and_images_that_are_gone_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
