/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython's frames (3.8 to 3.14), in a walk (walk_lang.h). Sources: CPython's Include/cpython/pystate.h,
 * Include/internal/pycore_frame.h and Python/ceval.c of each version; the offsets are in struct ms_python.
 *
 *   up to 3.10   thread state ─► PyFrameObject ─► f_back …   each is one call of the interpreter's function
 *   3.11, 3.12   thread state ─► _PyCFrame ─► _PyInterpreterFrame ─► previous …
 *   3.13 on      thread state ─► _PyInterpreterFrame ─► previous …
 *
 * A call between Python functions is no call in C since 3.11: one call of the interpreter's function executes a
 * run of frames, of which 3.11 marks the last one (is_entry), and later versions put a frame without code behind
 * it, which lies on the C stack (owner).
 */
#ifndef MEMSCOPE_WALK_PYTHON_H
#define MEMSCOPE_WALK_PYTHON_H

#define PYTHON_DIRECT 0xffff /* cframe_frame: there is no _PyCFrame */

/* The head of the chain of the thread whose state is at `tstate`. */
WALK_INLINE bool python_begin(struct ms_walk *w, __u64 tstate)
{
	const struct ms_python *p = &w->lang.python;
	__u64 head;

	if (tstate < MS_PAGE_BYTES || tstate >= MS_USER_TOP ||
	    !walk_read(w, &head, sizeof(head), tstate + p->tstate_frame))
		return false;
	if (p->cframe_frame != PYTHON_DIRECT) {
		if (p->boundary_kind == MS_PYTHON_ENTRY)
			w->lang_entry = head;
		if (!walk_read(w, &head, sizeof(head), head + p->cframe_frame))
			return false;
	}
	w->lang_at = head;
	return true;
}

/*
 * 3.11: the run's _PyCFrame is a variable of the call that executes it. Is it that of an outer call than the
 * present native frame?
 */
WALK_INLINE bool python_is_outer(const struct ms_walk *w)
{
	return w->lang.python.boundary_kind == MS_PYTHON_ENTRY && w->lang_entry >= w->lang_high;
}

/* Bytes of the interpreter's function in which it puts its run into the chain: 79 in Debian's 3.11.2, 66 in 3.11.7 as
 * pyenv builds it. */
#define PYTHON_PROLOGUE 128

/*
 * 3.11: the native frame has no run in the chain. It calls nothing before it has put it there. Otherwise, but for the few
 * instructions in which it returns, its run is in another chain: that of another interpreter in this thread.
 */
WALK_INLINE void python_no_run(struct ms_walk *w)
{
	__u64 at = (w->lang_native & MS_FRAME_ADDR_MASK) - w->lang.range[0].start;

	if (!w->lang_exact || at >= PYTHON_PROLOGUE)
		lang_mismatch(w);
}

/*
 * The end of a run, of which `entry` lies on the stack of the call that executes it. Of a deeper call: the
 * native frame of that one was not known for what it is, and the next run is the present one's.
 */
WALK_INLINE int python_end(struct ms_walk *w, __u64 entry)
{
	if (entry >= w->lang_high) {
		w->lang_at = w->lang_first;
		return LANG_NOT_OURS;
	}
	if (entry >= w->lang_low)
		return LANG_NONE;
	lang_mismatch(w);
	return LANG_NONE;
}

/* Does a frame with this boundary have no code, and end a run? */
WALK_INLINE bool python_is_end(const struct ms_walk *w, __u8 boundary)
{
	return w->lang.python.boundary_kind == MS_PYTHON_OWNER && boundary >= w->lang.python.boundary;
}

/* Reads the frame at `at`: its words into w->lang_words, none for one that has no code. */
WALK_INLINE bool python_load(struct ms_walk *w, __u64 at, struct lang_link *ret_link)
{
	const struct ms_python *p = &w->lang.python;
	__u32 base = p->code_first_line & ~7u;
	__u64 code, instr;

	if (!lang_buf_read(w, at, p->frame_bytes))
		return false;
	code = lang_buf_word(w, p->frame_code) & ~(__u64)p->code_mask;
	ret_link->previous = lang_buf_word(w, p->frame_previous);
	ret_link->boundary = (__u8)(lang_buf_word(w, p->frame_boundary) >> (p->frame_boundary & 7) * 8);
	w->lang_words[0] = w->lang_words[1] = 0;
	if (python_is_end(w, ret_link->boundary))
		return true;
	if (p->instr_kind == MS_PYTHON_LASTI) {
		instr = lang_buf_half(w, p->frame_instr);
	} else {
		instr = lang_buf_word(w, p->frame_instr) - code;
		if (instr > MS_LANG_NO_INSTR)
			instr = MS_LANG_NO_INSTR;
	}
	if (!lang_buf_read(w, code + base, p->code_linetable + 8 - base))
		return false;
	w->lang_words[0] = code | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
			   (__u64)MS_LANG_PYTHON << MS_LANG_SHIFT |
			   ms_python_cookie(lang_buf_half(w, p->code_first_line - base),
					    lang_buf_word(w, p->code_name - base),
					    lang_buf_word(w, p->code_linetable - base))
				   << 32 |
			   instr;
	return true;
}

WALK_INLINE int python_next(struct ms_walk *w)
{
	const struct ms_python *p = &w->lang.python;
	struct lang_link link = {};
	__u64 at = w->lang_at;
	int copied;

	if (w->lang_running == 2)
		return LANG_NONE;
	if (python_is_outer(w)) {
		python_no_run(w);
		return LANG_NONE;
	}
	if (!at) {
		lang_mismatch(w);
		return LANG_NONE;
	}
	copied = walk_chain_link(w, at, &link);
	if (copied == CHAIN_LOST || (copied == CHAIN_NONE && !python_load(w, at, &link)))
		return lang_lose(w, MS_LOST_FRAME);
	w->lang_at = link.previous;
	if (python_is_end(w, link.boundary))
		return python_end(w, at);
	if (p->boundary_kind == MS_PYTHON_EACH) {
		w->lang_running = 2;
	} else if (p->boundary_kind == MS_PYTHON_ENTRY && link.boundary == p->boundary) {
		if (w->lang_entry < w->lang_low)
			lang_mismatch(w);
		w->lang_running = 2;
		if (!walk_read(w, &w->lang_entry, sizeof(w->lang_entry), w->lang_entry + p->cframe_previous))
			w->lang_entry = 0;
	}
	return LANG_FRAME;
}

#endif
