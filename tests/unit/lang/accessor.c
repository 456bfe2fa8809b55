/*
 * Functions that are followed, by the bytes that compilers made of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>

#include "lang/accessor.h"

struct seen {
	struct place place[8];
	uint32_t n;
};

static void note(void *ctx, const struct place *value)
{
	struct seen *s = ctx;

	if (s->n < 8)
		s->place[s->n++] = *value;
}

static struct seen follow(uint16_t machine, const void *bytes, uint16_t len, uint64_t arg,
			  bool calls)
{
	struct accessor code = { .machine = machine, .vaddr = 0x1000, .len = len };
	struct seen s = { 0 };

	memcpy(code.bytes, bytes, len);
	accessor_follow(&code, arg,
			&(struct accessor_fn){ .returns = calls ? NULL : note,
					       .calls = calls ? note : NULL,
					       .ctx = &s });
	return s;
}

static void assert_place(const struct seen *s, uint32_t i, int base, int reads, int64_t off0,
			 int64_t off1)
{
	assert_true(i < s->n);
	assert_int_equal(s->place[i].base, base);
	assert_int_equal(s->place[i].reads, reads);
	assert_int_equal(s->place[i].off[0], off0);
	if (reads)
		assert_int_equal(s->place[i].off[1], off1);
}

#if defined(__x86_64__)

/* pthread_getspecific() of Debian's glibc 2.36: a key below 32, and one of the second level. */
static void glibcs_slots_are_found(void **state)
{
	static const uint8_t code[] = {
		0x83, 0xff, 0x1f, 0x77, 0x3b, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x31, 0x48, 0xc1, 0xe0,
		0x04, 0x64, 0x48, 0x03, 0x04, 0x25, 0x10, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x50, 0x08,
		0x48, 0x85, 0xd2, 0x74, 0x57, 0x89, 0xff, 0x48, 0x8d, 0x0d, 0x56, 0xaf, 0x14, 0x00,
		0x48, 0x8b, 0x30, 0x48, 0xc1, 0xe7, 0x04, 0x48, 0x39, 0x34, 0x39, 0x75, 0x39, 0x48,
		0x89, 0xd0, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x81, 0xff, 0xff, 0x03, 0x00, 0x00,
		0x77, 0x30, 0x89, 0xfa, 0x89, 0xf8, 0x83, 0xe2, 0x1f, 0xc1, 0xe8, 0x05, 0x64, 0x48,
		0x8b, 0x04, 0xc5, 0x10, 0x05, 0x00, 0x00, 0x48, 0x85, 0xc0, 0x74, 0x18, 0x48, 0xc1,
		0xe2, 0x04, 0x48, 0x01, 0xd0, 0xeb, 0xaf, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00,
		0x48, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0x31, 0xd2, 0xeb, 0xbb,
	};
	struct seen s = follow(EM_X86_64, code, sizeof(code), 7, false);

	assert_in_range(s.n, 2, 8);
	for (uint32_t i = 0; i < s.n; i++)
		if (s.place[i].base == PLACE_THREAD)
			assert_place(&s, i, PLACE_THREAD, 1, 0x310 + 16 * 7 + 8, 0);
		else
			assert_place(&s, i, PLACE_NUMBER, 0, 0, 0);
	s = follow(EM_X86_64, code, sizeof(code), 32 + 5, false);
	assert_in_range(s.n, 2, 8);
	for (uint32_t i = 0; i < s.n; i++)
		if (s.place[i].base == PLACE_THREAD)
			assert_place(&s, i, PLACE_THREAD, 2, 0x510 + 8, 16 * 5 + 8);
	/* No such key. */
	s = follow(EM_X86_64, code, sizeof(code), 1024, false);
	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_NUMBER, 0, 0, 0);
}

static void musls_slots_are_found(void **state)
{
	static const uint8_t code[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x00, 0x00, 0x00,
					0x00, 0x48, 0x8b, 0x80, 0x80, 0x00, 0x00, 0x00,
					0x89, 0xff, 0x48, 0x8b, 0x04, 0xf8, 0xc3 };
	struct seen s = follow(EM_X86_64, code, sizeof(code), 9, false);

	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_THREAD, 2, 0x80, 8 * 9);
}

