/*
 * Labels that a program sets itself, of what it does for whom: Go's pprof labels. A goroutine has the address of its set
 * of labels, which never changes once it is there; user space reads the set soon after it is first seen, and knows by
 * its cookie whether it still is the same. Sets are numbered by address and cookie.
 *
 *   thread base + tls ─► g ─► m ─► curg ─► labels ─► *labelMap ─► a map: count, flags, hash seed …
 */
#ifndef MEMSCOPE_LABELS_BPF_H
#define MEMSCOPE_LABELS_BPF_H

#include "common.bpf.h"
#include "stack.bpf.h"

static __always_inline bool read_word(__u64 *ret, __u64 addr)
{
	return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr) && *ret;
}

/* Says once what a number stands for. As a slot of the array is overwritten without a lock, it may be said again. */
static __always_inline void labels_tell(const struct ms_proc *proc, __u32 set, __u64 at,
					__u64 cookie)
{
	__u32 slot = set % N_LABELS_SENT;
	__u64 me = (__u64)proc->tgid << 32 | set, *sent = bpf_map_lookup_elem(&labels_sent, &slot);
	struct ms_labels_rec rec = {
		.kind = MS_EV_LABELS, .set = set, .proc = *proc, .at = at, .cookie = cookie
	};

	if (!sent || *sent == me)
		return;
	if (bpf_ringbuf_output(&events, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		stat_inc(STAT_LABELS_LOST);
	else
		*sent = me;
}

/* The labels of the current task, whose process is `proc`; 0: it has none. */
static __noinline __u32 labels_now(const struct ms_proc *proc)
{
	const struct ms_go *go;
	__u64 at, cookie[2];
	__u32 tgid, set;

	if (!go_processes || !proc)
		return 0;
	tgid = proc->tgid;
	go = bpf_map_lookup_elem(&go_runtimes, &tgid);
	if (!go || go->start_ns != proc->start_ns || go->exec_id != proc->exec_id)
		return 0;
	at = task_thread_base((void *)bpf_get_current_task()) + (__s64)go->tls;
	if (!read_word(&at, at) || !read_word(&at, at + go->g_m) ||
	    !read_word(&at, at + go->m_curg) || !read_word(&at, at + go->g_labels) ||
	    !read_word(&at, at))
		return 0;
	if (bpf_probe_read_user(cookie, sizeof(cookie), (void *)at))
		return 0;
	cookie[1] &= ~0xffULL; /* flags, which change */
	cookie[0] = (cookie[0] ^ cookie[1] << 7) * 0x9e3779b97f4a7c15ULL;
	set = (__u32)((at ^ cookie[0]) * 0xc2b2ae3d27d4eb4fULL >> 32) | 1;
	labels_tell(proc, set, at, cookie[1]);
	return set;
}

#endif
