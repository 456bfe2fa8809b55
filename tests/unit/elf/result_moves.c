/* Where a call's result is put, by the bytes of the code behind the call. */
#include "elf/result_moves.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { AT = 0x1000 };

static struct result_moves moves_of(const uint8_t *code, size_t len)
{
	struct result_moves got;

	result_moves_read(code, len, AT, EM_X86_64, &got);
	assert_int_equal(got.vaddr, AT);
	assert_int_equal(got.reg, 0);
	return got;
}

#if defined(__x86_64__)

static void a_register_has_it_from_the_next_instruction_on(void **state)
{
	/* mov %rax,%rbx; mov %rax,%r12; mov %rax,%rdi */
	static const uint8_t code[] = { 0x48, 0x89, 0xc3, 0x49, 0x89, 0xc4, 0x48, 0x89, 0xc7 };
	struct result_moves got = moves_of(code, sizeof(code));

	(void)state;
	assert_int_equal(got.n, 3);
	assert_int_equal(got.move[0].kind, MOVE_REGISTER);
	assert_int_equal(got.move[0].reg, 3);
	assert_int_equal(got.move[0].behind, AT + 3);
	assert_int_equal(got.move[1].reg, 12);
	assert_int_equal(got.move[1].at, AT + 3);
	assert_int_equal(got.move[2].reg, 5);
}

static void a_slot_and_a_global_are_where_it_is_stored(void **state)
{
	/* test %rax,%rax; je; mov %rax,-0x18(%rbp); mov %rax,0x2ee4(%rip); mov %rax,0x8(%rsp) */
	static const uint8_t code[] = { 0x48, 0x85, 0xc0, 0x74, 0x10, 0x48, 0x89,
					0x45, 0xe8, 0x48, 0x89, 0x05, 0xe4, 0x2e,
					0x00, 0x00, 0x48, 0x89, 0x44, 0x24, 0x08 };
	struct result_moves got = moves_of(code, sizeof(code));

	(void)state;
	assert_int_equal(got.n, 3);
	assert_int_equal(got.move[0].kind, MOVE_SLOT);
	assert_int_equal(got.move[0].reg, 6);
	assert_int_equal(got.move[0].off, -24);
	assert_int_equal(got.move[1].kind, MOVE_ADDRESS);
	assert_int_equal(got.move[1].vaddr, AT + 16 + 0x2ee4);
	assert_int_equal(got.move[2].kind, MOVE_SLOT);
	assert_int_equal(got.move[2].reg, 7);
	assert_int_equal(got.move[2].off, 8);
}

static void what_is_behind_another_result_is_not_looked_at(void **state)
{
	/* mov %rax,%rbx behind: call; ret; jmp; xor %eax,%eax; movzbl (%rdi),%eax */
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xc3 };
	static const uint8_t ret[] = { 0xc3, 0x48, 0x89, 0xc3 };
	static const uint8_t jump[] = { 0xeb, 0x10, 0x48, 0x89, 0xc3 };
	static const uint8_t zero[] = { 0x31, 0xc0, 0x48, 0x89, 0xc3 };
	static const uint8_t load[] = { 0x0f, 0xb6, 0x07, 0x48, 0x89, 0xc3 };

	(void)state;
	assert_int_equal(moves_of(call, sizeof(call)).n, 0);
	assert_int_equal(moves_of(ret, sizeof(ret)).n, 0);
	assert_int_equal(moves_of(jump, sizeof(jump)).n, 0);
	assert_int_equal(moves_of(zero, sizeof(zero)).n, 0);
	assert_int_equal(moves_of(load, sizeof(load)).n, 0);
}

static void half_of_it_elements_and_threads_variables_are_no_move(void **state)
{
	/* mov %eax,%ebx; mov %rax,(%rdi,%rcx,8); mov %rax,%fs:0x10; and a byte that is no instruction */
	static const uint8_t code[] = { 0x89, 0xc3, 0x48, 0x89, 0x04, 0xcf, 0x64, 0x48, 0x89, 0x04,
					0x25, 0x10, 0,    0,    0,    0x06, 0x48, 0x89, 0xc3 };

	(void)state;
	assert_int_equal(moves_of(code, sizeof(code)).n, 0);
	assert_int_equal(moves_of(code, 0).n, 0);
}

#endif

static void of_other_machines_the_register_alone_is_known(void **state)
{
	static const uint8_t code[] = { 0x48, 0x89, 0xc3 };
	struct result_moves got;

	(void)state;
	result_moves_read(code, sizeof(code), AT, EM_AARCH64, &got);
	assert_int_equal(got.n, 0);
	assert_int_equal(got.reg, 0);
	assert_int_equal(moves_of(code, 2).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(a_register_has_it_from_the_next_instruction_on),
		cmocka_unit_test(a_slot_and_a_global_are_where_it_is_stored),
		cmocka_unit_test(what_is_behind_another_result_is_not_looked_at),
		cmocka_unit_test(half_of_it_elements_and_threads_variables_are_no_move),
#endif
		cmocka_unit_test(of_other_machines_the_register_alone_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
