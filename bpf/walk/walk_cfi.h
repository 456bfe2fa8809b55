/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walker: from a thread's user registers to its whole stack, by the unwind tables of rows.h.
 * One source, compiled for the kernel (walk_cfi.bpf.h) and for the host (unwind/host_walk.c); the
 * includer says first how memory and tables are read:
 *
 *   struct ms_walk *walk_of(__u32 slot)                     NULL: no such walk
 *   bool walk_read(struct ms_walk *w, void *dst, __u32 size, __u64 addr)   user memory; false: not readable
 *   const struct ms_pool_page *walk_pool_page(struct ms_walk *w, __u32 ix)   NULL: no such page
 *   const struct ms_table *walk_table(struct ms_walk *w, __u32 ix)
 *   const struct ms_rule *walk_rule(struct ms_walk *w, __u32 ix)
 *   bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra)   see below
 *
 * and may define WALK_DIRECT where reading a word costs nothing: the stack is not copied then; WALK_NO_MANAGED where
 * frames of managed code are not walked.
 *
 * A frame is a pc and the registers that its function sees. The rule at the pc gives the CFA (sp
 * before the call); from the CFA follow the return address and the saved registers:
 *
 *        …            ┌────────────────┐
 *   CFA ────────────► │ caller's frame │
 *   CFA-8  (x86-64)   │ return address │   the next pc
 *   CFA-16 …          │ saved rbp, …   │   the registers of the next frame
 *   sp  ────────────► └────────────────┘
 *
 * A return address is looked up one byte before itself, inside the call: what follows a call that
 * never returns belongs to another row. The leaf, and the frame that a signal interrupted, are
 * looked up at their pc.
 *
 * The stack is copied in windows; words outside of them are read one by one. Copying everything at
 * once fails as a whole where it crosses the end of the mapping, and costs most where stacks are
 * short (0.2 ns a byte); a single word costs 50 ns.
 *
 * A stack is complete if every step was taken by a row, or by frame pointer in code known to keep
 * them, and it ended at a frame without a caller (MS_RULE_END). Frames after an unproven step are
 * kept, and the stack is MS_GUESSED.
 */
#ifndef MEMSCOPE_WALK_WALK_CFI_H
#define MEMSCOPE_WALK_WALK_CFI_H

#include "walk/walk.h"

#define WALK_INLINE static inline __attribute__((always_inline))
/*
 * Larger pieces are functions of their own, which the kernel's verifier checks once each and not on
 * every path that leads to them. Such a function may only take numbers: `slot` says whose walk it
 * is, arguments are passed in struct ms_walk.
 */
#ifdef __bpf__
#define WALK_FUNCTION __attribute__((noinline))
#else
#define WALK_FUNCTION static
#endif

#ifdef __clang__
#define WALK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define WALK_UNROLL
#endif

WALK_INLINE struct ms_walk *walk_of(__u32 slot);
WALK_INLINE bool walk_read(struct ms_walk *w, void *dst, __u32 size, __u64 addr);
WALK_INLINE const struct ms_pool_page *walk_pool_page(struct ms_walk *w, __u32 ix);
WALK_INLINE const struct ms_table *walk_table(struct ms_walk *w, __u32 ix);
WALK_INLINE const struct ms_rule *walk_rule(struct ms_walk *w, __u32 ix);
/* The return address that w->trampoline replaced at `at`: of the most recent probe there. */
WALK_INLINE bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra);

/* --- tables --- */

/* false: no such page. Continuing with an arbitrary word would add a path to verify, each time. */
WALK_INLINE bool walk_pool_word(struct ms_walk *w, __u32 at, __u32 *ret_word)
{
	const struct ms_pool_page *page = walk_pool_page(w, at / MS_POOL_PAGE_WORDS);

	if (!page)
		return false;
	*ret_word = page->word[at % MS_POOL_PAGE_WORDS];
	return true;
}

