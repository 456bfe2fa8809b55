/* Where threads have their labels, by a cell: what is in the file, and nothing that does not hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/put.h"
#include "base/strbuf.h"
#include "cell_fixture.h"
#include "collect/stream/label_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A program with an otel_thread_ctx_v1 at 0x18 of a block of 0x28 bytes, which ends at a multiple of 32. A descriptor. */
static int open_program(void)
{
	static struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[2];
		Elf64_Sym syms[2];
		char strings[32];
		Elf64_Shdr s[3];
	} im = { .strings = "\0otel_thread_ctx_v1" };
	int fd = memfd_create("program", MFD_CLOEXEC);

	memcpy(im.h.e_ident, ELFMAG, SELFMAG);
	im.h.e_ident[EI_CLASS] = ELFCLASS64;
	im.h.e_ident[EI_DATA] = ELFDATA2LSB;
	im.h.e_ident[EI_VERSION] = EV_CURRENT;
	im.h.e_type = ET_DYN;
	im.h.e_machine = EM_X86_64;
	im.h.e_version = EV_CURRENT;
	im.h.e_ehsize = sizeof(im.h);
	im.h.e_phoff = (uint64_t)((char *)im.p - (char *)&im);
	im.h.e_phentsize = sizeof(im.p[0]);
	im.h.e_phnum = 2;
	im.h.e_shoff = (uint64_t)((char *)im.s - (char *)&im);
	im.h.e_shentsize = sizeof(im.s[0]);
	im.h.e_shnum = 3;
	im.p[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = sizeof(im), .p_memsz = sizeof(im)
	};
	im.p[1] =
		(Elf64_Phdr){ .p_type = PT_TLS, .p_vaddr = 0x1000, .p_memsz = 0x28, .p_align = 32 };
	im.syms[1] = (Elf64_Sym){ .st_name = 1,
				  .st_value = 0x18,
				  .st_size = 8,
				  .st_shndx = 1,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS) };
	im.s[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM,
				.sh_offset = (uint64_t)((char *)im.syms - (char *)&im),
				.sh_size = sizeof(im.syms),
				.sh_link = 2,
				.sh_entsize = sizeof(im.syms[0]) };
	im.s[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				.sh_offset = (uint64_t)((char *)im.strings - (char *)&im),
				.sh_size = sizeof(im.strings) };
	assert_int_equal(write(fd, &im, sizeof(im)), sizeof(im));
	return fd;
}

static void read_file(const char *path, enum label_file_ask ask, bool main, struct label_file *ret)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(label_file_read(fd, path, ask, main, ret, &e), 0);
}

static void a_program_says_where_its_variable_is(void **state)
{
	_cleanup_(closep) int fd = open_program();
	struct label_file f;
	struct err e;

	(void)state;
	assert_int_equal(label_file_read(fd, "/opt/app", LABEL_FILE_THREADS, true, &f, &e), 0);
	assert_true(f.has_variable);
	assert_int_equal(f.tls.access, ELF_TLS_FIXED);
	assert_int_equal(f.tls.offset, 0x18 - 0x40);
	assert_int_equal(f.libc, LABEL_LIBC_NONE);
	/* What is not asked for is not there. */
	assert_int_equal(label_file_read(fd, "/opt/app", LABEL_FILE_GO, true, &f, &e), 0);
	assert_false(f.has_variable);
}

static void the_c_library_says_that_it_is_that(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct link_map *map = NULL;
	struct label_file f;

	(void)state;
	assert_non_null(libc);
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	read_file(map->l_name, LABEL_FILE_THREADS, false, &f);
	assert_int_equal(f.libc, LABEL_LIBC_GLIBC);
	assert_false(f.has_variable);
	/* What is not asked for is not there. */
	read_file(map->l_name, LABEL_FILE_GO, true, &f);
	assert_int_equal(f.libc, LABEL_LIBC_NONE);
	dlclose(libc);
}

static void what_is_no_elf_file_says_nothing(void **state)
{
	struct label_file f;

	(void)state;
	read_file("/etc/passwd", LABEL_FILE_GO, true, &f);
	assert_int_equal(f.go_version, 0);
	read_file("/etc/passwd", LABEL_FILE_THREADS, true, &f);
	assert_int_equal(f.libc, LABEL_LIBC_NONE);
	assert_false(f.has_variable);
}

/* --- answers, as a cell that was taken over may give them --- */

static void put_answer(struct strbuf *b)
{
	put_u32(b, 0x011308);
	put_u8(b, LABEL_LIBC_MUSL);
	put_u8(b, 1);
	put_u8(b, ELF_TLS_DESC);
	put_u64(b, UINT64_MAX);
	put_u64(b, (uint64_t)-8);
}

static int take(const void *data, size_t len, struct label_file *ret)
{
	int r = label_file_take(bytes_of(data, len), ret);

	if (r < 0) {
		assert_int_equal(ret->go_version, 0);
		assert_int_equal(ret->libc, LABEL_LIBC_NONE);
		assert_false(ret->has_variable);
	}
	return r;
}

static int take_part(const void *data, size_t len)
{
	struct label_file x;

	return take(data, len, &x);
}

static void an_answer_that_holds_together_is_taken(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct label_file f;

	(void)state;
	put_answer(&b);
	assert_int_equal(take(b.s, b.len, &f), 0);
	assert_int_equal(f.go_version, 0x011308);
	assert_int_equal(f.libc, LABEL_LIBC_MUSL);
	assert_int_equal(f.tls.access, ELF_TLS_DESC);
	assert_int_equal(f.tls.offset, -8);
}

static void an_answer_that_is_cut_or_lies_is_none(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} lies[] = {
		{ 4, LABEL_LIBC_MUSL + 1 },
		{ 5, 2 },
		{ 6, ELF_TLS_DESC + 1 },
	};
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct label_file f;

	(void)state;
	put_answer(&b);
	assert_no_part_is_taken(b.s, b.len, take_part);
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		char was = b.s[lies[i].at];

		b.s[lies[i].at] = (char)lies[i].value;
		assert_int_equal(take(b.s, b.len, &f), -EBADMSG);
		b.s[lies[i].at] = was;
	}
	put_u8(&b, 0);
	assert_int_equal(take(b.s, b.len, &f), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_says_where_its_variable_is),
		cmocka_unit_test(the_c_library_says_that_it_is_that),
		cmocka_unit_test(what_is_no_elf_file_says_nothing),
		cmocka_unit_test(an_answer_that_holds_together_is_taken),
		cmocka_unit_test(an_answer_that_is_cut_or_lies_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
