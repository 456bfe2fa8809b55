/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: the log of system calls (`memscope trace`).
 *
 *   entry   what the call's arguments point to is read as it is now, into the thread's row of `trace_now`
 *   exit    what the call has written is read; row and result go into the ring, if they pass the filters
 *
 * Memory that is not there yet cannot be read by a program that must not sleep: it is read at the exit, when the kernel has
 * brought it in. Descriptors are named by the file that they are at that moment; a file is described in the ring
 * once, before the first call that names it (`trace_files`).
 *
 * The user stack is captured when it is known that the call goes into the ring: at its exit, or, of calls that end with other
 * memory or none, at its entry. A stack is sent once, in the ring of stacks; a call has its hash.
 */
#include "common.bpf.h"
#include "stack.bpf.h"
#include "syscall_regs.bpf.h"
#include "trace_abi.h"

#define ERRNO_MAX    4095
#define AT_FDCWD     (-100)
#define S_IFMT       0170000
#define S_IFSOCK     0140000
#define STRINGS      16 /* of an argv */
#define WINDOW_SHIFT 27 /* 134 ms */

#if defined(__TARGET_ARCH_x86)
#define NR_IS_EXIT(nr) ((nr) == 60 || (nr) == 231)
#define NR_IS_EXEC(nr) ((nr) == 59 || (nr) == 322)
#else
#define NR_IS_EXIT(nr) ((nr) == 93 || (nr) == 94)
#define NR_IS_EXEC(nr) ((nr) == 221 || (nr) == 281)
#endif

/* Only calls that failed; that took this long; at most so many in a window, 0: any number; bytes of buffers. */
const volatile __u8 cfg_trace_failed __weak = 0;
const volatile __u8 cfg_trace_stacks __weak = 0; /* calls have their user stacks */
const volatile __u64 cfg_trace_min_ns __weak = 0;
const volatile __u64 cfg_trace_most __weak = 0;

volatile __u64 trace_lost __weak = 0;
volatile __u64 trace_window __weak = 0, trace_in_window __weak = 0;

/* What is read of each call. Written by user space before the gate opens. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MS_TRACE_CALLS);
	__type(key, __u32);
	__type(value, struct ms_trace_call);
} trace_calls __weak SEC(".maps");

/* The call of each thread, by its task's address. Written here, read by user space, which removes those of threads that have
 * ended. Full: STAT_TRACE_LOST. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct ms_trace_now);
} trace_now __weak SEC(".maps");

/* Files that have been described, by what names them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} trace_files __weak SEC(".maps");

/* Records: written here, read by user space. Full: STAT_TRACE_LOST. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} trace_ring __weak SEC(".maps");

/* Where records are made; nothing else runs on a CPU meanwhile: tracepoints of calls do not nest. */
struct ms_trace_room {
	struct ms_trace_now out;
	struct ms_trace_now fresh;
	struct ms_trace_file_rec file;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_trace_room);
} trace_room __weak SEC(".maps");

/* Where the ring was written when user space was last woken. CPUs may overwrite each other's: it is woken once more then. */
static __u64 trace_woken;

/*
 * User space is woken when an eighth of the ring is full, and not again before another eighth has come: where it reads as fast as
 * targets call, the ring stays that full, and to wake it takes several times what a call does. What is missed is read by the next tick.
 */
static __always_inline __u64 trace_wake(void)
{
	__u64 at = bpf_ringbuf_query(&trace_ring, BPF_RB_PROD_POS),
	      part = bpf_ringbuf_query(&trace_ring, BPF_RB_RING_SIZE) / 8;

	if (at - trace_woken < part || bpf_ringbuf_query(&trace_ring, BPF_RB_AVAIL_DATA) <= part)
		return BPF_RB_NO_WAKEUP;
	trace_woken = at;
	return BPF_RB_FORCE_WAKEUP;
}

/* --- files --- */

static __always_inline __u64 mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

/* The components of a path, from its end to the root of its mounts. */
static __noinline int path_read(struct ms_trace_file_rec *rec, struct dentry *dentry,
				struct vfsmount *mnt)
{
	__u32 at = 0;

