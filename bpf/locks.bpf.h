/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for locks: which lock, who owned it when the wait began, and what its owner did meanwhile.
 *
 * A thread that leaves its CPU in futex(2) has the lock's address in its registers, and the lock has its owner
 * (lock_words.h). The owner's entry in `threads` notes that others wait for a lock of it. What it does until it releases
 * that lock is added up by its stack: its own waits, when they end, and its samples on a CPU. Whether it still owns
 * the lock is read from the lock, in its own context: when it leaves a CPU, and when it is sampled. A thread that is off a
 * CPU releases nothing.
 *
 * Of threads whose waits are sampled, this is of the waits whose stack is.
 */
#ifndef MEMSCOPE_LOCKS_BPF_H
#define MEMSCOPE_LOCKS_BPF_H

#include "common.bpf.h"
#include "emit.bpf.h"
#include "lock_words.h"
#include "stack.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define NR_FUTEX 202
#else
#define NR_FUTEX 98
#endif

static __always_inline struct wait_begun *wait_begun_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&wait_begun, &zero);
}

struct futex_call {
	__u64 futex;
	__u32 op, expected;
};

/* The one futex that futex_waitv(2) waits for. */
static __always_inline bool waitv_call(__u64 waiters, __u32 n, struct futex_call *call)
{
	struct lock_waitv v;

	if (n != 1 || bpf_probe_read_user(&v, sizeof(v), (void *)waiters))
		return false;
	call->futex = v.futex;
	call->op = FUTEX_OP_WAIT;
	call->expected = (__u32)v.expected;
	return true;
}

/* The system call that the current task is in, if that waits for a futex. Its registers stay as they were at the entry. */
static __always_inline bool futex_call_now(const struct task_struct *task, struct futex_call *call)
{
	const struct pt_regs *regs = task_user_regs(task);
	__u32 second;

#if defined(__TARGET_ARCH_x86)
	__u32 nr = (__u32)BPF_CORE_READ(regs, orig_ax);

	if (nr != NR_FUTEX && nr != NR_FUTEX_WAIT && nr != NR_FUTEX_WAITV)
		return false;
	call->futex = BPF_CORE_READ(regs, di);
	second = (__u32)BPF_CORE_READ(regs, si);
	call->expected = (__u32)BPF_CORE_READ(regs, dx);
#else
	__u32 nr = (__u32)BPF_CORE_READ(regs, syscallno);

	if (nr != NR_FUTEX && nr != NR_FUTEX_WAIT && nr != NR_FUTEX_WAITV)
		return false;
	call->futex = BPF_CORE_READ(regs, orig_x0);
	second = (__u32)BPF_CORE_READ(regs, regs[1]);
	call->expected = (__u32)BPF_CORE_READ(regs, regs[2]);
#endif
	if (nr == NR_FUTEX_WAITV)
		return waitv_call(call->futex, second, call);
	call->op = nr == NR_FUTEX ? second : FUTEX_OP_WAIT;
	if (nr == NR_FUTEX_WAIT)
		call->expected = second;
	return true;
}

/* A thread's number in the innermost of its pid namespaces. */
static __always_inline __u32 task_ns_tid(const struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	const struct upid *own =
		(const void *)((__u64)__builtin_preserve_access_index(&pid->numbers[0]) +
			       level * bpf_core_type_size(struct upid));

	return (__u32)BPF_CORE_READ(own, nr);
}

/* A thread of a container: found again by the number that its process knows. */
static __always_inline void ns_thread_add(const struct ms_thread *t, __u32 tid)
{
	struct ns_thread key = { .tgid = t->proc.tgid, .ns_tid = t->ns_tid };

	if (t->ns_tid && t->ns_tid != tid)
		bpf_map_update_elem(&ns_threads, &key, &tid, BPF_ANY);
}

