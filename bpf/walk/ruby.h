/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ruby's frames (MRI 2.7 to 3.4), in a walk (walk_lang.h). Sources: vm_core.h, vm_exec.c, vm_insnhelper.c, method.h and
 * internal/imemo.h of each version.
 *
 *   execution context ─► rb_control_frame_t[], the innermost first, to the end of the VM stack
 *
 * vm_exec_core() executes a run of frames; rb_vm_exec() calls it, again after each exception that a frame of the run
 * rescues. A frame that was entered by a call of rb_vm_exec() has FINISH among the flags of its environment, and is the last
 * of its run. Methods in C have frames, too; those are of the run that called them. So are frames of blocks in C, and one at
 * the bottom of each stack, which are not shown, as Ruby itself does not.
 *
 * A frame is pushed before rb_vm_exec() is called, and popped before it returns. vm_exec_core() keeps the address of the frame
 * that it executes in a register (r15: DECL_SC_REG in vm_exec.c), which its callees restore: so what it executes is known, and
 * with it whether frames before it are of a call that has not come to vm_exec_core() yet (they are emitted here: all native
 * frames below are the interpreter's), or whether its run has been popped.
 */
#ifndef MEMSCOPE_WALK_RUBY_H
#define MEMSCOPE_WALK_RUBY_H

#define RUBY_NO_REG 0xff
#define RUBY_TAIL   6 /* frames of C at the end of a VM stack that are looked for */

/* rb_execution_context_t: the VM stack, its size in words, the innermost frame. */
#define RUBY_EC_BYTES 24
/* rb_control_frame_t, in words: pc, sp, iseq, self, ep. */
#define RUBY_FRAME_PC    0
#define RUBY_FRAME_ISEQ  16
#define RUBY_FRAME_EP    32
#define RUBY_FRAME_BYTES 40
/* An environment: before where ep points, a method entry or what stands for it, and the flags there. */
#define RUBY_ENV_BEFORE 16
#define RUBY_ENV_BYTES  24
#define RUBY_MAGIC      0x7fff0001ULL
#define RUBY_METHOD     0x11110001ULL
#define RUBY_CFUNC      0x55550001ULL
#define RUBY_LOCAL      0x02 /* the environment of a method, or of what is in none */
#define RUBY_FINISH     0x20
#define RUBY_CFRAME     0x80
/* rb_iseq_t: its body; there: type:4 size:4 code:8. */
#define RUBY_ISEQ_BODY  16
#define RUBY_BODY_BYTES 16
/* rb_callable_method_entry_t, in words: flags, defined_class, def, called_id, owner. svar: flags, method entry. */
#define RUBY_ENTRY_BYTES 40
#define RUBY_IMEMO(flags) ((flags) & 0xf01f)
#define RUBY_IMEMO_SVAR  0x201a /* enum imemo_type at bit 12, and T_IMEMO */
#define RUBY_IMEMO_ENTRY 0x601a
#define RUBY_NESTED      8 /* blocks within blocks, up to the method that they are in */

/* w->lang_running */
enum ruby_run {
	RUBY_RUN_BEGINS = 1,
	RUBY_RUN_ENDED,
	RUBY_RUN,
	RUBY_RUN_TAIL, /* its last frame has been emitted, and those behind it are of C */
};

/* The head of the chain of the thread whose execution context is at `ec`. */
WALK_INLINE bool ruby_begin(struct ms_walk *w, __u64 ec)
{
	const struct ms_ruby *r = &w->lang.ruby;
	__u64 stack, end, sp = w->regs[MS_WALK_SP];

	w->blob_len = 0;
	if (!lang_buf_read(w, ec, RUBY_EC_BYTES))
		return false;
	stack = lang_buf_word(w, 0);
	end = stack + 8 * lang_buf_word(w, 8);
	w->lang_at = lang_buf_word(w, 16);
	w->lang_entry = end;
	if (w->lang_at < stack || w->lang_at > end || end >= MS_USER_TOP)
		return false;
	/* One word for all threads: that of who has the GVL. It is this thread's if it is on its C stack. */
	if (!r->stack_start)
		return true;
	return lang_buf_read(w, ec + r->stack_start, r->stack_bytes + 8 - r->stack_start) &&
	       sp <= lang_buf_word(w, 0) &&
	       sp >= lang_buf_word(w, 0) - lang_buf_word(w, r->stack_bytes - r->stack_start);
}

/* The entry of the method that the environment names at `at`, into w->lang_buf. 0: none. */
WALK_INLINE __u64 ruby_entry(struct ms_walk *w, __u64 at)
{
	for (int i = 0; i < 2; i++) {
		if (at & 7 || !lang_buf_read(w, at, RUBY_ENTRY_BYTES))
			return 0;
		if (RUBY_IMEMO(lang_buf_word(w, 0)) == RUBY_IMEMO_ENTRY)
			return at;
		if (RUBY_IMEMO(lang_buf_word(w, 0)) != RUBY_IMEMO_SVAR)
			return 0;
		at = lang_buf_word(w, 8);
	}
	return 0;
}

WALK_INLINE void ruby_words(struct ms_walk *w, __u64 at, __u64 cookie, __u64 instr)
{
	w->lang_words[0] = at | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
			   (__u64)MS_LANG_RUBY << MS_LANG_SHIFT | cookie << 32 | instr;
}

/* A frame of code at `pc` of `iseq`: by the iseq; its body and code into w->code. false: that cannot be read. */
WALK_INLINE bool ruby_load_iseq(struct ms_walk *w, __u64 iseq, __u64 pc)
{
	__u64 body;

	if (!walk_read(w, &body, sizeof(body), iseq + RUBY_ISEQ_BODY) ||
	    !lang_buf_read(w, body, RUBY_BODY_BYTES))
		return false;
	pc = (pc - lang_buf_word(w, 8)) / 8;
	if (pc > lang_buf_half(w, 4) || pc > MS_RUBY_AT)
		pc = MS_RUBY_AT;
	w->code[0] = body;
	w->code[1] = lang_buf_word(w, 8);
	ruby_words(w, iseq, ms_ruby_cookie(body, lang_buf_word(w, 8), lang_buf_half(w, 4)), pc);
	return true;
}

/* The frame in w->lang_words by its method, where that has an entry. */
WALK_INLINE void ruby_by_method(struct ms_walk *w, __u64 method)
{
	__u64 iseq = w->lang_words[0] & MS_FRAME_ADDR_MASK;

	method = ruby_entry(w, method);
	if (method)
		ruby_words(w, method, ms_ruby_cookie(lang_buf_word(w, 16), lang_buf_word(w, 32), iseq),
			   MS_RUBY_METHOD | (__u32)w->lang_words[1]);
}

/*
 * The same of code inside of a method, with the environment `ep`: each leads to the one around it, up to the first that has
 * a method entry (rb_vm_frame_method_entry() in vm.c).
 */
WALK_INLINE void ruby_by_method_around(struct ms_walk *w, __u64 ep)
{
	__u64 method = 0;

	for (int i = 0; i < RUBY_NESTED; i++) {
		if (!lang_buf_read(w, ep - RUBY_ENV_BEFORE, RUBY_ENV_BYTES))
			return;
		method = lang_buf_word(w, 0);
		if (lang_buf_word(w, RUBY_ENV_BEFORE) & RUBY_LOCAL)
			break;
		ep = lang_buf_word(w, 8) & ~3ULL;
		/* What instance_eval() puts there is no entry. */
		if (method && !(method & 7) && lang_buf_read(w, method, sizeof(__u64)) &&
		    RUBY_IMEMO(lang_buf_word(w, 0)) == RUBY_IMEMO_ENTRY)
			break;
		method = 0;
	}
	if (!method)
		return;
	method = ruby_entry(w, method);
	if (!method || method & ~MS_RUBY_ADDR || (__u32)w->lang_words[1] >= MS_RUBY_INSIDE_AT)
		return;
	w->code[2] = ms_ruby_cookie(w->code[0], w->code[1], lang_buf_word(w, 32));
	w->lang_words[0] = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT |
			   ms_ruby_inside(w->lang_words[0] & MS_RUBY_ADDR, (__u32)w->lang_words[1]);
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (__u64)MS_LANG_RUBY << MS_LANG_SHIFT |
			   ms_ruby_inside_at(method, (__u32)w->lang_words[1], w->code[2]);
}

/* Reads the frame at `at`, with as many as there is room for of those behind it. */
WALK_INLINE bool ruby_near(struct ms_walk *w, __u64 at)
{
	__u64 len = w->lang_entry - at;

	if (lang_is_near(w, at, RUBY_FRAME_BYTES))
		return true;
	if (len > sizeof(w->blob))
		len = sizeof(w->blob);
	return (len >= RUBY_FRAME_BYTES && lang_near(w, at, (__u32)len & ~7u)) || lang_near(w, at, RUBY_FRAME_BYTES);
}

/* Reads the frame at `at`: its words into w->lang_words, none for one that is not shown, and its link. What is read is kept there, and not on
 * the program's stack, of which there is little. */
WALK_INLINE bool ruby_load(struct ms_walk *w, __u64 at)
{
	__u64 method, flags;

	if (!ruby_near(w, at))
		return false;
	w->lang_words[0] = lang_near_word(w, at + RUBY_FRAME_ISEQ);
	w->lang_words[1] = lang_near_word(w, at + RUBY_FRAME_PC);
	w->code[3] = lang_near_word(w, at + RUBY_FRAME_EP);
	if (!lang_buf_read(w, w->code[3] - RUBY_ENV_BEFORE, RUBY_ENV_BYTES))
		return false;
	at += w->lang.ruby.frame_bytes;
	w->lang_previous = at < w->lang_entry ? at : 0;
	method = lang_buf_word(w, 0);
	flags = lang_buf_word(w, RUBY_ENV_BEFORE);
	w->lang_boundary = !!(flags & RUBY_FINISH);
	if ((flags & RUBY_MAGIC) == RUBY_CFUNC) {
		method = ruby_entry(w, method);
		ruby_words(w, method, ms_ruby_cookie(lang_buf_word(w, 16), lang_buf_word(w, 32), 0),
			   MS_RUBY_METHOD | MS_RUBY_CFUNC);
		return method;
	}
	if (flags & RUBY_CFRAME || !w->lang_words[0] || !w->lang_words[1]) {
		w->lang_words[0] = w->lang_words[1] = 0;
		return true;
	}
	if (!ruby_load_iseq(w, w->lang_words[0], w->lang_words[1]))
		return false;
	if ((flags & RUBY_MAGIC) == RUBY_METHOD)
		ruby_by_method(w, method);
	else
		ruby_by_method_around(w, w->code[3]);
	return true;
}

/* Is the present native frame rb_vm_exec()? */
WALK_INLINE bool ruby_is_outer(const struct ms_walk *w)
{
	__u64 pc = (w->lang_native & MS_FRAME_ADDR_MASK) - !w->lang_exact;
	__u32 in = 0;

	WALK_UNROLL
	for (int i = 0; i < MS_LANG_RANGES; i++)
		in |= (__u32)(pc - w->lang.range[i].start <
			      w->lang.range[i].end - w->lang.range[i].start)
		      << i;
	return in & w->lang.ruby.outer;
}

/* The register that has the frame which vm_exec_core() executes. */
WALK_INLINE void ruby_enter(struct ms_walk *w)
{
	__u32 reg = w->lang.ruby.cfp_reg;

	w->lang_reg = 0;
	if (reg >= MS_N_REGS || !(w->known >> reg & 1))
		return;
	WALK_OPAQUE(reg);
	w->lang_reg = w->regs[reg % MS_N_REGS];
}

/* Before the first frame of a run. false: it has none. */
WALK_INLINE bool ruby_run(struct ms_walk *w)
{
	bool inner = w->lang_inner;

	w->lang_inner = 0;
	if (ruby_is_outer(w)) {
		w->lang_reg = 0;
		return !inner;
	}
	w->lang_inner = !!w->lang.ruby.outer;
	/* It has not been set yet. */
	if (w->lang_exact &&
	    (w->lang_native & MS_FRAME_ADDR_MASK) - w->lang.range[0].start < w->lang.ruby.ready)
		w->lang_reg = 0;
	if (!w->lang_reg || w->lang_reg >= w->lang_at)
		return true;
	/* What it executed has been popped: its last frame, or one of several? */
	if (w->lang_reg + w->lang.ruby.frame_bytes != w->lang_at || walk_chain_is_copied(w) ||
	    !walk_read(w, &w->lang_words[0], sizeof(__u64), w->lang_reg + RUBY_FRAME_EP) ||
	    !walk_read(w, &w->lang_words[1], sizeof(__u64), w->lang_words[0])) {
		lang_mismatch(w);
		return false;
	}
	return !(w->lang_words[1] & RUBY_FINISH);
}

/*
 * Are the frames from `at` on, to the end of the VM stack, all of C? Then no rb_vm_exec() is to come for them: a fiber's may be
 * entered in C, as an Enumerator's is.
 */
WALK_INLINE bool ruby_is_tail(struct ms_walk *w, __u64 at)
{
	__u64 left = w->lang_entry - at;

	if (left > RUBY_TAIL * (__u64)w->lang.ruby.frame_bytes)
		return !at; /* more than are looked for */
	if (at && !walk_chain_is_copied(w) && !lang_is_near(w, at, (__u32)left) &&
	    !lang_near(w, at, (__u32)left))
		return false;
	for (int i = 0; i < RUBY_TAIL && at; i++) {
		if (walk_chain_is_copied(w) ? !walk_chain_is_of_c(w, at)
					    : !lang_is_near(w, at, 8) || lang_near_word(w, at + RUBY_FRAME_PC))
			return false;
		at += w->lang.ruby.frame_bytes;
		at = at < w->lang_entry ? at : 0;
	}
	return !at;
}

/* The frame at `at`, from where it is or from its copy. */
WALK_INLINE bool ruby_frame(struct ms_walk *w, __u64 at)
{
#ifdef WALK_CHAINS
	struct lang_link link = {};
	int copied = walk_chain_link(w, at, &link);

	if (copied != CHAIN_NONE) {
		w->lang_previous = link.previous;
		w->lang_boundary = link.boundary;
		return copied == CHAIN_COPIED;
	}
#endif
	return ruby_load(w, at);
}

WALK_INLINE int ruby_next(struct ms_walk *w)
{
	__u64 at = w->lang_at;

	if (w->lang_running == RUBY_RUN_ENDED || (w->lang_running == RUBY_RUN_TAIL && !at))
		return LANG_NONE;
	if (w->lang_running == RUBY_RUN_BEGINS) {
		if (!ruby_run(w))
			return LANG_NONE;
		w->lang_running = RUBY_RUN;
	}
	if (!at) {
		lang_mismatch(w);
		return LANG_NONE;
	}
	if (!ruby_frame(w, at))
		return lang_lose(w, MS_LOST_FRAME);
	w->lang_at = w->lang_previous;
	if (w->lang_running == RUBY_RUN && w->lang_boundary && at >= w->lang_reg)
		w->lang_running = ruby_is_tail(w, w->lang_at) ? RUBY_RUN_TAIL : RUBY_RUN_ENDED;
	return w->lang_words[0] ? LANG_FRAME : LANG_SKIP;
}

#endif
