#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <errno.h>

#include <cmocka.h>

#include "base/put.h"
#include "elf/elf_objects.h"
#include "elf_image.h"

static struct image im;

static int find(const char *first, const char *second, struct elf_object *ret_object)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	return elf_object_find(elf, (const char *[]){ first, second, NULL }, ret_object);
}

static void variables_are_found_by_name_and_functions_are_not(void **state)
{
	struct elf_object o = { 1, 2 };

	(void)state;
	image_init(&im);
	image_sym(&im, "rate", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT, 16);
	image_sym(&im, "rate", STB_GLOBAL, STT_OBJECT, SHN_UNDEF, 0, 0);
	image_sym(&im, "rate", STB_LOCAL, STT_OBJECT, SEC_HOT, IMAGE_HOT + 8, 8);
	image_sym(&im, "je_rate", STB_GLOBAL, STT_OBJECT, SEC_HOT, IMAGE_HOT + 16, 4);
	image_finish(&im);
	assert_int_equal(find("rates", "at", &o), -ENOENT);
	assert_true(o.vaddr == 1 && o.size == 2);
	assert_int_equal(find("rate", NULL, &o), 0);
	assert_true(o.vaddr == IMAGE_HOT + 8 && o.size == 8);
	assert_int_equal(find("none", "je_rate", &o), 0);
	assert_true(o.vaddr == IMAGE_HOT + 16 && o.size == 4);
}

/* Names are read in pieces of 64 KiB: wherever one lies, also as the last bytes of a longer one or of the section. */
static void a_name_is_found_wherever_it_lies_among_many(void **state)
{
	enum { NAMES = 150000, PIECE = 64 << 10 };
	uint8_t *bytes = malloc(IMAGE_CAP + NAMES);
	Elf64_Shdr *strings;

	(void)state;
	assert_non_null(bytes);
	image_init(&im);
	image_sym(&im, "edge", STB_GLOBAL, STT_OBJECT, SEC_HOT, IMAGE_HOT + 8, 8);
	image_finish(&im);
	strings = image_shdr(&im, 4);
	assert_int_equal(strings->sh_type, SHT_STRTAB);
	strings->sh_offset = im.len;
	strings->sh_size = NAMES;
	for (uint32_t at = 0; at < NAMES; at = at == 2           ? PIECE - 12
					       : at == PIECE + 2 ? NAMES - 6
								 : at + 1) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		struct elf_object o = { 0 };
		Elf64_Sym *sym =
			(Elf64_Sym *)(void *)(im.bytes + image_shdr(&im, 3)->sh_offset) + 1;
		size_t room = NAMES - at < 5 ? NAMES - at : 5;

		sym->st_name = at;
		memcpy(bytes, im.bytes, im.len);
		memset(bytes + im.len, 'x', NAMES);
		memcpy(bytes + im.len + at, "edge", room);
		assert_int_equal(elf_file_open_memory(bytes, im.len + NAMES, "image", &elf, NULL),
				 0);
		assert_int_equal(
			elf_object_find(elf, (const char *[]){ "a_longer_name", "edge", NULL }, &o),
			room < 4 ? -ENOENT : 0);
		if (room >= 4)
			assert_true(o.vaddr == IMAGE_HOT + 8 && o.size == 8);
	}
	free(bytes);
}

static int name_at(uint64_t vaddr, char *name, size_t cap, uint64_t *ret_off)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_variables_freep) struct elf_variables *variables = NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	const char *found;
	int r;

	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(elf_variables_put(elf, &b), 0);
	assert_int_equal(elf_variables_take(bytes_of(b.s, b.len), &variables), 0);
	r = elf_variables_at(variables, vaddr, &found, ret_off);
	if (r == 0)
		snprintf(name, cap, "%s", found);
	return r;
}

