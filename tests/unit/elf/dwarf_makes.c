/* What calls in this very program return pointers to, by its own debug info; answers of a reader that has gone wrong. */
#include "elf/dwarf_makes.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct session {
	struct session *next;
	long id[6];
};

typedef struct {
	char text[24];
} order_t;

struct cart {
	long n;
	struct {
		long id;
		order_t *orders;
	} list;
};

enum { CALLS = 5 };

static uintptr_t returns[CALLS];
static order_t *volatile newest;
static struct session *volatile keep;

/* As an allocator: notes where it returns to. */
static __attribute__((noinline)) void *allocate(int i, size_t bytes)
{
	static uint64_t room[CALLS][64];

	assert_true(bytes <= sizeof(room[i]));
	returns[i] = (uintptr_t)__builtin_return_address(0);
	return room[i];
}

/* As it is compiled elsewhere: no checks between the call and what its result becomes. */
#define CALLER __attribute__((noinline, no_sanitize("address", "undefined")))

static CALLER void to_a_variable(void)
{
	struct session *s = allocate(0, sizeof(*s));

	s->id[3] = 7;
	s->next = keep;
	keep = s;
}

static CALLER void to_a_global(void)
{
	newest = allocate(1, sizeof(*newest));
}

static CALLER struct session *to_the_caller(void)
{
	struct session *s = allocate(2, sizeof(*s));

	__asm__ volatile("" : "+r"(s));
	return s;
}

static CALLER void to_nobody(void)
{
	void *p = allocate(3, 100);

	__asm__ volatile("" : : "r"(p) : "memory");
}

static CALLER void to_a_member(struct cart *cart)
{
	cart->list.orders = allocate(4, 7 * sizeof(order_t));
	cart->n = 7;
}

static int compare(const void *a, const void *b)
{
	const struct result_moves *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static const struct dwarf_type *type_at(const struct dwarf_types *types, uint64_t vaddr)
{
	uint32_t n;
	const struct dwarf_type *rows = dwarf_types_list(types, &n);

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].vaddr == vaddr)
			return &rows[i];
	return NULL;
}

static void a_result_has_the_type_of_the_variable_that_it_becomes(void **state)
{
	_cleanup_(dwarf_types_freep) struct dwarf_types *types = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct link_map *map = NULL;
	struct cart cart;
	struct result_moves calls[CALLS];
	const struct dwarf_type *type;
	uint64_t vaddrs[CALLS];
	Dl_info info;
	struct err e = { 0 };

	(void)state;
	to_a_variable();
	to_a_global();
	keep = to_the_caller();
	to_nobody();
	to_a_member(&cart);
	assert_int_equal(elf_file_open(fd, "self", &elf, &e), 0);
	assert_true(dladdr1((void *)returns[0], &info, (void **)&map, RTLD_DL_LINKMAP));
	for (int i = 0; i < CALLS; i++) {
		vaddrs[i] = returns[i] - map->l_addr;
		result_moves_read((const uint8_t *)returns[i], 32, vaddrs[i], elf_file_machine(elf),
				  &calls[i]);
	}
	qsort(calls, CALLS, sizeof(*calls), compare);
	if (dwarf_types_read(elf, NULL, calls, CALLS, 30000, &types, &e) < 0)
		fail_msg("%s", e.msg);
	type = type_at(types, vaddrs[0]);
	assert_non_null(type);
	assert_string_equal(type->name, "session");
	assert_int_equal(type->bytes, sizeof(struct session));
#if defined(__x86_64__)
	type = type_at(types, vaddrs[1]);
	assert_non_null(type);
	assert_string_equal(type->name, "order_t");
	assert_int_equal(type->bytes, sizeof(order_t));
	assert_false(type->is_guess);
	type = type_at(types, vaddrs[4]);
	assert_non_null(type);
	assert_string_equal(type->name, "order_t");
	assert_false(type->is_guess);
#endif
	type = type_at(types, vaddrs[2]);
	assert_non_null(type);
	assert_string_equal(type->name, "session");
	assert_null(type_at(types, vaddrs[3]));
	close(fd);
}

/* Takes `len` bytes as they came over the pipe. */
static uint32_t parse(const void *bytes, size_t len, struct dwarf_types **ret_types)
{
	char *text = malloc(len + 1);
	uint32_t n;

	assert_non_null(text);
	memcpy(text, bytes, len);
	assert_int_equal(dwarf_types_parse(text, len, ret_types), 0);
	dwarf_types_list(*ret_types, &n);
	return n;
}

static void nonsense_ends_the_answers_and_what_was_before_stands(void **state)
{
	static const char good[] = "S\3\0\0\0abc"
				   "T\1\0\0\0\0\0\0\0\1\0\0\0\10\0\0\0\0\0\0\0\1";
	static const char no_string[] = "T\2\0\0\0\0\0\0\0\1\0\0\0\10\0\0\0\0\0\0\0\0E\0\0\0\0";
	static const char no_bytes[] = "S\1\0\0\0aT\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0";
	struct dwarf_types *types = NULL;
	const struct dwarf_type *type;
	uint32_t n;

	(void)state;
	assert_int_equal(parse(good, sizeof(good) - 1, &types), 1);
	type = dwarf_types_list(types, &n);
	assert_string_equal(type->name, "abc");
	assert_int_equal(type->vaddr, 1);
	assert_int_equal(type->bytes, 8);
	assert_true(type->is_guess);
	dwarf_types_free(types);
	assert_int_equal(parse(good, sizeof(good) - 2, &types), 0);
	dwarf_types_free(types);
	assert_int_equal(parse(no_string, sizeof(no_string) - 1, &types), 0);
	dwarf_types_free(types);
	assert_int_equal(parse(no_bytes, sizeof(no_bytes) - 1, &types), 0);
	dwarf_types_free(types);
	assert_int_equal(parse("?", 1, &types), 0);
	dwarf_types_free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_has_the_type_of_the_variable_that_it_becomes),
		cmocka_unit_test(nonsense_ends_the_answers_and_what_was_before_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
