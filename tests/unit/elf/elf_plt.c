#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "elf/elf_plt.h"
#include "elf_image.h"

enum { GOT = 0x404000 };

static struct image image;
static Elf64_Rela relas[4];
static uint32_t n_relas;
static uint64_t stubs_end;

static int setup(void **state)
{
	image_init(&image);
	n_relas = 0;
	stubs_end = IMAGE_HOT;
	return 0;
}

static void import(const char *name, int slot, uint32_t type)
{
	image_sym(&image, name, STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	relas[n_relas++] =
		(Elf64_Rela){ GOT + 8 * (uint64_t)slot, ELF64_R_INFO(image.n_syms - 1, type), 0 };
}

/* jmp *slot(%rip) behind `n` bytes of `prefix`, in 16 bytes. */
static void stub_x86(const char *prefix, size_t n, int slot)
{
	uint8_t *at = image.bytes + IMAGE_HOT_OFF + (stubs_end - IMAGE_HOT);
	int32_t disp = (int32_t)(GOT + 8 * slot - (int64_t)(stubs_end + n + 6));

	memset(at, 0x90, 16);
	memcpy(at, prefix, n);
	at[n] = 0xff;
	at[n + 1] = 0x25;
	memcpy(at + n + 2, &disp, 4);
	stubs_end += 16;
}

static void stub_arm64(int slot)
{
	uint32_t *at = (uint32_t *)(void *)(image.bytes + IMAGE_HOT_OFF + (stubs_end - IMAGE_HOT));
	int32_t pages = (int32_t)((GOT + 8 * slot) >> 12) - (int32_t)(stubs_end >> 12);

	at[0] = 0x90000010 | ((uint32_t)pages & 3) << 29 | ((uint32_t)pages >> 2 & 0x7ffff) << 5;
	at[1] = 0xf9400211 | (uint32_t)(((GOT + 8 * slot) & 0xfff) / 8) << 10;
	at[2] = 0x91000210;
	at[3] = 0xd61f0220;
	stubs_end += 16;
}

/* The image's .symtab becomes a .dynsym, .text.hot a .plt, .text the relocations. */
static int load(uint16_t machine, struct elf_plt **ret_plt, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	Elf64_Shdr *sh;
	int r;

	image_finish(&image);
	image_ehdr(&image)->e_machine = machine;
	memcpy(image.bytes + IMAGE_TEXT_OFF, relas, sizeof(relas));
	sh = image_shdr(&image, SEC_TEXT);
	sh->sh_type = SHT_RELA;
	sh->sh_flags = SHF_ALLOC;
	sh->sh_size = n_relas * sizeof(*relas);
	image_shdr(&image, 3)->sh_type = SHT_DYNSYM;
	/* ".text.hot" is ".plt" behind the other names */
	memcpy(image.bytes + image.len, ".plt", 5);
	sh = image_shdr(&image, SEC_HOT);
	sh->sh_name = (uint32_t)(image.len - image_shdr(&image, 5)->sh_offset);
	sh->sh_size = stubs_end - IMAGE_HOT;
	image_shdr(&image, 5)->sh_size = sh->sh_name + 5;
	image.len += 5;
	r = elf_file_open_memory(image.bytes, image.len, "image", &elf, e);
	return r < 0 ? r : elf_plt_load(elf, ret_plt, e);
}

static void assert_stub(const struct elf_plt *plt, uint64_t vaddr, const char *name)
{
	const char *found = elf_plt_find(plt, vaddr);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "(none)", name);
}

static void a_stub_is_named_by_the_slot_it_jumps_through(void **state)
{
	_cleanup_(elf_plt_freep) struct elf_plt *plt = NULL;

	import("malloc", 5, R_X86_64_JUMP_SLOT);
	import("free", 3, R_X86_64_GLOB_DAT);
	import("environ", 9, R_X86_64_COPY);
	stub_x86("\xff\x35\0\0\0\0", 6, 2); /* PLT0: push, jmp to the dynamic linker */
	stub_x86("", 0, 3);
	stub_x86("\xf3\x0f\x1e\xfa", 4, 5);
	stub_x86("\xf3\x0f\x1e\xfa\xf2", 5, 5);
	stub_x86("", 0, 9);
	assert_int_equal(load(EM_X86_64, &plt, NULL), 0);
	assert_stub(plt, IMAGE_HOT - 1, NULL);
	assert_stub(plt, IMAGE_HOT, NULL);
	assert_stub(plt, IMAGE_HOT + 0x10, "free");
	assert_stub(plt, IMAGE_HOT + 0x1f, "free");
	assert_stub(plt, IMAGE_HOT + 0x20, "malloc");
	assert_stub(plt, IMAGE_HOT + 0x3f, "malloc");
	assert_stub(plt, IMAGE_HOT + 0x40, NULL);
	assert_stub(plt, IMAGE_HOT + 0x1000, NULL);
}

static void stubs_of_arm64_are_decoded_too(void **state)
{
	_cleanup_(elf_plt_freep) struct elf_plt *plt = NULL;

	import("malloc", 5, R_AARCH64_JUMP_SLOT);
	import("free", 3, R_AARCH64_JUMP_SLOT);
	stub_arm64(3);
	stub_arm64(5);
	assert_int_equal(load(EM_AARCH64, &plt, NULL), 0);
	assert_stub(plt, IMAGE_HOT + 4, "free");
	assert_stub(plt, IMAGE_HOT + 0x10, "malloc");
	assert_stub(plt, IMAGE_HOT + 0x20, NULL);
}

static void relocations_of_symbols_that_are_not_there_name_nothing(void **state)
{
	struct elf_plt *plt = NULL;
	struct err e = { 0 };

	import("malloc", 5, R_X86_64_JUMP_SLOT);
	relas[0].r_info = ELF64_R_INFO(0xffffffffull, R_X86_64_JUMP_SLOT);
	stub_x86("", 0, 5);
	assert_int_equal(load(EM_X86_64, &plt, &e), -ENOENT);
	assert_string_equal(e.msg, "image: no PLT stub whose function is known");
}

static void an_image_of_another_machine_has_no_stubs(void **state)
{
	struct elf_plt *plt = NULL;

	import("malloc", 5, R_X86_64_JUMP_SLOT);
	stub_x86("", 0, 5);
	assert_int_equal(load(EM_RISCV, &plt, NULL), -ENOENT);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stub_is_named_by_the_slot_it_jumps_through),
		TEST(stubs_of_arm64_are_decoded_too),
		TEST(relocations_of_symbols_that_are_not_there_name_nothing),
		TEST(an_image_of_another_machine_has_no_stubs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