WALK_INLINE const struct ms_span *walk_span(struct ms_walk *w, __u32 at)
{
	const struct ms_pool_page *page = walk_pool_page(w, at / MS_POOL_PAGE_WORDS);

	/* Spans do not straddle pages of the pool: their first words are multiples of 8. */
	return page ? (const struct ms_span *)&page->word[at % MS_POOL_PAGE_WORDS & ~7u] : 0;
}

/* 1 if a < b, else 0, without a branch; both below 2^63. */
WALK_INLINE __u64 walk_less(__u64 a, __u64 b)
{
	__u64 less;

	WALK_OPAQUE(a); /* clang would compare two known short values, and branch */
	less = (a - b) >> 63;
	WALK_OPAQUE(less);
	return less;
}

/*
 * One turn of a binary search among `n` from `lo` on: the middle element (lo + n / 2) and all
 * before it are ruled out (`below`), or not. Without a branch: the verifier would follow both ways
 * through all later turns.
 */
WALK_INLINE void walk_narrow(__u32 *lo, __u32 *n, __u64 below)
{
	__u32 half = *n / 2, mask = 0 - (__u32)below;

	*lo += (half + 1) & mask;
	*n = (half & ~mask) | ((*n - half - 1) & mask);
}

#define MS_SPAN_STEPS 14 /* 2^13 = MS_MAX_SPANS */

/* The span of w->look into w->span; false: none covers it. */
WALK_FUNCTION int walk_find_span(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	const struct ms_span *s;
	__u32 lo = 0, n;
	__u64 pc;

	if (!w)
		return false;
	pc = w->look;
	n = w->space.n_spans;
	for (int i = 0; i < MS_SPAN_STEPS; i++) {
		if (!n)
			break;
		s = walk_span(w, w->space.spans + (lo + n / 2) * MS_SPAN_WORDS);
		if (!s)
			return false;
		walk_narrow(&lo, &n, walk_less(s->end, pc + 1));
	}
	if (lo >= w->space.n_spans)
		return false;
	s = walk_span(w, w->space.spans + lo * MS_SPAN_WORDS);
	if (!s || pc < s->start || pc >= s->end)
		return false;
	w->span = *s;
	w->has_rows = 0;
	if (s->kind == MS_SPAN_TABLE) {
		const struct ms_table *t = walk_table(w, s->table);

		if (!t || !t->n_pages) {
			w->span.kind = MS_SPAN_PENDING;
			return true;
		}
		w->table = *t;
		w->has_rows = 1;
	}
	return true;
}

#define MS_ROW_STEPS 11 /* of a page of the pool: 2^10                                     */
#define MS_ROW_PAGES 5  /* of the pool, that the rows of 4 KiB of code, at most 2^12, touch */

/* The memo for the rule at `vaddr`. */
WALK_INLINE struct ms_memo *walk_memo(struct ms_walk *w, __u64 vaddr)
{
	__u64 at = vaddr * 0x9e3779b97f4a7c15ULL >> (64 - MS_MEMO_BITS);

	WALK_OPAQUE(at); /* or clang drops the bound that the verifier needs */
	return &w->memo[at & ((1 << MS_MEMO_BITS) - 1)];
}

/*
 * The number of the rule in force at vaddr w->look of w->table, into w->rule: that of the last row
 * not after it, which may begin on an earlier page. The rows of a page of code are usually in one
 * page of the pool, which is looked up once and then searched.
 */
