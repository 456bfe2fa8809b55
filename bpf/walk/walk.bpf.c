/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk_cfi.h in the kernel: how it reads memory and tables, and the two functions that make up
 * every walk.
 */
#include "walk/deferred.bpf.h"
#include "walk/unwind_cache.bpf.h"

#include "walk/walk_cfi.h"
#include "walk/walk_lang.h"

WALK_INLINE struct ms_walk *walk_of(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return NULL;
	WALK_OPAQUE(s); /* or clang 19 adds to it before it is known to be none */
	return &s->walk;
}

WALK_INLINE bool walk_read(struct ms_walk *w, void *dst, __u32 size, __u64 addr)
{
	(void)w;
	/* The size is never more than a window: stated for the verifier, hidden from clang. */
	WALK_OPAQUE(size);
	if (size > MS_WINDOW_BYTES)
		return false;
	return !bpf_probe_read_user(dst, size, (void *)addr);
}

WALK_INLINE const struct ms_pool_page *walk_pool_page(struct ms_walk *w, __u32 ix)
{
	(void)w;
	return bpf_map_lookup_elem(&unwind_pool, &ix);
}

WALK_INLINE const struct ms_table *walk_table(struct ms_walk *w, __u32 ix)
{
	(void)w;
	struct ms_table *t = bpf_map_lookup_elem(&unwind_tables, &ix);

	/* Once a second at most: other CPUs read the same line. */
	if (t && t->used != clock_s)
		t->used = clock_s;
	return t;
}

WALK_INLINE const struct ms_rule *walk_rule(struct ms_walk *w, __u32 ix)
{
	(void)w;
	return bpf_map_lookup_elem(&unwind_rules, &ix);
}

#define RETURNS_MAX 64 /* the kernel keeps no more per thread (MAX_URETPROBE_DEPTH) */

WALK_INLINE bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra)
{
	struct return_instance *ri = (void *)w->env;

	for (int i = 0; i < RETURNS_MAX && ri; i++) {
		if (BPF_CORE_READ(ri, stack) == at) {
			*ret_ra = BPF_CORE_READ(ri, orig_ret_vaddr);
			return true;
		}
		ri = BPF_CORE_READ(ri, next);
	}
	return false;
}

__noinline int walk_begin_lang(__u32 slot, __u64 base)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	const struct ms_lang_row *row;
	__u32 tgid;

	if (!s)
		return 0;
	tgid = s->proc.tgid;
	row = bpf_map_lookup_elem(&langs, &tgid);
	if (!row || row->start_ns != s->proc.start_ns || row->exec_id != s->proc.exec_id)
		return 0;
	s->walk.lang = *row;
	s->walk.thread_base = base;
	return 1;
}

__noinline int walk_take_current(__u32 slot, __u32 may_trap)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!s || !walk_regs(&s->walk, task, task_user_regs(task), may_trap, true))
		return 0;
	walk_take_lang(slot, task);
	return 1;
}

__noinline int walk_defer(__u32 slot, __u32 as_gen, __u32 source)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	return s ? deferred_send(s, (void *)bpf_get_current_task(), as_gen, source) : -1;
}

__noinline int walk_defer_begin(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	return s ? deferred_begin(s, (void *)bpf_get_current_task()) : -1;
}

/*
 * Flags for a new stack. What frames of a language refer to is read by user space, and may be freed soon (a module's
 * body runs once): it is woken for those, a hundred times a second at most.
 */
