/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HotSpot's frames (JDK 8 to 25), in a walk (walk_lang.h). x86-64. Sources: OpenJDK's frame_x86.cpp,
 * codeBlob.hpp, heap.cpp (CodeHeap), c1_MacroAssembler_x86.cpp, macroAssembler_x86.cpp (verified_entry),
 * x86_64.ad (epilogues, polls), templateInterpreterGenerator_x86.cpp, stubGenerator_x86_64.cpp; instructions
 * as seen in JDK 17 and 25. Offsets are in struct ms_hotspot.
 *
 * Code of HotSpot is in code heaps. A heap's map has a byte for each segment: how many segments before it the
 * block begins that it belongs to (0: here, 0xff: the segment is free; 0xfe or less: there, or further before).
 * A block is a header, a CodeBlob or a struct derived from it, and the code.
 *
 *   compiled, and stubs with a frame size     the interpreter         stubs without, call_stub
 *     sp + words * 8   sender's sp              rbp + 8   pc             rbp + 8   pc
 *                - 8   pc                       rbp       rbp            rbp       rbp
 *               - 16   rbp                      rbp - 8   sender's sp
 *                                               rbp - 24  Method
 *                                               rbp - bcp bytecode
 *
 * Java code keeps no register over a call but sp, rbp and the thread's (r15). Where a thread was interrupted, the
 * frame may be there in part only: that is read from the instructions around its pc. A return address that is not in
 * a code heap is no return address, except to whoever called call_stub.
 */
#ifndef MEMSCOPE_WALK_HOTSPOT_H
#define MEMSCOPE_WALK_HOTSPOT_H

#define HOTSPOT_SEGMENT_STEPS 12
#define HOTSPOT_FREE          0xff
#define HOTSPOT_GUESS_WORDS   24
#define HOTSPOT_FRAME_MAX     (1U << 20) /* bytes of a frame, of more it is none */
#define HOTSPOT_CONTINUATION  0x746e6f6328207365ULL /* "StubRoutin[es (cont]inuationstubs)" */
#define HOTSPOT_NO_SP         0xffffffffffffffffULL
#define HOTSPOT_STUB_BYTES    1024       /* call_stub is no longer            */

#if !MS_WALK_ARM64

/* Where in its frame the present pc is. */
enum hotspot_frame {
	HOTSPOT_WHOLE,     /* all of it is there                                          */
	HOTSPOT_NO_FRAME,  /* the return address is at sp, rbp is the caller's              */
	HOTSPOT_PUSHED,    /* rbp is at sp, the return address behind it                    */
	HOTSPOT_RBP_LATER, /* sp is as it will be, rbp is the caller's and not saved yet */
};

WALK_INLINE bool hotspot_has(const struct ms_walk *w, __u64 pc)
{
	return lang_in_ranges(w, pc);
}

WALK_INLINE __u64 hotspot_raw(const struct ms_walk *w, const struct ms_field *f)
{
	__u32 i = f->at / 8, bits = f->bytes * 8;
	__u64 word;

	WALK_OPAQUE(i); /* or clang drops the bound that the verifier needs */
	word = w->blob[i % (MS_HOTSPOT_BYTES / 8)] >> (f->at & 7) * 8;
	return bits >= 64 ? word : word & ((1ULL << (bits & 63)) - 1);
}

/* A number or an address; 0 also where there is no such field. */
WALK_INLINE __u64 hotspot_field(const struct ms_walk *w, const struct ms_field *f)
{
	__u64 value = f->bytes ? hotspot_raw(w, f) : 0;

	if (!f->bytes)
		return 0;
	if (f->from == MS_FROM_CODE)
		value += hotspot_raw(w, &w->lang.hotspot.code) +
			 (w->lang.hotspot.code.from == MS_FROM_BLOB ? w->blob_at : 0);
	else if (f->from == MS_FROM_BLOB)
		value += w->blob_at;
	return value;
}

/* The byte `i` of w->code. */
WALK_INLINE __u8 hotspot_byte(const struct ms_walk *w, __u32 i)
{
	return (__u8)(w->code[(i / 8) & 3] >> (i & 7) * 8);
}

