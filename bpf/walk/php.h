/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PHP's frames (7.4 to 8.5, with and without ZTS), in a walk (walk_lang.h). Sources: PHP's Zend/zend_compile.h, Zend/zend_globals.h,
 * Zend/zend_vm_def.h and Zend/zend_execute_API.c of each version; the offsets are in struct ms_php.
 *
 *   executor_globals ─► zend_execute_data ─► prev_execute_data …   with func: a function of the program, or an internal one
 *
 * execute_ex() executes a run: from the innermost frame to the first one of the program's code that is marked as the top of
 * a call from C (ZEND_CALL_TOP). An internal function's frame belongs to the run that calls it: its C code lies above
 * that run's native frame.
 *
 * A run is put into the chain before execute_ex() is called, and taken out before it returns. As GCC compiles it for
 * x86-64, execute_ex() keeps its frame in r14 and its instruction in r15, and the memory that the instruction should be
 * in (zend_execute_data.opline) is written before what may call or fail, and not otherwise. So where the walk knows these
 * registers they say the line, and which run is this function's own: what is in the chain before the frame in r14
 * has not been begun, or has ended, and is shown with it; and a frame that is not in the chain any more, as the one that it
 * leads to is the chain's head, has returned to C. Only the innermost call needs that: the others have written what
 * they execute. A line that is not known is none.
 */
#ifndef MEMSCOPE_WALK_PHP_H
#define MEMSCOPE_WALK_PHP_H

/* zend_execute_data: the same in all versions. */
#define PHP_FRAME_OPLINE   0
#define PHP_FRAME_FUNC     24
#define PHP_FRAME_THIS     32
#define PHP_FRAME_INFO     40 /* of the zval at PHP_FRAME_THIS: a type in the lowest byte, and ZEND_CALL_…  */
#define PHP_FRAME_PREVIOUS 48
#define PHP_FRAME_BYTES    56
/* zend_function, zend_string and zend_op. */
#define PHP_FUNC_NAME   8
#define PHP_FUNC_SCOPE  16
#define PHP_STRING_HASH 8
#define PHP_OP_LINE     24
#define PHP_OP_BYTES    32
/* What they have there. */
#define PHP_INTERNAL    1         /* zend_function.type: ZEND_INTERNAL_FUNCTION */
#define PHP_CALL_CODE   (1u << 16) /* a file, or eval()         */
#define PHP_CALL_TOP    (1u << 17)
#define PHP_TYPE_OBJECT 8

/* lang_link.boundary, w->lang_boundary */
#define PHP_USER 1 /* the program's code                              */
#define PHP_TOP  2 /* … that C has called                        */
#define PHP_LINE 4 /* its line is that of the instruction in the register */
#define PHP_DELEGATES 8 /* a generator that delegates to another one */

/* w->lang_entry */
#define PHP_CHECKED 1 /* the first frame of the chain has been compared with the registers        */
#define PHP_CALLED  2 /* the next frame has called what came before it, and written what it executes */
#define PHP_JIT     4 /* the native frame is code of the JIT compiler's                             */

/* Before the step from a native frame that executes a run: w->lang_info is zend_execute_data and instruction of that frame,
 * 0 where they are not known. */
WALK_INLINE void php_enter(struct ms_walk *w)
{
	const struct ms_php *p = &w->lang.php;
	__u32 frame = p->frame_reg % MS_N_REGS, opline = p->opline_reg % MS_N_REGS;
	__u64 at = (w->exact ? w->pc : w->pc - 1) - w->lang.range[0].start;

	w->lang_info[0] = w->lang_info[1] = 0;
	if (!frame || w->lang_begun || !(w->known >> frame & w->known >> opline & 1) ||
	    at < p->prologue)
		return;
	w->lang_info[0] = w->regs[frame];
	/* Compiled code seldom says what it executes. */
	w->lang_info[1] = w->lang_entry & PHP_JIT ? 0 : w->regs[opline];
}

/* EG(current_execute_data), which is the word that a thread's state is found by, or in the thread's storage, to which
 * that points. */
WALK_INLINE bool php_begin(struct ms_walk *w, __u64 word)
{
	w->lang_at = word;
	return !w->lang.php.current || walk_read(w, &w->lang_at, 8, word + w->lang.php.current);
}