WALK_FUNCTION int walk_find_rule(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	const struct ms_pool_page *pool;
	struct ms_memo *memo;
	__u32 at, n, first, key, dir, word, off;
	__u64 page, of, serial;

	if (!w)
		return 0;
	w->rule = MS_RULE_IX_NONE;
	page = (w->look >> MS_ROW_PAGE_SHIFT) - w->table.first_page;
	if (page >= w->table.n_pages)
		return 0;
	memo = walk_memo(w, w->look);
	serial = MS_MEMO_KEY(w->table.serial);
	of = memo->of;
	if (of >> MS_ROW_RULE_BITS == w->look && (of ^ memo->check) == serial) {
		w->rule = of & MS_ROW_RULE_MASK;
		return 0;
	}
	key = ms_row(w->look, MS_ROW_RULE_MASK);
	first = w->table.rows;
	dir = w->table.dir + (__u32)page;
	if (!walk_pool_word(w, dir, &at) || !walk_pool_word(w, dir + 1, &n))
		return 0;
	n -= at;
	at += first;
	/* Whole pages of the pool that end before it. */
	for (int i = 0; i < MS_ROW_PAGES; i++) {
		__u32 rest = MS_POOL_PAGE_WORDS - at % MS_POOL_PAGE_WORDS;

		if (rest >= n || !walk_pool_word(w, at + rest, &word))
			break;
		if (word > key) {
			n = rest;
			break;
		}
		at += rest;
		n -= rest;
	}
	pool = walk_pool_page(w, at / MS_POOL_PAGE_WORDS);
	if (!pool)
		return 0;
	off = at % MS_POOL_PAGE_WORDS;
	at -= off;
	/* The first row after it. */
	for (int i = 0; i < MS_ROW_STEPS; i++) {
		if (!n)
			break;
		word = pool->word[(off + n / 2) % MS_POOL_PAGE_WORDS];
		walk_narrow(&off, &n, walk_less(word, key + 1ULL));
	}
	at += off;
	if (at <= first || !walk_pool_word(w, at - 1, &word))
		return 0;
	w->rule = word & MS_ROW_RULE_MASK;
	of = w->look << MS_ROW_RULE_BITS;
	if (of >> MS_ROW_RULE_BITS == w->look) {
		of |= w->rule;
		memo->of = of;
		memo->check = of ^ serial;
	}
	return 0;
}

/* --- the stack --- */

/*
 * Copies the stack from w->from on: w->window_next bytes, or to the end of the page. The next
 * window is a quarter larger: stacks of any depth take few copies, and little is copied in vain.
 */
WALK_FUNCTION int walk_window(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u32 len, rest;
	__u64 at;

	if (!w)
		return 0;
#ifdef WALK_DIRECT
	w->window_len = 0;
	return 0;
#endif
	len = w->window_next;
	w->window_next = (len + len / 4) & ~63u;
	if (w->window_next > MS_WINDOW_BYTES)
		w->window_next = MS_WINDOW_BYTES;
	at = w->from & ~7ULL;
	rest = MS_PAGE_BYTES - (__u32)(at & (MS_PAGE_BYTES - 1));
	w->window_at = at;
	w->window_len = len;
	if (walk_read(w, w->window, len, at))
		return 0;
	w->window_len = rest;
	if (rest >= len || !walk_read(w, w->window, rest, at))
		w->window_len = 0;
	return 0;
}

WALK_INLINE bool walk_word(struct ms_walk *w, __u64 addr, __u64 *ret_word)
{
	__u64 off = addr - w->window_at;

	if (off + 8 <= w->window_len && off < MS_WINDOW_BYTES && !(off & 7)) {
		off /= 8;
		WALK_OPAQUE(off); /* or clang drops the bound that the verifier needs */
		*ret_word = w->window[off % MS_WINDOW_WORDS];
		return true;
	}
	return walk_read(w, ret_word, sizeof(*ret_word), addr);
}

/* --- what a walk depends on --- */

/* The walk depends on something that cannot be noted. */
WALK_INLINE void walk_notes_drop(struct ms_walk *w)
{
	w->notes.kept = 0;
}

/* The walk depends on the word at `addr`. */
WALK_INLINE void walk_note(struct ms_walk *w, __u64 addr, __u64 word)
{
	struct ms_notes *notes = &w->notes;
	__u64 off = addr - (notes->sp & ~7ULL);
	__u32 i = notes->n;

	if (!notes->kept)
		return;
	if (off < MS_WINDOW_BYTES) {
		if (notes->bytes < off + 8)
			notes->bytes = (__u16)(off + 8);
	} else {
		if (!notes->far)
			notes->far = off - MS_FAR_BELOW;
		off -= notes->far;
		if (off >= MS_FAR_WORDS * 8)
			off = 1; /* nowhere */
		off += MS_WINDOW_BYTES;
	}
	if (off & 7 || i >= MS_NOTES) {
		notes->kept = 0;
		return;
	}
	notes->word[i] = word;
	notes->at[i] = (__u16)(off / 8);
	notes->n = i + 1;
}

