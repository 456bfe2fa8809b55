/*
 * Tables against libdw, which reads the same CFI independently of us: at every place where a rule
 * begins in either, made-up registers over a made-up memory must give the same CFA, return address
 * and saved registers. MEMSCOPE_CFI_FILES=a:b:c checks other files, all of their functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "elf/cfi.h"
#include "elf/elf_syms.h"
#include "libdw_fixture.h"
#include "table_image.h"

enum { SHOWN_MAX = 10 };

/* --- the table's answer --- */

static uint64_t rule_cfa(const struct ms_rule *r, const struct frame *f)
{
	uint64_t cfa = f->regs[r->reg] + (uint64_t)(int64_t)r->off;

	if (r->kind == MS_RULE_DEREF)
		return memory(cfa) + (uint64_t)(int64_t)r->off2;
	if (r->kind == MS_RULE_PLT && (f->pc & 15) >= (uint32_t)r->off2)
		return cfa + 8;
	return cfa;
}

static uint64_t rule_saved(const struct ms_rule *r, const struct frame *f, int i, int reg)
{
	if (r->from_reg >> i & 1)
		return memory(f->regs[r->base_reg] + (uint64_t)(int64_t)r->save[i]);
	return r->save[i] ? memory(f->cfa + (uint64_t)(int64_t)r->save[i]) : f->regs[reg];
}

/* --- the comparison --- */

struct tally {
	uint64_t compared, differ, bad, lost, refused, places;
	int shown;
};

static void differ(struct tally *t, const char *file, uint64_t at, const char *what)
{
	t->differ++;
	if (t->shown++ < SHOWN_MAX)
		print_message("%s %#" PRIx64 ": %s differs\n", file, at, what);
}

static void compare_signal(struct tally *t, const char *file, uint64_t at, Dwarf_Frame *frame,
			   const struct ms_rule *rule, struct frame *f)
{
	/* struct sigcontext of x86-64: r8 to r15, then these */
	static const uint8_t rest[] = { 5, 4, 6, 3, 1, 0, 2, 7, 16 };
	uint64_t want, at_context = rule_cfa(rule, f);

	for (int i = 0; i < 17; i++) {
		int reg = i < 8 ? 8 + i : rest[i - 8];

		if (libdw_register(frame, f, reg, &want) != KNOWN ||
		    want != memory(at_context + 8 * (uint64_t)i))
			differ(t, file, at, "a register of a signal's frame");
	}
}

static void compare_regs(struct tally *t, const char *file, uint64_t at, Dwarf_Frame *frame,
			 int ra_reg, const struct rule_machine *m, const struct ms_rule *rule,
			 struct frame *f)
{
	uint64_t want, got;
	enum answer answer;

	if (rule->flags & MS_RULE_RA_REG)
		got = f->regs[rule->ra_reg];
	else
		got = memory((rule->flags & MS_RULE_RA_BASE ? f->regs[rule->base_reg] : f->cfa) +
			     (uint64_t)(int64_t)rule->ra_off);
	answer = libdw_register(frame, f, ra_reg, &want);
	/* What no rule was given for, libdw calls undefined; a return column that is a register is
	 * in that register (arm64's mcount: x15). */
	if (answer == LOST && (rule->flags & MS_RULE_RA_REG) && rule->ra_reg == ra_reg)
		answer = KNOWN;
	if (answer != KNOWN || want != got)
		differ(t, file, at, "return address");
	for (int i = 0; i < m->n_saved; i++) {
		got = rule_saved(rule, f, i, m->saved[i]);
		t->lost += rule->lost >> i & 1;
		if (m->saved[i] == ra_reg || (rule->lost >> i & 1))
			continue;
		answer = libdw_register(frame, f, m->saved[i], &want);
		/* libdw 0.188 has rax for rbx in its list of what x86-64 functions keep. */
		if (answer == LOST && m->machine == EM_X86_64 && m->saved[i] == MS_X86_RBX)
			answer = KNOWN;
		if (answer != KNOWN || want != got)
			differ(t, file, at, "saved register");
	}
}