/*
 * What is read of a function is kept in w->blob, not in variables: walks have little stack. Its first bytes, then filename,
 * lines, the hash of filename, and the line of the frame.
 */
#define PHP_FUNC_WORDS 32
#define PHP_FILE       PHP_FUNC_WORDS
#define PHP_LINES      (PHP_FILE + 1)
#define PHP_HASH       (PHP_FILE + 2)
#define PHP_LINE_AT    (PHP_FILE + 3)

WALK_INLINE __u64 php_func_word(const struct ms_walk *w, __u32 off)
{
	__u32 i = off / 8;

	WALK_OPAQUE(i); /* or clang drops the bound that the verifier needs */
	return w->blob[i % PHP_FUNC_WORDS];
}

/* The line of the instruction at `op`, of the function that was read. 0: it is none of its instructions. */
WALK_INLINE __u32 php_line(struct ms_walk *w, __u64 op)
{
	const struct ms_php *p = &w->lang.php;
	__u32 n_ops = (__u32)(php_func_word(w, p->func_n_ops) >> (p->func_n_ops & 4) * 8);

	if (op - php_func_word(w, p->func_ops) >= (__u64)n_ops * PHP_OP_BYTES ||
	    !walk_read(w, &w->blob[PHP_LINE_AT], 4, op + PHP_OP_LINE) || w->blob[PHP_LINE_AT] > MS_PHP_LINE)
		w->blob[PHP_LINE_AT] = 0;
	return (__u32)w->blob[PHP_LINE_AT];
}

/*
 * A generator that another one delegates to (`yield from`) runs with a frame of the other's behind it that has no
 * function and stands for it: it lies in that generator's object. Then the true one is next, and the chain goes on
 * behind it where it would have behind this one.
 */
WALK_INLINE void php_delegating(struct ms_walk *w, __u64 at)
{
	const struct ms_php *p = &w->lang.php;
	__u64 object = w->lang_buf[PHP_FRAME_THIS / 8];

	if ((__u8)w->lang_buf[PHP_FRAME_INFO / 8] != PHP_TYPE_OBJECT || object + p->generator_fake != at ||
	    !walk_read(w, w->blob, 8, object + p->generator_frame))
		return;
	w->lang_after = w->lang_previous;
	w->lang_previous = w->blob[0];
	/* Of several that delegate to one another only the outermost is shown. */
	if (walk_read(w, w->blob, 8, object + p->generator_parent) && w->blob[0] &&
	    walk_read(w, w->blob, 8, w->blob[0] + p->generator_parent) && w->blob[0])
		lang_mismatch(w);
}

/* The function of the frame in w->lang_buf, which lies at `at`. */
WALK_INLINE bool php_load_func(struct ms_walk *w, __u64 at)
{
	const struct ms_php *p = &w->lang.php;
	__u64 func = w->lang_buf[PHP_FRAME_FUNC / 8];
	__u32 info = (__u32)w->lang_buf[PHP_FRAME_INFO / 8], bytes = p->func_file + 16u;
	bool all;

	WALK_OPAQUE(bytes);
	w->blob[PHP_LINES] = w->blob[PHP_HASH] = w->blob[PHP_LINE_AT] = 0;
	/* All that a function of the program has; an internal one's struct is smaller, and may be the last on its page. */
	all = bytes <= PHP_FUNC_WORDS * 8 && walk_read(w, w->blob, bytes, func);
	if (!all) {
		bytes = p->func_ops + 8u;
		WALK_OPAQUE(bytes);
		if (bytes > PHP_FUNC_WORDS * 8 || !walk_read(w, w->blob, bytes, func))
			return false;
	}
	if ((__u8)w->blob[0] != PHP_INTERNAL) {
		w->blob[PHP_FILE] = php_func_word(w, p->func_file);
		w->blob[PHP_LINES] = php_func_word(w, p->func_file + 8u);
		if ((!all && !walk_read(w, &w->blob[PHP_FILE], 16, func + p->func_file)) ||
		    !walk_read(w, &w->blob[PHP_HASH], 8, w->blob[PHP_FILE] + PHP_STRING_HASH))
			return false;
		/* A generator that delegates is in the run of who called it. */
		if (info & PHP_CALL_TOP && !(w->lang_boundary & PHP_DELEGATES))
			w->lang_boundary |= PHP_TOP;
		w->lang_boundary |= PHP_USER;
		if (at == w->lang_info[0] && php_line(w, w->lang_info[1]))
			w->lang_boundary |= PHP_LINE;
		else
			php_line(w, w->lang_buf[PHP_FRAME_OPLINE / 8]);
		if (info & PHP_CALL_CODE && !(info & PHP_CALL_TOP))
			w->blob[PHP_LINE_AT] |= MS_PHP_INCLUDED;
	} else if (!w->blob[PHP_FUNC_NAME / 8]) {
		return true; /* where a fiber begins */
	}
	w->lang_words[0] = func | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (__u64)MS_LANG_PHP << MS_LANG_SHIFT |
			   w->blob[PHP_LINE_AT] |
			   ms_php_cookie(w->blob[PHP_FUNC_NAME / 8], w->blob[PHP_FUNC_SCOPE / 8],
					 php_func_word(w, p->func_ops), w->blob[PHP_LINES], w->blob[PHP_HASH]);
	return true;
}

