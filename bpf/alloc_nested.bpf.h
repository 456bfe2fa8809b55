/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens inside a call of an allocator (struct ms_inflight) is part of it.
 */
#ifndef MEMSCOPE_ALLOC_NESTED_BPF_H
#define MEMSCOPE_ALLOC_NESTED_BPF_H

#include "common.bpf.h"

/*
 * Does the call in flight still have its frame? Not if it was left by a jump (longjmp, siglongjmp
 * out of a handler) or an exception: what is deeper than it was may then be anything. On x86-64
 * what it returns to is the return probe's trampoline, or for MS_SHAPE_NEW what it was; arm64 keeps
 * that in a register, and is believed.
 */
static __always_inline bool has_frame(const struct ms_inflight *in)
{
#if defined(__TARGET_ARCH_x86)
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 ra;

	if (bpf_probe_read_user(&ra, sizeof(ra), (void *)in->sp))
		return false;
	return in->ra ? ra == in->ra : ra == BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
#else
	return true;
#endif
}

/* Is a call whose stack pointer is `sp` part of the one in flight? */
static __always_inline bool is_nested(const struct ms_inflight *in, __u64 sp)
{
	return in && in->sp && sp < in->sp && has_frame(in);
}

#endif