static void compare(struct tally *t, const char *file, uint64_t at, Dwarf_Frame *frame, int ra_reg,
		    const struct rule_machine *m, const struct ms_rule *rule)
{
	Dwarf_Op *ops;
	struct frame f;
	uint64_t want;
	bool is_value;
	size_t n;

	t->places++;
	if (rule->kind == MS_RULE_BAD) {
		t->bad++;
		return;
	}
	t->compared++;
	make_frame(&f, at);
	if (rule->kind == MS_RULE_END) {
		if (libdw_register(frame, &f, ra_reg, &want) != LOST)
			differ(t, file, at, "end of stack");
		return;
	}
	if (rule->kind == MS_RULE_NONE) {
		differ(t, file, at, "what libdw finds CFI for");
		return;
	}
	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || evaluate(ops, n, &f, &f.cfa, &is_value) != 1) {
		t->refused++; /* see last_off in elf/cfi.h */
		return;
	}
	if (rule->kind == MS_RULE_SIGNAL) {
		compare_signal(t, file, at, frame, rule, &f);
		return;
	}
	want = f.cfa;
	f.cfa = rule_cfa(rule, &f);
	if (want != f.cfa)
		differ(t, file, at, "CFA");
	compare_regs(t, file, at, frame, ra_reg, m, rule, &f);
}

/* Every row of libdw's in [start, end), at its first and its last byte, and every row of ours. */
static void compare_range(struct tally *t, const char *file, Dwarf_CFI *cfi, uint64_t start,
			  uint64_t end, const struct unwind_table *table)
{
	const struct rule_machine *m = rule_machine(table->machine);
	uint64_t at = start;

	while (at < end) {
		Dwarf_Addr row_start, row_end;
		Dwarf_Frame *frame = NULL;
		bool signal;
		int ra_reg;

		if (dwarf_cfi_addrframe(cfi, at, &frame) != 0) {
			differ(t, file, at, "what libdw finds no CFI for");
			return;
		}
		ra_reg = dwarf_frame_info(frame, &row_start, &row_end, &signal);
		if (row_end > end)
			row_end = end;
		if (row_end <= at) {
			free(frame);
			return;
		}
		for (uint64_t pc = at; pc < row_end; pc++)
			if (pc == at || pc == row_end - 1 ||
			    unwind_table_find(table, pc) != unwind_table_find(table, pc - 1))
				compare(t, file, pc, frame, ra_reg, m,
					unwind_table_find(table, pc));
		free(frame);
		at = row_end;
	}
}

static bool compare_file(const char *path, uint32_t every, struct tally *t)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *fdes = NULL;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err e = { 0 };
	Dwarf_CFI *cfi;
	Elf *e_elf;

	if (fd < 0)
		return false;
	if (elf_file_open(fd, path, &elf, &e) < 0 || cfi_open(elf, CFI_EH_FRAME, &fdes, &e) < 0 ||
	    unwind_table_build(elf, &table, &e) < 0)
		fail_msg("%s", e.msg);
	elf_version(EV_CURRENT);
	e_elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = dwarf_getcfi_elf(e_elf);
	assert_non_null(cfi);
	for (uint32_t i = 0; i < cfi_n_fdes(fdes); i += every) {
		struct cfi_fde fde = cfi_fde_at(fdes, i);

		compare_range(t, path, cfi, fde.start, fde.end, table);
	}
	print_message("%s: %u functions, %" PRIu64 " places, %" PRIu64 " differ, %" PRIu64
		      " without a rule, %" PRIu64 " lost registers, %" PRIu64
		      " that libdw does not take\n",
		      path, cfi_n_fdes(fdes) / every, t->places, t->differ, t->bad, t->lost,
		      t->refused);
	dwarf_cfi_end(cfi);
	elf_end(e_elf);
	return true;
}

static void tables_say_what_libdw_says(void **state)
{
	static const char *const usual[] = {
		"/proc/self/exe",
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libc.so.6",
		"/usr/aarch64-linux-gnu/lib/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/python3",
		"/usr/bin/sqlite3",
	};
	const char *files = getenv("MEMSCOPE_CFI_FILES");
	_cleanup_(freep) char *list = files ? strdup(files) : NULL;
	int n = 0;

	for (char *path = list ? strtok(list, ":") : NULL; path; path = strtok(NULL, ":")) {
		struct tally t = { 0 };

		n += compare_file(path, 1, &t);
		assert_int_equal(t.differ, 0);
	}
	for (size_t i = 0; !list && i < sizeof(usual) / sizeof(usual[0]); i++) {
		struct tally t = { 0 };

		n += compare_file(usual[i], 5, &t);
		assert_int_equal(t.differ, 0);
		/* What the walker has no rule for is rare: 4 functions of 3,713 in glibc 2.36. */
		assert_true(1000 * (t.bad + t.lost + t.refused) <= t.places);
	}
	assert_true(n > 0);
}