/*
 * Reads the frame at `at`: its words into w->lang_words, none for one that has no function, and w->lang_previous and
 * w->lang_boundary. The line is that of w->lang_info if it is of this frame.
 */
WALK_INLINE bool php_load(struct ms_walk *w, __u64 at)
{
	if (!lang_buf_read(w, at, PHP_FRAME_BYTES))
		return false;
	w->lang_previous = w->lang_after ? w->lang_after : w->lang_buf[PHP_FRAME_PREVIOUS / 8];
	w->lang_boundary = w->lang_after ? PHP_DELEGATES : 0;
	w->lang_after = 0;
	w->lang_words[0] = w->lang_words[1] = 0;
	if (w->lang_buf[PHP_FRAME_FUNC / 8])
		return php_load_func(w, at);
	if (!w->lang_boundary)
		php_delegating(w, at);
	return true;
}

/* The frame of a copied chain (walk_lang.h) that the registers are of, with the line that they say. */
WALK_INLINE void php_load_again(struct ms_walk *w, __u64 at, const struct lang_link *link)
{
	__u64 words[2] = { w->lang_words[0], w->lang_words[1] };
	bool same = at == w->lang_info[0] && php_load(w, at) && w->lang_boundary & PHP_LINE &&
		    words[0] == w->lang_words[0] && !((words[1] ^ w->lang_words[1]) & MS_PHP_COOKIES);

	w->lang_previous = link->previous;
	w->lang_boundary = link->boundary & ~PHP_LINE;
	w->lang_after = 0;
	if (same) {
		w->lang_boundary |= PHP_LINE;
	} else {
		w->lang_words[0] = words[0];
		w->lang_words[1] = words[1];
	}
}

/*
 * Has the native frame taken its run out of the chain, whose head is `at`? Otherwise, if its own frame was called by that
 * head: it is being begun or left, and the head has written what it executes.
 */
WALK_INLINE bool php_has_left(struct ms_walk *w, __u64 at)
{
	__u64 own = w->lang_info[0];

	if (!own || own == at)
		return false;
	if (!lang_buf_read(w, own, PHP_FRAME_BYTES)) {
		w->lang_info[0] = 0;
		return false;
	}
	if (lang_buf_word(w, PHP_FRAME_PREVIOUS) != at)
		return false;
	w->lang_info[0] = 0;
	w->lang_entry |= PHP_CALLED;
	return lang_buf_half(w, PHP_FRAME_INFO) & PHP_CALL_TOP;
}

/* The frame at `at`, of the chain in memory or its copy. */
WALK_INLINE bool php_take(struct ms_walk *w, __u64 at, int copied, const struct lang_link *link)
{
	if (copied == CHAIN_COPIED)
		php_load_again(w, at, link);
	return copied == CHAIN_COPIED || (copied == CHAIN_NONE && php_load(w, at));
}

