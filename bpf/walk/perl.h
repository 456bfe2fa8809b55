/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perl's frames (5.30 to 5.40), in a walk (walk_lang.h). Sources: Perl's cop.h, cv.h, intrpvar.h, inline.h, perl.c,
 * pp_ctl.c, pp_sort.c and gv.c of these versions.
 *
 * An interpreter has stacks of contexts, of which the innermost is PL_curstackinfo; each has a growing array of
 * PERL_CONTEXTs: of subs, formats, evals and blocks. A context keeps the statement (COP) in force where it was
 * entered, so that the line in a frame is that of PL_curcop or of the next inner context.
 *
 *   PL_curcop ──────────────────────────────────────┐ is where f is
 *   PL_curstackinfo ─► [ block, sub f ]  (of a tie) │
 *                          │ oldcop ────────────────┼─► is where g is
 *                      si_prev ─► [ sub g, eval block, loop, sub h ]
 *                                        └ oldcop: the program's own
 *
 * Ops are executed by a loop, Perl_runops_standard(). C functions that call into Perl begin another one; the
 * context that they make has no op to return to, and is where the run of that loop ends. Exceptions:
 *
 *   docatch()     begins a loop which goes on with the run of the loop that has called it, to the end
 *   sort, first…  make one context, and begin a loop for each element
 *
 * The program itself has no context: what is left belongs to the loop that perl_run() has called.
 *
 * The thread may be anywhere: in the op that makes a context or takes it away, and between two elements. Of a sub that is
 * executing, the CV counts one more than the context has noted.
 */
#ifndef MEMSCOPE_WALK_PERL_H
#define MEMSCOPE_WALK_PERL_H

/* What the chain consists of: addresses of contexts, and with these low bits: */
#define PERL_STACK 1 /* a PERL_SI, of which the contexts follow */
#define PERL_LAST  2 /* the program */

/* Boundaries. */
#define PERL_ENDS   1 /* a run ends with it */
#define PERL_IS_MAIN 2 /* it is the program's */
#define PERL_CALLED 4 /* the innermost one, which is executed again and again: not now, if no op is */

/* lang_entry: no op is being executed, and the innermost context … */
#define PERL_IDLE        1
#define PERL_IDLE_CALLED 2 /* … is one that is executed again and again */

#define PERL_CX_OLDCOP 0x10
#define PERL_CX_RETOP  0x30
#define PERL_NULL      0 /* a block of sort's */
#define PERL_SUB       9
#define PERL_FORMAT    10
#define PERL_EVAL      11
#define PERL_DEFER     13
#define PERL_TYPE      0x0f
#define PERL_MULTICALL 0x10
#define PERL_REAL      0x20 /* of an eval: of a string    */
#define PERL_BLOCKS    0xc0 /* … of a block, try          */
#define PERL_RE        0xc0 /* of a sub: code in a regular expression … */
#define PERL_RE_FAKE   0x80 /* … which belongs to a sub further out */

#define PERL_SV_CV     13 /* the type of an SV, its lowest byte of flags */
#define PERL_SI_BYTES  0x28
#define PERL_CXIX_MAX  (1 << 24)
#define PERL_FOLD_BYTES (1 << 20) /* of the stack, from the interpreter's loop on */
#define PERL_CV_BODY   0x20 /* what is read of a CV's body: from xcv_stash to xcv_depth */
#define PERL_CV_GV     0x18
#define PERL_CV_FLAGS  0x3c
#define PERL_CV_DEPTH  0x40
#define PERL_CV_BYTES  0x48
#define PERL_CV_XSUB   0x8
#define PERL_CV_NAMED  0x8000
#define PERL_GV_NAME   0x20 /* in a GV's body: its name, and its stash */
#define PERL_COP_AT    0x20 /* of a COP: line:4 at 4, file at 0x10, seq:4 at 0x1c */
#define PERL_COP_BYTES 0x20

WALK_INLINE bool perl_word(struct ms_walk *w, __u64 at, __u64 *ret_word)
{
	return at >= MS_PAGE_BYTES && at < MS_USER_TOP && walk_read(w, ret_word, sizeof(*ret_word), at);
}

