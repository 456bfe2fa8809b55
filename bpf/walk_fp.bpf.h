/*
 * Walker: frame pointers, by the kernel's own walker (bpf_get_stack). It follows saved rbp/x29
 * from the registers at the last entry to the kernel, knows uprobes at a function's entry (the
 * caller is still at the top of the stack: kernel commit cfa7f3d2c526, 6.12) and return-probe
 * trampolines. Programs without frame pointers give a leaf and rubbish: every stack of this walker is
 * MS_GUESSED.
 */
#ifndef MEMSCOPE_WALK_FP_BPF_H
#define MEMSCOPE_WALK_FP_BPF_H

static __always_inline long walk_fp(void *ctx, __u64 *frames, __u32 size)
{
	return bpf_get_stack(ctx, frames, size, BPF_F_USER_STACK);
}

#endif
