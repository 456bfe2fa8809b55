/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a wait is for, where the system call has a descriptor: which file, on which device, or which peer. The descriptor is the call's
 * first argument, in the registers with which the thread entered the kernel. Calls that poll several are for none of them.
 *
 * Of threads whose waits are sampled, this is of the waits whose stack is.
 */
#ifndef MEMSCOPE_DESCRIPTORS_BPF_H
#define MEMSCOPE_DESCRIPTORS_BPF_H

#include "common.bpf.h"
#include "emit.bpf.h"
#include "locks.bpf.h"
#include "wakers.bpf.h"

#define FORMAT     0170000 /* of a mode: linux/stat.h */
#define REGULAR    0100000
#define DIRECTORY  0040000
#define BLOCKS     0060000
#define SOCKET     0140000

/* The descriptor that the current task's system call is for; -1: there is none. */
static __always_inline __s64 descriptor_now(const struct task_struct *task)
{
	const struct pt_regs *regs = task_user_regs(task);
	__u64 nr, fd;

#if defined(__TARGET_ARCH_x86)
	nr = BPF_CORE_READ(regs, orig_ax);
	fd = BPF_CORE_READ(regs, di);
#else
	nr = (__u32)BPF_CORE_READ(regs, syscallno);
	fd = BPF_CORE_READ(regs, orig_x0);
#endif
	if (nr >= MS_FD_CALLS || !(cfg_fd_calls[nr / 64] >> nr % 64 & 1))
		return -1;
	return (__u32)fd;
}

static __always_inline const struct file *file_of(const struct task_struct *task, __u32 fd)
{
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file;

	if (fd >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), files + fd))
		return NULL;
	return file;
}

static __always_inline void object_of_socket(struct ms_object_rec *rec, const struct file *file)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);

	rec->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (rec->family != MS_AF_INET && rec->family != MS_AF_INET6)
		return;
	rec->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	rec->remote_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (rec->family == MS_AF_INET)
		rec->remote[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO(&rec->remote, sk, __sk_common.skc_v6_daddr);
}

/* The current task, `t`, leaves its CPU blocked. */
static __noinline void object_wait_begin(struct wait_begun *w, const struct task_struct *task, struct ms_thread *t)
{
	struct ms_object_rec *rec;
	const struct inode *inode;
	const struct file *file;
	__s64 fd;

	if (!w || !t)
		return;
	t->object.lo = t->object.hi = 0;
	fd = descriptor_now(task);
	if (fd < 0)
		return;
	file = file_of(task, (__u32)fd);
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	rec = &w->object;
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->mode = BPF_CORE_READ(inode, i_mode) & FORMAT;
	if (rec->mode != REGULAR && rec->mode != DIRECTORY && rec->mode != BLOCKS && rec->mode != SOCKET)
		return;
	rec->kind = MS_EV_OBJECT;
	rec->fd = (__u32)fd;
	rec->proc = t->proc;
	rec->ino = BPF_CORE_READ(inode, i_ino);
	rec->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	if (rec->mode == SOCKET)
		object_of_socket(rec, file);
	rec->hash = (struct ms_hash){ cfg_seed_lo, cfg_seed_hi };
	HASH_WORDS(&rec->hash, &rec->proc, (sizeof(*rec) - __builtin_offsetof(struct ms_object_rec, proc)) / 8);
	if (record_send(rec, sizeof(*rec), &rec->hash))
		t->object = rec->hash;
	else
		stat_inc(STAT_OBJECT_LOST);
}

/* It comes to a CPU after that. */
static __noinline void object_switch_in(struct ms_thread *t, const struct task_struct *task,
					const struct off_cpu *off)
{
	struct wait_begun *w = wait_begun_here();

	if (!t || !off || !w)
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_OBJECTS;
	w->key.as_gen = t->as_gen;
	w->key.proc = t->proc;
	w->key.user = t->user;
	w->key.kernel = t->object;
	t->object.lo = t->object.hi = 0;
	emit_add(MS_LANE_TASK, &w->key, task, off_count(off), off->weight * off->blocked_ns);
}

#endif