WALK_INLINE int php_next(struct ms_walk *w)
{
	bool first = !(w->lang_entry & PHP_CHECKED);
	struct lang_link link = {};
	__u64 at = w->lang_at;
	int copied;

	if (w->lang_running == 2)
		return LANG_NONE;
	copied = at ? walk_chain_link(w, at, &link) : CHAIN_NONE;
	if (first) {
		w->lang_entry |= PHP_CHECKED;
		if (copied == CHAIN_NONE && php_has_left(w, at))
			return LANG_NONE;
		if (copied == CHAIN_COPIED && !walk_chain_has(w, w->lang_info[0]))
			w->lang_info[0] = 0;
	}
	if (!at) {
		lang_mismatch(w);
		return LANG_NONE;
	}
	if (!php_take(w, at, copied, &link))
		return lang_lose(w, MS_LOST_FRAME);
	w->lang_at = w->lang_previous;
	if (w->lang_boundary & PHP_USER) {
		bool own = at == w->lang_info[0];

		/* What it executes is in a register that is not known. */
		if ((own || (first && !w->lang_info[0])) && !(w->lang_boundary & PHP_LINE) &&
		    !(w->lang_entry & PHP_CALLED))
			w->lang_words[1] &= ~(__u64)MS_PHP_LINE;
		if (own)
			w->lang_info[0] = 0;
		if (w->lang_boundary & PHP_TOP && !w->lang_info[0])
			w->lang_running = 2;
	}
	w->lang_entry |= PHP_CALLED;
	return w->lang_words[0] ? LANG_FRAME : LANG_SKIP;
}

/*
 * A fiber has a stack of its own, whose first function is assembly without rows; its chain ends with a frame of an internal
 * function without a name. Is that what comes next? Whoever resumed the fiber is on another stack.
 */
WALK_INLINE bool php_ends(struct ms_walk *w)
{
	__u64 func;

	if (!w->lang_begun || !lang_buf_read(w, w->lang_at, PHP_FRAME_BYTES))
		return false;
	func = lang_buf_word(w, PHP_FRAME_FUNC);
	return lang_buf_read(w, func, PHP_FUNC_SCOPE) && (lang_buf_word(w, 0) & 0xff) == PHP_INTERNAL &&
	       !lang_buf_word(w, PHP_FUNC_NAME);
}

#define PHP_JIT_FRAMES 3

/*
 * The JIT compiler's code (opcache.jit) is jumped to by execute_ex() and uses its stack frame, and the register that has
 * zend_execute_data; no row describes it. Is the present code such? Its frame is then one of the next in the chain: the one that
 * executes, or the one that has called PHP's functions that come before it; or it has just left the chain, and the next one has
 * called it.
 */
WALK_INLINE bool php_is_jit(struct ms_walk *w)
{
	__u32 reg = w->lang.php.frame_reg % MS_N_REGS;
	__u64 state, at;

	/* What lies in a file and has no row there is assembly of another kind. */
	if (!reg || !(w->known >> reg & 1) || w->has_rows || lang_executes(w))
		return false;
	if (!w->lang_begun && walk_chain_head(w) == CHAIN_NONE &&
	    (!lang_thread(w, &state) || !php_begin(w, state)))
		return false;
	at = w->lang_at;
	for (int i = 0; i < PHP_JIT_FRAMES && at; i++) {
		if (at == w->regs[reg])
			return true;
		if (!walk_read(w, w->blob, 8, at + PHP_FRAME_PREVIOUS))
			return false;
		at = w->blob[0];
	}
	return w->lang_at && walk_read(w, w->blob, 8, w->regs[reg] + PHP_FRAME_PREVIOUS) &&
	       w->blob[0] == w->lang_at;
}

/* Code without rows. A step: enum walk_managed_step. */
WALK_INLINE int php_step(struct ms_walk *w)
{
	if (php_is_jit(w)) {
		/* As if it were in the function whose frame it has. */
		walk_notes_drop(w);
		w->lang_entry |= PHP_JIT;
		w->pc = w->lang.range[0].start + w->lang.php.prologue;
		w->exact = 1;
		return MANAGED_CALLER;
	}
	if (!php_ends(w))
		return MANAGED_NOT_ITS;
	walk_end(w, MS_COMPLETE);
	return MANAGED_END;
}

#endif
