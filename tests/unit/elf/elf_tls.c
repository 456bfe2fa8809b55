/*
 * Where images have a thread-local variable: a small image with one symbol, one segment and relocations of each kind. That the dynamic
 * linker agrees is shown by live/test_thread_context.py.
 */
#include "elf/elf_tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

enum { AT_SYMS = 0x200, AT_STRS = 0x300, AT_RELS = 0x400, AT_SECTIONS = 0x600, N_SECTIONS = 5 };
enum { OURS = 1, OTHER = 2 };

static uint8_t bytes[4096];
static uint32_t n_rels;

#define AT(type, off) ((type *)(void *)(bytes + (off)))

/* The variable at 0x18 of a block of 0x28 bytes, which begins at a multiple of 32. */
static void begin(uint16_t machine)
{
	Elf64_Ehdr *h = AT(Elf64_Ehdr, 0);
	Elf64_Phdr *p = AT(Elf64_Phdr, sizeof(*h));
	Elf64_Shdr *s = AT(Elf64_Shdr, AT_SECTIONS);
	Elf64_Sym *syms = AT(Elf64_Sym, AT_SYMS);

	memset(bytes, 0, sizeof(bytes));
	n_rels = 0;
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = EV_CURRENT;
	h->e_type = ET_DYN;
	h->e_machine = machine;
	h->e_version = EV_CURRENT;
	h->e_ehsize = sizeof(*h);
	h->e_phoff = sizeof(*h);
	h->e_phentsize = sizeof(*p);
	h->e_phnum = 2;
	h->e_shoff = AT_SECTIONS;
	h->e_shentsize = sizeof(*s);
	h->e_shnum = N_SECTIONS;
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
			     .p_flags = PF_R,
			     .p_filesz = sizeof(bytes),
			     .p_memsz = sizeof(bytes) };
	p[1] = (Elf64_Phdr){ .p_type = PT_TLS, .p_vaddr = 0x1000, .p_memsz = 0x28, .p_align = 32 };
	strcpy((char *)bytes + AT_STRS + 1, "ours");
	strcpy((char *)bytes + AT_STRS + 6, "other");
	syms[OURS] = (Elf64_Sym){ .st_name = 1,
				  .st_value = 0x18,
				  .st_size = 8,
				  .st_shndx = 1,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS) };
	syms[OTHER] = (Elf64_Sym){ .st_name = 6,
				   .st_size = 4,
				   .st_shndx = 1,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS) };
	s[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM,
			     .sh_offset = AT_SYMS,
			     .sh_size = 3 * sizeof(*syms),
			     .sh_link = 2,
			     .sh_entsize = sizeof(*syms) };
	s[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = AT_STRS, .sh_size = 64 };
	s[3] = (Elf64_Shdr){ .sh_type = SHT_RELA,
			     .sh_offset = AT_RELS,
			     .sh_link = 1,
			     .sh_entsize = sizeof(Elf64_Rela) };
	s[4] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = AT_STRS, .sh_size = 64 };
}

static void add(uint64_t at, uint64_t sym, uint32_t type, int64_t addend)
{
	AT(Elf64_Rela, AT_RELS)[n_rels++] = (Elf64_Rela){ at, ELF64_R_INFO(sym, type), addend };
	AT(Elf64_Shdr, AT_SECTIONS)[3].sh_size = n_rels * sizeof(Elf64_Rela);
}

static int find(bool main, struct elf_tls *ret_tls)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct err e;

	assert_int_equal(elf_file_open_memory(bytes, sizeof(bytes), "image", &elf, &e), 0);
	return elf_tls_find(elf, "ours", main, ret_tls, &e);
}

static void the_programs_own_is_at_a_fixed_distance(void **state)
{
	struct elf_tls tls;

	(void)state;
	begin(EM_X86_64);
	assert_int_equal(find(true, &tls), 0);
	assert_int_equal(tls.access, ELF_TLS_FIXED);
	assert_int_equal(tls.offset, 0x18 - 0x40); /* 0x28 bytes end at a multiple of 32 */
	assert_int_equal(tls.size, 8);
	begin(EM_AARCH64);
	assert_int_equal(find(true, &tls), 0);
	assert_int_equal(tls.offset, 32 + 0x18); /* behind 16 bytes, at a multiple of 32 */
}