static void every_address_has_a_row(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F, 0x100, INSNS(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16));
	table = table_of_image();
	check_table(table);
	assert_int_equal(table->kind, UNWIND_CFI);
	assert_int_equal(table->first_page, CODE_TEXT >> 12);
	assert_int_equal(table->n_pages, 1);
	assert_int_equal(table->n_rows, 4);
	assert_int_equal(kind_at(table, CODE_TEXT), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F - 1), MS_RULE_NONE);
	assert_int_equal(unwind_table_find(table, F)->off, 8);
	assert_int_equal(unwind_table_find(table, F + 1)->off, 16);
	assert_int_equal(unwind_table_find(table, F + 0xff)->off, 16);
	assert_int_equal(kind_at(table, F + 0x100), MS_RULE_NONE);
	assert_int_equal(kind_at(table, CODE_TEXT + CODE_TEXT_LEN), MS_RULE_NONE);
	assert_int_equal(kind_at(table, 0), MS_RULE_NONE);
	assert_int_equal(table->counts.functions, 1);
	assert_int_equal(table->counts.code_bytes, CODE_TEXT_LEN);
	assert_int_equal(table->counts.none_bytes, CODE_TEXT_LEN - 0x100);
}

static void neighbours_with_one_rule_share_a_row(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	for (int i = 0; i < 8; i++)
		put_fde(&im, F + 0x10 * (uint64_t)i, 0x10, INSNS(DW_CFA_nop));
	table = table_of_image();
	check_table(table);
	assert_int_equal(table->n_rows, 3);
	assert_int_equal(table->n_rules, MS_RULE_FIRST + 1);
}

static void a_file_without_cfi_is_guessed(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	im.frames_name = ".rodata";
	im.entry = F;
	table = table_of_image();
	check_table(table);
	assert_int_equal(table->kind, UNWIND_GUESS);
	assert_int_equal(kind_at(table, F), MS_RULE_END);
	assert_int_equal(kind_at(table, F + 0x200), MS_RULE_NONE);
}

static void other_files_are_refused_with_a_sentence(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct unwind_table *table = NULL;
	struct err e = { 0 };

	im.machine = EM_RISCV;
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, &e), 0);
	assert_int_equal(unwind_table_build(elf, &table, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "image: "));
	assert_null(table);
}

static void code_that_is_spread_too_far_is_refused(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct unwind_table *table = NULL;
	struct err e = { 0 };
	Elf64_Phdr *ph;

	code_finish(&im);
	ph = (Elf64_Phdr *)(void *)(im.bytes + sizeof(Elf64_Ehdr));
	ph[1].p_flags |= PF_X;
	ph[1].p_vaddr = 1ull << 40;
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, &e), 0);
	assert_int_equal(unwind_table_build(elf, &table, &e), -EFBIG);
	assert_non_null(strstr(e.msg, "spread over"));
	assert_null(table);
}

static size_t mapped_vdso(const void **ret_vdso)
{
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[vdso]") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		*ret_vdso = (const void *)(uintptr_t)start;
		return end - start;
	}
	return 0;
}

/* From memory, as it has no file. */
static void the_vdso_has_a_table(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	const void *vdso = NULL;
	size_t len = mapped_vdso(&vdso);
	struct elf_sym sym;

	if (!len) {
		print_message("this kernel maps no vDSO\n");
		skip();
	}
	assert_int_equal(elf_file_open_memory(vdso, len, "vdso", &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &table, NULL), 0);
	check_table(table);
	assert_int_equal(table->kind, UNWIND_CFI);
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	assert_true(elf_syms_find_name(syms, "__vdso_clock_gettime", &sym, 1) == 1 ||
		    elf_syms_find_name(syms, "__kernel_clock_gettime", &sym, 1) == 1);
	assert_int_equal(kind_at(table, sym.vaddr), MS_RULE_REG);
	assert_int_equal(table->counts.bad[RULE_EXPRESSION], 0);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(tables_say_what_libdw_says),
		FACT(the_vdso_has_a_table),
		FACT(every_address_has_a_row),
		FACT(neighbours_with_one_rule_share_a_row),
		FACT(a_file_without_cfi_is_guessed),
		FACT(other_files_are_refused_with_a_sentence),
		FACT(code_that_is_spread_too_far_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
