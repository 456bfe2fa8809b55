/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JavaScript's frames (V8 9.4 to 13.6, as in node 16 to 24), in a walk (walk_lang.h). x86-64, without pointer
 * compression. Sources: V8's src/execution/frame-constants.h and frames.h, src/builtins/x64/builtins-x64.cc (JSEntry),
 * src/compiler/backend/x64/code-generator-x64.cc (prologue and epilogue). Offsets are in struct ms_v8.
 *
 * All code that V8 generates keeps rbp, so rbp leads from frame to frame. What a frame is says the word below it:
 *
 *   rbp + 8   pc of the caller
 *   rbp       rbp of the caller
 *   rbp - 8   a marker, which is twice a small number: no function's (a stub's, JSEntry's, a regular expression's);
 *             or the context, a pointer whose lowest bit is set: a JavaScript function's
 *   rbp - 16  the JSFunction
 *   rbp - 24  how many arguments
 *   rbp - 32  the BytecodeArray, where the function is interpreted, or was compiled by Sparkplug
 *   rbp - 40  where in that, times 2^32; Sparkplug: its feedback, which is a pointer
 *
 * The interpreter, and functions written by V8 itself (Array.prototype.map) are in a part of the file that has
 * no rows (MS_RULE_FP); what is compiled at run time is in mappings without a file. Of the former the function
 * and the place in its bytecode is recorded, of the latter the address in the code, which has its function.
 *
 * Where a thread is interrupted, the frame may not be there yet, or not any more, or the code has none (handlers of
 * bytecodes, small builtins): then the return address is on top of the stack, and rbp is the caller's.
 */
#ifndef MEMSCOPE_WALK_V8_H
#define MEMSCOPE_WALK_V8_H

#if !MS_WALK_ARM64

#define V8_FRAME_MAX   (8U << 20) /* bytes of a frame: a spread call pushes its arguments */
#define V8_MARKER_MAX  128        /* StackFrame::TypeToMarker(): there are some 40 types    */
#define V8_MARK_ENTRY  2          /* ENTRY, CONSTRUCT_ENTRY: called by C++                    */
#define V8_MARK_ENTRY2 4
#define V8_RDI         5
#define V8_EXIT_TARGET 24         /* from rbp in a BUILTIN_EXIT frame: the JSFunction (BuiltinExitFrameConstants) */
#define V8_PROLOGUE    24         /* bytes of code before a function's frame is made            */
#define V8_EPILOGUE    24         /* … and behind its end                                       */

WALK_INLINE bool v8_is_object(__u64 word)
{
	return (word & 3) == 1 && word < MS_USER_TOP;
}

/* Is a map one of instance types [first, last]? One that was is remembered as w->lang_maps[which]. */
WALK_INLINE bool v8_is_type(struct ms_walk *w, __u64 map, __u32 which, __u16 first, __u16 last)
{
	__u16 type;

	if (map == w->lang_maps[which & 1])
		return true;
	if (!v8_is_object(map) || !walk_read(w, &type, sizeof(type), map - 1 + w->lang.v8.map_type))
		return false;
	if (type < first || type > last)
		return false;
	w->lang_maps[which & 1] = map;
	return true;
}

/* Is w->look a JSFunction? Then its SharedFunctionInfo is w->lang_info[0], with the cookie of that in w->lang_info[1]. */
WALK_FUNCTION int v8_function(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	const struct ms_v8 *v8;
	__u64 at, map, shared;

	if (!w)
		return false;
	v8 = &w->lang.v8;
	at = w->look;
	if (!v8_is_object(at) || !lang_buf_read(w, at - 1, v8->function_shared + 8u))
		return false;
	map = lang_buf_word(w, 0);
	/* While it is collected: where it has been moved to, without the lowest bit. */
	if (map && !(map & 3)) {
		if (!lang_buf_read(w, map, v8->function_shared + 8u))
			return false;
		map = lang_buf_word(w, 0);
	}
	shared = lang_buf_word(w, v8->function_shared);
	if (!v8_is_type(w, map, 0, v8->function_first, v8->function_last) || !v8_is_object(shared) ||
	    !lang_buf_read(w, shared - 1 + v8->shared_numbers, 16))
		return false;
	w->lang_info[0] = shared - 1;
	w->lang_info[1] = ms_v8_cookie((__u16)(lang_buf_word(w, 0) >> 16), (__u32)(lang_buf_word(w, 8) >> 32));
	return true;
}