/* Reads the context at `at`, with as many as there is room for of those that are next: they lie before it. */
WALK_INLINE bool perl_near(struct ms_walk *w, __u64 at)
{
	__u32 bytes = w->lang.perl.cx_bytes;
	__u64 from = at + bytes - sizeof(w->blob);

	if (lang_is_near(w, at, bytes))
		return true;
	if (from < w->lang_base)
		from = w->lang_base;
	if (from < at && lang_near(w, from, (__u32)(at + bytes - from)))
		return true;
	return lang_near(w, at, bytes);
}

/* The type of the context at `at`, with its flags; what cannot be read is a block. */
WALK_INLINE __u8 perl_type(struct ms_walk *w, __u64 at)
{
	return perl_near(w, at) ? (__u8)lang_near_word(w, at) : 2;
}

/* Does a loop execute it, and is it no frame? */
WALK_INLINE bool perl_is_bare(__u8 type)
{
	return (type & PERL_TYPE) == PERL_NULL || (type & PERL_TYPE) == PERL_DEFER ||
	       (type & (PERL_TYPE | PERL_RE_FAKE)) == (PERL_SUB | PERL_RE_FAKE);
}

/* Has it no op that ends it, so that the last one in it may be a call, which has none to return to? */
WALK_INLINE bool perl_is_open(__u8 type)
{
	return perl_is_bare(type) || ((type & PERL_TYPE) == PERL_SUB && type & PERL_RE);
}

/* Goes to the stack of contexts at `si`: its innermost one. */
WALK_INLINE bool perl_stack(struct ms_walk *w, __u64 si, __u64 *ret_at)
{
	__u32 ix;

	if (!lang_buf_read(w, si, PERL_SI_BYTES))
		return false;
	w->lang_base = lang_buf_word(w, 8) & MS_PERL_ADDR;
	w->lang_outer = lang_buf_word(w, 16) & MS_PERL_ADDR;
	ix = lang_buf_half(w, 0x20);
	if (ix < PERL_CXIX_MAX)
		*ret_at = w->lang_base + (__u64)ix * w->lang.perl.cx_bytes;
	else
		*ret_at = w->lang_outer ? w->lang_outer | PERL_STACK : w->lang_base | PERL_LAST;
	if (ix >= PERL_CXIX_MAX)
		w->lang_top = 0;
	return true;
}

/* The head of the chain of the interpreter at `state`. */
WALK_INLINE bool perl_begin(struct ms_walk *w, __u64 state)
{
	const struct ms_perl *p = &w->lang.perl;
	__u64 base = p->global ? 0 : state, op, si, word;
	__u8 type;

	w->lang_entry = w->lang_entering = 0;
	w->lang_top = 1;
	w->blob_len = 0;
	if (!perl_word(w, base + p->curcop, &w->lang_place) || !perl_word(w, base + p->stackinfo, &si) ||
	    !perl_word(w, base + p->op, &op) || !perl_stack(w, si, &w->lang_at))
		return false;
	if (!op) {
		type = w->lang_top ? perl_type(w, w->lang_at) : 2;
		w->lang_entry = (type & PERL_TYPE) == PERL_NULL ||
						(type & (PERL_TYPE | PERL_MULTICALL)) ==
							(PERL_SUB | PERL_MULTICALL)
					? PERL_IDLE_CALLED
					: PERL_IDLE;
	} else if (perl_word(w, op, &w->lang_next) && perl_word(w, op + 16, &word)) {
		/* C functions make an op that calls, which has no function. */
		w->lang_entering = !word || word == p->entersub;
	}
	return true;
}

/* The words of a frame at the present statement, of w->cx.kind, which is named by w->cx.name. */
WALK_INLINE bool perl_frame(struct ms_walk *w)
{
	__u64 cookie, name;
	__u32 line;

	if (!lang_buf_read(w, w->lang_place + PERL_COP_AT, PERL_COP_BYTES))
		return false;
	line = lang_buf_half(w, 4);
	name = w->cx.kind < MS_PERL_SUB ? (__u64)line << 3 : w->cx.name;
	cookie = ms_perl_cookie(lang_buf_half(w, 0x1c), line, lang_buf_word(w, 0x10));
	w->lang_words[0] = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT | (cookie >> 3) << 48 |
			   (w->lang_place & MS_PERL_ADDR) | w->cx.kind;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (__u64)MS_LANG_PERL << MS_LANG_SHIFT |
			   ms_perl_name_cookie(w->cx.hek, w->cx.stash) << 48 | (name & MS_PERL_ADDR) | (cookie & 7);
	return true;
}

