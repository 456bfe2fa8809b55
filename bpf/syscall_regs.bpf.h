/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registers of a system call.
 */
#ifndef MEMSCOPE_SYSCALL_REGS_BPF_H
#define MEMSCOPE_SYSCALL_REGS_BPF_H

#if defined(__TARGET_ARCH_x86)
#define COMPAT_BIT       0x0002 /* thread_info.status: TS_COMPAT */
#define SYSCALL_NR(regs) ((__u32)(regs)->orig_ax)
#else
#define SYSCALL_NR(regs) ((__u32)(regs)->syscallno)
#endif

/* A 32-bit system call: it has other numbers. */
static __always_inline bool is_compat(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread_info.status) & COMPAT_BIT;
#else
	return BPF_CORE_READ(task, thread_info.flags) & (1 << 22); /* TIF_32BIT */
#endif
}

static __always_inline void args_read(const struct pt_regs *regs, __u64 *arg)
{
#if defined(__TARGET_ARCH_x86)
	arg[0] = BPF_CORE_READ(regs, di);
	arg[1] = BPF_CORE_READ(regs, si);
	arg[2] = BPF_CORE_READ(regs, dx);
	arg[3] = BPF_CORE_READ(regs, r10);
	arg[4] = BPF_CORE_READ(regs, r8);
#else
	arg[0] = BPF_CORE_READ((const struct pt_regs *)regs, orig_x0);
	arg[1] = BPF_CORE_READ(regs, regs[1]);
	arg[2] = BPF_CORE_READ(regs, regs[2]);
	arg[3] = BPF_CORE_READ(regs, regs[3]);
	arg[4] = BPF_CORE_READ(regs, regs[4]);
#endif
}

#endif
