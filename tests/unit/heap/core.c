/* Cores of mappings that the test makes up: what is in them, what is left out, and more segments than a header can count. */
#include "heap/snapshot/core.h"
#include "proc/peek.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/procfs.h>

#include <cmocka.h>

enum { AT = 0x10000 };

/* The first pages of two images: the second one's would have to be fetched from who may never answer. */
enum { THERE = 0x7000000, NOT_THERE = 0x8000000 };

bool peek(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	(void)pid;
	if (addr != THERE)
		return false;
	memset(buf, 0, len);
	memcpy(buf, ELFMAG, SELFMAG);
	return true;
}

bool peek_may(pid_t pid, uint64_t addr, size_t len)
{
	(void)pid;
	(void)len;
	return addr == THERE;
}

static uint8_t memory[2 * HEAP_PAGE] __attribute__((aligned(4096)));
static const struct proc_map *maps;
static uint32_t n_maps, n_shared;

static int each_map(pid_t pid, proc_map_fn fn, void *ctx, struct err *e)
{
	struct proc_map m = { .perms = PROC_MAP_READ | PROC_MAP_SHARED, .path = "" };
	int r = 0;

	(void)pid;
	(void)e;
	for (uint32_t i = 0; i < n_maps && r == 0; i++)
		r = fn(ctx, &maps[i]);
	for (uint32_t i = 0; i < n_shared && r == 0; i++) {
		m.start = 0x100000000 + i * 0x2000ull;
		m.end = m.start + 0x1000;
		r = fn(ctx, &m);
	}
	return r;
}

static struct copy *make_copy(void)
{
	static const struct heap_map heap[] = {
		{ .start = AT, .end = AT + 4 * HEAP_PAGE, .kind = HEAP_MAP_BRK }
	};
	static const struct copy_run runs[] = { { AT + HEAP_PAGE, 2 * HEAP_PAGE, 0 } };
	static const struct stopped_thread threads[] = {
		{ .tid = 8, .n_regs = 1, .regs = { 88 } },
		{ .tid = 7, .n_regs = 1, .regs = { 77 }, .fp_bytes = 512, .core_fp_bytes = 512 }
	};
	struct copy_parts parts = { .maps = heap,
				    .threads = threads,
				    .runs = runs,
				    .n_maps = 1,
				    .n_threads = 2,
				    .n_runs = 1,
				    .facts = { .bytes = sizeof(memory) },
				    .has_bytes = true,
				    .bytes = memory };
	struct copy *c = NULL;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 31 + 1);
	assert_int_equal(copy_of_parts(&parts, &c), 0);
	return c;
}

/* The core as bytes. */
static uint8_t *write_core(uint64_t *ret_len)
{
	struct copy *c = make_copy();
	struct new_file f;
	struct err e = { 0 };
	uint8_t *bytes;

	assert_int_equal(new_file_open("/tmp/memscope-unit-core", &f, &e), 0);
	if (core_write_of(each_map, c, 7, &f, ret_len, &e) < 0)
		fail_msg("%s", e.msg);
	bytes = calloc(*ret_len, 1);
	assert_int_equal(pread(f.fd, bytes, *ret_len, 0), *ret_len);
	new_file_close(&f);
	copy_close(c);
	return bytes;
}

static void memory_is_where_its_segment_says_and_reservations_are_left_out(void **state)
{
	static const struct proc_map rows[] = {
		{ .start = AT,
		  .end = AT + 4 * HEAP_PAGE,
		  .perms = PROC_MAP_READ | PROC_MAP_WRITE,
		  .path = "[heap]" },
		{ .start = 0x4200000000, .end = 0x4200000000 + (1ull << 40), .path = "" },
	};
	uint64_t len;
	uint8_t *core;
	Elf64_Ehdr h;
	Elf64_Phdr rows_of[2];

	(void)state;
	maps = rows;
	n_maps = 2;
	n_shared = 0;
	core = write_core(&len);
	memcpy(&h, core, sizeof(h));
	assert_memory_equal(h.e_ident, ELFMAG, SELFMAG);
	assert_int_equal(h.e_type, ET_CORE);
	assert_int_equal(h.e_phnum, 2);
	memcpy(rows_of, core + h.e_phoff, sizeof(rows_of));
	assert_int_equal(rows_of[0].p_type, PT_NOTE);
	assert_int_equal(rows_of[1].p_vaddr, AT);
	assert_int_equal(rows_of[1].p_filesz, 4 * HEAP_PAGE);
	assert_int_equal(rows_of[1].p_flags, PF_R | PF_W);
	assert_int_equal(rows_of[1].p_offset + rows_of[1].p_filesz, len);
	assert_memory_equal(core + rows_of[1].p_offset + HEAP_PAGE, memory, sizeof(memory));
	assert_int_equal(core[rows_of[1].p_offset], 0);
	free(core);
}