static __always_inline __u64 stack_wake(const struct stack_scratch *s)
{
	__u64 now_ns = s->rec.time_ns;

	if (s->rec.flags & MS_STACK_KERNEL || !s->walk.lang.lang || !s->walk.lang_begun ||
	    now_ns < lang_woken_ns + LANG_WAKE_NS)
		return events_wake();
	lang_woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

__noinline int walk_send(__u32 slot, __u32 n, __u32 lane)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	__u64 me = bpf_get_current_pid_tgid();
	__u32 len = sizeof(s->rec) + n * sizeof(__u64);
	__u8 one = 1;

	if (!s)
		return 0;
	s->sent = 1;
	if (lane == MS_LANE_IRQ ? bpf_map_lookup_elem(&irq_seen, &s->rec.hash)
				: bpf_map_lookup_elem(&seen, &s->rec.hash))
		return 0;
	s->rec.kind = MS_EV_STACK;
	s->rec.time_ns = bpf_ktime_get_ns();
	s->rec.tgid = me >> 32;
	s->rec.pad = 0;
	s->sent = 0;
	WALK_OPAQUE(len); /* the bound below is of this value, for the verifier */
	if (len > sizeof(s->rec) + MS_MAX_FRAMES * sizeof(__u64))
		return 0;
	if (bpf_ringbuf_output(&events, &s->rec, len, stack_wake(s))) {
		stat_inc(STAT_STACK_RING_FULL);
		return 0;
	}
	if (s->owner != me)
		return 0;
	s->sent = 1;
	stat_inc(STAT_STACK_SENT);
	if (lane == MS_LANE_IRQ)
		bpf_map_update_elem(&irq_seen, &s->rec.hash, &one, BPF_ANY);
	else
		bpf_map_update_elem(&seen, &s->rec.hash, &one, BPF_ANY);
	return 0;
}

static __always_inline void walk_store(struct stack_scratch *s, __u64 frame)
{
	s->frames[s->walk.n % MS_MAX_FRAMES] = frame;
	s->walk.n++;
	ms_hash_step(&s->hash, frame);
}

#define RUN_TURNS 4

/* The next frames of a run of a language, and the native frame behind it. As walk_one(). */
__noinline int walk_run(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	int step = LANG_NONE;

	if (!s)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < RUN_TURNS; i++) {
		if (s->walk.n >= MS_MAX_FRAMES - 1) {
			s->walk.verdict = MS_TRUNCATED;
			return 0;
		}
		step = walk_lang(slot);
		if (step == LANG_FRAME) {
			walk_store(s, s->walk.lang_words[0]);
			walk_store(s, s->walk.lang_words[1]);
		} else if (step != LANG_SKIP) {
			break;
		}
	}
	if (step == LANG_FRAME || step == LANG_SKIP)
		return 1;
	if (step == LANG_NOT_OURS) {
		s->walk.n = s->walk.lang_n;
		s->hash = s->lang_hash;
	}
	walk_store(s, s->walk.lang_native);
	s->walk.lang_running = 0;
	return !s->walk.lang_ended;
}

/* The present frame executes frames of a language, which come before it: walk_run(). 0: it does not. */
__noinline int walk_enter(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s || !lang_executes(&s->walk))
		return 0;
	walk_lang_enter(&s->walk);
	s->lang_hash = s->hash;
	return 1;
}

/* Stores the frame that was stepped from: w->lang_native, or the words that its language's rule has for it. */
__noinline int walk_stepped(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return 0;
	if (!s->walk.lang_words[0]) {
		if (!s->walk.lang_hidden)
			walk_store(s, s->walk.lang_native);
		return 0;
	}
	s->walk.lang_begun = 1;
	walk_store(s, s->walk.lang_words[0]);
	walk_store(s, s->walk.lang_words[1]);
	return 0;
}

/*
 * Stores the present frame, and steps to its caller; one that executes frames of a language is stored behind
 * those. 0: there is no caller, or no room for one. It is at the root of the deepest calls, and has little stack.
 */
