#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/cells.h"
#include "elf/dwarf.h"

/* Under a tool that has memory of its own it is not what it is elsewhere. */
static bool memory_is_known(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return false;
#else
	return !getenv("MEMSCOPE_VALGRIND");
#endif
}

/*
 * A file with one DWARF 4 unit, whose parts lie where holes in the file are left for them:
 *
 *   0x0        ELF header     0x1000   .debug_abbrev, .shstrtab     0x2000   .debug_line, up to …
 *   INFO_OFF   .debug_info    behind it: section headers
 */
enum {
	ABBREV_OFF = 0x1000,
	NAMES_OFF = 0x1800,
	LINE_OFF = 0x2000,
	INFO_OFF = 0x2000000,
	TEXT = 0x400000,
	TEXT_SIZE = 0x100000,
};

struct made {
	int fd;
	uint64_t info_len, line_len;
	uint64_t packed_len; /* of .debug_info; 0: as it is */
};

static void put(int fd, uint64_t off, const void *bytes, size_t len)
{
	assert_int_equal(pwrite(fd, bytes, len, (off_t)off), len);
}

static void made_init(struct made *m)
{
	static const uint8_t abbrev[] = {
		1,
		DW_TAG_compile_unit,
		1,
		DW_AT_low_pc,
		DW_FORM_addr,
		DW_AT_high_pc,
		DW_FORM_data4,
		DW_AT_stmt_list,
		DW_FORM_sec_offset,
		0,
		0,
		2,
		DW_TAG_variable,
		0,
		DW_AT_const_value,
		DW_FORM_block4,
		0,
		0,
		3,
		DW_TAG_subprogram,
		0,
		DW_AT_name,
		DW_FORM_string,
		DW_AT_low_pc,
		DW_FORM_addr,
		DW_AT_high_pc,
		DW_FORM_data4,
		0,
		0,
		0,
	};

	m->fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (m->fd < 0) {
		print_message("no file without a name in /var/tmp\n");
		skip();
	}
	m->info_len = m->line_len = m->packed_len = 0;
	put(m->fd, ABBREV_OFF, abbrev, sizeof(abbrev));
}

static void info(struct made *m, const void *bytes, size_t len)
{
	put(m->fd, INFO_OFF + m->info_len, bytes, len);
	m->info_len += len;
}

static void begin_unit(struct made *m)
{
	/* length, filled in at the end; version, abbreviations, size of an address; the unit */
	static const uint8_t head[] = { 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1 };
	const uint64_t low = TEXT;
	const uint32_t size = TEXT_SIZE, line = 0;

	info(m, head, sizeof(head));
	info(m, &low, sizeof(low));
	info(m, &size, sizeof(size));
	info(m, &line, sizeof(line));
}

static void variable(struct made *m, uint32_t hole)
{
	info(m, &(uint8_t){ 2 }, 1);
	info(m, &hole, sizeof(hole));
	m->info_len += hole;
}

static void function(struct made *m, const char *name)
{
	const uint64_t low = TEXT;
	const uint32_t size = TEXT_SIZE;

	info(m, &(uint8_t){ 3 }, 1);
	info(m, name, strlen(name) + 1);
	info(m, &low, sizeof(low));
	info(m, &size, sizeof(size));
}

/* A table of lines with `rows` rows, of a byte each. */
static void lines(struct made *m, size_t rows)
{
	/* version 2, one byte an instruction; special opcodes: address + 0 or 1, line + 0 */
	static const uint8_t head[] = {
		2, 0, 23, 0, 0, 0, 1,   1,   0,   12, 10, 0, 1, 1, 1,
		1, 0, 0,  0, 1, 0, 'a', '.', 'c', 0,  0,  0, 0, 0,
	};
	uint8_t set[11] = { 0, 9, DW_LNE_set_address };
	static const uint8_t end[] = { DW_LNS_advance_pc, 1, 0, 1, DW_LNE_end_sequence };
	uint64_t low = TEXT, off = LINE_OFF + 4;
	uint8_t *text = malloc(rows);
	uint32_t len;

	memcpy(set + 3, &low, sizeof(low));
	memset(text, 10, rows);
	put(m->fd, off, head, sizeof(head));
	put(m->fd, off += sizeof(head), set, sizeof(set));
	put(m->fd, off += sizeof(set), text, rows);
	put(m->fd, off += rows, end, sizeof(end));
	m->line_len = off + sizeof(end) - LINE_OFF;
	len = (uint32_t)m->line_len - 4;
	put(m->fd, LINE_OFF, &len, sizeof(len));
	free(text);
	assert_true(m->line_len < INFO_OFF - LINE_OFF);
}

static void end_unit(struct made *m)
{
	uint32_t len = (uint32_t)m->info_len + 1 - 4;

	info(m, "", 1); /* the last child */
	put(m->fd, INFO_OFF, &len, sizeof(len));
}

/* Packs .debug_info in place, when it is whole. */
static void pack(struct made *m)
{
	const Elf64_Chdr head = { ELFCOMPRESS_ZLIB, 0, m->info_len, 1 };
	uLongf len = compressBound(m->info_len);
	uint8_t *whole = mmap(NULL, m->info_len, PROT_READ, MAP_SHARED, m->fd, INFO_OFF),
		*packed = malloc(len);

	assert_true(whole != MAP_FAILED);
	assert_int_equal(compress2(packed, &len, whole, m->info_len, 1), Z_OK);
	put(m->fd, INFO_OFF, &head, sizeof(head));
	put(m->fd, INFO_OFF + sizeof(head), packed, len);
	m->packed_len = sizeof(head) + len;
	munmap(whole, m->info_len);
	free(packed);
}

