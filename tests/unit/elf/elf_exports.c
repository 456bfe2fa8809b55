/*
 * What files export, beside what the dynamic linker says; and files that lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <unistd.h>

#include "elf/elf_exports.h"

static uint8_t *bytes;
static size_t len;
static char libc[512];
static uint64_t base;

/* The C library's file in memory. */
static int load(void **state)
{
	Dl_info info;
	FILE *f;

	/* Not fopen(), which sanitizers have, too. */
	if (!dladdr((void *)gnu_get_libc_version, &info) || !(f = fopen(info.dli_fname, "rb")))
		return -1;
	snprintf(libc, sizeof(libc), "%s", info.dli_fname);
	base = (uint64_t)(uintptr_t)info.dli_fbase;
	bytes = malloc(8 << 20);
	len = fread(bytes, 1, 8 << 20, f);
	fclose(f);
	return 0;
}

static int unload(void **state)
{
	free(bytes);
	return 0;
}

static int find(const char *name, struct elf_export *ret_sym)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct err e;
	int r = elf_file_open_memory(bytes, len, "libc", &elf, &e);

	return r < 0 ? r : elf_export_find(elf, name, ret_sym, &e);
}

/* The section header of type `type`. */
static Elf64_Shdr *section(uint32_t type)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sh = (Elf64_Shdr *)(bytes + eh->e_shoff);

	for (int i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_type == type)
			return &sh[i];
	fail_msg("no section of type %#x", type);
	return NULL;
}

static void assert_as_the_linker_says(void)
{
	static const char *const names[] = {
		"pthread_self",       "fopen",   "qsort", "getpid", "stdout", "memmem",
		"pthread_key_create", "strtod_l"
	};
	/* The library's own, not one that something put before it. */
	void *own = dlopen(libc, RTLD_NOW | RTLD_NOLOAD);
	struct elf_export sym;

	assert_non_null(own);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(find(names[i], &sym), 0);
		assert_int_equal(sym.vaddr + base, (uint64_t)(uintptr_t)dlsym(own, names[i]));
		assert_true(sym.size > 0);
	}
	dlclose(own);
	assert_int_equal(find("fopen", &sym), 0);
	assert_int_equal(sym.type, STT_FUNC);
	assert_int_equal(find("stdout", &sym), 0);
	assert_int_equal(sym.type, STT_OBJECT);
}

static void names_are_where_the_dynamic_linker_finds_them(void **state)
{
	assert_as_the_linker_says();
}

static void what_is_not_exported_is_not_found(void **state)
{
	struct elf_export sym;

	assert_int_equal(find("_PyRuntime", &sym), -ENOENT);
	assert_int_equal(find("", &sym), -ENOENT);
	assert_int_equal(find("fope", &sym), -ENOENT);
	assert_int_equal(find("fopenx", &sym), -ENOENT);
}

static void without_a_hash_table_the_symbols_are_read(void **state)
{
	struct elf_export sym;

	section(SHT_GNU_HASH)->sh_type = SHT_PROGBITS;
	assert_as_the_linker_says();
	assert_int_equal(find("_PyRuntime", &sym), -ENOENT);
	section(SHT_DYNSYM)->sh_type = SHT_PROGBITS;
	assert_int_equal(find("fopen", &sym), -ENOENT);
}

static void tables_that_lie_are_not_followed(void **state)
{
	Elf64_Shdr *hash = section(SHT_GNU_HASH);
	uint8_t *table = bytes + hash->sh_offset;
	uint32_t head[4], saved[4];
	struct elf_export sym;
	uint64_t size = hash->sh_size;

	memcpy(saved, table, sizeof(saved));
	for (int i = 0; i < 4; i++)
		for (uint32_t v = 0; v < 3; v++) {
			memcpy(head, saved, sizeof(head));
			head[i] = v == 0 ? 0 : v == 1 ? ~0u : head[i] / 2 + 1;
			memcpy(table, head, sizeof(head));
			assert_true(find("fopen", &sym) <= 0);
		}
	memcpy(table, saved, sizeof(saved));
	for (hash->sh_size = 0; hash->sh_size < size; hash->sh_size = hash->sh_size * 2 + 8)
		assert_true(find("fopen", &sym) <= 0);
	hash->sh_size = size;
	/* Every chain without an end. */
	for (uint64_t at = 16; at + 4 <= size; at += 4)
		memset(table + at, 0xfe, 4);
	assert_true(find("fopen", &sym) < 0);
}

int symbol_of_this_program(void);
int symbol_of_this_program(void)
{
	return 1;
}

static void what_is_linked_in_is_in_the_table_of_symbols(void **state)
{
	static const char *const names[] = { "no_such_symbol", "symbol_of_this_program", "main" };
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_export syms[3];
	struct err e;

	assert_int_equal(elf_file_open(fd, "self", &elf, &e), 0);
	assert_int_equal(elf_symtab_find(elf, names, 3, syms, &e), 0);
	assert_int_equal(syms[0].vaddr, 0);
	assert_true(syms[1].vaddr != 0);
	assert_int_equal(syms[2].vaddr - syms[1].vaddr,
			 (uintptr_t)dlsym(RTLD_DEFAULT, "main")
				 ? (uintptr_t)dlsym(RTLD_DEFAULT, "main") -
					   (uintptr_t)symbol_of_this_program
				 : syms[2].vaddr - syms[1].vaddr);
	assert_int_equal(elf_symtab_find(elf, names, 1, syms, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_are_where_the_dynamic_linker_finds_them, load,
						unload),
		cmocka_unit_test_setup_teardown(what_is_not_exported_is_not_found, load, unload),
		cmocka_unit_test_setup_teardown(without_a_hash_table_the_symbols_are_read, load,
						unload),
		cmocka_unit_test_setup_teardown(tables_that_lie_are_not_followed, load, unload),
		cmocka_unit_test(what_is_linked_in_is_in_the_table_of_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