	if (!rec)
		return 0;
	for (int i = 0; i < MS_TRACE_DEPTH; i++) {
		const unsigned char *name;
		long n;

		for (int up = 0; up < 3 && dentry == BPF_CORE_READ(mnt, mnt_root); up++) {
			struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt),
				     *parent;

			parent = BPF_CORE_READ(m, mnt_parent);
			if (m == parent)
				goto out;
			dentry = BPF_CORE_READ(m, mnt_mountpoint);
			mnt = (void *)parent + bpf_core_field_offset(struct mount, mnt);
		}
		if (at >= MS_TRACE_PATH || (at && dentry == BPF_CORE_READ(dentry, d_parent)))
			break; /* what has no place in a tree, like an eventfd, has a name all the same */
		name = BPF_CORE_READ(dentry, d_name.name);
		n = bpf_probe_read_kernel_str(rec->path + at, MS_TRACE_NAME, name);
		if (n <= 0)
			break;
		at += (__u32)n & (2 * MS_TRACE_NAME - 1);
		dentry = BPF_CORE_READ(dentry, d_parent);
	}
out:
	rec->len = at;
	return 0;
}

static __always_inline void socket_read(struct ms_trace_file_rec *rec, const struct file *file,
					__u64 *id)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);

	rec->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (rec->family != 2 && rec->family != 10)
		return;
	rec->protocol = BPF_CORE_READ(sk, sk_protocol);
	rec->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	rec->remote_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (rec->family == 2) {
		BPF_CORE_READ_INTO((__u32 *)rec->remote, sk, __sk_common.skc_daddr);
		BPF_CORE_READ_INTO((__u32 *)rec->local, sk, __sk_common.skc_rcv_saddr);
	} else {
		BPF_CORE_READ_INTO((struct in6_addr *)rec->remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO((struct in6_addr *)rec->local, sk, __sk_common.skc_v6_rcv_saddr);
	}
	*id = mix(*id, (__u64)rec->local_port << 32 | rec->remote_port);
	*id = mix(*id, *(__u64 *)rec->remote ^ *(__u64 *)(rec->remote + 8));
	*id = mix(*id, *(__u64 *)rec->local ^ *(__u64 *)(rec->local + 8));
}

/* Describes it in the ring, where that has not been done. Returns its id; 0: it could not be described. */
static __noinline __u64 file_id(struct ms_trace_file_rec *rec, const struct file *file,
				struct dentry *dentry, struct vfsmount *mnt)
{
	const struct inode *inode;
	__u64 id, one = 1;

	if (!rec)
		return 0;
	__builtin_memset(rec, 0, __builtin_offsetof(struct ms_trace_file_rec, path));
	inode = BPF_CORE_READ(dentry, d_inode);
	rec->kind = MS_TRACE_FILE;
	rec->ino = BPF_CORE_READ(inode, i_ino);
	rec->mode = BPF_CORE_READ(inode, i_mode);
	rec->magic = (__u32)BPF_CORE_READ(inode, i_sb, s_magic);
	rec->deleted = !BPF_CORE_READ(dentry, d_hash.pprev);
	id = mix(mix(mix(rec->ino, (__u64)dentry), (__u64)mnt),
		 BPF_CORE_READ(dentry, d_name.hash_len));
	id = mix(mix(id, (__u64)BPF_CORE_READ(dentry, d_parent)), rec->deleted);
	if (file && (rec->mode & S_IFMT) == S_IFSOCK)
		socket_read(rec, file, &id);
	id |= 1;
	if (bpf_map_lookup_elem(&trace_files, &id))
		return id;
	rec->id = id;
	path_read(rec, dentry, mnt);
	if (bpf_ringbuf_output(&trace_ring, rec,
			       __builtin_offsetof(struct ms_trace_file_rec, path) +
				       (rec->len & (2 * MS_TRACE_PATH - 1)),
			       BPF_RB_NO_WAKEUP))
		return 0;
	bpf_map_update_elem(&trace_files, &id, &one, BPF_ANY);
	return id;
}