static struct elf_file *finish(struct made *m)
{
	static const char names[] = "\0.debug_info\0.debug_abbrev\0.debug_line\0.shstrtab";
	uint64_t shoff = (INFO_OFF + m->info_len + 64) & ~63ull;
	struct elf_file *elf;
	Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = shoff,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 4,
	};
	Elf64_Shdr sh[5] = {
		{ 0 },
		{ 1, SHT_PROGBITS, m->packed_len ? SHF_COMPRESSED : 0, 0, INFO_OFF,
		  m->packed_len ? m->packed_len : m->info_len, 0, 0, 1, 0 },
		{ 13, SHT_PROGBITS, 0, 0, ABBREV_OFF, 64, 0, 0, 1, 0 },
		{ 27, SHT_PROGBITS, 0, 0, LINE_OFF, m->line_len, 0, 0, 1, 0 },
		{ 39, SHT_STRTAB, 0, 0, NAMES_OFF, sizeof(names), 0, 0, 1, 0 },
	};

	put(m->fd, NAMES_OFF, names, sizeof(names));
	put(m->fd, shoff, sh, sizeof(sh));
	put(m->fd, 0, &eh, sizeof(eh));
	assert_int_equal(elf_file_open_debug(m->fd, "made", &elf, NULL), 0);
	return elf;
}

/* Of cells: what the maker waited for is known when it has been waited for itself. The next cell has another. */
static uint64_t children_max_bytes(void)
{
	struct rusage ru;

	cells_end();
	while (waitpid(-1, NULL, 0) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &ru);
	return (uint64_t)ru.ru_maxrss << 10;
}

/* Reads a file whose .debug_info is several times as large as what may be resident of it. */
static void read_large(bool packed)
{
	const uint64_t vaddr = TEXT + 8;
	const struct dwarf_frame *f;
	struct dwarf_lines *l;
	struct elf_file *elf;
	struct made m;

	made_init(&m);
	begin_unit(&m);
	/* Each page is read. */
	for (int i = 0; i < 40000; i++)
		variable(&m, 4000);
	function(&m, "behind_them");
	assert_true(m.info_len > 3ull * DWARF_PAGES_MAX);
	end_unit(&m);
	if (packed)
		pack(&m);
	elf = finish(&m);
	assert_int_equal(dwarf_lines_read(elf, NULL, &vaddr, 1, 30000, &l, NULL), 0);
	assert_null(dwarf_lines_cut_short(l));
	assert_int_equal(dwarf_lines_find(l, vaddr, &f), 1);
	assert_string_equal(f[0].function, "behind_them");
	/* Twice: a look is taken now and then, and what this process has is the cell's as well. */
	if (memory_is_known())
		assert_in_range(children_max_bytes(), 1, 2ull * DWARF_PAGES_MAX);
	dwarf_lines_free(l);
	elf_file_close(elf);
	close(m.fd);
}

/* These two come first: what is measured is the largest child so far. */
static void a_large_file_is_not_held_in_memory(void **state)
{
	read_large(false);
}

static void unpacked_sections_are_not_held_in_memory(void **state)
{
	struct statfs fs;

	if (statfs("/var/tmp", &fs) < 0 || fs.f_type == TMPFS_MAGIC) {
		print_message("/var/tmp is memory\n");
		skip();
	}
	read_large(true);
}

static void lines_are_read(void **state)
{
	const uint64_t vaddr = TEXT;
	const struct dwarf_frame *f;
	struct dwarf_lines *l;
	struct elf_file *elf;
	struct made m;

	made_init(&m);
	begin_unit(&m);
	function(&m, "main");
	lines(&m, 1000);
	end_unit(&m);
	elf = finish(&m);
	assert_int_equal(dwarf_lines_read(elf, NULL, &vaddr, 1, 30000, &l, NULL), 0);
	assert_null(dwarf_lines_cut_short(l));
	assert_int_equal(dwarf_lines_find(l, vaddr, &f), 1);
	assert_int_equal(f[0].line, 1);
	assert_non_null(strstr(f[0].file, "a.c"));
	dwarf_lines_free(l);
	elf_file_close(elf);
	close(m.fd);
}

/* 20 MB of a file would be more than 1 GB in libdw. */
static void lines_that_need_too_much_memory_are_left_out_and_told(void **state)
{
	const uint64_t vaddr = TEXT;
	const struct dwarf_frame *f;
	struct dwarf_lines *l;
	struct elf_file *elf;
	struct err e = { 0 };
	struct made m;
	const char *why;

	if (!memory_is_known()) {
		print_message("who looks at memory takes some for itself here\n");
		skip();
	}
	made_init(&m);
	begin_unit(&m);
	function(&m, "main");
	lines(&m, 20000000);
	end_unit(&m);
	elf = finish(&m);
	if (dwarf_lines_read(elf, NULL, &vaddr, 1, 30000, &l, &e) == 0) {
		why = dwarf_lines_cut_short(l);
		assert_int_equal(dwarf_lines_find(l, vaddr, &f), 1);
		assert_string_equal(f[0].function, "main");
		dwarf_lines_free(l);
	} else {
		why = e.msg;
	}
	assert_non_null(why);
	assert_non_null(strstr(why, "more memory than it may have"));
	assert_true(children_max_bytes() < DWARF_MEMORY_MAX + 2ull * DWARF_PAGES_MAX);
	elf_file_close(elf);
	close(m.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_file_is_not_held_in_memory),
		cmocka_unit_test(unpacked_sections_are_not_held_in_memory),
		cmocka_unit_test(lines_are_read),
		cmocka_unit_test(lines_that_need_too_much_memory_are_left_out_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