/* `n` of them, 8 at most, the first one lowest. */
WALK_INLINE __u64 hotspot_bytes(const struct ms_walk *w, __u32 i, __u32 n)
{
	__u32 shift = (i & 7) * 8;
	__u64 word = w->code[(i / 8) & 3] >> shift;

	if (shift)
		word |= w->code[(i / 8 + 1) & 3] << (64 - shift);
	return n >= 8 ? word : word & ((1ULL << n * 8) - 1);
}

/* Reads the CodeBlob that w->look is in; false: there is none, or it cannot be read. */
WALK_FUNCTION int hotspot_blob(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 start = 0, map = 0, seg;
	__u32 bytes;
	__u8 back = HOTSPOT_FREE;

	if (!w)
		return false;
	WALK_UNROLL
	for (int i = 0; i < MS_LANG_RANGES; i++)
		if (w->look - w->lang.range[i].start <
		    w->lang.range[i].end - w->lang.range[i].start) {
			start = w->lang.range[i].start;
			map = w->lang.hotspot.segments[i];
		}
	if (!map)
		return false;
	seg = (w->look - start) >> (w->lang.hotspot.segment_shift & 31);
	for (int i = 0; i < HOTSPOT_SEGMENT_STEPS; i++) {
		if (!walk_read(w, &back, sizeof(back), map + seg) || back == HOTSPOT_FREE ||
		    back > seg)
			return false;
		if (!back)
			break;
		seg -= back;
	}
	if (back)
		return false;
	w->blob_at = start + (seg << (w->lang.hotspot.segment_shift & 31)) +
		     w->lang.hotspot.block_bytes;
	bytes = w->lang.hotspot.blob_bytes;
	WALK_OPAQUE(bytes);
	if (bytes <= MS_HOTSPOT_BYTES && walk_read(w, w->blob, bytes, w->blob_at))
		return true;
	/* The last one of a heap may be shorter. */
	bytes = w->lang.hotspot.runtime_bytes;
	WALK_OPAQUE(bytes);
	return bytes <= MS_HOTSPOT_BYTES && walk_read(w, w->blob, bytes, w->blob_at);
}

/* What a function of these has found. */
enum hotspot_found {
	HOTSPOT_END,    /* no caller: walk_end() has been called                    */
	HOTSPOT_NEXT,   /* the caller's sp is w->cfa, the return address at w->ra_at; 0: it is w->ra */
	HOTSPOT_LOOKED_FOR, /* it has to be looked for: hotspot_guess()                      */
};

WALK_INLINE int hotspot_next(struct ms_walk *w, __u64 ra_at, __u64 sp)
{
	w->ra_at = ra_at;
	w->cfa = sp;
	return HOTSPOT_NEXT;
}

/* The stack around the caller's sp, w->cfa. */
WALK_INLINE void hotspot_window(struct ms_walk *w, __u32 slot)
{
	__u64 sp = w->regs[MS_WALK_SP];

	if (w->cfa <= w->window_at + w->window_len && w->cfa >= w->window_at)
		return;
	w->from = sp;
	if (w->cfa - sp >= MS_WINDOW_FIRST / 2) {
		w->from = w->cfa - MS_WINDOW_FIRST / 4;
		w->window_next = MS_WINDOW_FIRST;
	}
	walk_window(slot);
}

/* On to the caller that has been found. false: as walk_caller(). */
WALK_INLINE bool hotspot_to(struct ms_walk *w, __u32 slot)
{
	if (w->ra_at && !walk_word(w, w->ra_at, &w->ra))
		return walk_end(w, MS_UNREADABLE);
	w->known = 1u << MS_WALK_FP | 1u << MS_WALK_SP;
	return walk_caller(w, slot);
}

/*
 * Nothing says where the return address is: the first word on the stack that can be one. rbp is the caller's, or, where
 * the frame has been entered, on the stack before that word; then it is proven.
 */
