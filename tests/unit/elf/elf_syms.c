#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/elf_syms.h"
#include "elf_image.h"

static struct image image;
static bool is_hostile; /* what is left out of all its symbols need not be left out of a few */

static int setup(void **state)
{
	image_init(&image);
	is_hostile = false;
	return 0;
}

static void func(const char *name, uint64_t vaddr, uint64_t size)
{
	image_sym(&image, name, STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + vaddr, size);
}

static int by_vaddr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void assert_same_name(const struct elf_syms *all, struct elf_syms *some, uint64_t vaddr)
{
	struct elf_sym a = { 0 }, b = { 0 };

	assert_int_equal(elf_syms_find(all, vaddr, &a),
			 some ? elf_syms_find(some, vaddr, &b) : -ENOENT);
	if (a.name_len != b.name_len || memcmp(a.name ?: "", b.name ?: "", a.name_len) != 0)
		fail_msg("%#lx is %s, and by itself %s", (unsigned long)vaddr, a.name, b.name);
	assert_int_equal(a.label, b.label);
}

/* What is loaded for addresses alone gives them the same names: for one, and for many. */
static void assert_same_at(struct elf_file *elf, const struct elf_syms *all)
{
	_cleanup_(elf_syms_freep) struct elf_syms *many = NULL;
	static uint64_t vaddrs[4096];
	uint32_t n = 0;

	for (uint32_t i = 0; i < elf_syms_count(all) && n + 8 < 4096; i++) {
		struct elf_sym s = elf_syms_at(all, i);
		const uint64_t near[] = { s.vaddr - 1, s.vaddr, s.vaddr + s.size / 2,
					  s.vaddr + s.size - 1, s.vaddr + s.size };

		for (uint32_t k = 0; k < 5; k++) {
			_cleanup_(elf_syms_freep) struct elf_syms *one = NULL;

			assert_true(elf_syms_load_at(elf, &near[k], 1, &one, NULL) == 0 || !one);
			assert_same_name(all, one, near[k]);
			vaddrs[n++] = near[k];
		}
	}
	qsort(vaddrs, n, sizeof(*vaddrs), by_vaddr);
	assert_true(elf_syms_load_at(elf, vaddrs, n, &many, NULL) == 0 || !many);
	for (uint32_t i = 0; i < n; i++)
		assert_same_name(all, many, vaddrs[i]);
}

static int load(struct elf_syms **ret_syms, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	int r;

	image_finish(&image);
	r = elf_file_open_memory(image.bytes, image.len, "image", &elf, e);
	if (r == 0)
		r = elf_syms_load(elf, ret_syms, e);
	if (r == 0 && !is_hostile)
		assert_same_at(elf, *ret_syms);
	return r;
}

static void assert_name_at(const struct elf_syms *syms, uint64_t vaddr, const char *name)
{
	struct elf_sym sym;
	int r = elf_syms_find(syms, vaddr, &sym);

	if (!name) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	assert_int_equal(r, 0);
	if (sym.name_len != strlen(name) || memcmp(sym.name, name, sym.name_len) != 0)
		fail_msg("%#lx is %.*s, not %s", (unsigned long)vaddr, (int)sym.name_len, sym.name,
			 name);
}

static void a_symbol_names_its_own_bytes_and_no_others(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("one", 0x100, 0x20);
	func("two", 0x200, 0x20);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0xff, NULL);
	assert_name_at(syms, IMAGE_TEXT + 0x100, "one");
	assert_name_at(syms, IMAGE_TEXT + 0x11f, "one");
	assert_name_at(syms, IMAGE_TEXT + 0x120, NULL);
	assert_name_at(syms, IMAGE_TEXT + 0x21f, "two");
	assert_name_at(syms, IMAGE_TEXT + 0x220, NULL);
	assert_name_at(syms, 0, NULL);
	assert_name_at(syms, UINT64_MAX, NULL);
}