static void of_an_image_the_first_page_is_in_it_where_nobody_is_asked_for_it(void **state)
{
	static const struct proc_map rows[] = {
		{ .start = THERE,
		  .end = THERE + 4 * HEAP_PAGE,
		  .perms = PROC_MAP_READ,
		  .ino = 1,
		  .path = "/usr/bin/here" },
		{ .start = NOT_THERE,
		  .end = NOT_THERE + 4 * HEAP_PAGE,
		  .perms = PROC_MAP_READ,
		  .ino = 2,
		  .path = "/net/served" },
	};
	uint64_t len;
	uint8_t *core;
	Elf64_Phdr rows_of[3];

	(void)state;
	maps = rows;
	n_maps = 2;
	n_shared = 0;
	core = write_core(&len);
	memcpy(rows_of, core + sizeof(Elf64_Ehdr), sizeof(rows_of));
	assert_int_equal(rows_of[1].p_vaddr, THERE);
	assert_int_equal(rows_of[1].p_filesz, HEAP_PAGE);
	assert_memory_equal(core + rows_of[1].p_offset, ELFMAG, SELFMAG);
	assert_int_equal(rows_of[2].p_vaddr, NOT_THERE);
	assert_int_equal(rows_of[2].p_filesz, 0);
	free(core);
}

static void the_main_thread_comes_first(void **state)
{
	uint32_t tids[4], n = 0, fp = 0;
	uint64_t len, at, end;
	Elf64_Phdr note;
	uint8_t *core;

	(void)state;
	n_maps = 0;
	n_shared = 1;
	core = write_core(&len);
	memcpy(&note, core + sizeof(Elf64_Ehdr), sizeof(note));
	for (at = note.p_offset, end = at + note.p_filesz; at < end;) {
		Elf64_Nhdr row;
		struct elf_prstatus status;

		memcpy(&row, core + at, sizeof(row));
		assert_string_equal((char *)core + at + sizeof(row), "CORE");
		at += sizeof(row) + 8;
		if (row.n_type == NT_PRSTATUS) {
			assert_int_equal(row.n_descsz, sizeof(status));
			memcpy(&status, core + at, sizeof(status));
			assert_int_equal(status.pr_reg[0], 11 * status.pr_pid);
			tids[n++] = (uint32_t)status.pr_pid;
		}
		fp += row.n_type == NT_PRFPREG;
		at += (row.n_descsz + 3) & ~3u;
	}
	assert_int_equal(at, end);
	assert_int_equal(n, 2);
	assert_int_equal(tids[0], 7);
	assert_int_equal(tids[1], 8);
	assert_int_equal(fp, 1);
	free(core);
}

static void more_segments_than_its_header_counts_are_counted_in_a_section(void **state)
{
	Elf64_Ehdr h;
	Elf64_Shdr section;
	uint64_t len;
	uint8_t *core;

	(void)state;
	n_maps = 0;
	n_shared = 70000;
	core = write_core(&len);
	memcpy(&h, core, sizeof(h));
	assert_int_equal(h.e_phnum, PN_XNUM);
	assert_int_equal(h.e_shnum, 1);
	memcpy(&section, core + h.e_shoff, sizeof(section));
	assert_int_equal(section.sh_info, 70001);
	free(core);
}

static void a_process_that_is_gone_has_no_core(void **state)
{
	struct copy *c = make_copy();
	struct new_file f;
	struct err e = { 0 };
	uint64_t len;

	(void)state;
	n_maps = n_shared = 0;
	assert_int_equal(new_file_open("/tmp/memscope-unit-core", &f, &e), 0);
	assert_int_equal(core_write_of(each_map, c, 7, &f, &len, &e), -ESRCH);
	new_file_close(&f);
	copy_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_where_its_segment_says_and_reservations_are_left_out),
		cmocka_unit_test(of_an_image_the_first_page_is_in_it_where_nobody_is_asked_for_it),
		cmocka_unit_test(the_main_thread_comes_first),
		cmocka_unit_test(more_segments_than_its_header_counts_are_counted_in_a_section),
		cmocka_unit_test(a_process_that_is_gone_has_no_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
