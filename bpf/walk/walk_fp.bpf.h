/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker: frame pointers, by the kernel's own walker (bpf_get_stack). It follows saved rbp/x29 from
 * the registers at the last entry to the kernel, and knows return-probe trampolines. Programs
 * without frame pointers give a leaf and rubbish: every stack of this walker is MS_GUESSED.
 */
#ifndef MEMSCOPE_WALK_WALK_FP_BPF_H
#define MEMSCOPE_WALK_WALK_FP_BPF_H

static __always_inline long walk_fp(void *ctx, __u64 *frames, __u32 size)
{
	return bpf_get_stack(ctx, frames, size, BPF_F_USER_STACK);
}

/*
 * The same at a function's first instruction, where the frame pointer is still the caller's: the
 * chain begins with the caller's caller, and the caller is the return address, at the top of the
 * stack (x86) or in the link register. From 6.12 on (commit cfa7f3d2c526) the kernel adds it
 * itself where the function begins with `push %rbp` or endbr64; glibc's malloc does not.
 *
 * `frames` has room for `n`, at least 2. The chain is read one place further on: its leaf moves
 * to the front, and its place is the caller's.
 */
static __always_inline long walk_fp_entry(struct pt_regs *ctx, __u64 *frames, __u32 n)
{
	__u64 caller = PT_REGS_RET(ctx);
	long len;

#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_user(&caller, sizeof(caller), (void *)PT_REGS_SP(ctx)))
		return walk_fp(ctx, frames, n * sizeof(*frames));
#endif
	len = walk_fp(ctx, frames + 1, (n - 1) * sizeof(*frames));
	if (len <= 0)
		return len;
	if (len > (long)sizeof(*frames) && frames[2] == caller)
		return walk_fp(ctx, frames, n * sizeof(*frames));
	frames[0] = frames[1];
	frames[1] = caller;
	return len + (long)sizeof(*frames);
}

#endif