static void a_symbol_without_size_reaches_to_the_next_of_its_section(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	image_sym(&image, "_start", STB_GLOBAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x10, 0);
	func("next", 0x40, 0x10);
	image_sym(&image, "last", STB_LOCAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x80, 0);
	image_sym(&image, "hot", STB_LOCAL, STT_FUNC, SEC_HOT, IMAGE_HOT + 0x100, 8);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x10, "_start");
	assert_name_at(syms, IMAGE_TEXT + 0x3f, "_start");
	assert_name_at(syms, IMAGE_TEXT + 0x40, "next");
	assert_name_at(syms, IMAGE_TEXT + 0x7f, NULL);
	assert_name_at(syms, IMAGE_TEXT + IMAGE_TEXT_LEN - 1, "last");
	assert_name_at(syms, IMAGE_HOT + 0xff, NULL);
	assert_name_at(syms, IMAGE_HOT + 0x107, "hot");
}

static void among_aliases_the_expected_name_is_shown(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("__libc_malloc", 0x100, 16);
	func("malloc", 0x100, 16);
	image_sym(&image, "__malloc", STB_WEAK, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100, 16);
	func("_IO_puts", 0x200, 16);
	image_sym(&image, "puts", STB_WEAK, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x200, 16);
	image_sym(&image, "z", STB_LOCAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x300, 16);
	func("zlib_crc", 0x300, 16);
	image_sym(&image, "a", STB_GLOBAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x400, 16);
	func("typed", 0x400, 16);
	func("tc_newarray", 0x500, 16);
	func("_Znam", 0x500, 16);
	image_sym(&image, "__GI_____strtod_l_internal", STB_LOCAL, STT_FUNC, SEC_TEXT,
		  IMAGE_TEXT + 0x600, 16);
	image_sym(&image, "____strtod_l_internal", STB_LOCAL, STT_FUNC, SEC_TEXT,
		  IMAGE_TEXT + 0x600, 16);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x600, "____strtod_l_internal");
	assert_name_at(syms, IMAGE_TEXT + 0x100, "malloc");
	assert_name_at(syms, IMAGE_TEXT + 0x20f, "puts");
	assert_name_at(syms, IMAGE_TEXT + 0x300, "zlib_crc");
	assert_name_at(syms, IMAGE_TEXT + 0x400, "typed");
	assert_name_at(syms, IMAGE_TEXT + 0x500, "_Znam");
}

static void a_longer_alias_shows_behind_the_preferred_one(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("short", 0x100, 0x10);
	func("__the_longer_one", 0x100, 0x80);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x10f, "short");
	assert_name_at(syms, IMAGE_TEXT + 0x110, "__the_longer_one");
	assert_name_at(syms, IMAGE_TEXT + 0x180, NULL);
}

static void where_symbols_nest_the_innermost_names_the_address(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("outer", 0x100, 0x100);
	func("middle", 0x120, 0x40);
	func("inner", 0x130, 0x10);
	func("tail_overlaps", 0x1f0, 0x40);
	image_sym(&image, "a_label", STB_LOCAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x1a0, 0);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x11f, "outer");
	assert_name_at(syms, IMAGE_TEXT + 0x120, "middle");
	assert_name_at(syms, IMAGE_TEXT + 0x13f, "inner");
	assert_name_at(syms, IMAGE_TEXT + 0x140, "middle");
	assert_name_at(syms, IMAGE_TEXT + 0x160, "outer");
	assert_name_at(syms, IMAGE_TEXT + 0x1a0, "outer");
	assert_name_at(syms, IMAGE_TEXT + 0x1ff, "tail_overlaps");
	assert_name_at(syms, IMAGE_TEXT + 0x22f, "tail_overlaps");
	assert_name_at(syms, IMAGE_TEXT + 0x230, NULL);
}

static bool is_wanted(const char *name)
{
	return name[0] == '_';
}

/* What only a few names are loaded of says of them what the whole says: the end of one without a size
 * is that of its neighbour, which is not loaded. */