/* The walk depends on a register's value. Registers other than the frame pointer matter seldom, and
 * are not followed. */
WALK_INLINE void walk_uses(struct ms_walk *w, __u32 reg)
{
	struct ms_notes *notes = &w->notes;

	if (reg == MS_WALK_SP)
		return;
	if (reg != MS_WALK_FP) {
		walk_notes_drop(w);
	} else if (notes->fp_at == MS_FP_BEGAN) {
		notes->needs_fp = 1;
	} else if (notes->fp_at != MS_FP_NOTED) {
		walk_note(w, notes->fp_at, w->regs[MS_WALK_FP]);
		notes->fp_at = MS_FP_NOTED;
	}
}

/*
 * Puts into w->ra the return address that a probe replaced. The kernel identifies a call by sp on
 * entry: x86-64 at the return address, arm64 at the CFA. Its list still has calls that were left
 * without a return (longjmp), and calls of another stack may be on either side of this one, so the
 * order of the list proves nothing.
 */
WALK_FUNCTION int walk_true_return(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 ra;

	if (w && walk_replaced(w, MS_WALK_ARM64 ? w->cfa : w->cfa - 8, &ra))
		w->ra = ra;
	return 0;
}

/* --- steps: true while there is a caller --- */

WALK_INLINE bool walk_end(struct ms_walk *w, __u8 verdict)
{
	w->verdict = verdict == MS_COMPLETE && w->guessed ? MS_GUESSED : verdict;
	return false;
}

/* On to the caller, with its sp in w->cfa and its pc in w->ra, read at w->ra_at (0: from a
 * register). */
WALK_INLINE bool walk_caller(struct ms_walk *w, __u32 slot)
{
	__u64 ra;

#if MS_WALK_ARM64
	w->ra &= (1ULL << 48) - 1; /* pointer authentication code */
#endif
	if (w->trampoline && w->ra == w->trampoline) {
		walk_notes_drop(w);
		walk_true_return(slot);
	}
	ra = w->ra;
	w->regs[MS_WALK_SP] = w->cfa;
	w->pc = ra;
	w->exact = 0;
	/* Outermost frames that CFI does not mark often have a return address of 0: Ruby puts one below each of its fibers
	 * (coroutine_initialize()), where the fiber's frames end as well. */
	if (!ra && w->lang.lang == MS_LANG_RUBY && w->lang_begun && !w->lang_at && !w->lang_lost)
		return walk_end(w, MS_COMPLETE);
	return ra < MS_PAGE_BYTES || ra >= MS_USER_TOP ? walk_end(w, MS_GUESSED) : true;
}

/*
 * Code without rows: by its frame pointer. Where the thread was entering or leaving a function
 * (x86-64: at its push, its mov, its ret), the frame pointer is still, or again, the caller's.
 */
WALK_FUNCTION int walk_by_fp(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 fp, sp;

	if (!w)
		return false;
	fp = w->regs[MS_WALK_FP];
	sp = w->regs[MS_WALK_SP];
	if (!(w->known & 1u << MS_WALK_FP))
		return walk_end(w, MS_GUESSED);
	if (w->exact)
		walk_notes_drop(w); /* what the code is */
	walk_uses(w, MS_WALK_FP);
	w->known = 1u << MS_WALK_FP | 1u << MS_WALK_SP;
#if !MS_WALK_ARM64
	__u64 saved;
	__u32 code = 0;

	if (w->exact && walk_read(w, &code, sizeof(code), w->pc)) {
		__u8 op = (__u8)code;
		bool pushed = (code & 0xffffff) == 0xe58948; /* mov %rsp,%rbp */

		if (op == 0x55 || op == 0xc3 || op == 0xc2 || pushed) {
			if (pushed && walk_word(w, sp, &saved))
				w->regs[MS_WALK_FP] = saved;
			w->cfa = sp + (pushed ? 16 : 8);
			w->ra_at = w->cfa - 8;
			if (!walk_word(w, w->ra_at, &w->ra))
				return walk_end(w, MS_UNREADABLE);
			return walk_caller(w, slot);
		}
	}
#endif
	if (fp < sp || fp & 7)
		return walk_end(w, MS_GUESSED);
	w->cfa = fp + 16;
	w->ra_at = fp + 8;
	if (w->cfa > w->window_at + w->window_len) {
		w->from = fp;
		walk_window(slot);
	}
	if (!walk_word(w, fp, &w->regs[MS_WALK_FP]) || !walk_word(w, w->ra_at, &w->ra))
		return walk_end(w, MS_UNREADABLE);
	w->notes.fp_at = fp;
	walk_note(w, w->ra_at, w->ra);
	return walk_caller(w, slot);
}

