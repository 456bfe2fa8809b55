/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a walk in the kernel begins: its scratch and its registers. The walk itself is in global
 * functions of walk.bpf.c: each is verified once per program, not on every path and in every turn.
 * Linux 5.10 suffices.
 */
#ifndef MEMSCOPE_WALK_WALK_CFI_BPF_H
#define MEMSCOPE_WALK_WALK_CFI_BPF_H

#include "common.bpf.h"

#include "walk/walk.h"
/* What one program type works with; the programs of one type never interrupt each other. */
struct stack_scratch {
	__u64 owner; /* pid_tgid of the walk under way */
	struct ms_hash hash;
	struct ms_hash lang_hash; /* before the present run of a language */
	struct ms_proc proc;      /* whose stack it is                  */
	__u64 defer_ns;           /* deferred_begin()                   */
	__u64 caller;  /* unwind_cache_at(): the return address at the top of the stack, or 0 */
	__u32 clock_s; /* before `spaces` was read                                      */
	__u32 sent;    /* user space has the stack                                      */
	struct ms_walk walk;
	union {
		struct {
			struct ms_stack_rec rec;
			__u64 frames[MS_MAX_FRAMES]; /* directly behind rec, as the record wants them */
		};
		struct {
			struct ms_deferred_rec pending;
			__u8 bytes[MS_DEFERRED_SMALL];
		};
		struct {
			struct ms_chain_rec chain;
			struct ms_chain_link links[MS_CHAIN_LINKS];
		};
	};
};

/* Scratch of each program type. */
enum scratch_slot {
	SCRATCH_CPU,
	SCRATCH_SWITCH,
	SCRATCH_ALLOC,
	SCRATCH_LIST,
	SCRATCH_GROWTH,
	SCRATCH_WAKING,
	N_SCRATCH,
};

#define LIST_MAX 128 /* frames of bpf_get_stack; at the usual sysctl it gives 127 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, N_SCRATCH);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} scratch __weak SEC(".maps");

/* The registers with which the current task entered the kernel: at the top of its kernel stack. */
static __always_inline struct pt_regs *task_user_regs(const struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) &&
	    bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* Before 5.15: THREAD_SIZE of x86-64 and arm64, without KASAN. */
	return (struct pt_regs *)(BPF_CORE_READ(task, stack) + 16384) - 1;
}

#if defined(__TARGET_ARCH_x86)
/*
 * A function whose return is probed returns into a page of the kernel's: to a breakpoint or, since
 * 6.11, to code that pushes rax, rcx and r11, makes a system call and pops what it pushed. A thread
 * there has returned already: its pc is the function's return address, which the kernel keeps in
 * the return instance until the trap is handled, and then stores below sp.
 *
 *   offset   0  push rax   1  push rcx   2  push r11   4  mov, syscall   d  pop r11   f  pop rcx   10  ret
 */
static __always_inline void walk_leave_trampoline(struct ms_walk *w, struct task_struct *task)
{
	__u64 at = w->pc - BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	struct return_instance *ri = (void *)w->env;
	__u64 sp = w->regs[MS_WALK_SP], ra_at, ra, stack;

	if (at > 0x10)
		return;
	/* The return address's slot, by how much has been pushed. */
	ra_at = sp + (at == 0 ? -8LL : at == 1 || at == 0x10 ? 0 : at < 4 || at == 0xf ? 8 : 16);
	stack = ri ? BPF_CORE_READ(ri, stack) : 0;
	if (ri && (stack == ra_at || stack == sp - 8)) {
		ra = BPF_CORE_READ(ri, orig_ret_vaddr);
		w->env = (__u64)BPF_CORE_READ(ri, next);
		ra_at = stack;
	} else if (bpf_probe_read_user(&ra, sizeof(ra), (void *)ra_at)) {
		return;
	}
	w->regs[MS_WALK_SP] = ra_at + 8;
	w->pc = ra;
}