static void a_few_names_are_as_they_are_among_all(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *all = NULL, *some = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static const char *const names[] = { "_alias", "_start", "_versioned" };

	func("first", 0x00, 0x10);
	image_sym(&image, "_start", STB_GLOBAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x10, 0);
	func("next", 0x40, 0x10);
	func("_alias", 0x40, 0x10);
	func("_versioned@@V_1", 0x60, 0x20);
	assert_int_equal(load(&all, NULL), 0);
	assert_int_equal(elf_file_open_memory(image.bytes, image.len, "image", &elf, NULL), 0);
	assert_int_equal(elf_syms_load_some(elf, is_wanted, &some, NULL), 0);
	assert_int_equal(elf_syms_count(all), 5);
	assert_int_equal(elf_syms_count(some), 3);
	for (int i = 0; i < 3; i++) {
		struct elf_sym one, same;

		assert_int_equal(elf_syms_find_name(all, names[i], &one, 1), 1);
		assert_int_equal(elf_syms_find_name(some, names[i], &same, 1), 1);
		assert_true(one.vaddr == same.vaddr && one.size == same.size);
	}
	assert_name_at(some, IMAGE_TEXT + 0x3f, "_start");
	assert_name_at(some, IMAGE_TEXT + 0x08, NULL);
}

static void versions_are_stripped(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	struct elf_sym sym[4];

	func("memcpy@@GLIBC_2.14", 0x100, 16);
	func("memcpy@GLIBC_2.2.5", 0x200, 16);
	assert_int_equal(load(&syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x100, "memcpy");
	assert_int_equal(elf_syms_find_name(syms, "memcpy", sym, 4), 2);
	assert_int_equal(sym[0].vaddr, IMAGE_TEXT + 0x100);
	assert_int_equal(sym[1].vaddr, IMAGE_TEXT + 0x200);
	assert_int_equal(elf_syms_find_name(syms, "memcpy@GLIBC_2.2.5", sym, 4), 0);
}

static void a_name_is_found_at_each_address_once_by_any_alias(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	struct elf_sym sym = { 0 };

	func("__libc_malloc", 0x100, 16);
	func("malloc", 0x100, 16);
	func("malloc", 0x100, 24);
	func("malloc", 0x300, 16);
	image_sym(&image, "select_it", STB_GLOBAL, STT_GNU_IFUNC, SEC_TEXT, IMAGE_TEXT + 0x400, 8);
	assert_int_equal(load(&syms, NULL), 0);
	assert_int_equal(elf_syms_find_name(syms, "malloc", &sym, 1), 2);
	assert_int_equal(sym.vaddr, IMAGE_TEXT + 0x100);
	assert_int_equal(elf_syms_find_name(syms, "__libc_malloc", &sym, 1), 1);
	assert_int_equal(sym.vaddr, IMAGE_TEXT + 0x100);
	assert_false(sym.ifunc);
	assert_int_equal(elf_syms_find_name(syms, "select_it", &sym, 1), 1);
	assert_true(sym.ifunc);
	assert_int_equal(elf_syms_find_name(syms, "mallo", &sym, 1), 0);
	assert_int_equal(elf_syms_find_name(syms, "", &sym, 1), 0);
}

static void symbols_that_do_not_add_up_are_left_out(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("good", 0x100, 0x10);
	func("before the section", -0x100ull, 0x200);
	func("after the section", IMAGE_TEXT_LEN, 0x10);
	func("far", 1ull << 60, 0x10);
	func("", 0x300, 0x10);
	func(".Llabel", 0x400, 0x10);
	image_sym(&image, "$x", STB_LOCAL, STT_NOTYPE, SEC_TEXT, IMAGE_TEXT + 0x500, 0);
	image_sym(&image, "undefined", STB_GLOBAL, STT_FUNC, SHN_UNDEF, IMAGE_TEXT + 0x600, 8);
	image_sym(&image, "absolute", STB_GLOBAL, STT_FUNC, SHN_ABS, IMAGE_TEXT + 0x600, 8);
	image_sym(&image, "no such section", STB_GLOBAL, STT_FUNC, 99, IMAGE_TEXT + 0x600, 8);
	image_sym(&image, "data", STB_GLOBAL, STT_OBJECT, SEC_TEXT, IMAGE_TEXT + 0x600, 8);
	image_sym(&image, "not code", STB_GLOBAL, STT_FUNC, 4, 0, 8);
	func("name outside", 0x700, 0x10);
	image.syms[image.n_syms - 1].st_name = 0xfffffff0;
	assert_int_equal(load(&syms, NULL), 0);
	assert_int_equal(elf_syms_count(syms), 1);
	assert_name_at(syms, IMAGE_TEXT + 0x108, "good");
}

/* GHC's assembler code is variables to the linker. */
static void code_that_is_called_a_variable_is_known_by_its_kind(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	image_sym(&image, "stg_catch_frame_info", STB_GLOBAL, STT_OBJECT, SEC_TEXT,
		  IMAGE_TEXT + 0x100, 8);
	image_sym(&image, "stg_catch_frame", STB_GLOBAL, STT_OBJECT, SEC_TEXT, IMAGE_TEXT + 0x200,
		  8);
	image_sym(&image, "_info", STB_GLOBAL, STT_OBJECT, SEC_TEXT, IMAGE_TEXT + 0x300, 8);
	assert_int_equal(load(&syms, NULL), 0);
	assert_int_equal(elf_syms_count(syms), 1);
	assert_name_at(syms, IMAGE_TEXT + 0x100, "stg_catch_frame_info");
}

static void a_size_beyond_the_section_is_cut_at_its_end(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("huge", 0x100, UINT64_MAX - 8);
	assert_int_equal(load(&syms, NULL), 0);
	assert_int_equal(elf_syms_at(syms, 0).size, IMAGE_TEXT_LEN - 0x100);
	assert_name_at(syms, IMAGE_TEXT + IMAGE_TEXT_LEN, NULL);
}

static void overlapping_sections_do_no_harm(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("one", 0x100, 0);
	image_sym(&image, "two", STB_GLOBAL, STT_FUNC, SEC_HOT, IMAGE_TEXT + 0x180, 0);
	func("three", 0x200, 0);
	image_finish(&image);
	image_shdr(&image, SEC_HOT)->sh_addr = IMAGE_TEXT;
	assert_int_equal(elf_file_open_memory(image.bytes, image.len, "image", &elf, NULL), 0);
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x17f, "one");
	assert_name_at(syms, IMAGE_TEXT + 0x190, "two");
	assert_name_at(syms, IMAGE_TEXT + 0x210, "three");
}