/* The thread of `like`'s process that has this number there; NULL: there is none. */
static __always_inline struct ms_thread *thread_of_ns(const struct ms_thread *like, __u32 like_tid,
						      __u32 ns_tid)
{
	struct ns_thread key = { .tgid = like->proc.tgid, .ns_tid = ns_tid };
	struct ms_thread *t;
	__u32 *tid = &ns_tid;

	if (like->ns_tid && like->ns_tid != like_tid)
		tid = bpf_map_lookup_elem(&ns_threads, &key);
	t = tid ? bpf_map_lookup_elem(&threads, tid) : NULL;
	return t && t->proc.tgid == key.tgid ? t : NULL;
}

/* Others wait for a lock that `o` owns. */
static __always_inline void lock_owner_note(struct ms_thread *o, __u64 lock, __u64 now_ns)
{
	if (o->owned == lock)
		return;
	o->owned_ns = now_ns;
	o->owned = lock;
}

/* CPython's row of the current task's process; NULL: it has none. */
static __always_inline const struct ms_lang_row *python_of(const struct ms_proc *proc)
{
	__u32 tgid = proc->tgid;
	const struct ms_lang_row *row = cfg_lang ? bpf_map_lookup_elem(&langs, &tgid) : NULL;

	return row && row->lang == MS_LANG_PYTHON && row->start_ns == proc->start_ns &&
			       row->exec_id == proc->exec_id
		       ? row
		       : NULL;
}

/* The thread that has the GIL; 0: none has, or there is no GIL. */
static __noinline __u32 gil_owner(const struct ms_lang_row *row, __u64 gil)
{
	struct gil_head head;
	__u64 thread;
	__u32 tid;

	if (!row || bpf_probe_read_user(&head, sizeof(head), (void *)gil) || head.locked != 1 ||
	    bpf_probe_read_user(&thread, sizeof(thread),
				(void *)(head.tstate + row->python.tstate_thread)) ||
	    bpf_probe_read_user(&tid, sizeof(tid), (void *)(thread + PTHREAD_TID)))
		return 0;
	return tid;
}

/* The current task, `t`, waits for a condition variable: that of the GIL? */
static __always_inline void gil_wait_begin(const struct futex_call *call, struct ms_thread *t,
					   __u32 tid, __u64 now_ns)
{
	const struct ms_lang_row *row = python_of(&t->proc);
	__u64 gil = gil_of_futex(call->futex);
	__u32 owner = row ? gil_owner(row, gil) : 0;
	struct ms_thread *o = owner ? thread_of_ns(t, tid, owner) : NULL;

	if (!o || o == t)
		return;
	stat_inc(STAT_LOCK_WAITS);
	t->lock = lock_make(gil, MS_LOCK_GIL);
	t->owner = owner;
	lock_owner_note(o, t->lock, now_ns);
}

/* The current task, `t`, leaves its CPU blocked: what lock does it wait for, and who owns that? */
static __noinline void lock_wait_begin(struct wait_begun *w, const struct task_struct *task,
				       struct ms_thread *t, __u32 tid, __u64 now_ns)
{
	struct futex_call call;
	struct ms_thread *o = NULL;
	__u32 owner;

	if (!w || !t)
		return;
	t->lock = t->owner = 0;
	if (!futex_call_now(task, &call))
		return;
	if (gil_is_wanted(call.op, call.expected)) {
		gil_wait_begin(&call, t, tid, now_ns);
		return;
	}
	if (!lock_is_wanted(call.op, call.expected))
		return;
	stat_inc(STAT_LOCK_WAITS);
	if (bpf_probe_read_user(w->words, LOCK_WORDS * sizeof(w->words[0]),
				(void *)lock_words_of_futex(call.futex))) {
		stat_inc(STAT_LOCK_UNREADABLE);
		return;
	}
	t->lock = lock_recognize(call.futex, call.op, call.expected, w->words, &owner);
	if (owner)
		o = thread_of_ns(t, tid, owner);
	if (!o) {
		stat_inc(STAT_LOCK_NO_OWNER);
		t->lock = lock_make(call.futex, MS_LOCK_OTHER);
		return;
	}
	t->owner = owner;
	lock_owner_note(o, t->lock, now_ns);
}