/*
 * Is the pc of a task in the kernel behind the breakpoint of a probe that has not been handled yet?
 * Then the probed instruction was not executed. Linkers pad functions with the same byte before an
 * aligned one (lld and Go do), mostly with several.
 */
static __always_inline bool walk_is_behind_probe(__u64 pc)
{
	__u8 op = 0;

	if (bpf_probe_read_user(&op, sizeof(op), (void *)(pc - 1)) || op != 0xcc)
		return false;
	return pc & 15 || bpf_probe_read_user(&op, sizeof(op), (void *)(pc - 2)) || op != 0xcc;
}
#else
/* On arm64 a function returns to the trampoline's breakpoint with nothing pushed: sp is what it was at the entry. */
static __always_inline void walk_leave_trampoline(struct ms_walk *w, struct task_struct *task)
{
	struct return_instance *ri = (void *)w->env;

	(void)task;
	if (!ri || !w->trampoline || w->pc != w->trampoline)
		return;
	w->pc = BPF_CORE_READ(ri, orig_ret_vaddr);
	w->env = (__u64)BPF_CORE_READ(ri, next);
}
#endif

/* Since 5.15 the current task and its registers can be read without a helper call per field. */
static __always_inline bool can_load_task(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) &&
	       bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

/* false: it has none (a kernel thread, an exiting task), or is a 32-bit program. */
static __always_inline bool walk_take(struct ms_walk *w, const struct pt_regs *r)
{
#if defined(__TARGET_ARCH_x86)
	if (r->cs != 0x33) /* __USER_CS: 64-bit user code */
		return false;
	w->regs[0] = r->ax;
	w->regs[1] = r->dx;
	w->regs[2] = r->cx;
	w->regs[3] = r->bx;
	w->regs[4] = r->si;
	w->regs[5] = r->di;
	w->regs[6] = r->bp;
	w->regs[7] = r->sp;
	w->regs[8] = r->r8;
	w->regs[9] = r->r9;
	w->regs[10] = r->r10;
	w->regs[11] = r->r11;
	w->regs[12] = r->r12;
	w->regs[13] = r->r13;
	w->regs[14] = r->r14;
	w->regs[15] = r->r15;
	w->pc = r->ip;
#else
	if (r->pstate & 0x10) /* PSR_MODE32_BIT */
		return false;
	for (int i = 0; i < 31; i++)
		w->regs[i] = r->regs[i];
	w->regs[MS_A64_SP] = r->sp;
	w->pc = r->pc;
#endif
	return true;
}

/* The kernel's state of the probes that a task has hit. */
struct task_probes {
	bool any;
	__u64 returns;            /* the innermost of its return instances */
	__u64 at, instead, probe; /* the probed instruction, where it is executed, and whether it is now */
};

/* By a helper, although the pointer could be followed: whenever the verifier comes to one that is followed
 * from a task, it searches all types of the kernel several times (btf_nested_type_is_trusted(), 6.3), which
 * was a quarter of all that loading these programs took on 6.18. */
static __always_inline void probes_read(const struct task_struct *task, struct task_probes *probes)
{
	const struct uprobe_task *utask = BPF_CORE_READ(task, utask);

	if (!utask)
		return;
	probes->any = true;
	probes->returns = (__u64)BPF_CORE_READ(utask, return_instances);
	probes->probe = (__u64)BPF_CORE_READ(utask, active_uprobe);
	probes->instead = BPF_CORE_READ(utask, xol_vaddr);
	probes->at = BPF_CORE_READ(utask, vaddr);
}

/* Registers and pc of the current task, from task_user_regs(); the rest as walk_regs(). */
static __always_inline bool walk_load(struct ms_walk *w, struct task_probes *probes)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	if (!walk_take(w, (void *)bpf_task_pt_regs((void *)task)))
		return false;
	probes_read(task, probes);
	return true;
}

