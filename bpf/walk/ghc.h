/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Haskell's frames (GHC 8.10 to 9.12, x86-64), in a walk (walk_lang.h). Sources: GHC's rts/include/rts/storage/
 * {Closures,InfoTables,ClosureTypes,TSO}.h, rts/StgCRun.c; the offsets are in struct ms_ghc.
 *
 * Haskell code keeps its stack in the heap, in chunks, with Sp in rbp, while rsp stays where StgRun() has left it:
 *
 *   C stack                                   Haskell stack (StgStack)
 *   rsp ─► room for spilled registers         Sp ─► return address, locals
 *          registers saved by StgRun()              return address, locals      ⋮
 *          return address into the scheduler        underflow frame ─► the next chunk's sp
 *          schedule(), … main()                     …  stop frame
 *
 * A frame's first word is the address of the code that it returns to, and directly before that is the code's info
 * table, which says how large the frame is:
 *
 *   code - 16   layout:8    size in words:6 bits and their bitmap; of RET_BIG: distance to a larger bitmap
 *   code - 8    type:4      enum ghc_type
 *   code - 4    srt:4
 *
 * So each step is proven: an address in executable memory, with an info table of a return frame before it. What
 * calls C does it on the C stack: a native walk that comes to Haskell code goes on with Haskell's frames, and behind
 * the stop frame with what called StgRun(). The garbage collector and the scheduler run when Haskell code has
 * returned, and have none below them.
 */
#ifndef MEMSCOPE_WALK_GHC_H
#define MEMSCOPE_WALK_GHC_H

#if !MS_WALK_ARM64

/* ClosureTypes.h: those of frames; the numbers are the same in all versions from 8.10 on. */
enum ghc_type {
	GHC_FUN = 8,
	GHC_THUNK_STATIC = 21,
	GHC_RET_BCO = 29,
	GHC_RET_SMALL,
	GHC_RET_BIG,
	GHC_RET_FUN,
	GHC_UPDATE_FRAME,
	GHC_CATCH_FRAME,
	GHC_UNDERFLOW_FRAME,
	GHC_STOP_FRAME,
	GHC_ATOMICALLY_FRAME = 55,
	GHC_CATCH_RETRY_FRAME,
	GHC_CATCH_STM_FRAME,
	GHC_LAST = 64, /* and all others are not larger */
};

#define GHC_SIZE_BITS     6
#define GHC_SIZE_MASK     ((1u << GHC_SIZE_BITS) - 1)
#define GHC_INFO_BYTES    16
#define GHC_BCO_SIZE      40 /* of a BCO: how many words the frame has behind the pointer to it */
#define GHC_STACK_ARGS    8  /* words of arguments, and of Sp moved before its frame is written, that are passed over */
#define GHC_WORDS_MAX     4096 /* of a frame: a chunk has 32 KiB, of which few frames take more than 100 bytes */
#define GHC_EQUAL_MAX     64 /* frames of one return address that are recorded, one behind the other */
#define GHC_CALLS_MAX     8  /* foreign calls of one capability that are gone through */
#define GHC_RUN_SLACK     8  /* words of the C stack by which Haskell code may have moved rsp: arguments of C functions */
#define GHC_RUN_REGS      6
#define GHC_SAME_PARTS    4  /* of code, 120 bytes each, that are looked at for info tables */
#define GHC_SAME_BYTES    (GHC_SAME_PARTS * (MS_LANG_BYTES - 8))

/* Of an InCall, which is a thread's entry into Haskell, and of a Capability: the same since 7.0. */
#define GHC_CALL_TSO  8
#define GHC_CALL_TASK 40
#define GHC_CALL_NEXT 64
#define GHC_CAP_REG   24 /* its StgRegTable */

#define GHC_R13 13
#define GHC_RBP MS_X86_RBP

WALK_INLINE bool ghc_is_frame(__u32 type)
{
	return (type >= GHC_RET_BCO && type <= GHC_STOP_FRAME) ||
	       (type >= GHC_ATOMICALLY_FRAME && type <= GHC_CATCH_STM_FRAME);
}

/*
 * Is there a return frame's code at `at`? Then w->lang_info is its info table. The address of code is checked by
 * the spans, which are of what can be executed: numbers in the heap may look like any info table.
 */
WALK_INLINE bool ghc_code(struct ms_walk *w, __u32 slot, __u64 at)
{
	if (at & 7 || at < MS_PAGE_BYTES || at >= MS_USER_TOP)
		return false;
	if (at < w->span.start || at >= w->span.end) {
		w->look = at;
		if (!walk_find_span(slot)) {
			w->span.start = w->span.end = 0;
			return false;
		}
	}
	return walk_read(w, w->lang_info, sizeof(w->lang_info), at - GHC_INFO_BYTES) &&
	       ghc_is_frame((__u32)w->lang_info[1]);
}