static __always_inline __u64 file_of_fd(struct ms_trace_file_rec *rec, __s32 fd)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	const struct fdtable *table;
	struct file **files, *file;

	if (fd == AT_FDCWD)
		return file_id(rec, NULL, BPF_CORE_READ(task, fs, pwd.dentry),
			       BPF_CORE_READ(task, fs, pwd.mnt));
	if (fd < 0)
		return 0;
	table = BPF_CORE_READ(task, files, fdt);
	files = BPF_CORE_READ(table, fd);
	if ((__u32)fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return 0;
	return file_id(rec, file, BPF_CORE_READ(file, f_path.dentry),
		       BPF_CORE_READ(file, f_path.mnt));
}

/* --- memory of the caller --- */

static __always_inline const struct ms_trace_call *call_of(__u32 nr)
{
	if (nr & MS_SYSCALL_COMPAT || nr >= MS_TRACE_CALLS)
		nr = MS_TRACE_CALLS - 1; /* the row of all that have no other */
	return bpf_map_lookup_elem(&trace_calls, &nr);
}

static __always_inline struct ms_trace_now *own_row(void)
{
	__u64 task = bpf_get_current_task();

	return bpf_map_lookup_elem(&trace_now, &task);
}

/*
 * The next four are not static, so that the verifier looks at each once, and not along every way to it. Where they are stands in
 * the row meanwhile: what is read from there has forgotten how it came about, and one turn of a loop is like the next.
 */
static __always_inline __u32 place(const struct ms_trace_now *now, __u32 slot)
{
	return *(volatile const __u16 *)&now->head.len[slot & 1];
}

static __always_inline void place_set(struct ms_trace_now *now, __u32 slot, __u32 at)
{
	*(volatile __u16 *)&now->head.len[slot & 1] = (__u16)at;
}

__noinline int trace_strings(__u32 slot, __u64 from)
{
	struct ms_trace_now *now = own_row();

	if (!now)
		return MS_TRACE_UNREAD;
	place_set(now, slot, 0);
	for (int i = 0; i < STRINGS; i++) {
		__u64 pointer = 0;
		__u32 at = place(now, slot);
		long n;

		if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)(from + 8 * i)))
			return i ? (int)at : MS_TRACE_UNREAD;
		if (!pointer || at > MS_TRACE_LONG - 128)
			break;
		n = bpf_probe_read_user_str(now->data + (slot & 1) * MS_TRACE_LONG + at, 128,
					    (void *)pointer);
		if (n <= 0)
			break;
		place_set(now, slot, at + ((__u32)n & 255));
	}
	return (int)place(now, slot);
}

/* The first bytes of vector `i`, which stands in the first slot. What is left for it and those behind it is kept in head.lost, which
 * has no other meaning before a record is sent. 0: there is no more to read. */
__noinline int trace_vector(__u32 i, __u32 most)
{
	struct ms_trace_now *now = own_row();
	__u64 base, n, left;
	__u32 at;

	if (!now || i >= MS_TRACE_IOVS)
		return 0;
	at = place(now, 0);
	if (at > MS_TRACE_LONG - MS_TRACE_SHORT)
		return 0;
	base = *(__u64 *)(now->data + 16 * i);
	n = *(__u64 *)(now->data + 16 * i + 8);
	left = now->head.lost;
	if (n > left)
		n = left;
	now->head.lost = left - n;
	if (n > most)
		n = most;
	if (n > MS_TRACE_SHORT)
		n = MS_TRACE_SHORT;
	if (bpf_probe_read_user(now->data + at, n, (void *)base)) {
		now->head.flags |= MS_TRACE_PARTLY;
		return 0;
	}
	place_set(now, 0, at + (__u32)n);
	return 1;
}

/* Into the first slot. `left`: bytes that are in all of them together. */
__noinline int trace_vectors(__u64 from, __u64 n, __u32 most, __u64 left)
{
	struct ms_trace_now *now = own_row();
	__u64 vectors = n > MS_TRACE_IOVS ? MS_TRACE_IOVS : n;

	if (!now || !from || bpf_probe_read_user(now->data, vectors * 16, (void *)from))
		return MS_TRACE_UNREAD;
	place_set(now, 0, (__u32)vectors * 16);
	now->head.lost = left;
	for (__u32 i = 0; i < MS_TRACE_IOVS; i++)
		if (i >= vectors || !trace_vector(i, most))
			break;
	return (int)place(now, 0);
}