__noinline int walk_one(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	bool enters;
	int more;

	if (!s || s->walk.n >= MS_MAX_FRAMES)
		return 0;
	if (s->walk.lang_running)
		return walk_run(slot);
	enters = ms_lang_has_chain(s->walk.lang.lang) && walk_enter(slot);
	if (!enters && s->walk.lang.lang && s->walk.n >= MS_MAX_FRAMES - 1)
		return 0; /* it may be two words */
	s->walk.lang_native = walk_frame(&s->walk);
	s->walk.lang_hidden = s->walk.managed == MS_MANAGED_HIDDEN;
	s->walk.lang_words[0] = 0;
	more = walk_step(&s->walk, slot);
	if (enters) {
		walk_lang_entered(&s->walk, more);
		return 1;
	}
	walk_stepped(slot);
	return more;
}

#define TURNS 64 /* of each of two loops, one around the other: verified one after the other */

__noinline int walk_some(__u32 slot)
{
	for (int i = 0; i < TURNS; i++)
		if (!walk_one(slot))
			return 0;
	return 1;
}

/* Is the walk that begins in `slot` cached? Then its hash is in the scratch. */
__noinline int walk_cached(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	const struct cached_walk *r;
	struct ms_walk *w;
	__u64 differs = 0;
	__u32 n, writes;

	if (!s)
		return false;
	w = &s->walk;
	s->caller = w->notes.at_entry ? w->window[0] : 0;
	r = unwind_cache_at(s, slot);
	if (!r || !w->window_len)
		return false;
	writes = *(volatile const __u32 *)&r->writes;
	if (*(volatile const __u32 *)&r->writers)
		return false;
	if (r->clock_s != s->clock_s || r->tgid != s->owner >> 32 ||
	    !same_beginning(&w->notes, &r->notes) || !same_space(&w->space, &r->space))
		return false;
	if (r->notes.bytes > w->window_len) {
		__u32 bytes = r->notes.bytes;

		if (!walk_read(w, w->window, bytes, w->window_at))
			return false;
		w->window_len = bytes;
	}
	if (r->notes.far && !walk_read(w, w->far, sizeof(w->far), w->window_at + r->notes.far))
		return false;
	n = r->notes.n;
	for (__u32 i = 0; i < MS_NOTES; i++) {
		__u32 at = r->notes.at[i];

		if (i >= n)
			break;
		WALK_OPAQUE(at);
		if (at >= MS_WINDOW_WORDS + MS_FAR_WORDS)
			return false;
		differs |= *(&w->window[0] + at) ^ r->notes.word[i];
	}
	if (differs)
		return false;
	s->hash = r->hash;
	return *(volatile const __u32 *)&r->writes == writes &&
	       !*(volatile const __u32 *)&r->writers;
}

__noinline int walk_remember(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	__u64 me = bpf_get_current_pid_tgid();
	struct cached_walk *r;

	if (!s || !unwind_cache_wanted(slot) || !s->walk.notes.kept ||
	    s->walk.verdict != MS_COMPLETE || !s->sent)
		return 0;
	r = unwind_cache_at(s, slot);
	if (!r)
		return 0;
	__sync_fetch_and_add(&r->writers, 1);
	if (*(volatile __u32 *)&r->writers == 1) {
		(*(volatile __u32 *)&r->writes)++;
		r->tgid = me >> 32;
		r->clock_s = s->clock_s;
		r->space = s->walk.space;
		r->hash = s->hash;
		r->notes = s->walk.notes;
		if (s->owner != me)
			r->tgid = 0; /* the scratch was taken over meanwhile */
	}
	__sync_fetch_and_add(&r->writers, -1);
	return 0;
}

__noinline int walk_stack(__u32 slot)
{
	bool cached = false;
	struct ms_hash hash;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return -1;
	walk_begin(&s->walk, slot, unwind_cache_wanted(slot));
	if (unwind_cache_wanted(slot) && walk_cached(slot)) {
		if (!cfg_unwind_cache_check) {
			s->walk.verdict = MS_COMPLETE;
			return WALK_CACHED;
		}
		cached = true;
		hash = s->hash;
	}
	s->hash.lo = cfg_seed_lo;
	s->hash.hi = cfg_seed_hi;
	for (int i = 0; i <= MS_MAX_STEPS / TURNS; i++)
		if (!walk_some(slot))
			break;
	ms_hash_end(&s->hash, s->walk.n);
	if (cfg_unwind_cache_check && cached) {
		stat_inc(STAT_STACK_CACHED);
		if (hash.lo != s->hash.lo || hash.hi != s->hash.hi ||
		    s->walk.verdict != MS_COMPLETE)
			stat_inc(STAT_UNWIND_CACHE_WRONG);
	}
	return 0;
}

