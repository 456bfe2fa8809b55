/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call of an allocator as it was at the function's entry: its arguments by shape (abi.h), and what it asks for.
 *
 * The probe of an entry may be some instructions into the function (collect/probes/placement.h),
 * where arguments and sp are not as at the entry; its cookie says where they are.
 */
#ifndef MEMSCOPE_ALLOC_CALL_BPF_H
#define MEMSCOPE_ALLOC_CALL_BPF_H

#include "common.bpf.h"

/* sp after a return, relative to the entry. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_SP_DELTA 8 /* ret has popped the return address */
#else
#define RETURN_SP_DELTA 0
#endif

struct call {
	__u64 sp, arg[3];
};

#if defined(__TARGET_ARCH_x86)
/* In assembly: clang would make one load at a variable offset, which the verifier rejects. */
#define REG_CASE(number, field)                                                                    \
	case number:                                                                               \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(value)                                                         \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, field)));          \
		break

static __noinline __u64 reg_read(struct pt_regs *ctx, __u32 number)
{
	__u64 value = 0;

	switch (number) {
		REG_CASE(0, ax);
		REG_CASE(1, cx);
		REG_CASE(2, dx);
		REG_CASE(3, bx);
		REG_CASE(5, bp);
		REG_CASE(6, si);
		REG_CASE(7, di);
		REG_CASE(8, r8);
		REG_CASE(9, r9);
		REG_CASE(10, r10);
		REG_CASE(11, r11);
		REG_CASE(12, r12);
		REG_CASE(13, r13);
		REG_CASE(14, r14);
		REG_CASE(15, r15);
	}
	return value;
}
#endif

/* The `n` arguments. */
static __always_inline void call_read(struct pt_regs *ctx, struct call *call, __u32 n)
{
	call->sp = PT_REGS_SP(ctx);
	call->arg[0] = PT_REGS_PARM1(ctx);
	call->arg[1] = n > 1 ? PT_REGS_PARM2(ctx) : 0;
	call->arg[2] = n > 2 ? PT_REGS_PARM3(ctx) : 0;
#if defined(__TARGET_ARCH_x86) /* elsewhere probes are at the entry */
	__u64 place = cfg_cookies ? bpf_get_attach_cookie(ctx) : 0;

	if (!(place & MS_COOKIE_MOVED))
		return;
	call->sp += place >> MS_COOKIE_SP_SHIFT & 0xffff;
	for (__u32 i = 0; i < n && i < 3; i++)
		call->arg[i] = reg_read(ctx, place >> i * MS_COOKIE_ARG_BITS & 15);
#endif
}

static __always_inline bool is_realloc(enum ms_shape shape)
{
	return shape == MS_SHAPE_REALLOC || shape == MS_SHAPE_REALLOC_N || shape == MS_SHAPE_XALLOC;
}

/*
 * n × size; a product that overflows belongs to a call that will fail, never to one of few bytes.
 * BPF has no 128-bit product, so magnitudes decide: what is taken for an overflow here is over
 * 2^48, more than an address space.
 */
static __always_inline __u64 product(__u64 n, __u64 size)
{
	__u64 large = n > size ? n : size, small = n > size ? size : n;

	if (small && large >> 32 && (large >> 48 || small >> 16))
		return ~0ULL;
	return n * size;
}

/* By shape: the bytes asked for, and what alloc_return() needs of the arguments. */
static __always_inline __u64 call_size(const struct call *call, enum ms_shape shape)
{
	switch (shape) {
	case MS_SHAPE_COUNT_SIZE:
		return product(call->arg[0], call->arg[1]);
	case MS_SHAPE_REALLOC_N:
		return product(call->arg[1], call->arg[2]);
	case MS_SHAPE_ALIGN_SIZE:
	case MS_SHAPE_REALLOC:
	case MS_SHAPE_XALLOC:
		return call->arg[1];
	case MS_SHAPE_OUT_PTR:
		return call->arg[2];
	default:
		return call->arg[0];
	}
}

static __always_inline __u64 call_arg(const struct call *call, enum ms_shape shape)
{
	return is_realloc(shape) || shape == MS_SHAPE_OUT_PTR ? call->arg[0] : 0;
}

/* How many arguments a shape reads. */
static __always_inline __u32 call_args(enum ms_shape shape)
{
	return shape == MS_SHAPE_OUT_PTR || shape == MS_SHAPE_REALLOC_N ? 3
	       : shape == MS_SHAPE_SIZE || shape == MS_SHAPE_NEW        ? 1
									: 2;
}

#endif