WALK_INLINE void v8_words(struct ms_walk *w, __u64 what, __u64 cookie, __u32 at)
{
	w->lang_words[0] = (what & MS_FRAME_ADDR_MASK) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
			   (__u64)MS_LANG_V8 << MS_LANG_SHIFT | (cookie & MS_LANG_COOKIE_MASK) << 32 | at;
}

/* The present frame is code at the pc, of which nothing is known but its bytes. */
WALK_INLINE void v8_code_words(struct ms_walk *w)
{
	__u64 bytes;

	if (walk_read(w, &bytes, sizeof(bytes), w->pc))
		v8_words(w, w->pc, ms_lang_cookie(bytes),
			 MS_V8_BYTES | (w->exact ? MS_V8_EXACT : 0));
}

/* The four bytes at `i` of w->code. */
WALK_INLINE __u32 v8_four(const struct ms_walk *w, int i)
{
	__u64 four = w->code[i / 8] >> i % 8 * 8;

	return (__u32)(i % 8 > 4 ? four | w->code[i / 8 + 1] << (64 - i % 8 * 8) : four);
}

enum v8_leaf {
	V8_FRAME,  /* rbp is the present frame's */
	V8_ENTRY,  /* it is the caller's: the return address is on top of the stack, and rdi has the function */
	V8_PUSHED, /* … behind the caller's rbp                                    */
	V8_NEW,    /* rbp is the present frame's, without the function                    */
	V8_LEFT,   /* it is the caller's again, or still: the return address is on top of the stack */
};

/* Is there a call before `ra`? Its last bytes are the highest of `code`. */
WALK_INLINE bool v8_is_call(__u64 code)
{
	return code >> 24 << 56 == 0xe8ULL << 56 ||             /* call n      */
	       (code >> 48 & 0xf8ff) == 0xd0ff ||                /* call *%reg  */
	       (code >> 8 & 0xf8ff) == 0x90ff ||                 /* call *n(%reg), 4 bytes of n */
	       (code >> 32 & 0xf8ff) == 0x50ff ||
	       (code >> 40 & 0xf8ff) == 0x50ff ||                /* … 1 byte of n    */
	       (code >> 40 & 0xffff) == 0x14ff || (code >> 32 & 0xffff) == 0x54ff ||
	       (code >> 8 & 0xffff) == 0x94ff || (code & 0xffffff) == 0x94ff41;
}

/* Compiled functions: is the pc before the frame is made, or behind its end? */
WALK_INLINE int v8_outside(struct ms_walk *w)
{
	bool entry = false, left = false;

	WALK_UNROLL
	for (int i = 1; i < V8_PROLOGUE; i++)
		entry |= v8_four(w, i) == 0xe5894855; /* push %rbp; mov %rsp,%rbp */
	if (entry || !walk_read(w, w->code, sizeof(w->code), w->pc - V8_EPILOGUE))
		return entry ? V8_ENTRY : V8_FRAME;
	WALK_UNROLL
	for (int i = 0; i <= V8_EPILOGUE - 4; i++)
		left |= v8_four(w, i) == 0x5de58b48; /* mov %rbp,%rsp; pop %rbp */
	return left ? V8_LEFT : V8_FRAME;
}