/* The current task, `t`, of which others wanted a lock: has it that still? */
static __noinline bool lock_still_owned(struct ms_thread *t, __u32 words[LOCK_WORDS])
{
	__u64 lock;

	if (!t || !words)
		return false;
	lock = t->owned;
	if (lock_kind(lock) == MS_LOCK_GIL) {
		if (gil_owner(python_of(&t->proc), lock & MS_LOCK_ADDR_MASK) == t->ns_tid)
			return true;
	} else if (!bpf_probe_read_user(words, LOCK_WORDS * sizeof(*words),
					(void *)lock_words_at(lock)) &&
		   lock_is_owned(lock, words, t->ns_tid)) {
		return true;
	}
	t->owned = 0;
	return false;
}

/* The current task leaves its CPU, and its stack has been captured. */
static __always_inline void lock_switch_out(struct wait_begun *w, const struct task_struct *task,
					    struct ms_thread *t, __u32 tid, bool blocked,
					    __u64 now_ns)
{
	if (t->owned)
		lock_still_owned(t, w->words);
	if (blocked)
		lock_wait_begin(w, task, t, tid, now_ns);
	else
		t->lock = 0;
}

/* One time that a thread was off the CPU. */
struct off_cpu {
	__u64 since_ns, in_ns;
	__u64 blocked_ns; /* the first part of it: waiting, and not for a CPU */
	__u32 weight;     /* how many waits this one represents of those that were seen      */
	__u32 shift;      /* of the slice (slices.h). The times above have it in them        */
};

/* … and of all. */
static __always_inline __u64 off_count(const struct off_cpu *off)
{
	return (__u64)off->weight << off->shift % 32;
}

static __always_inline void lock_emit(const struct ms_thread *t, const struct task_struct *task,
				      __u32 tid, bool hold, __u64 count, __u64 ns)
{
	struct wait_begun *w = wait_begun_here();

	if (!w)
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_LOCKS;
	w->key.state = hold ? MS_LOCK_HOLD : MS_LOCK_WAIT;
	w->key.tid = tid;
	w->key.as_gen = t->as_gen;
	w->key.proc = t->proc;
	w->key.user = t->user;
	w->key.kernel.lo = hold ? t->owned : t->lock;
	w->key.kernel.hi = hold ? t->ns_tid : t->owner;
	emit_add(MS_LANE_TASK, &w->key, task, count, ns);
}

/* A thread comes to a CPU. */
static __noinline void lock_switch_in(struct ms_thread *t, const struct task_struct *task,
				      __u32 tid, const struct off_cpu *off)
{
	__u64 from_ns;

	if (!t || !off)
		return;
	from_ns = t->owned_ns > off->since_ns ? t->owned_ns : off->since_ns;
	if (t->lock && off->blocked_ns)
		lock_emit(t, task, tid, false, off_count(off), off->weight * off->blocked_ns);
	if (t->owned && off->in_ns > from_ns)
		lock_emit(t, task, tid, true, off_count(off), off->weight * (off->in_ns - from_ns));
	t->lock = 0;
}

/* An on-CPU sample of the current task, `key` being that of its total, which it becomes here. */
static __noinline void lock_on_cpu(struct ms_total_key *key, const struct task_struct *task,
				   __u64 value)
{
	__u32 words[LOCK_WORDS], tid;
	struct ms_thread *t;

	if (!key)
		return;
	tid = key->tid;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || !t->owned || !lock_still_owned(t, words))
		return;
	key->source = MS_LOCKS;
	key->state = MS_LOCK_HOLD;
	key->slot = 0;
	key->bucket = 0;
	key->kernel.lo = t->owned;
	key->kernel.hi = t->ns_tid;
	emit_add(MS_LANE_IRQ, key, task, 1, value);
}

#endif