WALK_FUNCTION int hotspot_guess(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 sp, fp, word, saved;

	if (!w)
		return false;
	sp = w->regs[MS_WALK_SP];
	fp = w->regs[MS_WALK_FP];
	for (int i = 0; i < HOTSPOT_GUESS_WORDS; i++) {
		__u64 at = sp + 8 * (__u64)i;

		if (!walk_word(w, at, &word))
			return walk_end(w, MS_UNREADABLE);
		if (!hotspot_has(w, word) && (!w->trampoline || word != w->trampoline))
			continue;
		if (at == fp + 8 && walk_word(w, fp, &saved))
			w->regs[MS_WALK_FP] = saved;
		else
			w->guessed = 1;
		return hotspot_next(w, at, at + 8);
	}
	/* Far from its frame pointer, or called by native code (jni_fast_GetIntField). */
	if (fp >= sp && !(fp & 7) && fp - sp < HOTSPOT_FRAME_MAX && walk_word(w, fp + 8, &word) &&
	    hotspot_has(w, word) && walk_word(w, fp, &saved)) {
		w->guessed = 1;
		w->regs[MS_WALK_FP] = saved;
		return hotspot_next(w, fp + 8, fp + 16);
	}
	return walk_end(w, MS_GUESSED);
}

/* Code without a frame, of which a word at sp that can be the return address is it. */
WALK_INLINE int hotspot_at_sp(struct ms_walk *w)
{
	__u64 sp = w->regs[MS_WALK_SP], word;

	if (!walk_word(w, sp, &word))
		return walk_end(w, MS_UNREADABLE);
	return hotspot_has(w, word) || (w->trampoline && word == w->trampoline)
		       ? hotspot_next(w, sp, sp + 8)
		       : HOTSPOT_LOOKED_FOR;
}

/* A frame by rbp: call_stub's, and stubs that another one was called by. */
WALK_INLINE int hotspot_by_rbp(struct ms_walk *w)
{
	__u64 fp, sp, word, saved, at;

	fp = w->regs[MS_WALK_FP];
	sp = w->regs[MS_WALK_SP];
	at = fp + 8;
	if (fp < sp || fp & 7 || fp - sp > HOTSPOT_FRAME_MAX || !walk_word(w, fp, &saved) ||
	    !walk_word(w, at, &word))
		return HOTSPOT_LOOKED_FOR;
	/* The barrier at a method's entry has pushed a word before, in which a new sp may be put: -1. */
	if (word == HOTSPOT_NO_SP) {
		at += 8;
		if (!walk_word(w, at, &word))
			return HOTSPOT_LOOKED_FOR;
	}
	/* Who calls Java is native code; who calls another stub is Java. */
	if (!hotspot_has(w, word) && (!w->trampoline || word != w->trampoline) &&
	    w->pc - w->lang.hotspot.call_stub + HOTSPOT_STUB_BYTES >= 2 * HOTSPOT_STUB_BYTES)
		return HOTSPOT_LOOKED_FOR;
	w->regs[MS_WALK_FP] = saved;
	return hotspot_next(w, at, at + 8);
}

/*
 * Epilogues, by the instructions at pc, which is at byte 16 of w->code:
 *
 *   add $n,%rsp   pop %rbp   poll   ret       poll: cmp n(%r15),%rsp  ja      (16 on)
 *                                                   mov n(%r15),%r10  test %eax,(%r10)  (10 on)
 *                                                   test %eax,n(%rip)        (to 9)
 *   a poll that is taken: movabs $pc,%r10 or lea n(%rip),%r10;  mov %r10,n(%r15);  jmp
 *   to an exception's handler: pop %rbp; jmp
 */