/* Into the second slot. */
__noinline int trace_msg(__u64 from)
{
	struct ms_trace_now *now = own_row();
	struct ms_trace_msg *msg;
	__u64 n;

	if (!now)
		return MS_TRACE_UNREAD;
	msg = (void *)(now->data + MS_TRACE_LONG);
	if (bpf_probe_read_user(msg, __builtin_offsetof(struct ms_trace_msg, name_bytes),
				(void *)from))
		return MS_TRACE_UNREAD;
	if (!msg->name && !msg->control)
		return __builtin_offsetof(struct ms_trace_msg, name_bytes);
	n = msg->name_len;
	if (n > sizeof(msg->name_bytes))
		n = sizeof(msg->name_bytes);
	if (!msg->name || bpf_probe_read_user(msg->name_bytes, n, (void *)msg->name))
		msg->name_bytes[0] = msg->name_bytes[1] = 0;
	n = msg->control_len;
	if (!msg->control || !n)
		return __builtin_offsetof(struct ms_trace_msg, control_bytes);
	if (n > sizeof(msg->control_bytes))
		n = sizeof(msg->control_bytes);
	if (bpf_probe_read_user(msg->control_bytes, n, (void *)msg->control))
		return __builtin_offsetof(struct ms_trace_msg, control_bytes);
	return sizeof(*msg);
}

static __noinline int one_read(struct ms_trace_now *now, const struct ms_trace_read *how,
			       __u32 slot, __u64 ret)
{
	__u32 room = slot < 2 ? MS_TRACE_LONG : MS_TRACE_SHORT, size, most;
	char *to;
	__u64 from, n = 0;
	long r;

	if (!now || !how)
		return MS_TRACE_UNREAD;
	to = now->data +
	     (slot < 2 ? slot * MS_TRACE_LONG : 2 * MS_TRACE_LONG + (slot & 1) * MS_TRACE_SHORT);
	from = how->arg < MS_TRACE_ARGS ? now->head.args[how->arg & 7] : 0;
	size = how->size;
	most = how->most;
	if (!from)
		return MS_TRACE_UNREAD;
	if (how->how == MS_TRACE_STRINGS)
		return slot < 2 ? trace_strings(slot, from) : MS_TRACE_UNREAD;
	if (how->how == MS_TRACE_STRING) {
		if (most > room)
			most = room;
		if (most > MS_TRACE_SHORT && slot >= 2)
			most = MS_TRACE_SHORT;
		r = bpf_probe_read_user_str(to, most & (2 * MS_TRACE_LONG - 1), (void *)from);
		return r > 0 ? (int)r : MS_TRACE_UNREAD;
	}
	if (how->how == MS_TRACE_MSG)
		return slot == 1 ? trace_msg(from) : MS_TRACE_UNREAD;
	if (how->how == MS_TRACE_VECTORS || how->how == MS_TRACE_MSG_VECTORS) {
		__u64 iov[2] = { from, how->of < MS_TRACE_ARGS ? now->head.args[how->of & 7] : 0 };

		if (slot != 0 ||
		    (how->how == MS_TRACE_MSG_VECTORS &&
		     bpf_probe_read_user(
			     iov, sizeof(iov),
			     (void *)(from + __builtin_offsetof(struct ms_trace_msg, iov)))))
			return MS_TRACE_UNREAD;
		return trace_vectors(iov[0], iov[1], most, how->at_exit ? ret : ~0ULL);
	}
	if (how->how == MS_TRACE_FIXED) {
		n = size;
	} else if (how->how == MS_TRACE_BY_ARG) {
		n = how->of < MS_TRACE_ARGS ? now->head.args[how->of & 7] : 0;
		n = n > MS_TRACE_LONG ? MS_TRACE_LONG : n;
		n *= size;
	} else if (how->how == MS_TRACE_BY_RESULT) {
		n = ret > MS_TRACE_LONG ? MS_TRACE_LONG : ret * size;
	} else if (how->how == MS_TRACE_BY_WORD) {
		__u32 word = 0;

		if (how->of < MS_TRACE_ARGS)
			bpf_probe_read_user(&word, sizeof(word),
					    (void *)now->head.args[how->of & 7]);
		n = word;
	}
	if (n > most)
		n = most;
	if (slot < 2) {
		if (n > MS_TRACE_LONG)
			n = MS_TRACE_LONG;
		r = bpf_probe_read_user(to, n, (void *)from);
	} else {
		if (n > MS_TRACE_SHORT)
			n = MS_TRACE_SHORT;
		r = bpf_probe_read_user(to, n, (void *)from);
	}
	return r ? MS_TRACE_UNREAD : (int)n;
}