/* Where the thread was interrupted, how much of a frame is there? enum v8_leaf */
WALK_FUNCTION int v8_leaf(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 sp, fp, before = 0, top;
	int part = V8_LEFT;
	__u32 code;

	if (!w)
		return V8_FRAME;
	sp = w->regs[MS_WALK_SP];
	fp = w->regs[MS_WALK_FP];
	if (!walk_read(w, w->code, sizeof(w->code), w->pc))
		return V8_FRAME;
	code = (__u32)w->code[0];
	if ((code & 0xff) == 0x55) /* push %rbp */
		return V8_ENTRY;
	if ((code & 0xff) == 0xc3 || (code & 0xff) == 0xc2) /* ret */
		return V8_LEFT;
	if ((code & 0xffffff) == 0xe58948 && walk_word(w, sp, &top) && top == fp) /* mov %rsp,%rbp */
		return V8_PUSHED;
	if (fp - sp <= 8)
		return V8_NEW;
	if (!w->has_rows)
		part = v8_outside(w);
	if (part == V8_FRAME || !walk_word(w, sp, &top) || top >= MS_USER_TOP ||
	    !walk_read(w, &before, sizeof(before), top - 8) || !v8_is_call(before))
		return V8_FRAME;
	w->look = top;
	if (!walk_find_span(slot)) {
		w->span.start = w->span.end = 0;
		return V8_FRAME;
	}
	return part;
}

/* On from the present frame, by the frame at `fp`. */
WALK_INLINE int v8_by_fp(struct ms_walk *w, __u32 slot, __u64 fp)
{
	w->cfa = fp + 16;
	w->ra_at = fp + 8;
	w->known = 1u << MS_WALK_FP | 1u << MS_WALK_SP;
	if (!walk_word(w, fp, &w->regs[MS_WALK_FP]) || !walk_word(w, w->ra_at, &w->ra)) {
		walk_end(w, MS_UNREADABLE);
		return MANAGED_END;
	}
	return walk_caller(w, slot) ? MANAGED_CALLER : MANAGED_END;
}

/* From JSEntry to C++, whose registers it has saved. */
WALK_INLINE int v8_leave(struct ms_walk *w, __u32 slot, __u64 fp)
{
	int step = v8_by_fp(w, slot, fp);
	bool all = true;

	all &= walk_word(w, fp - 24, &w->regs[12]);
	all &= walk_word(w, fp - 32, &w->regs[13]);
	all &= walk_word(w, fp - 40, &w->regs[14]);
	all &= walk_word(w, fp - 48, &w->regs[15]);
	all &= walk_word(w, fp - 56, &w->regs[MS_X86_RBX]);
	if (all)
		w->known = MS_WALK_KEPT;
	return step;
}

/* Words of the present frame; in w->code, as the kernel's stack is short. */
enum v8_word { V8_MARK, V8_BYTECODES, V8_OFFSET, V8_MAP };

/* The words of a frame of the JSFunction that v8_function() has found. */
WALK_INLINE void v8_function_words(struct ms_walk *w, bool compiled)
{
	__u32 at = compiled && w->exact ? MS_V8_EXACT : 0;
	__u16 type = w->lang.v8.bytecode_type;
	__u64 bytecodes = w->code[V8_BYTECODES], offset = w->code[V8_OFFSET];
	bool has = v8_is_object(bytecodes) &&
		   walk_read(w, &w->code[V8_MAP], sizeof(w->code[V8_MAP]), bytecodes - 1) &&
		   v8_is_type(w, w->code[V8_MAP], 1, type, type);

	if (compiled && !has) {
		v8_words(w, w->pc, w->lang_info[1], MS_V8_CODE | at);
		return;
	}
	/* A Smi, if it is interpreted. Functions of V8's own may have any values there. */
	if (compiled)
		at |= MS_V8_BASELINE | ((__u32)w->pc & MS_V8_AT);
	else if (has && !(offset & 0xffffffff) && offset >> 32 < MS_V8_AT)
		at = (__u32)(offset >> 32);
	else
		at = MS_V8_AT;
	v8_words(w, w->lang_info[0], w->lang_info[1], at);
}

