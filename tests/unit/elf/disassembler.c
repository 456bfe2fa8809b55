/* Instructions from bytes: their sizes, their text, and where jumps and calls go. */
#include "elf/disassembler.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { AT = 0x1000 };

#if defined(__x86_64__)
static struct disassembler *open_for(uint16_t machine, enum disassembly_syntax syntax)
{
	struct disassembler *dis = NULL;

	assert_int_equal(disassembler_open(machine, syntax, &dis), 0);
	return dis;
}
#endif

static void assert_text(struct disassembler *dis, const void *code, size_t len, uint32_t size,
			const char *text)
{
	struct instruction in;

	disassembler_read(dis, code, len, AT, &in);
	assert_int_equal(in.vaddr, AT);
	assert_string_equal(in.text, text);
	assert_int_equal(in.size, size);
}

static void assert_branch(struct disassembler *dis, const void *code, size_t len, uint64_t target,
			  bool calls)
{
	struct instruction in;

	disassembler_read(dis, code, len, AT, &in);
	assert_true(in.branches);
	assert_int_equal(in.target, target);
	assert_int_equal(in.calls, calls);
}

#if defined(__x86_64__)
static void x86_is_written_in_either_syntax(void **state)
{
	_cleanup_(disassembler_closep) struct disassembler *att = open_for(EM_X86_64, SYNTAX_ATT),
							   *intel = open_for(EM_X86_64,
									     SYNTAX_INTEL);

	assert_text(att, "\x48\x89\xc3\x90", 4, 3, "mov %rax, %rbx");
	assert_text(intel, "\x48\x89\xc3\x90", 4, 3, "mov rbx, rax");
	/* EVEX: vpaddd %zmm0, %zmm1, %zmm2 */
	assert_text(att, "\x62\xf1\x75\x48\xfe\xd0", 6, 6, "vpaddd %zmm0, %zmm1, %zmm2");
}

static void x86_jumps_and_calls_have_targets(void **state)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = open_for(EM_X86_64, SYNTAX_ATT);
	struct instruction in;

	assert_branch(dis, "\xeb\x10", 2, AT + 0x12, false);
	assert_branch(dis, "\x75\xfe", 2, AT, false);
	assert_branch(dis, "\xe8\x00\x01\x00\x00", 5, AT + 0x105, true);
	disassembler_read(dis, (const uint8_t *)"\xff\xd0", 2, AT, &in); /* call *%rax */
	assert_true(in.calls);
	assert_false(in.branches);
}

static void what_is_no_instruction_is_passed_over(void **state)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = open_for(EM_X86_64, SYNTAX_ATT);

	assert_text(dis, "\x06\x90", 2, 1, "(bad)");
	assert_text(dis, "\x48", 1, 1, "(bad)"); /* cut short */
}
#endif

static void arm64_is_read_on_every_machine(void **state)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = NULL;

	if (disassembler_open(EM_AARCH64, SYNTAX_ATT, &dis) == -ENOENT)
		skip(); /* libcapstone is not installed */
	assert_non_null(dis);
	assert_text(dis, "\x20\x00\x02\x8b", 4, 4, "add x0, x1, x2");
	assert_text(dis, "\x00\x00\x00\x00", 4, 4, "(bad)");
	assert_text(dis, "\x20\x00", 2, 2, "(bad)");
	assert_branch(dis, "\x02\x00\x00\x94", 4, AT + 8, true);   /* bl */
	assert_branch(dis, "\xfe\xff\xff\x17", 4, AT - 8, false);  /* b */
	assert_branch(dis, "\x41\x00\x00\x54", 4, AT + 8, false);  /* b.ne */
	assert_branch(dis, "\x60\x00\x08\x36", 4, AT + 12, false); /* tbz w0, #1 */
}

static void other_machines_are_refused(void **state)
{
	struct disassembler *dis;

	assert_int_equal(disassembler_open(EM_RISCV, SYNTAX_ATT, &dis), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(x86_is_written_in_either_syntax),
		cmocka_unit_test(x86_jumps_and_calls_have_targets),
		cmocka_unit_test(what_is_no_instruction_is_passed_over),
#endif
		cmocka_unit_test(arm64_is_read_on_every_machine),
		cmocka_unit_test(other_machines_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