static void the_smallest_variable_at_an_address_names_it(void **state)
{
	char name[16] = "";
	uint64_t off = 0;

	(void)state;
	image_init(&im);
	image_sym(&im, "code", STB_GLOBAL, STT_FUNC, SEC_HOT, IMAGE_HOT, 64);
	image_sym(&im, "server", STB_GLOBAL, STT_OBJECT, SEC_HOT, IMAGE_HOT, 64);
	image_sym(&im, "lock", STB_LOCAL, STT_OBJECT, SEC_HOT, IMAGE_HOT + 16, 40);
	image_sym(&im, "a_long_name", STB_LOCAL, STT_OBJECT, SEC_HOT, IMAGE_HOT + 64, 8);
	image_finish(&im);
	assert_int_equal(name_at(IMAGE_HOT + 16, name, sizeof(name), &off), 0);
	assert_string_equal(name, "lock");
	assert_int_equal(off, 0);
	assert_int_equal(name_at(IMAGE_HOT + 60, name, sizeof(name), &off), 0);
	assert_string_equal(name, "server");
	assert_int_equal(off, 60);
	/* Behind one that begins later and ends before. */
	assert_int_equal(name_at(IMAGE_HOT + 10, name, sizeof(name), &off), 0);
	assert_string_equal(name, "server");
	assert_int_equal(name_at(IMAGE_HOT + 64, name, sizeof(name), &off), 0);
	assert_string_equal(name, "a_long_name");
	assert_int_equal(name_at(IMAGE_HOT + 72, name, sizeof(name), &off), -ENOENT);
	assert_int_equal(name_at(IMAGE_HOT - 1, name, sizeof(name), &off), -ENOENT);
}

static void put_two(struct strbuf *b, uint32_t n, uint64_t second, uint64_t size, const char *name)
{
	put_u32(b, n);
	put_u64(b, 0x100);
	put_u64(b, 8);
	put_u64(b, second);
	put_u64(b, size);
	strbuf_add(b, "one", 4);
	strbuf_add(b, name, strlen(name) + 1);
}

static int take_two(uint32_t n, uint64_t second, uint64_t size, const char *name)
{
	_cleanup_(elf_variables_freep) struct elf_variables *v = NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_two(&b, n, second, size, name);
	return elf_variables_take(bytes_of(b.s, b.len), &v);
}

static void answers_that_do_not_add_up_are_refused(void **state)
{
	char long_name[ELF_VARIABLE_NAME_MAX + 2];
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[ELF_VARIABLE_NAME_MAX + 1] = '\0';
	assert_int_equal(take_two(2, 0x100, 4, "two"), 0);
	assert_int_equal(take_two(2, 0x100, 4, long_name + 1), 0);
	assert_int_equal(take_two(2, 0x100, 4, long_name), -EBADMSG);
	assert_int_equal(take_two(2, 0x100, 4, ""), -EBADMSG);
	assert_int_equal(take_two(2, 0xff, 4, "two"), -EBADMSG);
	assert_int_equal(take_two(2, 0x100, 0, "two"), -EBADMSG);
	assert_int_equal(take_two(2, 0x100, UINT64_MAX, "two"), -EBADMSG);
	assert_int_equal(take_two(1, 0x100, 4, "two"), -EBADMSG);
	assert_int_equal(take_two(3, 0x100, 4, "two"), -EBADMSG);
	assert_int_equal(take_two(UINT32_MAX, 0x100, 4, "two"), -EBADMSG);
	put_two(&b, 2, 0x100, 4, "two");
	for (size_t len = 0; len < b.len; len++) {
		_cleanup_(elf_variables_freep) struct elf_variables *v = NULL;
		_cleanup_(freep) char *part = malloc(len + 1);

		memcpy(part, b.s, len);
		assert_int_equal(elf_variables_take(bytes_of(part, len), &v), -EBADMSG);
	}
}

static void names_are_as_people_have_them(void **state)
{
	char name[32] = "";
	uint64_t off;

	(void)state;
	image_init(&im);
	image_sym(&im, "_ZN3app5tableE", STB_GLOBAL, STT_OBJECT, SEC_HOT, IMAGE_HOT, 64);
	image_finish(&im);
	assert_int_equal(name_at(IMAGE_HOT, name, sizeof(name), &off), 0);
	assert_string_equal(name, "app::table");
}

static void tables_that_lie_hold_nothing(void **state)
{
	struct elf_object o;

	(void)state;
	image_init(&im);
	image_sym(&im, "rate", STB_GLOBAL, STT_OBJECT, SEC_HOT, IMAGE_HOT, 8);
	im.syms[1].st_name = 1 << 20;
	image_finish(&im);
	assert_int_equal(find("rate", NULL, &o), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_are_found_by_name_and_functions_are_not),
		cmocka_unit_test(answers_that_do_not_add_up_are_refused),
		cmocka_unit_test(names_are_as_people_have_them),
		cmocka_unit_test(a_name_is_found_wherever_it_lies_among_many),
		cmocka_unit_test(the_smallest_variable_at_an_address_names_it),
		cmocka_unit_test(tables_that_lie_hold_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
