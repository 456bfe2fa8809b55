/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that a program sets itself, of what it does for whom. Sets of labels have numbers, by what they are; user space gets
 * each once.
 *
 * Go's pprof labels: a goroutine has the address of its set of labels, which never changes once it is there; user space reads
 * the set soon after it is first seen, and knows by its cookie whether it still is the same. Numbered by address and cookie.
 *
 *   thread base + tls ─► g ─► m ─► curg ─► labels ─► *labelMap ─► a map: count, flags, hash seed …
 *
 * OpenTelemetry's thread context (user/lang/otel.h): a thread-local word points to a record, which the thread itself changes, so it
 * is read here, while the thread is interrupted. Numbered by its bytes.
 *
 *   thread base + off                 ─► record: trace:16 span:8 valid:1 flags:1 size:2 attributes:size
 *   dtv[module] + off, a library's     ─┘
 *
 * A number has 31 bits: of 8,192 sets in a run, two have the same one with a probability of 1.6 %.
 */
#ifndef MEMSCOPE_LABELS_BPF_H
#define MEMSCOPE_LABELS_BPF_H

#include "common.bpf.h"
#include "stack.bpf.h"

static __always_inline bool read_word(__u64 *ret, __u64 addr)
{
	return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr) && *ret;
}

/* Was this set sent? As a slot of the array is overwritten without a lock, it may be sent again. */
static __always_inline __u64 *labels_slot(const struct ms_proc *proc, __u32 set, __u64 *ret_me)
{
	__u32 slot = set % N_LABELS_SENT;
	__u64 *sent = bpf_map_lookup_elem(&labels_sent, &slot);

	*ret_me = (__u64)proc->tgid << 32 | set;
	return sent && *sent != *ret_me ? sent : NULL;
}

static __always_inline __u32 labels_of_go(const struct ms_proc *proc, const struct ms_go *go,
					  __u64 base)
{
	struct ms_labels_rec rec = { .kind = MS_EV_LABELS, .proc = *proc };
	__u64 at = base + (__s64)go->tls, cookie[2], me, *slot;

	if (!read_word(&at, at) || !read_word(&at, at + go->g_m) ||
	    !read_word(&at, at + go->m_curg) || !read_word(&at, at + go->g_labels) ||
	    !read_word(&at, at))
		return 0;
	if (bpf_probe_read_user(cookie, sizeof(cookie), (void *)at))
		return 0;
	cookie[1] &= ~0xffULL; /* flags, which change */
	cookie[0] = (cookie[0] ^ cookie[1] << 7) * 0x9e3779b97f4a7c15ULL;
	rec.set = (__u32)((at ^ cookie[0]) * 0xc2b2ae3d27d4eb4fULL >> 32) | 1;
	rec.at = at;
	rec.cookie = cookie[1];
	slot = labels_slot(proc, rec.set, &me);
	if (slot && bpf_ringbuf_output(&events, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		stat_inc(STAT_LABELS_LOST);
	else if (slot)
		*slot = me;
	return rec.set;
}

/* The address of the record; 0: the thread has none now. */
static __always_inline __u64 context_at(const struct ms_otel *otel, __u64 base)
{
	__u64 at = base, dtv, last;

	if (otel->module) {
		if (!read_word(&dtv, base + (__s64)otel->dtv) ||
		    !read_word(&last, dtv + (__s64)otel->dtv_last) || last < otel->module ||
		    !read_word(&at, dtv + (__u64)otel->module * otel->dtv_bytes) ||
		    at == ~0ULL) /* glibc: the thread has no block of it yet */
			return 0;
	}
	return read_word(&at, at + otel->off) ? at : 0;
}

/* The number of rec->bytes, of which the first rec->len count. */
static __always_inline __u32 context_number(struct ms_context_rec *rec)
{
	__u64 *words = (__u64 *)rec->bytes, h = 0x9e3779b97f4a7c15ULL;
	__u32 len = rec->len, last = len / 8;

	if (last < MS_CONTEXT_BYTES / 8 && len % 8)
		words[last] &= (1ULL << len % 8 * 8) - 1;
	for (__u32 i = 0; i < MS_CONTEXT_BYTES / 8 && i * 8 < len; i++) {
		h = (h ^ words[i]) * 0xc2b2ae3d27d4eb4fULL;
		h ^= h >> 32;
	}
	return (__u32)h | 1;
}

static __always_inline bool context_read(struct ms_context_rec *rec, __u64 at)
{
	__u16 size;

	if (bpf_probe_read_user(rec->bytes, MS_CONTEXT_HEAD, (void *)at)) {
		stat_inc(STAT_LABELS_UNREADABLE);
		return false;
	}
	if (rec->bytes[24] != 1) /* it is being changed, or is of none */
		return false;
	size = *(__u16 *)(rec->bytes + 26);
	rec->cut = size > MS_CONTEXT_BYTES - MS_CONTEXT_HEAD;
	if (rec->cut)
		size = MS_CONTEXT_BYTES - MS_CONTEXT_HEAD;
	rec->len = MS_CONTEXT_HEAD + size;
	rec->bytes[24] = rec->bytes[25] = 0; /* flags make no other set */
	if (bpf_probe_read_user(rec->bytes + MS_CONTEXT_HEAD, size, (void *)(at + MS_CONTEXT_HEAD))) {
		stat_inc(STAT_LABELS_UNREADABLE);
		return false;
	}
	return true;
}

static __always_inline __u32 labels_of_otel(const struct ms_proc *proc, const struct ms_otel *otel,
					    __u64 base, __u32 room)
{
	struct ms_context_rec *rec = bpf_map_lookup_elem(&context_rooms, &room);
	__u64 at = context_at(otel, base), me, *slot;
	__u32 len;

	if (!rec || !at || at & 1 || !context_read(rec, at))
		return 0;
	if (!(otel->ids & 1 << (room == SCRATCH_SWITCH)))
		__builtin_memset(rec->bytes, 0, 24);
	if (rec->len == MS_CONTEXT_HEAD && !*(__u64 *)(rec->bytes + 16))
		return 0;
	rec->kind = MS_EV_CONTEXT;
	rec->proc = *proc;
	rec->of_wait = room == SCRATCH_SWITCH;
	rec->set = context_number(rec);
	slot = labels_slot(proc, rec->set, &me);
	if (!slot)
		return rec->set;
	len = rec->len;
	if (len > MS_CONTEXT_BYTES)
		return 0;
	if (bpf_ringbuf_output(&events, rec, __builtin_offsetof(struct ms_context_rec, bytes) + len,
			       0))
		stat_inc(STAT_LABELS_LOST);
	else
		*slot = me;
	return rec->set;
}

/* The labels of the current task, whose process is `proc`; 0: it has none. `room`: SCRATCH_CPU or SCRATCH_SWITCH. */
static __noinline __u32 labels_now(const struct ms_proc *proc, __u32 room)
{
	const struct ms_label_source *from;
	__u64 base;
	__u32 tgid;

	if (!has_label_sources || !proc)
		return 0;
	tgid = proc->tgid;
	from = bpf_map_lookup_elem(&label_sources, &tgid);
	if (!from || from->start_ns != proc->start_ns || from->exec_id != proc->exec_id)
		return 0;
	base = task_thread_base((void *)bpf_get_current_task());
	return from->kind == MS_LABELS_GO ? labels_of_go(proc, &from->go, base) :
					    labels_of_otel(proc, &from->otel, base, room);
}

#endif