WALK_INLINE enum hotspot_frame hotspot_epilogue(const struct ms_walk *w)
{
	__u64 at = hotspot_bytes(w, 16, 8);
	__u8 op = (__u8)at;

	if (op == 0xc3 || op == 0xc2)
		return HOTSPOT_NO_FRAME;
	if (op == 0x5d)
		return HOTSPOT_PUSHED;
	if (op == 0xe9 && (hotspot_byte(w, 15) == 0x5d || hotspot_bytes(w, 9, 3) == 0x97894d))
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffff) == 0x870f && hotspot_byte(w, 22) == 0xc3)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0x673b49 && hotspot_bytes(w, 20, 2) == 0x870f &&
	    hotspot_byte(w, 26) == 0xc3)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0xa73b49 && hotspot_bytes(w, 23, 2) == 0x870f &&
	    hotspot_byte(w, 29) == 0xc3)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffffff) == 0xc3028541) /* test %eax,(%r10); ret */
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0x978b4d && hotspot_bytes(w, 23, 4) == 0xc3028541)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0x578b4d && hotspot_bytes(w, 20, 4) == 0xc3028541)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffff) == 0x0585 && hotspot_byte(w, 22) == 0xc3)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0x97894d && hotspot_byte(w, 23) == 0xe9)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffff) == 0xba49 && hotspot_bytes(w, 26, 3) == 0x97894d)
		return HOTSPOT_NO_FRAME;
	if ((at & 0xffffff) == 0x158d4c && hotspot_bytes(w, 23, 3) == 0x97894d)
		return HOTSPOT_NO_FRAME;
	return HOTSPOT_WHOLE;
}

/*
 * Prologues: w->code begins at the entry, pc is `off` bytes behind it.
 *
 *   [mov %eax,-n(%rsp)]  push %rbp  [mov %rsp,%rbp]  sub $n,%rsp …
 *   sub $n,%rsp          mov %rbp,n(%rsp) …
 *
 * The first instruction becomes a jump when the code is not to be entered any more.
 */
WALK_INLINE enum hotspot_frame hotspot_prologue(const struct ms_walk *w, __u64 off)
{
	__u32 at = 0, op, skip;

	if (hotspot_bytes(w, 0, 3) == 0x248489 ||
	    (hotspot_byte(w, 0) == 0xe9 && hotspot_byte(w, 7) == 0x55))
		at = 7;
	if (hotspot_byte(w, at) == 0x55) {
		at++;
		if (off < at)
			return HOTSPOT_NO_FRAME;
		op = (__u32)hotspot_bytes(w, at, 3);
		if (op == 0xec8b48 || op == 0xe58948)
			at += 3;
		op = (__u32)hotspot_bytes(w, at, 3);
		return off <= at && (op == 0xec8348 || op == 0xec8148 || off < at) ? HOTSPOT_PUSHED
										    : HOTSPOT_WHOLE;
	}
	op = (__u32)hotspot_bytes(w, at, 3);
	skip = op == 0xec8348 ? 4 : op == 0xec8148 ? 7 : 0;
	if (off <= at)
		return HOTSPOT_NO_FRAME;
	op = (__u32)hotspot_bytes(w, at + skip, 2);
	return skip && off <= at + skip && op == 0x8948 ? HOTSPOT_RBP_LATER : HOTSPOT_WHOLE;
}

#define HOTSPOT_PROLOGUE 24 /* pcs so far behind an entry are in the body */

/* Of the pc where the thread was, in a blob whose frame has a size. */
WALK_INLINE enum hotspot_frame hotspot_part(struct ms_walk *w, __u64 entry, bool compiled)
{
	__u64 off = w->pc - entry;

	if (compiled && w->pc < entry)
		return HOTSPOT_NO_FRAME; /* it compares the receiver's class */
	if (off < HOTSPOT_PROLOGUE && walk_read(w, w->code, sizeof(w->code), entry)) {
		enum hotspot_frame part = hotspot_prologue(w, off);

		if (part != HOTSPOT_WHOLE)
			return part;
	}
	return walk_read(w, w->code, sizeof(w->code), w->pc - 16) ? hotspot_epilogue(w)
								   : HOTSPOT_WHOLE;
}