/* What has no name of its own. */
WALK_INLINE bool perl_frame_of(struct ms_walk *w, enum ms_perl_kind kind)
{
	w->cx.kind = kind;
	w->cx.name = w->cx.hek = w->cx.stash = 0;
	return perl_frame(w);
}

/* What is named by the glob w->cx.name. */
WALK_INLINE bool perl_frame_of_glob(struct ms_walk *w, enum ms_perl_kind kind)
{
	if (!w->cx.name)
		return perl_frame_of(w, MS_PERL_CV);
	if (!perl_word(w, w->cx.name, &w->cx.buf[0]) ||
	    !walk_read(w, w->cx.buf, sizeof(w->cx.buf), w->cx.buf[0] + PERL_GV_NAME))
		return false;
	w->cx.kind = kind;
	w->cx.hek = w->cx.buf[0];
	w->cx.stash = w->cx.buf[1];
	return perl_frame(w);
}

/* Is the sub of the present context executing? Reads it. */
WALK_INLINE bool perl_is_executing(struct ms_walk *w)
{
	/* Its op has made it, and is not yet at its end. */
	if (w->cx.top && w->lang_entering && w->cx.retop == w->lang_next && w->cx.oldcop == w->lang_place)
		return false;
	if (w->cx.cv < MS_PAGE_BYTES || w->cx.cv >= MS_USER_TOP ||
	    !walk_read(w, w->cx.buf, sizeof(w->cx.buf), w->cx.cv) || (w->cx.buf[1] >> 32 & 0xff) != PERL_SV_CV ||
	    !lang_buf_read(w, w->cx.buf[0] + PERL_CV_BODY, PERL_CV_BYTES))
		return false;
	w->cx.flags = lang_buf_half(w, PERL_CV_FLAGS);
	w->cx.stash = lang_buf_word(w, 0);
	w->cx.hek = w->cx.name = lang_buf_word(w, PERL_CV_GV);
	return !w->cx.top || lang_buf_half(w, PERL_CV_DEPTH) == w->cx.depth + 1;
}

/* The sub whose context is at `at`. */
WALK_INLINE bool perl_sub(struct ms_walk *w, __u64 at, struct lang_link *ret_link)
{
	if (!perl_is_executing(w)) {
		/* It is half made, or half gone: what called it is where it was, or where it will be again. */
		if (!w->cx.top && w->cx.cv)
			return false;
		if (!w->cx.top || !w->lang_entering)
			w->lang_place = w->cx.oldcop;
		return true;
	}
	if (w->cx.flags & PERL_CV_NAMED) {
		w->cx.kind = MS_PERL_CV;
		w->cx.name = w->cx.cv;
		if (!perl_frame(w))
			return false;
	} else if (!perl_frame_of_glob(w, MS_PERL_SUB)) {
		return false;
	}
	w->lang_place = w->cx.oldcop;
	if (!w->cx.retop && (at == w->lang_base || !perl_is_open(perl_type(w, at - w->lang.perl.cx_bytes))))
		ret_link->boundary = PERL_ENDS;
	if (w->cx.top && w->cx.type & PERL_MULTICALL)
		ret_link->boundary |= PERL_CALLED;
	return true;
}

WALK_INLINE bool perl_context_read(struct ms_walk *w, __u64 at)
{
	const struct ms_perl *p = &w->lang.perl;

	if (!perl_near(w, at))
		return false;
	w->cx.top = w->lang_top;
	w->lang_top = 0;
	w->cx.type = (__u8)lang_near_word(w, at);
	w->cx.oldcop = lang_near_word(w, at + PERL_CX_OLDCOP);
	w->cx.retop = lang_near_word(w, at + PERL_CX_RETOP);
	w->cx.cv = lang_near_word(w, at + p->cx_cv);
	w->cx.name = lang_near_word(w, at + p->cx_cv + 8);
	w->cx.depth = (__u32)w->cx.name;
	return true;
}