static void a_block_that_does_not_begin_at_its_alignment(void **state)
{
	struct elf_tls tls;

	(void)state;
	begin(EM_X86_64);
	AT(Elf64_Phdr, sizeof(Elf64_Ehdr))[1].p_vaddr = 0x1010;
	assert_int_equal(find(true, &tls), 0);
	assert_int_equal(tls.offset, 0x18 - 0x30); /* 0x1010 + 0x30 = 0x1040 */
	begin(EM_AARCH64);
	AT(Elf64_Phdr, sizeof(Elf64_Ehdr))[1].p_vaddr = 0x1010;
	assert_int_equal(find(true, &tls), 0);
	assert_int_equal(tls.offset, 16 + 0x18);
}

static void a_librarys_is_what_its_relocation_says(void **state)
{
	static const struct {
		uint16_t machine;
		uint32_t module, offset, desc;
	} on[] = { { EM_X86_64, R_X86_64_DTPMOD64, R_X86_64_TPOFF64, R_X86_64_TLSDESC },
		   { EM_AARCH64, R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC } };
	struct elf_tls tls;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(on[i].machine);
		add(0x3000, OTHER, on[i].module, 0);
		assert_int_equal(find(false, &tls), -EOPNOTSUPP);
		add(0x3010, OURS, on[i].module, 0);
		assert_int_equal(find(false, &tls), 0);
		assert_int_equal(tls.access, ELF_TLS_PAIR);
		assert_int_equal(tls.slot, 0x3010);

		begin(on[i].machine);
		add(0x3020, OURS, on[i].offset, 0);
		assert_int_equal(find(false, &tls), 0);
		assert_int_equal(tls.access, ELF_TLS_OFFSET);
		assert_int_equal(tls.slot, 0x3020);

		begin(on[i].machine);
		add(0x3030, OURS, on[i].desc, 0);
		assert_int_equal(find(false, &tls), 0);
		assert_int_equal(tls.access, ELF_TLS_DESC);
		assert_int_equal(tls.slot, 0x3030);
		assert_int_equal(tls.offset, 0);
	}
}

static void of_the_module_alone_the_symbol_says_where(void **state)
{
	struct elf_tls tls;

	(void)state;
	begin(EM_X86_64);
	add(0x3000, 0, R_X86_64_DTPMOD64, 0);
	assert_int_equal(find(false, &tls), 0);
	assert_int_equal(tls.access, ELF_TLS_MODULE);
	assert_int_equal(tls.offset, 0x18);
	add(0x3010, OURS, R_X86_64_TLSDESC, 0); /* names it, which is better */
	assert_int_equal(find(false, &tls), 0);
	assert_int_equal(tls.access, ELF_TLS_DESC);
	begin(EM_X86_64);
	add(0x3000, 0, R_X86_64_TLSDESC, 8); /* of what is at 8 */
	assert_int_equal(find(false, &tls), 0);
	assert_int_equal(tls.access, ELF_TLS_DESC);
	assert_int_equal(tls.offset, 0x10);
}

static void an_untrue_image_is_refused(void **state)
{
	struct elf_tls tls;

	(void)state;
	begin(EM_X86_64);
	AT(Elf64_Sym, AT_SYMS)[OURS].st_value = 1ULL << 40;
	assert_int_equal(find(true, &tls), -EBADMSG);
	begin(EM_X86_64);
	AT(Elf64_Phdr, sizeof(Elf64_Ehdr))[1].p_align = 24;
	assert_int_equal(find(true, &tls), -EOPNOTSUPP);
	begin(EM_X86_64);
	AT(Elf64_Shdr, AT_SECTIONS)[3].sh_size = 1 << 20;
	assert_true(find(false, &tls) < 0);
	begin(EM_X86_64);
	AT(Elf64_Sym, AT_SYMS)[OURS].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	assert_int_equal(find(true, &tls), -ENOENT);
	begin(EM_RISCV);
	assert_int_equal(find(true, &tls), -ENOENT);
}

static void descriptors_of_both_kinds(void **state)
{
	(void)state;
	assert_false(elf_tls_desc_is_address((uint64_t)-64));
	assert_false(elf_tls_desc_is_address(0x48));
	assert_true(elf_tls_desc_is_address(0x55d0c0de1000));
	assert_true(elf_tls_desc_is_address(0x4b1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_programs_own_is_at_a_fixed_distance),
		cmocka_unit_test(a_block_that_does_not_begin_at_its_alignment),
		cmocka_unit_test(a_librarys_is_what_its_relocation_says),
		cmocka_unit_test(of_the_module_alone_the_symbol_says_where),
		cmocka_unit_test(an_untrue_image_is_refused),
		cmocka_unit_test(descriptors_of_both_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
