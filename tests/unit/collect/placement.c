#include "collect/probes/placement.h"

#include "abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#if defined(__x86_64__)

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };
#define MALLOC 1u /* reads its first argument, and its return is probed */

#define CODE(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static struct placement find(uint32_t args, bool returns, bool moved, const uint8_t *code,
			     size_t len)
{
	struct placement_ask ask = {
		.code = code, .len = len, .args = args, .returns = returns, .moved = moved
	};
	struct placement p;

	placement_find(&ask, &p);
	return p;
}

static void assert_at(struct placement p, uint32_t at, uint64_t place)
{
	assert_true(p.emulated);
	assert_int_equal(p.at, at);
	assert_int_equal(p.place, place);
}

static void assert_entry(struct placement p)
{
	assert_false(p.emulated);
	assert_int_equal(p.at, 0);
	assert_int_equal(p.place, 0);
}

/* glibc 2.36: test %rdi,%rdi; je; push %rbp */
#define GLIBC_FREE 0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf, 0x00, 0x00, 0x00, 0x55
/* mimalloc 2.0: mov TLS(%rip),%rax; mov %rdi,%rsi; mov %fs:(%rax),%rdi; cmp $0x400,%rsi; ja */
#define MI_MALLOC                                                                                  \
	0x48, 0x8b, 0x05, 0x49, 0xb4, 0x00, 0x00, 0x48, 0x89, 0xfe, 0x64, 0x48, 0x8b, 0x38, 0x48,  \
		0x81, 0xfe, 0x00, 0x04, 0x00, 0x00, 0x77, 0x19

static void a_function_that_begins_with_push_is_probed_at_its_entry(void **state)
{
	assert_at(find(MALLOC, true, false, CODE(0x41, 0x54, 0x55, 0x53)), 0, 0);
}

/* mimalloc 2.0's mi_heap_malloc(heap, size): cmp $0x400,%rsi; ja */
static void arguments_behind_a_heap_are_where_its_registers_are(void **state)
{
	static const uint8_t code[] = { 0x48, 0x81, 0xfe, 0x00, 0x04, 0x00, 0x00, 0x77, 0x27 };
	const uint64_t three = MS_COOKIE_MOVED | RSI | RDX << MS_COOKIE_ARG_BITS |
			       (uint64_t)RCX << 2 * MS_COOKIE_ARG_BITS;
	struct placement_ask ask = { .code = code,
				     .len = sizeof(code),
				     .args = 7,
				     .first = 1,
				     .returns = true,
				     .moved = true };
	struct placement p;

	placement_find(&ask, &p);
	assert_at(p, 7, three);
	placement_entry(&ask, &p);
	assert_false(p.emulated);
	assert_int_equal(p.at, 0);
	assert_int_equal(p.place, three);
}

static void free_of_glibc_is_probed_at_its_branch_not_at_its_test(void **state)
{
	assert_at(find(1, false, false, CODE(GLIBC_FREE)), 3, 0);
}

static void behind_endbr64_comes_the_push(void **state)
{
	assert_at(find(MALLOC, true, false, CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55)), 4, 0);
}

static void an_argument_that_was_moved_is_found_where_programs_can_be_told(void **state)
{
	assert_at(find(MALLOC, true, true, CODE(MI_MALLOC)), 21,
		  MS_COOKIE_MOVED | RDX << 8 | RSI << 4 | RSI);
	assert_entry(find(MALLOC, true, false, CODE(MI_MALLOC)));
}

static void an_argument_that_is_lost_ends_the_search(void **state)
{
	/* xor %edi,%edi; push %rbx */
	assert_entry(find(MALLOC, true, true, CODE(0x31, 0xff, 0x53)));
	/* mul %rsi (writes rdx); push %rbx */
	assert_entry(find(4, true, true, CODE(0x48, 0xf7, 0xe6, 0x53)));
	assert_at(find(2, true, true, CODE(0x48, 0xf7, 0xe6, 0x53)), 3, 0);
}

static void a_return_probe_wants_the_return_address_on_top(void **state)
{
	/* sub $0x18,%rsp; test %rdi,%rdi; je; */
	const uint8_t code[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x85, 0xff, 0x74, 0x10 };
	uint64_t sp = MS_COOKIE_MOVED | 0x18 << MS_COOKIE_SP_SHIFT | RDX << 8 | RSI << 4 | RDI;

	assert_entry(find(MALLOC, true, true, code, sizeof(code)));
	assert_at(find(1, false, true, code, sizeof(code)), 7, sp);
	assert_entry(find(1, false, false, code, sizeof(code)));
}