/* Reads what is at `at`: a context, a stack of them, or the end. */
WALK_INLINE bool perl_load(struct ms_walk *w, __u64 at, struct lang_link *ret_link)
{
	w->lang_words[0] = w->lang_words[1] = 0;
	ret_link->boundary = 0;
	if (at & PERL_STACK) {
		w->lang_top = 0;
		return perl_stack(w, at & MS_PERL_ADDR, &ret_link->previous);
	}
	if (at & PERL_LAST) {
		ret_link->previous = 0;
		ret_link->boundary = PERL_IS_MAIN;
		return perl_frame_of(w, MS_PERL_MAIN);
	}
	if (!perl_context_read(w, at))
		return false;
	ret_link->previous = at != w->lang_base ? at - w->lang.perl.cx_bytes
			     : w->lang_outer    ? w->lang_outer | PERL_STACK
						: w->lang_base | PERL_LAST;
	if (perl_is_bare(w->cx.type)) {
		ret_link->boundary = PERL_ENDS |
				     (w->cx.top && (w->cx.type & PERL_TYPE) == PERL_NULL ? PERL_CALLED : 0);
		return true;
	}
	switch (w->cx.type & PERL_TYPE) {
	case PERL_SUB:
		return perl_sub(w, at, ret_link);
	case PERL_FORMAT:
		if (!perl_frame_of_glob(w, MS_PERL_FORMAT))
			return false;
		break;
	case PERL_EVAL:
		if (w->cx.type & PERL_BLOCKS) {
			/* A constant is computed while code is compiled: by a loop, at a statement that is a variable of C's. */
			if (w->cx.top && !w->cx.retop &&
			    w->lang_place - w->regs[MS_WALK_SP] < PERL_FOLD_BYTES) {
				w->lang_place = w->cx.oldcop;
				ret_link->boundary = PERL_ENDS;
			}
			return true;
		}
		if (!perl_frame_of(w, w->cx.type & PERL_REAL ? MS_PERL_EVAL : MS_PERL_REQUIRE))
			return false;
		break;
	default:
		return true;
	}
	w->lang_place = w->cx.oldcop;
	ret_link->boundary = w->cx.retop ? 0 : PERL_ENDS;
	return true;
}

/* Is what was loaded neither a frame nor the end of a run? */
WALK_INLINE bool perl_is_nothing(const struct ms_walk *w, const struct lang_link *link)
{
	return !w->lang_words[0] && !link->boundary;
}

/* Was the present native frame called by a function in these bounds? */
WALK_INLINE bool perl_called_by(const struct ms_walk *w, __u64 start, __u64 end)
{
	return !w->lang_ended && w->pc - 1 - start < end - start;
}

/* The run has ended. */
WALK_INLINE int perl_end(struct ms_walk *w)
{
	w->lang_nested = perl_called_by(w, w->lang.perl.catch_start, w->lang.perl.catch_end);
	return LANG_NONE;
}

WALK_INLINE int perl_next(struct ms_walk *w)
{
	const struct ms_perl *p = &w->lang.perl;
	bool is_main = perl_called_by(w, p->main_start, p->main_end);
	struct lang_link link = {};
	__u64 idle = w->lang_entry;
	int copied;

	w->lang_entry = 0;
	if (w->lang_running == 2 || w->lang_nested)
		return perl_end(w);
	/* It has executed its last op: its context is gone already. */
	if (idle == PERL_IDLE && w->lang_exact)
		return perl_end(w);
	if (!w->lang_at) {
		lang_mismatch(w);
		return perl_end(w);
	}
	copied = walk_chain_link(w, w->lang_at, &link);
	if (copied == CHAIN_LOST || (copied == CHAIN_NONE && !perl_load(w, w->lang_at, &link)))
		return lang_lose(w, MS_LOST_FRAME);
	/* The program's frame belongs to the program's loop alone. */
	if (link.boundary & PERL_IS_MAIN && !is_main && p->main_end) {
		if (w->n != w->lang_n)
			lang_mismatch(w);
		return perl_end(w);
	}
	w->lang_at = link.previous;
	if (idle == PERL_IDLE_CALLED && link.boundary & PERL_CALLED && !w->lang_exact)
		return LANG_SKIP;
	if (link.boundary & PERL_ENDS && is_main) {
		/* There are more runs than loops. All that is left is the program's. */
		lang_mismatch(w);
		link.boundary = 0;
	}
	if (link.boundary)
		w->lang_running = 2;
	if (w->lang_words[0])
		return LANG_FRAME;
	return link.boundary ? perl_end(w) : LANG_SKIP;
}

#endif