/*
 * A signal handler's return: the kernel has saved all registers on the stack at w->cfa (x86-64:
 * struct sigcontext of asm/sigcontext.h, r8 first, rip 17th; arm64: fault address, x0 … x30, sp,
 * pc).
 */
WALK_FUNCTION int walk_signal(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 *s;

	if (!w)
		return false;
	walk_notes_drop(w);
	s = w->signal;
	if (!walk_read(w, s, sizeof(w->signal), w->cfa))
		return walk_end(w, MS_UNREADABLE);
#if MS_WALK_ARM64
	for (int i = 0; i < 32; i++)
		w->regs[i] = s[i + 1];
	w->known = 0xffffffff;
	w->pc = s[33];
#else
	for (int i = 0; i < 8; i++)
		w->regs[8 + i] = s[i];
	w->regs[5] = s[8];  /* rdi */
	w->regs[4] = s[9];  /* rsi */
	w->regs[6] = s[10]; /* rbp */
	w->regs[3] = s[11]; /* rbx */
	w->regs[1] = s[12]; /* rdx */
	w->regs[0] = s[13]; /* rax */
	w->regs[2] = s[14]; /* rcx */
	w->regs[7] = s[15]; /* rsp */
	w->known = 0xffff;
	w->pc = s[16];
#endif
	w->exact = 1;
	return w->pc < MS_PAGE_BYTES || w->pc >= MS_USER_TOP ? walk_end(w, MS_GUESSED) : true;
}

/*
 * Restores the caller's saved registers. `base`: the value of rule->base_reg. An unreadable slot
 * costs the register and not the frame: few are ever needed. A slot below sp has been restored
 * already (compilers do not say so in an epilogue), or is in the red zone: a copy of a stack ends
 * at sp, and then the register is assumed to be the caller's.
 */
WALK_INLINE void walk_restore(struct ms_walk *w, const struct ms_rule *rule, __u64 cfa, __u64 base,
			      __u64 sp)
{
	static const __u8 numbers[MS_WALK_N_SAVED] = {
#if MS_WALK_ARM64
		19,
		20,
		21,
		22,
		23,
		24,
		25,
		26,
		27,
		28,
		29,
		30
#else
		MS_X86_RBX,
		MS_X86_RBP,
		12,
		13,
		14,
		15
#endif
	};

	WALK_UNROLL
	for (int i = 0; i < MS_WALK_N_SAVED; i++) {
		bool from_reg = rule->from_reg >> i & 1;
		__s64 off = rule->save[i];
		__u64 at = (from_reg ? base : cfa) + (__u64)off, saved;

		if (!off && !from_reg)
			continue;
		if (walk_word(w, at, &saved)) {
			w->regs[numbers[i]] = saved;
			w->known |= 1u << numbers[i];
			if (numbers[i] == MS_WALK_FP)
				w->notes.fp_at = at;
		} else {
			if (numbers[i] == MS_WALK_FP)
				walk_notes_drop(w);
			if (at >= sp)
				w->known &= ~(1u << numbers[i]);
		}
	}
	if (rule->lost) {
		WALK_UNROLL
		for (int i = 0; i < MS_WALK_N_SAVED; i++)
			w->known &= ~((__u32)(rule->lost >> i & 1) << numbers[i]);
	}
}