/* PyGILState_GetThisThreadState() of Debian's 3.11.2, 3.8.18 and 3.12.1. */
static void keys_that_are_passed_on_are_found(void **state)
{
	static const uint8_t inlined[] = { 0x48, 0x83, 0x3d, 0x50, 0x3d, 0x56, 0x00, 0x00, 0x0f,
					   0x84, 0x1f, 0xc8, 0xf2, 0xff, 0x8b, 0x3d, 0x50, 0x3d,
					   0x56, 0x00, 0xe9, 0xa7, 0x8a, 0xf2, 0xff };
	static const uint8_t jumps[] = { 0x48, 0x8b, 0x05, 0xc1, 0x86, 0x16, 0x00, 0x48, 0x83,
					 0xb8, 0x68, 0x05, 0x00, 0x00, 0x00, 0x74, 0x0f, 0x48,
					 0x8d, 0xb8, 0x70, 0x05, 0x00, 0x00, 0xe9, 0x23, 0x7a,
					 0xeb, 0xff, 0x0f, 0x1f, 0x00, 0x31, 0xc0, 0xc3 };
	static const uint8_t calls[] = { 0x48, 0x8b, 0x05, 0xc9, 0xc0, 0x26, 0x00, 0x53, 0x48,
					 0x8d, 0x98, 0x08, 0x06, 0x00, 0x00, 0x48, 0x89, 0xdf,
					 0xe8, 0xd9, 0x21, 0xe3, 0xff, 0x85, 0xc0, 0x74, 0x0d,
					 0x48, 0x89, 0xdf, 0x5b, 0xe9, 0xec, 0x36, 0xe3, 0xff,
					 0x0f, 0x1f, 0x40, 0x00, 0x31, 0xc0, 0x5b, 0xc3 };
	/* mov 0x10(%rip), %edi; cmpl $0, 0x10(%rip); jne to elsewhere; xor %eax, %eax; ret */
	static const uint8_t on_condition[] = { 0x8b, 0x3d, 0x10, 0x00, 0x00, 0x00, 0x83, 0x3d,
						0x10, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x85, 0x00,
						0x10, 0x00, 0x00, 0x31, 0xc0, 0xc3 };
	struct seen s = follow(EM_X86_64, inlined, sizeof(inlined), 0, true);

	/* A part of it is elsewhere; then the call. */
	assert_int_equal(s.n, 2);
	assert_place(&s, 0, PLACE_NUMBER, 0, 0, 0);
	assert_place(&s, 1, PLACE_IMAGE, 1, 0x1000 + 0x14 + 0x563d50, 0);
	assert_int_equal(s.place[1].last_bytes, 4);
	s = follow(EM_X86_64, on_condition, sizeof(on_condition), 0, true);
	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_IMAGE, 1, 0x1016, 0);
	s = follow(EM_X86_64, jumps, sizeof(jumps), 0, true);
	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_IMAGE, 1, 0x1007 + 0x1686c1, 0x570);
	s = follow(EM_X86_64, calls, sizeof(calls), 0, true);
	assert_int_equal(s.n, 2);
	assert_place(&s, 0, PLACE_IMAGE, 1, 0x1007 + 0x26c0c9, 0x608);
	/* rbx is kept across the call. */
	assert_place(&s, 1, PLACE_IMAGE, 1, 0x1007 + 0x26c0c9, 0x608);
}