/* Compiled code that is interrupted where it has no frame. */
WALK_INLINE void v8_bare_words(struct ms_walk *w, __u32 slot, int part)
{
	w->look = w->regs[V8_RDI];
	if (part != V8_LEFT && v8_function(slot))
		v8_words(w, w->lang_info[0], w->lang_info[1], MS_V8_AT);
	else
		v8_code_words(w);
}

/* … and the step from there. */
WALK_INLINE int v8_without_frame(struct ms_walk *w, __u32 slot, bool pushed)
{
	w->ra_at = w->regs[MS_WALK_SP] + (pushed ? 8 : 0);
	w->cfa = w->ra_at + 8;
	w->known = 1u << MS_WALK_FP | 1u << MS_WALK_SP;
	if (!walk_word(w, w->ra_at, &w->ra)) {
		walk_end(w, MS_UNREADABLE);
		return MANAGED_END;
	}
	return walk_caller(w, slot) ? MANAGED_CALLER : MANAGED_END;
}

/* Only such code of a file as is known to keep rbp: other code may leave it at some frame of V8's. */
WALK_INLINE bool v8_may_be(const struct ms_walk *w)
{
	return (!w->has_rows || w->keeps_fp) && w->known & 1u << MS_WALK_FP;
}

/*
 * The present pc is in code without rows: the step to its caller. v8_leaf() comes before, as it looks for spans (its
 * result in w->lang_part), and before that w->lang_compiled is set.
 */
WALK_INLINE int v8_step(struct ms_walk *w, __u32 slot)
{
	__u64 fp = w->regs[MS_WALK_FP], sp = w->regs[MS_WALK_SP], mark;
	bool compiled = w->lang_compiled;
	int part = w->lang_part;

	walk_notes_drop(w); /* what its code and objects are */
	if (compiled && part != V8_FRAME)
		v8_bare_words(w, slot, part);
	if (part == V8_NEW)
		return v8_by_fp(w, slot, fp);
	if (part != V8_FRAME)
		return v8_without_frame(w, slot, part == V8_PUSHED);
	if (fp < sp || fp & 7 || fp - sp > V8_FRAME_MAX)
		return MANAGED_NOT_ITS;
	if (fp + 16 > w->window_at + w->window_len || fp < w->window_at + 64) {
		w->from = fp - 64;
		walk_window(slot);
	}
	if (!walk_word(w, fp - 8, &w->code[V8_MARK]) || !walk_word(w, fp - 16, &w->look))
		return MANAGED_NOT_ITS;
	mark = w->code[V8_MARK];
	if (mark & 1) {
		if (!v8_is_object(mark) || !v8_function(slot))
			return MANAGED_NOT_ITS;
		w->code[V8_BYTECODES] = 0;
		w->code[V8_OFFSET] = 1;
		walk_word(w, fp - 32, &w->code[V8_BYTECODES]);
		walk_word(w, fp - 40, &w->code[V8_OFFSET]);
		v8_function_words(w, compiled);
		return v8_by_fp(w, slot, fp);
	}
	if (!mark || mark >= V8_MARKER_MAX)
		return MANAGED_NOT_ITS;
	if (mark == w->lang.v8.mark_regexp && compiled)
		v8_code_words(w);
	/* A function written in C++. */
	if (mark == w->lang.v8.mark_exit && !compiled && walk_word(w, fp + V8_EXIT_TARGET, &w->look) && v8_function(slot))
		v8_words(w, w->lang_info[0], w->lang_info[1], MS_V8_AT);
	return mark == V8_MARK_ENTRY || mark == V8_MARK_ENTRY2 ? v8_leave(w, slot, fp) : v8_by_fp(w, slot, fp);
}

#endif
#endif