/* By the rule of number w->rule, of one of the kinds that have a CFA. */
WALK_FUNCTION int walk_by_rule(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	const struct ms_rule *rule;
	__u64 sp, cfa, base;
	__u32 reg, ra_reg;

	if (!w)
		return false;
	rule = walk_rule(w, w->rule);
	if (!rule)
		return walk_end(w, MS_NO_TABLE);
	sp = w->regs[MS_WALK_SP];
	reg = rule->reg % MS_N_REGS;
	ra_reg = rule->ra_reg % MS_N_REGS;
	if (!(w->known >> reg & 1))
		return walk_end(w, MS_UNREADABLE);
	walk_uses(w, reg);
	cfa = w->regs[reg] + (__u64)(__s64)rule->off;
	if (rule->kind == MS_RULE_DEREF) {
		base = cfa;
		if (!walk_word(w, base, &cfa))
			return walk_end(w, MS_UNREADABLE);
		walk_note(w, base, cfa);
		cfa += (__u64)(__s64)rule->off2;
	} else if (rule->kind == MS_RULE_PLT && (w->pc & 15) >= (__u32)rule->off2) {
		cfa += 8;
	}
	w->cfa = cfa;
	if (rule->kind == MS_RULE_SIGNAL)
		return walk_signal(slot);
	/* A frame lies above its callee's; otherwise it is damaged, or the walk would loop. Equal:
	 * a leaf that keeps its return address in a register. */
	if (reg == MS_WALK_SP && rule->kind != MS_RULE_DEREF &&
	    (cfa < sp || (cfa == sp && !(rule->flags & MS_RULE_RA_REG))))
		return walk_end(w, MS_GUESSED);
	if (cfa > w->window_at + w->window_len || cfa < w->window_at) {
		w->from = sp;
		if (cfa - sp >= MS_WINDOW_FIRST / 2) {
			w->from = cfa - MS_WINDOW_FIRST / 4; /* what is saved is near the CFA */
			w->window_next = MS_WINDOW_FIRST;
		}
		walk_window(slot);
	}
	base = w->regs[rule->base_reg % MS_N_REGS];
	if (rule->from_reg || rule->flags & MS_RULE_RA_BASE)
		walk_uses(w, rule->base_reg % MS_N_REGS);
	if (rule->flags & MS_RULE_RA_REG) {
		if (!(w->known >> ra_reg & 1))
			return walk_end(w, MS_UNREADABLE);
		walk_notes_drop(w);
		w->ra = w->regs[ra_reg];
		w->ra_at = 0;
	} else {
		w->ra_at =
			(rule->flags & MS_RULE_RA_BASE ? base : cfa) + (__u64)(__s64)rule->ra_off;
		if (!walk_word(w, w->ra_at, &w->ra))
			return walk_end(w, MS_UNREADABLE);
		walk_note(w, w->ra_at, w->ra);
	}
	walk_restore(w, rule, cfa, base, sp);
	w->known &= MS_WALK_KEPT;
	return walk_caller(w, slot);
}

/* From a function's entry, without its rules: the call has just put the return address on the
 * stack. */
WALK_INLINE bool walk_from_entry(struct ms_walk *w, __u32 slot)
{
	w->at_entry = 0;
	w->cfa = w->regs[MS_WALK_SP];
	w->ra_at = 0;
#if MS_WALK_ARM64
	walk_notes_drop(w);
	w->ra = w->regs[30];
#else
	w->ra_at = w->cfa;
	w->cfa += 8;
	if (!walk_word(w, w->ra_at, &w->ra))
		return walk_end(w, MS_UNREADABLE);
	walk_note(w, w->ra_at, w->ra);
#endif
	w->known &= MS_WALK_KEPT;
	return walk_caller(w, slot);
}

/*
 * Managed code: of a language whose rule leads to its callers (walk_lang.h). walk_is_managed(): it is known to be that
 * without a look at tables.
 */