static void what_moves_sp_by_an_unknown_amount_ends_the_search(void **state)
{
	/* and $-32,%rsp; je */
	assert_entry(find(1, false, true, CODE(0x48, 0x83, 0xe4, 0xe0, 0x74, 0x10)));
}

static void a_place_that_is_jumped_into_again_is_none(void **state)
{
	/* mov (%rdi),%rax; L: test %rax,%rax; je end; mov (%rax),%rax; jmp L; end: ret */
	assert_entry(find(1, false, true,
			  CODE(0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x74, 0x05, 0x48, 0x8b, 0x00,
			       0xeb, 0xf6, 0xc3)));
	/* A jump back to the entry is one more call. */
	assert_at(find(1, false, true,
		       CODE(0x48, 0x8b, 0x07, 0x48, 0x85, 0xff, 0x74, 0x02, 0xeb, 0xf6, 0xc3)),
		  6, 0);
}

static void no_instruction_is_taken_behind_a_return_or_an_indirect_jump(void **state)
{
	assert_entry(find(1, false, true, CODE(0xc3, 0x55)));
	assert_entry(find(1, false, true, CODE(0xff, 0xe0, 0x55)));       /* jmp *%rax   */
	assert_entry(find(1, false, true, CODE(0x0f, 0x05, 0x55)));       /* syscall     */
	assert_entry(find(1, false, true, CODE(0x66, 0xe8, 0, 0, 0, 0))); /* callw: refused */
}

static void code_that_ends_within_an_instruction_is_not_read_further(void **state)
{
	assert_entry(find(1, false, true, CODE(0x48, 0x85)));
	assert_entry(find(1, false, true, (const uint8_t *)"", 0));
}

static void a_far_jump_into_the_gap_is_seen_and_one_to_its_ends_is_not(void **state)
{
	/* At 0x1000: jmp to 0x2003; at 0x1005: call 0x2000; at 0x100a: je 0x3000 */
	const uint8_t text[] = { 0xe9, 0xfe, 0x0f, 0,    0,    0xe8, 0xf6, 0x0f,
				 0,    0,    0x0f, 0x84, 0xf0, 0x1f, 0,    0 };
	struct placement_gap gaps[] = {
		{ 0x2000, 0x2003, false }, { 0x2003, 0x2008, false }, { 0x1ff0, 0x1fff, false },
		{ 0x2ffa, 0x3000, false }, { 0x3000, 0x3000, false },
	};

	placement_jumps(text, sizeof(text), 0x1000, gaps, 5);
	assert_true(gaps[0].hit);
	assert_false(gaps[1].hit);
	assert_false(gaps[2].hit);
	assert_true(gaps[3].hit);
	assert_false(gaps[4].hit);
}

static void a_place_behind_a_call_is_known_by_the_instructions_before_it(void **state)
{
	/* push %rbp; call; test %eax,%eax; call *%rax; ret */
	static const uint8_t code[] = { 0x55, 0xe8, 1, 2, 3, 4, 0x85, 0xc0, 0xff, 0xd0, 0xc3 };

	for (size_t at = 0; at <= sizeof(code) + 1; at++)
		assert_int_equal(placement_behind_call(code, sizeof(code), at),
				 at == 6 || at == 10);
	/* The same bytes within a constant: no instruction begins there. */
	assert_false(placement_behind_call((const uint8_t *)"\x48\xb8\0\xe8\1\2\3\4\x90\x90\x90",
					   11, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_behind_a_call_is_known_by_the_instructions_before_it),
		cmocka_unit_test(a_function_that_begins_with_push_is_probed_at_its_entry),
		cmocka_unit_test(arguments_behind_a_heap_are_where_its_registers_are),
		cmocka_unit_test(free_of_glibc_is_probed_at_its_branch_not_at_its_test),
		cmocka_unit_test(behind_endbr64_comes_the_push),
		cmocka_unit_test(an_argument_that_was_moved_is_found_where_programs_can_be_told),
		cmocka_unit_test(an_argument_that_is_lost_ends_the_search),
		cmocka_unit_test(a_return_probe_wants_the_return_address_on_top),
		cmocka_unit_test(what_moves_sp_by_an_unknown_amount_ends_the_search),
		cmocka_unit_test(a_place_that_is_jumped_into_again_is_none),
		cmocka_unit_test(no_instruction_is_taken_behind_a_return_or_an_indirect_jump),
		cmocka_unit_test(code_that_ends_within_an_instruction_is_not_read_further),
		cmocka_unit_test(a_far_jump_into_the_gap_is_seen_and_one_to_its_ends_is_not),
	};

	return cmocka_run_group_tests_name("collect/placement", tests, NULL, NULL);
}

#else

int main(void)
{
	print_message("1..0 # SKIP probes are put at entries on this machine\n");
	return 0;
}

#endif