/* What a call's row says, into the thread's. Not static either. Returns 0. */
__noinline int trace_reads(__u32 at_exit, __s64 ret)
{
	struct ms_trace_now *now = own_row();
	const struct ms_trace_call *call = now ? call_of(now->head.nr) : NULL;

	if (!call)
		return 0;
	for (__u32 i = 0; i < MS_TRACE_READS; i++) {
		const struct ms_trace_read *how = &call->reads[i];

		if (how->how == MS_TRACE_NONE)
			continue;
		if (!at_exit && how->at_exit)
			continue;
		if (at_exit && !how->at_exit && now->head.len[i] != MS_TRACE_UNREAD &&
		    (i || !(now->head.flags & MS_TRACE_PARTLY)))
			continue;
		if (at_exit && how->at_exit && ret < 0)
			continue;
		now->head.len[i] = (__u16)one_read(now, how, i, ret < 0 ? 0 : (__u64)ret);
	}
	return 0;
}

/* --- records --- */

static __always_inline bool over_rate(void)
{
	__u64 window;

	if (!cfg_trace_most)
		return false;
	window = bpf_ktime_get_ns() >> WINDOW_SHIFT;
	if (window != trace_window) {
		trace_window = window;
		trace_in_window = 0;
	}
	/* Read, then added: Linux 5.10 has no atomic add that returns the old value. CPUs that read at the same
	   time may all pass, so a window may exceed the limit by one call per further CPU. */
	if (trace_in_window >= cfg_trace_most)
		return true;
	__sync_fetch_and_add(&trace_in_window, 1);
	return false;
}

static __always_inline void call_lost(enum stat_id stat)
{
	__sync_fetch_and_add(&trace_lost, 1);
	stat_inc(stat);
}

/* The head, and what was read, without gaps. */
static __noinline int call_send(struct ms_trace_now *now, struct ms_trace_now *out)
{
	__u32 at = 0;

	if (!now || !out)
		return 0;
	if (over_rate()) {
		call_lost(STAT_TRACE_OVER);
		return 0;
	}
	now->head.kind = MS_TRACE_CALL;
	now->head.lost = trace_lost;
	out->head = now->head;
	for (__u32 i = 0; i < MS_TRACE_READS; i++) {
		__u32 from =
			i < 2 ? i * MS_TRACE_LONG : 2 * MS_TRACE_LONG + (i - 2) * MS_TRACE_SHORT;
		__u32 n = now->head.len[i], most = i < 2 ? MS_TRACE_LONG : MS_TRACE_SHORT;

		if (n == MS_TRACE_UNREAD || !n)
			continue;
		if (n > most)
			n = most;
		if (at > from)
			at = from;
		bpf_probe_read_kernel(out->data + at, n, now->data + from);
		at += n;
	}
	if (at > MS_TRACE_DATA)
		at = MS_TRACE_DATA;
	if (cfg_trace_stacks && now->head.flags & MS_TRACE_STACK) {
		bpf_probe_read_kernel(out->data + at, sizeof(now->stack), &now->stack);
		at += sizeof(now->stack);
	}
	if (bpf_ringbuf_output(&trace_ring, out, sizeof(out->head) + at, trace_wake()))
		call_lost(STAT_TRACE_LOST);
	else
		stat_inc(STAT_TRACED);
	return 0;
}

/* Where the thread's call comes from. */
static __noinline int call_stack(void *ctx, struct ms_trace_now *now)
{
	struct stack_of of = { .source = MS_SYSCALLS, .slot = SCRATCH_ALLOC, .once = true };
	struct ms_hash user = {};
	struct ms_proc proc;

	if (!now)
		return 0;
	proc = now->head.proc;
	of.proc = &proc;
	of.as_gen = now->stack.as_gen;
	stack_capture(ctx, &of, &user);
	now->stack.user = user;
	now->head.flags |= MS_TRACE_STACK;
	return 0;
}