enum walk_managed_step {
	MANAGED_NOT_ITS, /* it is not that, and nothing has changed: go on as with any code */
	MANAGED_CALLER,  /* at its caller */
	MANAGED_END,     /* w->verdict */
};
#ifdef WALK_NO_MANAGED
#define walk_is_managed(w) false
#define walk_by_lang(slot) MANAGED_NOT_ITS
#else
WALK_INLINE bool walk_is_managed(const struct ms_walk *w);
WALK_INLINE int walk_by_lang(__u32 slot);
#endif

/* Code that no row describes; `proven`: it keeps frame pointers. */
WALK_INLINE bool walk_without_rows(struct ms_walk *w, __u32 slot, bool proven)
{
	int step;

	w->keeps_fp = proven;
	step = w->lang.lang ? walk_by_lang(slot) : MANAGED_NOT_ITS;
	if (step != MANAGED_NOT_ITS)
		return step == MANAGED_CALLER;
	w->guessed |= !proven;
	return walk_by_fp(slot);
}

/* One frame outwards. false: the walk has ended, w->verdict says how. */
WALK_INLINE bool walk_step(struct ms_walk *w, __u32 slot)
{
	__u64 pc = w->exact ? w->pc : w->pc - 1;
	const struct ms_rule *rule;

	if (w->at_entry)
		return walk_from_entry(w, slot);
	if (walk_is_managed(w))
		return walk_by_lang(slot) == MANAGED_CALLER;
	if (pc < w->span.start || pc >= w->span.end) {
		w->look = pc;
		if (!walk_find_span(slot)) {
			w->span.start = w->span.end = 0;
			return walk_end(w, w->guessed ? MS_GUESSED : MS_NO_TABLE);
		}
	}
	if (w->span.kind == MS_SPAN_PENDING) {
		w->span.start = w->span.end = 0;
		return walk_end(w, MS_NO_TABLE);
	}
	if (!w->has_rows)
		return walk_without_rows(w, slot, w->span.kind == MS_SPAN_FP);
	w->look = pc - w->span.bias;
	walk_find_rule(slot);
	rule = walk_rule(w, w->rule);
	if (!rule)
		return walk_end(w, MS_NO_TABLE);
	switch (rule->kind) {
	case MS_RULE_END:
		return walk_end(w, MS_COMPLETE);
	case MS_RULE_NONE:
	case MS_RULE_BAD:
		return walk_without_rows(w, slot, false);
	case MS_RULE_FP:
		return walk_without_rows(w, slot, true);
	default:
		return walk_by_rule(slot);
	}
}

/* The word of a stack record for the present frame. */
WALK_INLINE __u64 walk_frame(const struct ms_walk *w)
{
	return w->pc | (w->exact && w->n ? MS_FRAME_EXACT << MS_FRAME_TAG_SHIFT : 0);
}

/* Before the first frame: regs[], pc, space and trampoline are set. `noting`: keep notes. */
WALK_INLINE void walk_begin(struct ms_walk *w, __u32 slot, bool noting)
{
	w->known = MS_WALK_ARM64 ? 0xffffffff : 0xffff;
	w->n = 0;
	w->exact = 1;
	w->guessed = 0;
	w->verdict = MS_TRUNCATED;
	w->span.start = w->span.end = 0;
	w->window_next = MS_WINDOW_FIRST;
	w->from = w->regs[MS_WALK_SP];
	walk_window(slot);
	w->notes.pc = w->pc;
	w->notes.sp = w->from;
	w->notes.fp = w->regs[MS_WALK_FP];
	w->notes.trampoline = w->trampoline;
	w->notes.at_entry = w->at_entry;
	w->notes.fp_at = MS_FP_BEGAN;
	w->notes.far = 0;
	w->notes.n = 0;
	w->notes.bytes = 0;
	w->notes.needs_fp = 0;
	w->notes.kept = noting;
	w->lang_at = w->lang_entry = w->lang_after = 0;
	w->blob_len = 0;
	w->lang_begun = w->lang_running = w->lang_short = w->lang_lost = w->lang_nested = w->lang_inner = 0;
	w->managed = MS_MANAGED_NO;
	w->lang_maps[0] = w->lang_maps[1] = 0;
}

#endif