/* Could these two words be an info table? Code hardly has two small numbers there. */
WALK_INLINE bool ghc_is_info(__u64 layout, __u64 kind)
{
	__u32 type = (__u32)kind;

	if (type >= GHC_FUN && type <= GHC_THUNK_STATIC)
		return !(layout & 0xffff0000ffff0000ULL);
	if (type == GHC_RET_SMALL)
		return !(layout >> GHC_SIZE_BITS >> (layout & GHC_SIZE_MASK));
	return type == GHC_RET_BIG;
}

/*
 * Is the pc still in the code at w->look, of which the frame is on top of the stack? Haskell code pops its own frame
 * only as it leaves, and then it is not its own caller. A function that lies behind that code has an info table.
 */
WALK_FUNCTION int ghc_is_same(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 pc, at;

	if (!w)
		return false;
	pc = w->exact ? w->pc : w->pc - 1;
	at = w->look;
	if (pc - at >= GHC_SAME_BYTES)
		return false;
	at += 8; /* the first table that fits behind the code */
	for (int part = 0; part < GHC_SAME_PARTS; part++) {
		if (at + GHC_INFO_BYTES > pc)
			break;
		if (!walk_read(w, w->lang_buf, sizeof(w->lang_buf), at))
			return false;
		WALK_UNROLL
		for (int i = 0; i + 1 < MS_LANG_BYTES / 8; i++) {
			if (at + GHC_INFO_BYTES <= pc && ghc_is_info(w->lang_buf[i], w->lang_buf[i + 1]))
				return false;
			at += 8;
		}
	}
	return true;
}

enum ghc_stack {
	GHC_NO_STACK,
	GHC_STACK,
	GHC_STACK_CALLS, /* on top is the frame of the code that calls C, which is to jump there when it is back */
};

/* The Haskell stack of the present frame, Sp into w->lang_at: enum ghc_stack. */
WALK_FUNCTION int ghc_stack(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	const struct ms_ghc *g;
	__u64 sp, base, tso, stack, call, task, thread;
	__u32 words;

	if (!w)
		return GHC_NO_STACK;
	g = &w->lang.ghc;
	sp = w->regs[GHC_RBP];
	w->lang_at = sp;
	if (!(w->known >> GHC_RBP & 1) || sp & 7)
		return GHC_NO_STACK;
	if (w->exact)
		return GHC_STACK;
	/* In a call of a C function. The thread has its Capability, and Sp has kept its value … */
	base = w->regs[GHC_R13];
	if (!(w->known >> GHC_R13 & 1) || !walk_read(w, &tso, sizeof(tso), base + g->reg_tso))
		return GHC_NO_STACK;
	if (tso && walk_read(w, &stack, sizeof(stack), tso + g->tso_stack) &&
	    walk_read(w, &words, sizeof(words), stack + g->stack_sp - 8) && sp - stack < 8ULL * words)
		return GHC_STACK;
	/* … or it has given that away: other threads may run, and the collector may have moved the stack. */
	if (!g->reg_suspended || !walk_read(w, &call, sizeof(call), base + g->reg_suspended))
		return GHC_NO_STACK;
	for (int i = 0; i < GHC_CALLS_MAX; i++) {
		if (!walk_read(w, &task, sizeof(task), call + GHC_CALL_TASK) ||
		    !walk_read(w, &thread, sizeof(thread), task))
			return GHC_NO_STACK;
		/* A Task begins with its thread; without -threaded, where there is only one, with its Capability. */
		if (thread == w->thread_base || thread == base - GHC_CAP_REG)
			return walk_read(w, &tso, sizeof(tso), call + GHC_CALL_TSO) &&
					       walk_read(w, &stack, sizeof(stack), tso + g->tso_stack) &&
					       walk_read(w, &w->lang_at, sizeof(w->lang_at), stack + g->stack_sp)
				       ? GHC_STACK_CALLS
				       : GHC_NO_STACK;
		if (!walk_read(w, &call, sizeof(call), call + GHC_CALL_NEXT))
			return GHC_NO_STACK;
	}
	return GHC_NO_STACK;
}

/*
 * From Haskell code to what called StgRun(). rsp is where that left it, or a little lower around a call of a C
 * function with arguments on the stack: the return address is behind a call.
 */
WALK_FUNCTION int ghc_leave(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 at, ra;
	__u8 op;

	if (!w)
		return false;
	w->managed = 0;
	at = w->regs[MS_WALK_SP] + w->lang.ghc.run_saved;
	for (int i = 0; i < GHC_RUN_SLACK; i++) {
		if (!walk_read(w, w->lang_buf, (GHC_RUN_REGS + 1) * 8, at))
			break;
		ra = w->lang_buf[GHC_RUN_REGS];
		if (ra - w->lang.ghc.text < w->lang.ghc.text_bytes &&
		    walk_read(w, &op, sizeof(op), ra - 5) && op == 0xe8) {
			w->regs[MS_X86_RBX] = w->lang_buf[0];
			w->regs[MS_X86_RBP] = w->lang_buf[1];
			w->regs[12] = w->lang_buf[2];
			w->regs[13] = w->lang_buf[3];
			w->regs[14] = w->lang_buf[4];
			w->regs[15] = w->lang_buf[5];
			w->known = MS_WALK_KEPT;
			w->ra = ra;
			w->cfa = at + (GHC_RUN_REGS + 1) * 8;
			return walk_caller(w, slot);
		}
		at += 8;
	}
	return walk_end(w, MS_GUESSED);
}

