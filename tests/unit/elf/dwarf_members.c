/* What variables and structs of this very program point to, by its own debug info; answers of a reader that has gone wrong. */
#include "elf/dwarf_members.h"

#include <dlfcn.h>
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

struct item {
	double price;
	long id;
};

typedef struct {
	char text[24];
} note_t;

union either {
	struct item *item;
	note_t *note;
};

struct order {
	struct order *next;
	struct {
		long n;
		struct item **rows;
	} list;
	note_t *const notes[2];
	void *opaque;
	char *text;
	union either either;
};

struct urgent_order {
	struct order order;
	long deadline;
};

struct order first_order;
struct urgent_order *volatile urgent;

static const struct dwarf_layout *layouts;
static uint32_t n_layouts;

static const struct dwarf_layout *layout_of(const char *name)
{
	for (uint32_t i = 1; i < n_layouts; i++)
		if (strcmp(layouts[i].name, name) == 0)
			return &layouts[i];
	fail_msg("no layout of %s", name);
	return NULL;
}

static void check_slot(const struct dwarf_layout *l, uint32_t i, size_t off, const char *to)
{
	assert_true(i < l->n);
	assert_int_equal(l->slots[i].off, off);
	assert_int_equal(l->slots[i].kind, DWARF_SLOT_POINTER);
	assert_string_equal(layouts[l->slots[i].layout].name, to);
}

/* What the variable at this address is. */
static const struct dwarf_layout *layout_at(const struct dwarf_members *m, const volatile void *at)
{
	struct link_map *map = NULL;
	const struct dwarf_variable *v;
	Dl_info info;
	uint32_t n;

	assert_true(dladdr1((const void *)at, &info, (void **)&map, RTLD_DL_LINKMAP));
	v = dwarf_members_variables(m, &n);
	for (uint32_t i = 0; i < n; i++)
		if (v[i].vaddr + map->l_addr == (uintptr_t)at)
			return &layouts[v[i].layout];
	fail_msg("no variable there");
	return NULL;
}

static void pointers_have_their_places_and_what_they_point_to(void **state)
{
	_cleanup_(dwarf_members_freep) struct dwarf_members *m = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct dwarf_layout *order, *l;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(elf_file_open(fd, "self", &elf, &e), 0);
	if (dwarf_members_read(elf, NULL, 30000, &m, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(dwarf_members_complete(m));
	layouts = dwarf_members_layouts(m, &n_layouts);
	order = layout_at(m, &first_order);
	assert_string_equal(order->name, "order");
	assert_int_equal(order->bytes, sizeof(struct order));
	/* Neither of void and bytes, nor where a union has two. */
	assert_int_equal(order->n, 4);
	check_slot(order, 0, offsetof(struct order, next), "order");
	check_slot(order, 1, offsetof(struct order, list.rows), "item*");
	check_slot(order, 2, offsetof(struct order, notes[0]), "note_t");
	check_slot(order, 3, offsetof(struct order, notes[1]), "note_t");
	l = layout_at(m, &urgent);
	assert_string_equal(l->name, "urgent_order*");
	check_slot(l, 0, 0, "urgent_order");
	l = layout_of("urgent_order");
	assert_int_equal(l->bytes, sizeof(struct urgent_order));
	assert_ptr_equal(&layouts[l->head], order);
	check_slot(l, 0, 0, "order");
	assert_int_equal(layout_of("note_t")->bytes, sizeof(note_t));
	check_slot(layout_of("item*"), 0, 0, "item");
	assert_int_equal(layout_of("item")->n, 0);
	close(fd);
}

static struct dwarf_members *parse(const char *bytes, size_t len)
{
	struct dwarf_members *m = NULL;
	char *text = malloc(len + 1);

	assert_non_null(text);
	memcpy(text, bytes, len);
	assert_int_equal(dwarf_members_parse(text, len, &m), 0);
	layouts = dwarf_members_layouts(m, &n_layouts);
	return m;
}

#define PARSE(text)   parse(text, sizeof(text) - 1)
#define NAMES         "S\1\0\0\0aS\1\0\0\0b"
#define U64(low)      low "\0\0\0\0\0\0\0"
#define A_POINTS_TO_B "L\1\0\0\0" U64("\20") "\0\0\0\0\1\0\0\0\10\0\0\0\2\0\0\0\0"

static void nonsense_ends_the_answers_and_what_was_before_stands(void **state)
{
	struct dwarf_members *m = PARSE(NAMES A_POINTS_TO_B "V" U64("\3") "\1\0\0\0E\0\0\0\0");
	uint32_t n;

	(void)state;
	assert_int_equal(n_layouts, 3);
	assert_int_equal(layouts[1].bytes, 16);
	check_slot(&layouts[1], 0, 8, "b");
	assert_int_equal(layouts[2].bytes, 0);
	assert_int_equal(dwarf_members_variables(m, &n)->vaddr, 3);
	assert_int_equal(n, 1);
	assert_true(dwarf_members_complete(m));
	dwarf_members_free(m);
	/* No end; a variable of no type. */
	m = PARSE(NAMES A_POINTS_TO_B "V" U64("\3") "\3\0\0\0E\0\0\0\0");
	assert_false(dwarf_members_complete(m));
	assert_int_equal(layouts[1].n, 1);
	dwarf_members_variables(m, &n);
	assert_int_equal(n, 0);
	dwarf_members_free(m);
	/* A pointer behind the struct's end, at an odd place, to nothing that has a name. */
	m = PARSE(NAMES "L\1\0\0\0" U64("\20") "\0\0\0\0\1\0\0\0\20\0\0\0\2\0\0\0\0");
	assert_int_equal(layouts[1].bytes, 0);
	dwarf_members_free(m);
	m = PARSE(NAMES "L\1\0\0\0" U64("\20") "\0\0\0\0\1\0\0\0\4\0\0\0\2\0\0\0\0");
	assert_int_equal(layouts[1].bytes, 0);
	dwarf_members_free(m);
	m = PARSE(NAMES "L\1\0\0\0" U64("\20") "\0\0\0\0\1\0\0\0\10\0\0\0\3\0\0\0\0");
	assert_int_equal(layouts[1].bytes, 0);
	dwarf_members_free(m);
	m = PARSE("?");
	assert_false(dwarf_members_complete(m));
	dwarf_members_free(m);
}

static void one_name_with_two_layouts_is_ambiguous(void **state)
{
	struct dwarf_members *m =
		PARSE(NAMES A_POINTS_TO_B "L\1\0\0\0" U64("\20") "\0\0\0\0\0\0\0\0E\0\0\0\0");

	(void)state;
	assert_true(layouts[1].is_ambiguous);
	dwarf_members_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointers_have_their_places_and_what_they_point_to),
		cmocka_unit_test(nonsense_ends_the_answers_and_what_was_before_stands),
		cmocka_unit_test(one_name_with_two_layouts_is_ambiguous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