/* By a frame of `words`, or the part of it that is there. */
WALK_INLINE int hotspot_sized(struct ms_walk *w, __u32 slot, __u32 words, __u32 part)
{
	__u64 sp, end, ra, saved;

	sp = w->regs[MS_WALK_SP];
	end = part == HOTSPOT_NO_FRAME ? sp + 8 : part == HOTSPOT_PUSHED ? sp + 16 : sp + 8 * (__u64)words;
	if (!words || words > HOTSPOT_FRAME_MAX / 8)
		end = sp + 8;
	w->cfa = end;
	hotspot_window(w, slot);
	if (!walk_word(w, end - 8, &ra))
		return walk_end(w, MS_UNREADABLE);
	if (!hotspot_has(w, ra) && (!w->trampoline || ra != w->trampoline))
		return HOTSPOT_LOOKED_FOR;
	if (end - sp >= 16 && part != HOTSPOT_RBP_LATER) {
		if (!walk_word(w, end - 16, &saved))
			return walk_end(w, MS_UNREADABLE);
		w->regs[MS_WALK_FP] = saved;
	}
	return hotspot_next(w, end - 8, end);
}

WALK_INLINE void hotspot_words(struct ms_walk *w, __u64 what, __u32 cookie, __u64 at)
{
	w->lang_words[0] = (what & MS_FRAME_ADDR_MASK) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
			   (__u64)MS_LANG_HOTSPOT << MS_LANG_SHIFT |
			   (cookie & MS_LANG_COOKIE_MASK) << 32 | at;
}

/* --- the interpreter --- */

/*
 * A method's entry has not made its frame yet. Its caller's sp is in r13, the Method in rbx; the return address is on top
 * of the stack, or in rax while the locals are put under it.
 */
WALK_INLINE bool hotspot_is_entering(const struct ms_walk *w)
{
	__u64 sp = w->regs[MS_WALK_SP], fp = w->regs[MS_WALK_FP], sender = w->regs[13];

	if (!w->exact || w->pc < w->lang.hotspot.entries || w->pc >= w->lang.hotspot.entries_end)
		return false;
	if (sender < sp || sender - sp > HOTSPOT_FRAME_MAX || sender & 7)
		return false;
	/* Between mov %rsp,%rbp and the load of r13. */
	return fp < sp || fp - sp > 24 || sender <= fp;
}

WALK_INLINE int hotspot_enter(struct ms_walk *w)
{
	__u64 sp = w->regs[MS_WALK_SP], word, below;
	__u32 code = 0;

	hotspot_words(w, w->regs[MS_X86_RBX], 0, MS_HOTSPOT_INTERPRETED | MS_HOTSPOT_EXACT);
	if (!walk_word(w, sp, &word))
		return walk_end(w, MS_UNREADABLE);
	if (walk_read(w, &code, sizeof(code), w->pc) &&
	    ((code & 0xffffff) == 0xec8b48 || (code & 0xffffff) == 0xe58948) &&
	    walk_word(w, sp + 8, &below) && hotspot_has(w, below))
		return hotspot_next(w, sp + 8, w->regs[13]);
	if (hotspot_has(w, word) || (w->trampoline && word == w->trampoline))
		return hotspot_next(w, sp, w->regs[13] > sp + 8 ? w->regs[13] : sp + 8);
	if (!hotspot_has(w, w->regs[0]))
		return HOTSPOT_LOOKED_FOR;
	w->ra = w->regs[0];
	return hotspot_next(w, 0, w->regs[13]);
}

/*
 * The end of a return: leave; … pop %r13; mov %rbx,%rsp; … jmp *%r13. -1: it is not there.
 */
WALK_INLINE int hotspot_leave(struct ms_walk *w)
{
	__u64 sp = w->regs[MS_WALK_SP], code = 0, after = 0;

	if (hotspot_has(w, w->regs[13])) {
		if (walk_read(w, &code, sizeof(code), w->pc) && (code & 0xffffff) == 0xe38b48)
			sp = w->regs[MS_X86_RBX];
		w->ra = w->regs[13];
		return hotspot_next(w, 0, sp);
	}
	if (!walk_read(w, &code, sizeof(code), w->pc) ||
	    !walk_read(w, &after, sizeof(after), w->pc + 8))
		return -1;
	if ((code & 0xffffffffff) != 0xe38b485d41 &&
	    ((code & 0xffffff) != 0x87c641 || (after & 0xffffffffff) != 0xe38b485d41))
		return -1;
	return hotspot_next(w, sp, w->regs[MS_X86_RBX]);
}