/* The frames end where they should not: the rest is what called StgRun(). */
WALK_INLINE int ghc_lose(struct ms_walk *w, __u32 slot)
{
	w->lang_short = 1;
	w->guessed = 1;
	return ghc_leave(slot) ? MANAGED_CALLER : MANAGED_END;
}

#define GHC_WINDOW 512 /* bytes of the Haskell stack that are read together: of some twenty frames */

/* The word at w->lang_at. */
WALK_INLINE bool ghc_word(struct ms_walk *w, __u32 slot, __u64 *ret_word)
{
	__u64 at = w->lang_at;

	if (at < w->window_at || at + 8 > w->window_at + w->window_len) {
		w->from = at;
		w->window_next = GHC_WINDOW;
		walk_window(slot);
	}
	return walk_word(w, at, ret_word);
}

/* Words of the frame at w->lang_at; 0: unknown. */
WALK_INLINE __u32 ghc_words(struct ms_walk *w, __u32 type, __u64 code)
{
	__u64 at = w->lang_at, words = 0;
	__u32 more = 0;

	switch (type) {
	case GHC_RET_BIG:
		if (!walk_read(w, &words, sizeof(words), code + (__u64)(__s64)(__s32)w->lang_info[0]))
			return 0;
		break;
	case GHC_RET_FUN:
		more = 2;
		if (!walk_read(w, &words, sizeof(words), at + 8))
			return 0;
		break;
	case GHC_RET_BCO: {
		__u32 n;

		more = 1;
		if (!walk_read(w, &at, sizeof(at), at + 8) || !walk_read(w, &n, sizeof(n), at + GHC_BCO_SIZE))
			return 0;
		words = n;
		break;
	}
	default:
		words = w->lang_info[0] & GHC_SIZE_MASK;
	}
	return words < GHC_WORDS_MAX ? 1 + (__u32)words + more : 0;
}

/* The frame at w->lang_at, of which w->lang_info is the info table, becomes the present one. Those that are
 * bookkeeping are not recorded, and not all of those of a recursion that is deep: lists are often gone through so,
 * each depth would be another stack. */
WALK_INLINE int ghc_frame(struct ms_walk *w, __u64 code)
{
	__u32 type = (__u32)w->lang_info[1];
	bool hidden = type == GHC_UPDATE_FRAME || type == GHC_UNDERFLOW_FRAME || type == GHC_STOP_FRAME;

	if (!hidden) {
		w->lang_n = code == w->lang_first ? w->lang_n + 1 : 1;
		w->lang_first = code;
	}
	w->pc = code;
	w->exact = 1;
	w->managed = hidden || w->lang_n > GHC_EQUAL_MAX ? MS_MANAGED_HIDDEN : MS_MANAGED_SHOWN;
	return MANAGED_CALLER;
}

/* On from the frame at w->lang_at, which returns to the pc, or before there was one to w->look. */
WALK_INLINE int ghc_next(struct ms_walk *w, __u32 slot)
{
	__u64 code = w->managed ? w->pc : w->look;
	__u32 type = (__u32)w->lang_info[1], words;

	if (type == GHC_STOP_FRAME)
		return ghc_leave(slot) ? MANAGED_CALLER : MANAGED_END;
	if (type == GHC_UNDERFLOW_FRAME) {
		__u64 chunk;

		if (!walk_read(w, &chunk, sizeof(chunk), w->lang_at + 8) ||
		    !walk_read(w, &w->lang_at, sizeof(w->lang_at), chunk + w->lang.ghc.stack_sp))
			return ghc_lose(w, slot);
	} else {
		words = ghc_words(w, type, code);
		if (!words)
			return ghc_lose(w, slot);
		w->lang_at += words * 8;
	}
	if (!ghc_word(w, slot, &code) || !ghc_code(w, slot, code))
		return ghc_lose(w, slot);
	return ghc_frame(w, code);
}

#define GHC_NEXT (MANAGED_END + 1) /* ghc_next() says */

/* The pc is in code without rows: on to the frame on top of the stack, or (GHC_NEXT) to its caller where the pc is in the
 * code of that one itself. */
WALK_INLINE int ghc_enter(struct ms_walk *w, __u32 slot)
{
	int stack = ghc_stack(slot);
	__u64 code;

	if (stack == GHC_NO_STACK)
		return MANAGED_NOT_ITS;
	for (int i = 0; i < GHC_STACK_ARGS; i++) {
		if (!ghc_word(w, slot, &code))
			return MANAGED_NOT_ITS;
		if (ghc_code(w, slot, code))
			break;
		code = 0;
		w->lang_at += 8;
	}
	if (!code)
		return MANAGED_NOT_ITS;
	walk_notes_drop(w);
	w->lang_first = 0;
	w->look = code;
	return stack == GHC_STACK_CALLS || ghc_is_same(slot) ? GHC_NEXT : ghc_frame(w, code);
}

#endif
#endif
