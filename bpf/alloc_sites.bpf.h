/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fate of allocations, added up by site (struct ms_alloc_site, abi.h).
 *
 * Order: a block enters the table before its site counts it as live, and before the caller gets its
 * pointer; a free takes it out of the table before the site counts the free. So no free precedes
 * its allocation, and a block whose record was reused for another process meanwhile is not counted
 * there.
 */
#ifndef MEMSCOPE_ALLOC_SITES_BPF_H
#define MEMSCOPE_ALLOC_SITES_BPF_H

#include "common.bpf.h"

/* Not inlined, like everything here that is used more than once or seldom: before 6.13 a chain of
 * calls has 512 bytes of stack. `root` 0: the record is a root itself. Returns 0 when there is no
 * room. */
static __noinline __u32 site_new(const struct ms_alloc_key *key, __u32 root)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	struct ms_alloc_site *site;
	__u32 ix = 0, *other;

	if (bpf_map_pop_elem(&alloc_free, &ix))
		return 0;
	site = bpf_map_lookup_elem(&alloc_sites, &ix);
	if (!site)
		return 0;
	site->root = root ? root : ix;
	site->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	site->key = *key;
	if (!bpf_map_update_elem(&alloc_index, key, &ix, BPF_NOEXIST))
		return ix;
	site->key.proc.tgid = 0;
	bpf_map_push_elem(&alloc_free, &ix, 0);
	other = bpf_map_lookup_elem(&alloc_index, key); /* another thread made it first */
	return other ? *other : 0;
}

static __noinline __u32 site_make(const struct ms_alloc_key *key)
{
	struct ms_alloc_key root_key = { .user = MS_ROOT_STACK };
	__u32 root, *found, ix;

	root_key.proc = key->proc;
	found = bpf_map_lookup_elem(&alloc_index, &root_key);
	root = found ? *found : site_new(&root_key, 0);
	if (!root)
		return 0;
	ix = site_new(key, root);
	if (ix)
		return ix;
	stat_inc(STAT_SITES_FULL);
	return root;
}

static __always_inline struct ms_alloc_site *site_at(__u32 ix)
{
	return ix ? bpf_map_lookup_elem(&alloc_sites, &ix) : NULL;
}

static __always_inline bool same_proc(const struct ms_proc *a, const struct ms_proc *b)
{
	return a->start_ns == b->start_ns && a->tgid == b->tgid && a->exec_id == b->exec_id;
}

/* Is this call's site also the thread's last one? Often it is. */
static __always_inline bool is_last_site(const struct ms_inflight *in, __u32 tid)
{
	const struct ms_alloc_site *site = site_at(in->site);

	return site && !site->closed && site->key.user.lo == in->user.lo &&
	       site->key.user.hi == in->user.hi && site->key.tid == tid &&
	       site->key.as_gen == in->as_gen && same_proc(&site->key.proc, &in->proc);
}

/* The site of the call in flight; 0: there is no room for one. */
static __always_inline __u32 site_index(struct ms_inflight *in, __u32 tid)
{
	struct ms_alloc_key key = {};
	__u32 *ix;

	if (is_last_site(in, tid))
		return in->site;
	key.proc = in->proc;
	key.user = in->user;
	key.tid = tid;
	key.as_gen = in->as_gen;
	ix = bpf_map_lookup_elem(&alloc_index, &key);
	in->site = ix ? *ix : site_make(&key);
	return in->site;
}

/* Called before a site changes: saves what it held at its process's peak. */
static __always_inline void site_note(struct ms_alloc_site *site, const struct ms_alloc_site *root)
{
	__u64 peaks = *(volatile const __u64 *)&root->peaks;

	if (site->peaks_seen == peaks)
		return;
	site->peak_objects = site->allocs - site->frees - site->cross_frees - site->untracked;
	site->peak_bytes =
		site->bytes - site->freed_bytes - site->cross_bytes - site->untracked_bytes;
	site->peaks_seen = peaks;
}

/*
 * More is live. With several threads the sum may include others' blocks; they were live all the
 * same.
 */
static __always_inline void root_live(struct ms_alloc_site *root, __u64 bytes, __u64 now_ns)
{
	__s64 live;

	__sync_fetch_and_add(&root->live, bytes);
	live = *(volatile __s64 *)&root->live;
	if (live <= root->highest)
		return;
	root->highest = live;
	root->highest_ns = now_ns;
	__sync_fetch_and_add(&root->peaks, 1);
}

/* Number of binary digits. */
static __always_inline __u32 width(__u64 v)
{
	__u32 n = 0;

	if (v >> 32) {
		n += 32;
		v >>= 32;
	}
	if (v >> 16) {
		n += 16;
		v >>= 16;
	}
	if (v >> 8) {
		n += 8;
		v >>= 8;
	}
	if (v >> 4) {
		n += 4;
		v >>= 4;
	}
	if (v >> 2) {
		n += 2;
		v >>= 2;
	}
	return n + (v > 1 ? 2 : (__u32)v);
}

static __always_inline void size_count(__u64 size)
{
	__u32 key = width((size ? size - 1 : 0) >> 3);
	__u64 *slot;

	if (key > MS_SIZE_CLASSES - 1)
		key = MS_SIZE_CLASSES - 1;
	slot = bpf_map_lookup_elem(&alloc_sizes, &key);
	if (slot)
		__sync_fetch_and_add(slot, 1); /* a uprobe program may preempt another */
}

static __noinline int site_allocated(const struct ms_block *block, __u32 tid, bool tracked)
{
	struct ms_alloc_site *site = site_at(block->site), *root = site ? site_at(site->root) : NULL;

	if (!root)
		return 0;
	size_count(block->size);
	site_note(site, root);
	if (site->key.tid == tid) {
		site->allocs++;
		site->bytes += block->size;
	} else {
		__sync_fetch_and_add(&site->allocs, 1);
		__sync_fetch_and_add(&site->bytes, block->size);
	}
	if (tracked) {
		root_live(root, block->size, block->born_ns);
	} else {
		__sync_fetch_and_add(&site->untracked, 1);
		__sync_fetch_and_add(&site->untracked_bytes, block->size);
	}
	return 0;
}

static __always_inline __u32 life_class(__u64 ns)
{
	__u64 limit = 10000;
	__u32 class = 0;

#pragma unroll
	for (int i = 0; i < MS_LIFE_CLASSES - 1; i++) {
		class += ns >= limit;
		limit *= 10;
	}
	return class;
}

/*
 * A block has left the table, freed by thread `tid` (0: unknown) of `proc`. `last`: it is the
 * thread's last allocation.
 */
static __noinline int site_freed(const struct ms_proc *proc, const struct ms_block *block, __u32 tid,
				 bool last)
{
	struct ms_alloc_site *site = site_at(block->site), *root = site ? site_at(site->root) : NULL;
	__u64 life = bpf_ktime_get_ns() - block->born_ns, size = block->size;

	if (!root || !same_proc(&site->key.proc, proc))
		return 0;
	site_note(site, root);
	if (site->key.tid == tid) {
		site->frees++;
		site->freed_bytes += size;
		site->temporary += last;
	} else {
		__sync_fetch_and_add(&site->cross_frees, 1);
		__sync_fetch_and_add(&site->cross_bytes, size);
	}
	__sync_fetch_and_add(&site->life_ns, life);
	__sync_fetch_and_add(&site->lives[life_class(life) & (MS_LIFE_CLASSES - 1)], 1);
	__sync_fetch_and_add(&root->live, -size);
	return 0;
}

#endif