/* Copies the next link of the chain. 0: that was all that can be. */
__noinline int walk_chain_one(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	struct lang_link link = {};
	__u64 at;
	__u32 n;

	if (!s)
		return 0;
	at = s->walk.lang_at;
	n = s->chain.n_links;
	if (!at || n >= MS_CHAIN_LINKS || !lang_chain_load(&s->walk, at, &link))
		return 0;
	s->walk.lang_at = link.previous;
	if (s->walk.lang.lang == MS_LANG_PERL && perl_is_nothing(&s->walk, &link))
		return 1;
	s->links[n % MS_CHAIN_LINKS] = (struct ms_chain_link){
		.at = at | (__u64)link.boundary << MS_CHAIN_SHIFT,
		.words = { s->walk.lang_words[0], s->walk.lang_words[1] },
	};
	s->chain.n_links = n + 1;
	return 1;
}

__noinline int walk_chain_some(__u32 slot)
{
	for (int i = 0; i < TURNS; i++)
		if (!walk_chain_one(slot))
			return 0;
	return 1;
}

__noinline int walk_chain(__u32 slot)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	__u64 state, now_ns, flags = BPF_RB_NO_WAKEUP;
	__u32 len;

	/* Of other languages all is on the stack. */
	if (!s || !ms_lang_has_chain(s->walk.lang.lang))
		return 0;
	s->chain.proc = s->proc;
	s->chain.kind = MS_EV_CHAIN;
	s->chain.n_links = 0;
	s->chain.lost = s->chain.pad = 0;
	s->chain.hash = s->hash;
	s->walk.lang_at = s->walk.lang_entry = s->walk.lang_after = s->walk.lang_info[0] = 0;
	if (!lang_thread(&s->walk, &state) || !lang_chain_begin(&s->walk, state))
		s->chain.lost = 1 + MS_LOST_STATE;
	s->chain.entry = s->walk.lang_entry;
	for (int i = 0; i < MS_CHAIN_LINKS / TURNS; i++)
		if (!walk_chain_some(slot))
			break;
	s->chain.next = s->walk.lang_at;
	len = sizeof(s->chain) + s->chain.n_links * sizeof(s->links[0]);
	WALK_OPAQUE(len); /* the bound below is of this value, for the verifier */
	if (len > sizeof(s->chain) + sizeof(s->links))
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (now_ns >= lang_woken_ns + LANG_WAKE_NS) {
		lang_woken_ns = now_ns;
		flags = BPF_RB_FORCE_WAKEUP;
	}
	if (bpf_ringbuf_output(&events, &s->chain, len, flags))
		stat_inc(STAT_CHAIN_RING_FULL);
	return 0;
}

#define HASH_TURNS 16

/* Adds the frames [from, n) to the hash, HASH_TURNS of them at most. */
__noinline int walk_hash_some(__u32 slot, __u32 from, __u32 n)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return -1;
	for (__u32 i = 0; i < HASH_TURNS; i++) {
		if (from + i >= n)
			break;
		ms_hash_step(&s->hash, s->frames[(from + i) % LIST_MAX]);
	}
	return 0;
}

__noinline int walk_hash_list(__u32 slot, __u32 n)
{
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return -1;
	s->hash.lo = cfg_seed_lo;
	s->hash.hi = cfg_seed_hi;
	for (__u32 from = 0; from < LIST_MAX; from += HASH_TURNS) {
		if (from >= n)
			break;
		walk_hash_some(slot, from, n);
	}
	ms_hash_end(&s->hash, n);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