/* The bytecode's index in the Method. */
WALK_INLINE __u64 hotspot_bci(struct ms_walk *w, __u64 method, __u64 saved)
{
	const struct ms_hotspot *h = &w->lang.hotspot;
	__u64 constant, bci;
	__u16 n = 0;

	if (!walk_read(w, &constant, sizeof(constant), method + h->method_const) ||
	    !walk_read(w, &n, sizeof(n), constant + h->const_code_bytes))
		return MS_HOTSPOT_AT;
	constant += h->const_bytes;
	/* It is in r13, and saved before a call. */
	bci = w->regs[13] - constant;
	if (w->exact && bci < n)
		return bci;
	bci = saved - constant;
	return bci < n ? bci : MS_HOTSPOT_AT;
}

/* Words of an interpreter's frame: in w->lang_buf, as the kernel's stack is short. */
enum hotspot_word { HS_METHOD, HS_BCP, HS_SENDER, HS_SAVED, HS_RA };

WALK_FUNCTION int hotspot_interpreted(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 fp, sp, sender;
	int r;

	if (!w)
		return 0;
	fp = w->regs[MS_WALK_FP];
	sp = w->regs[MS_WALK_SP];
	if (hotspot_is_entering(w))
		return hotspot_enter(w);
	if (w->exact) {
		r = hotspot_leave(w);
		if (r >= 0)
			return r;
	}
	if (fp < sp || fp & 7 || fp - sp > HOTSPOT_FRAME_MAX)
		return HOTSPOT_LOOKED_FOR;
	if (fp + 16 > w->window_at + w->window_len || fp < w->window_at + 128) {
		w->from = fp - 128;
		walk_window(slot);
	}
	if (!walk_word(w, fp - 24, &w->lang_buf[HS_METHOD]) ||
	    !walk_word(w, fp - w->lang.hotspot.bcp, &w->lang_buf[HS_BCP]) ||
	    !walk_word(w, fp - 8, &w->lang_buf[HS_SENDER]) || !walk_word(w, fp, &w->lang_buf[HS_SAVED]) ||
	    !walk_word(w, fp + 8, &w->lang_buf[HS_RA]))
		return walk_end(w, MS_UNREADABLE);
	sender = w->lang_buf[HS_SENDER];
	if (sender <= fp || sender - fp > HOTSPOT_FRAME_MAX || sender & 7 ||
	    (!hotspot_has(w, w->lang_buf[HS_RA]) && (!w->trampoline || w->lang_buf[HS_RA] != w->trampoline)))
		return HOTSPOT_LOOKED_FOR;
	hotspot_words(w, w->lang_buf[HS_METHOD], 0,
		      MS_HOTSPOT_INTERPRETED | (w->exact ? MS_HOTSPOT_EXACT : 0) |
			      (hotspot_bci(w, w->lang_buf[HS_METHOD], w->lang_buf[HS_BCP]) & MS_HOTSPOT_AT));
	w->regs[MS_WALK_FP] = w->lang_buf[HS_SAVED];
	return hotspot_next(w, fp + 8, sender);
}

/* --- all others --- */

/* An nmethod; its frame's pc may be one that it is to be deoptimized at. */
WALK_INLINE int hotspot_compiled(struct ms_walk *w, __u32 slot)
{
	const struct ms_hotspot *h = &w->lang.hotspot;
	__u64 pc = w->pc, at, original;
	__u32 words = (__u32)hotspot_raw(w, &h->frame_words);
	__u32 part = HOTSPOT_WHOLE;

	if (w->exact)
		part = words ? hotspot_part(w, hotspot_field(w, &h->entry), true) : HOTSPOT_NO_FRAME;
	else if (pc == hotspot_field(w, &h->deopt) || pc == hotspot_field(w, &h->deopt_mh)) {
		at = w->regs[MS_WALK_SP] + hotspot_raw(w, &h->original_pc);
		if (walk_word(w, at, &original))
			pc = original;
	}
	at = pc - hotspot_field(w, &h->code);
	hotspot_words(w, w->blob_at, (__u32)hotspot_raw(w, &h->compile_id),
		      (at < MS_HOTSPOT_AT ? at : MS_HOTSPOT_AT) |
			      (w->exact ? MS_HOTSPOT_EXACT : 0));
	return hotspot_sized(w, slot, words, part);
}