/* The same of any task. */
static __always_inline bool walk_read_regs(struct ms_walk *w, struct task_struct *task,
					   const struct pt_regs *regs, struct task_probes *probes)
{
	struct pt_regs *r = (void *)w->window; /* not in use yet; too large for the stack */

	if (bpf_probe_read_kernel(r, sizeof(*r), regs) || !walk_take(w, r))
		return false;
	probes_read(task, probes);
	return true;
}

/* What a thread's own variables are found by. */
static __always_inline __u64 task_thread_base(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

/* walk.bpf.c: the walk that begins in `slot` looks for frames of a language where its process, s->proc, has a runtime
 * that is known. `base`: task_thread_base(). */
int walk_begin_lang(__u32 slot, __u64 base);

static __always_inline void walk_take_lang(__u32 slot, const struct task_struct *task)
{
	if (cfg_lang)
		walk_begin_lang(slot, task_thread_base(task));
}

/*
 * Registers and pc of a task in user space, from task_user_regs(). false: it has none (a kernel
 * thread, an exiting task), or is a 32-bit program. `may_trap`: it is in the kernel, perhaps
 * because it has just hit a probe. `current`: it is the current task.
 */
static __always_inline bool walk_regs(struct ms_walk *w, struct task_struct *task,
				      const struct pt_regs *regs, bool may_trap, bool current)
{
	struct task_probes probes = {};

	if (current && can_load_task() ? !walk_load(w, &probes)
				       : !walk_read_regs(w, task, regs, &probes))
		return false;
	w->env = probes.returns;
	w->trampoline = 0;
	w->at_entry = 0;
	w->lang.lang = MS_LANG_NONE;
	if (!probes.any)
		return true;
	if (w->env)
		w->trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
#if defined(__TARGET_ARCH_x86)
	__u64 ip = w->pc;
#endif
	/* Inside a probed instruction, which is executed in a page of the kernel's. */
	if (probes.probe && !((w->pc ^ probes.instead) & ~(MS_PAGE_BYTES - 1ULL)))
#if defined(__TARGET_ARCH_x86)
		w->pc = probes.at;
#else
		/* Or behind it, which may have moved sp. All have four bytes, and those that jump are simulated. */
		w->pc = probes.at + (w->pc > probes.instead ? 4 : 0);
#endif
	walk_leave_trampoline(w, task);
#if defined(__TARGET_ARCH_x86)
	if (may_trap && w->pc == ip && walk_is_behind_probe(ip))
		w->pc--;
#endif
	return true;
}

/* walk.bpf.c: a walk of the current task, whose process is s->proc, begins: walk_regs() and walk_take_lang(). 0: it has
 * no registers. */
int walk_take_current(__u32 slot, __u32 may_trap);
/* Its stack goes to user space (deferred.bpf.h), under the name s->hash: walk_chain() comes between these. 0, or -1: it
 * cannot. */
int walk_defer_begin(__u32 slot);
int walk_defer(__u32 slot, __u32 as_gen, __u32 source);
/* Sends the record in the scratch, of `n` frames and of the hash s->hash, unless user space has it. `lane`: enum
 * ms_lane; s->sent says whether user space has it now. */
int walk_send(__u32 slot, __u32 n, __u32 lane);
/*
 * walk.bpf.c: walks from the registers and by the space in the scratch of `slot`, and leaves the
 * frames, their hash and the verdict there. WALK_CACHED: only the hash and the verdict
 * (unwind_cache.bpf.h). -1: no such scratch.
 */
#define WALK_CACHED 1
int walk_stack(__u32 slot);
/* Puts the walk that has ended into the cache. */
int walk_remember(__u32 slot);
/* Hashes frames that a kernel helper has written to the scratch. */
int walk_hash_list(__u32 slot, __u32 n);
/* Sends the frames of a language that the thread executes, for the deferred stack named s->hash; in s->chain is its
 * process. */
int walk_chain(__u32 slot);

#endif