static void what_is_not_understood_is_unknown(void **state)
{
	/* imul $3, %rdi, %rax; ret */
	static const uint8_t multiplied[] = { 0x48, 0x6b, 0xc7, 0x03, 0xc3 };
	/* mov %fs:0x28, %al; ret */
	static const uint8_t byte[] = { 0x64, 0x8a, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00, 0xc3 };
	/* jmp to itself */
	static const uint8_t loop[] = { 0xeb, 0xfe };
	struct seen s = follow(EM_X86_64, multiplied, sizeof(multiplied), 5, false);

	assert_int_equal(s.n, 1);
	assert_int_equal(s.place[0].base, PLACE_UNKNOWN);
	s = follow(EM_X86_64, byte, sizeof(byte), 5, false);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.place[0].base, PLACE_UNKNOWN);
	s = follow(EM_X86_64, loop, sizeof(loop), 5, false);
	assert_int_equal(s.n, 0);
}

#endif

/* gcc 12 on arm64: the key itself, and a pointer to it by way of the GOT. */
static void arm64s_keys_are_found(void **state)
{
	static const uint32_t inlined[] = { 0x90000100, 0x91008000, 0xb9425001, 0x34000061,
					    0xb9425400, 0x17ffffef, 0xd2800000, 0xd65f03c0 };
	static const uint32_t calls[] = { 0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0xf00000f3,
					  0xf947f273, 0x91094260, 0x97ffffea, 0x340000a0,
					  0x91094260, 0xf9400bf3, 0xa8c27bfd, 0x17ffffe9,
					  0xf9400bf3, 0xd2800000, 0xa8c27bfd, 0xd65f03c0 };
	struct seen s = follow(EM_AARCH64, inlined, sizeof(inlined), 0, true);

	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_IMAGE, 1, 0x1000 + 0x20000 + 32 + 596, 0);
	assert_int_equal(s.place[0].last_bytes, 4);
	s = follow(EM_AARCH64, calls, sizeof(calls), 0, true);
	assert_int_equal(s.n, 2);
	assert_place(&s, 0, PLACE_IMAGE, 1, 0x1000 + 0x1f000 + 4064, 592);
	assert_place(&s, 1, PLACE_IMAGE, 1, 0x1000 + 0x1f000 + 4064, 592);
}

static void arm64s_numbers_are_computed(void **state)
{
	/* movz x0, #0x1234; movk x0, #0x5678, lsl #16; add x0, x0, x0, lsl #4; lsr x0, x0, #4; and x0, x0,
	 * #0xffff; ret */
	static const uint32_t code[] = { 0xd2824680, 0xf2aacf00, 0x8b001000,
					 0xd344fc00, 0x92403c00, 0xd65f03c0 };
	uint64_t x = 0x56781234, n = (x + (x << 4)) >> 4 & 0xffff;
	struct seen s = follow(EM_AARCH64, code, sizeof(code), 0, false);

	assert_int_equal(s.n, 1);
	assert_place(&s, 0, PLACE_NUMBER, 0, (int64_t)n, 0);
}

static void other_machines_are_not_followed(void **state)
{
	static const uint32_t code[] = { 0xd65f03c0 };

	assert_int_equal(follow(EM_RISCV, code, sizeof(code), 0, false).n, 0);
}

static void reads_are_followed_so_far_and_no_further(void **state)
{
	struct place p = { .base = PLACE_THREAD };

	for (int i = 0; i < ACCESSOR_READS_MAX; i++)
		p = place_add(place_read(p, 8), 8);
	assert_int_equal(p.reads, ACCESSOR_READS_MAX);
	assert_int_equal(place_read(p, 8).base, PLACE_UNKNOWN);
	/* Half a word is no address. */
	p = place_read((struct place){ .base = PLACE_THREAD }, 4);
	assert_int_equal(place_read(p, 8).base, PLACE_UNKNOWN);
	assert_int_equal(place_sum(p, p).base, PLACE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(glibcs_slots_are_found),
		cmocka_unit_test(musls_slots_are_found),
		cmocka_unit_test(keys_that_are_passed_on_are_found),
		cmocka_unit_test(what_is_not_understood_is_unknown),
#endif
		cmocka_unit_test(arm64s_keys_are_found),
		cmocka_unit_test(arm64s_numbers_are_computed),
		cmocka_unit_test(other_machines_are_not_followed),
		cmocka_unit_test(reads_are_followed_so_far_and_no_further),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