static void a_stripped_file_has_no_symbol_table_and_says_so(void **state)
{
	struct elf_syms *syms = NULL;
	struct err e = { 0 };

	assert_int_equal(load(&syms, &e), -ENOENT);
	assert_string_equal(e.msg, "image: no symbol table");
	assert_null(syms);
}

static void bad_string_tables_are_refused(void **state)
{
	static const struct {
		uint32_t link;
		uint64_t off;
		int code;
	} cases[] = {
		{ 77, 0, -EBADMSG },
		{ SEC_TEXT, 0, -EBADMSG },
		{ 4, 1ull << 40, -ENODATA },
		{ 4, UINT64_MAX, -ENODATA },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		struct elf_syms *syms = NULL;
		struct err e = { 0 };

		setup(state);
		func("one", 0x100, 8);
		image_finish(&image);
		image_shdr(&image, 3)->sh_link = cases[i].link;
		if (cases[i].off)
			image_shdr(&image, 4)->sh_offset = cases[i].off;
		assert_int_equal(elf_file_open_memory(image.bytes, image.len, "image", &elf, NULL),
				 0);
		assert_int_equal(elf_syms_load(elf, &syms, &e), cases[i].code);
		assert_true(e.msg[0] != '\0');
	}
}

static void an_unterminated_last_name_ends_with_its_table(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	func("terminated", 0x100, 8);
	image_finish(&image);
	image_shdr(&image, 4)->sh_size -= 3;
	assert_int_equal(elf_file_open_memory(image.bytes, image.len, "image", &elf, NULL), 0);
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	assert_name_at(syms, IMAGE_TEXT + 0x100, "terminat");
}

static void many_symbols_at_one_long_name_do_not_cost_their_product(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	static char name[8192];

	memset(name, 'a', sizeof(name) - 1);
	for (int i = 0; i < 400; i++) {
		func("x", (uint64_t)i, 1);
		image.syms[image.n_syms - 1].st_name = 1;
	}
	image.names_len = 1;
	memcpy(image.names + 1, name, sizeof(name));
	image.names_len += sizeof(name);
	is_hostile = true;
	assert_int_equal(load(&syms, NULL), 0);
	assert_true(elf_syms_count(syms) <= 17);
}