/* A stub. Those with a frame size have made it by the time that they call anything. */
WALK_INLINE int hotspot_stub(struct ms_walk *w, __u32 slot, bool routines)
{
	const struct ms_hotspot *h = &w->lang.hotspot;
	__u32 words = (__u32)hotspot_raw(w, &h->frame_words), op;
	__u64 code = hotspot_field(w, &h->code), at = w->pc - code;

	hotspot_words(w, w->blob_at, 0, (at < MS_HOTSPOT_AT ? at : MS_HOTSPOT_AT) |
						(w->exact ? MS_HOTSPOT_EXACT : 0));
	/* A virtual thread's frames are moved from the heap to the stack by and by: those that are still there are missing. */
	if (!w->exact && routines) {
		__u64 name = 0;

		if (!walk_read(w, &name, sizeof(name), hotspot_field(w, &h->name) + 10) ||
		    name == HOTSPOT_CONTINUATION)
			w->guessed = 1;
	}
	if (!w->exact)
		return words && words < HOTSPOT_FRAME_MAX / 8 ? hotspot_sized(w, slot, words, HOTSPOT_WHOLE)
							      : hotspot_by_rbp(w);
	if (!walk_read(w, w->code, sizeof(w->code), w->pc - 16))
		return walk_end(w, MS_UNREADABLE);
	op = hotspot_byte(w, 16);
	if (op == 0xc3 || op == 0x55)
		return hotspot_at_sp(w);
	/* call_stub, whose caller is no Java. */
	if (routines && w->pc - h->call_stub + HOTSPOT_STUB_BYTES < 2 * HOTSPOT_STUB_BYTES)
		return hotspot_by_rbp(w);
	return words ? HOTSPOT_LOOKED_FOR : hotspot_at_sp(w);
}

/* The frame of a pc that is not in the interpreter. The name of a blob says what it is (codeBlob.cpp, nmethod.cpp):
 * "nmethod", "native nmethod", "StubRoutines (1)" … */
WALK_FUNCTION int hotspot_blob_frame(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 name = 0, at;

	if (!w)
		return HOTSPOT_END;
	/* Read once a walk: all nmethods have the same. */
	at = hotspot_field(w, &w->lang.hotspot.name);
	if (!at || (at != w->lang_maps[0] && !walk_read(w, &name, sizeof(name), at)))
		return HOTSPOT_LOOKED_FOR;
	if (at == w->lang_maps[0] || name == 0x646f6874656d6eULL || name == 0x6e2065766974616eULL) { /* nmethod, native n */
		w->lang_maps[0] = at;
		return hotspot_compiled(w, slot);
	}
	return hotspot_stub(w, slot, name == 0x74756f5262757453ULL); /* StubRout */
}

/* The frame of the present pc, which is in a code heap, and the step to its caller. */
WALK_INLINE int hotspot_step(struct ms_walk *w, __u32 slot)
{
	int found = HOTSPOT_LOOKED_FOR;

	walk_notes_drop(w); /* what the code is */
	w->look = w->exact ? w->pc : w->pc - 1;
	if (!(w->known & 1u << MS_WALK_FP))
		w->regs[MS_WALK_FP] = 0;
	if (w->pc - w->lang.hotspot.interpreter <
	    w->lang.hotspot.interpreter_end - w->lang.hotspot.interpreter)
		found = hotspot_interpreted(slot);
	else if (hotspot_blob(slot))
		found = hotspot_blob_frame(slot);
	if (found == HOTSPOT_LOOKED_FOR)
		found = hotspot_guess(slot);
	return found == HOTSPOT_NEXT && hotspot_to(w, slot) ? MANAGED_CALLER : MANAGED_END;
}

#endif
#endif