static __always_inline struct ms_trace_room *trace_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&trace_room, &zero);
}

static __always_inline struct ms_trace_now *row_of(struct ms_trace_room *s, __u64 task)
{
	struct ms_trace_now *now = bpf_map_lookup_elem(&trace_now, &task);

	if (now)
		return now;
	bpf_map_update_elem(&trace_now, &task, &s->fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&trace_now, &task);
}

SEC("raw_tp/sys_enter")
int on_trace_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), task;
	const struct pt_regs *regs = (void *)ctx->args[0];
	__u32 nr = (__u32)ctx->args[1];
	const struct ms_trace_call *call;
	struct ms_target *target;
	struct ms_trace_room *s;
	struct ms_trace_now *now;
	struct ms_proc proc;

	if (!target_wants(NULL, id >> 32, (__u32)id, &target, &proc))
		return 0;
	task = bpf_get_current_task();
	if (is_compat((void *)task))
		nr |= MS_SYSCALL_COMPAT;
	call = call_of(nr);
	s = trace_scratch();
	if (!call || !call->wanted || !s)
		return 0;
	now = row_of(s, task);
	if (!now) {
		call_lost(STAT_TRACE_LOST);
		return 0;
	}
	now->head.proc = proc;
	now->head.tid = (__u32)id;
	now->head.nr = nr;
	now->head.flags = 0;
	now->head.ret = 0;
	now->head.ns = 0;
	args_read(regs, now->head.args);
#if defined(__TARGET_ARCH_x86)
	now->head.args[5] = BPF_CORE_READ(regs, r9);
#else
	now->head.args[5] = BPF_CORE_READ(regs, regs[5]);
#endif
	for (int i = 0; i < MS_TRACE_READS; i++)
		now->head.len[i] = 0;
	for (int i = 0; i < 2; i++) {
		__u32 arg = call->files[i];

		now->head.files[i] = 0;
		if (arg && arg <= MS_TRACE_ARGS)
			now->head.files[i] =
				file_of_fd(&s->file, (__s32)now->head.args[(arg - 1) & 7]);
	}
	now->head.files[2] = 0;
	trace_reads(false, 0);
	now->head.begin_ns = bpf_ktime_get_ns();
	if (cfg_trace_stacks && (NR_IS_EXIT(nr) || NR_IS_EXEC(nr))) {
		now->stack.as_gen = target_as_gen(target);
		call_stack(ctx, now);
	}
	if (NR_IS_EXIT(nr)) {
		now->head.flags |= MS_TRACE_NO_RETURN;
		if (!cfg_trace_failed && !cfg_trace_min_ns)
			call_send(now, &s->out);
		bpf_map_delete_elem(&trace_now, &task);
	}
	return 0;
}

SEC("raw_tp/sys_exit")
int on_trace_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__s64 ret = (__s64)ctx->args[1];
	const struct ms_trace_call *call;
	const struct ms_target *target;
	struct ms_trace_now *now;
	struct ms_trace_room *s;
	__u64 task, ns;

	if (!gate_open)
		return 0;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!cfg_all && !target)
		return 0;
	ns = bpf_ktime_get_ns();
	task = bpf_get_current_task();
	now = bpf_map_lookup_elem(&trace_now, &task);
	s = trace_scratch();
	if (!now || !now->head.begin_ns || !s)
		return 0;
	call = call_of(now->head.nr);
	now->head.ns = ns - now->head.begin_ns;
	now->head.ret = ret;
	if (call && (!cfg_trace_failed || (ret < 0 && ret >= -ERRNO_MAX)) &&
	    now->head.ns >= cfg_trace_min_ns) {
		if (call->result_is_fd && ret >= 0)
			now->head.files[2] = file_of_fd(&s->file, (__s32)ret);
		trace_reads(true, ret);
		if (cfg_trace_stacks && !(now->head.flags & MS_TRACE_STACK)) {
			now->stack.as_gen = target_as_gen(target);
			call_stack(ctx, now);
		}
		call_send(now, &s->out);
	}
	now->head.begin_ns = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