static void a_table_cut_anywhere_gives_a_reason_or_symbols(void **state)
{
	for (int i = 0; i < 60; i++)
		func("some_function", (uint64_t)i * 32, 32);
	image_finish(&image);
	/* Headers first, so that they survive the cut. */
	memmove(image.bytes + 0x200, image.bytes + image_ehdr(&image)->e_shoff,
		IMAGE_SECTIONS * sizeof(Elf64_Shdr));
	image_ehdr(&image)->e_shoff = 0x200;

	for (size_t len = 0x1000; len < image.len; len += 64) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
		_cleanup_(freep) uint8_t *cut = malloc(len);
		struct err e = { 0 };
		int r;

		memcpy(cut, image.bytes, len);
		assert_int_equal(elf_file_open_memory(cut, len, "cut", &elf, &e), 0);
		r = elf_syms_load(elf, &syms, &e);
		assert_true(r == 0 || (r == -ENODATA && e.msg[0]));
	}
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	if (strstr(info->dlpi_name, "libc.so"))
		*(const char **)path = info->dlpi_name;
	return 0;
}

static int open_libc(struct elf_file **ret_elf)
{
	const char *path = NULL;
	int fd;

	dl_iterate_phdr(find_libc, &path);
	if (!path)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file_open(fd, path, ret_elf, NULL) < 0)
		return -1;
	return fd;
}

static void libc_is_found_by_name_and_address_as_the_linker_does(void **state)
{
	static const char *const names[] = { "malloc",         "free", "calloc", "realloc",
					     "posix_memalign", "puts", "write",  "qsort" };
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open_libc(&elf);
	Dl_info info;

	if (fd < 0)
		skip(); /* statically linked, or another libc */
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *addr = dlsym(RTLD_NEXT, names[i]);
		struct elf_sym sym;

		assert_true(dladdr(addr, &info));
		assert_int_equal(elf_syms_find_name(syms, names[i], &sym, 1), 1);
		/* Under a sanitizer the allocator is not libc's. */
		if (strstr(info.dli_fname, "libc.so"))
			assert_int_equal(sym.vaddr, (uintptr_t)addr - (uintptr_t)info.dli_fbase);
		assert_name_at(syms, sym.vaddr + sym.size - 1, names[i]);
	}
}

static void lookups_in_a_large_table_are_logarithmic(void **state)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open_libc(&elf);
	struct timespec a, b;
	struct elf_sym sym;
	uint32_t found = 0;
	double ns = 0;

	if (fd < 0)
		skip();
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	/* The quickest of five: a hypervisor's theft is in the clock of whom it falls on. */
	for (int round = 0; round < 5; round++) {
		double took;

		found = 0;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		for (uint32_t i = 0; i < 200000; i++)
			found += elf_syms_find(syms, 0x26000 + i * 7ull, &sym) == 0;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		took = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
		       200000;
		if (!round || took < ns)
			ns = took;
	}
	assert_true(found > 20000);
	/* 2,600 symbols: a linear search takes over 1 µs, a binary one some 50 ns; slow machines
	 * count. */
	assert_true(ns < 1000);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_symbol_names_its_own_bytes_and_no_others),
		TEST(a_symbol_without_size_reaches_to_the_next_of_its_section),
		TEST(among_aliases_the_expected_name_is_shown),
		TEST(a_longer_alias_shows_behind_the_preferred_one),
		TEST(where_symbols_nest_the_innermost_names_the_address),
		TEST(a_few_names_are_as_they_are_among_all),
		TEST(versions_are_stripped),
		TEST(a_name_is_found_at_each_address_once_by_any_alias),
		TEST(symbols_that_do_not_add_up_are_left_out),
		TEST(code_that_is_called_a_variable_is_known_by_its_kind),
		TEST(a_size_beyond_the_section_is_cut_at_its_end),
		TEST(overlapping_sections_do_no_harm),
		TEST(a_stripped_file_has_no_symbol_table_and_says_so),
		TEST(bad_string_tables_are_refused),
		TEST(an_unterminated_last_name_ends_with_its_table),
		TEST(many_symbols_at_one_long_name_do_not_cost_their_product),
		TEST(a_table_cut_anywhere_gives_a_reason_or_symbols),
		TEST(libc_is_found_by_name_and_address_as_the_linker_does),
		TEST(lookups_in_a_large_table_are_logarithmic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
