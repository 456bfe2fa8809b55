/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of interpreted languages, in a walk (walk_cfi.h, which says how memory is read; one source for
 * the kernel and the host).
 *
 * An interpreter's frames are a chain in its own memory. Its C function that executes them is on the native
 * stack once for each entry into the interpreter, and executes a run of the chain:
 *
 *   native stack                 chain                     what is recorded, leaf first
 *   libc: read                                             read
 *   libpython: builtin_read                                builtin_read
 *   _PyEval_EvalFrameDefault     get_line ─► parse         get_line, parse, _PyEval_EvalFrameDefault
 *   libpython: list_sort                                   list_sort
 *   _PyEval_EvalFrameDefault     main ─► <module>          main, <module>, _PyEval_EvalFrameDefault
 *   main                                                   main
 *
 * So a walk that comes to such a function emits a run, keeps its place in the chain, and goes on natively. Where
 * a run ends is the language's to say.
 *
 * A thread is interrupted anywhere: also when the function has been called and has not put its run into the chain
 * yet, or has taken it out. The run found then belongs to an outer call, and the next such frame is the one that
 * emits it. What tells them apart is something of the run's call that lies on the C stack (`lang_entry`): in the
 * native frame that it belongs to, or not. That is why the native step is made first. Where there is no such thing
 * (CPython up to 3.10), or the two do not match otherwise, the stack is guessed, and counted.
 *
 * Managed code is machine code of a language that has a stack, or a way from frame to frame, of its own, which no row
 * describes: Haskell's, or what a virtual machine compiles. There a rule of the language is the step: walk_by_lang(). It
 * is asked wherever the walk comes to code without rows, also such as keeps frame pointers, with w->managed 0, and says
 * whether that is the language's at all. It must prove that by what it reads (a runtime's struct, a code object's
 * head), as no other check is made; or by the pc, where the code is in ranges of the row. It puts the caller's pc, and the
 * registers that it knows, where native steps do; and w->exact where the pc is that of the code and not a return
 * address. Until it clears w->managed, if it has set that, each further step is the rule's, without a look at tables.
 *
 * The present frame is recorded after the step: as two words of the language where the rule has put them into
 * w->lang_words, not at all where w->managed was MS_MANAGED_HIDDEN, and else as its address, which symbols name.
 */
#ifndef MEMSCOPE_WALK_WALK_LANG_H
#define MEMSCOPE_WALK_WALK_LANG_H

#include "walk/walk_cfi.h"

enum lang_step {
	LANG_NONE,   /* the run has ended, if there was one: w->lang_native comes next */
	LANG_FRAME,  /* w->lang_words */
	LANG_NOT_OURS, /* the same as LANG_NONE, but what was emitted of the run is an outer frame's: w->lang_n is how
			* many frames stay */
	LANG_SKIP, /* a frame of the chain that is not shown */
};

/* Besides its words, of a frame of the chain. */
struct lang_link {
	__u64 previous; /* the frame that called it; 0: there is none */
	__u8 boundary;
};

/*
 * Has the chain been copied together with the stack (struct ms_chain_rec)? An includer that walks such copies defines
 * WALK_CHAINS and says how it is taken from there: walk_chain_head() sets lang_at and lang_entry, walk_chain_link() the
 * words and the link of the frame at `at`, walk_chain_has() whether there is one,
 * walk_chain_is_copied() whether there is a copy, and walk_chain_is_of_c() whether the frame has no code of the language.
 */
enum lang_chain {
	CHAIN_NONE, /* it is read where it is        */
	CHAIN_COPIED,
	CHAIN_LOST, /* this of it could not be copied */
};

#ifdef WALK_CHAINS
WALK_INLINE int walk_chain_head(struct ms_walk *w);
WALK_INLINE int walk_chain_link(struct ms_walk *w, __u64 at, struct lang_link *ret_link);
WALK_INLINE bool walk_chain_has(struct ms_walk *w, __u64 at);
WALK_INLINE bool walk_chain_is_copied(struct ms_walk *w);
WALK_INLINE bool walk_chain_is_of_c(struct ms_walk *w, __u64 at);
#else
#define walk_chain_head(w)               CHAIN_NONE
#define walk_chain_link(w, at, ret_link) CHAIN_NONE
#define walk_chain_has(w, at)            true
#define walk_chain_is_copied(w)          false
#define walk_chain_is_of_c(w, at)        false
#endif

/* The word that a thread's state is found by. false: it cannot be read. */
WALK_INLINE bool lang_thread(struct ms_walk *w, __u64 *ret_word)
{
	const struct ms_lang_row *lang = &w->lang;
	__u64 at = w->thread_base + lang->off, dtv;

	switch (lang->thread) {
	case MS_THREAD_TLS:
		break;
	case MS_THREAD_DTV:
		if (!walk_read(w, &dtv, sizeof(dtv), w->thread_base + 8) ||
		    !walk_read(w, &at, sizeof(at), dtv + 16 * lang->module))
			return false;
		at += lang->off;
		break;
	case MS_THREAD_GLOBAL:
		at = lang->off;
		break;
	case MS_THREAD_TABLE:
		if (!walk_read(w, &at, sizeof(at), w->thread_base + lang->module))
			return false;
		at += lang->off;
		break;
	default:
		return false;
	}
	return walk_read(w, ret_word, sizeof(*ret_word), at);
}

/* The word at byte `off` of what was read into w->lang_buf; `off` is a multiple of 8. */
WALK_INLINE __u64 lang_buf_word(const struct ms_walk *w, __u32 off)
{
	__u32 i = off / 8;

	WALK_OPAQUE(i); /* or clang drops the bound that the verifier needs */
	return w->lang_buf[i % (MS_LANG_BYTES / 8)];
}

/* The same of 4 bytes, at a multiple of 4. */
WALK_INLINE __u32 lang_buf_half(const struct ms_walk *w, __u32 off)
{
	return (__u32)(lang_buf_word(w, off) >> (off & 4) * 8);
}

/* Reads `bytes`, MS_LANG_BYTES at most, into w->lang_buf. false: they are not in memory. */
WALK_INLINE bool lang_buf_read(struct ms_walk *w, __u64 at, __u32 bytes)
{
	if (at < MS_PAGE_BYTES || at >= MS_USER_TOP)
		return false;
	WALK_OPAQUE(bytes);
	return bytes <= MS_LANG_BYTES && walk_read(w, w->lang_buf, bytes, at);
}

/*
 * Frames that lie side by side are read together: `len` bytes from `from` on, multiples of 8, into w->blob. A word
 * there is lang_near_word(), where lang_is_near().
 */
WALK_INLINE bool lang_near(struct ms_walk *w, __u64 from, __u32 len)
{
	w->blob_len = 0;
	if (from < MS_PAGE_BYTES || from >= MS_USER_TOP)
		return false;
	WALK_OPAQUE(len);
	if (len > sizeof(w->blob) || !walk_read(w, w->blob, len, from))
		return false;
	w->blob_at = from;
	w->blob_len = len;
	return true;
}

WALK_INLINE bool lang_is_near(const struct ms_walk *w, __u64 at, __u32 bytes)
{
	return at >= w->blob_at && at - w->blob_at + bytes <= w->blob_len;
}

WALK_INLINE __u64 lang_near_word(const struct ms_walk *w, __u64 at)
{
	__u64 i = (at - w->blob_at) / 8;

	WALK_OPAQUE(i); /* or clang drops the bound that the verifier needs */
	return w->blob[i % (sizeof(w->blob) / 8)];
}

/* What stands for a run that cannot be read. */
WALK_INLINE int lang_lose(struct ms_walk *w, __u32 why)
{
	w->lang_lost = 1 + why;
	w->lang_words[0] = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	w->lang_words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
			   (__u64)w->lang.lang << MS_LANG_SHIFT | why;
	return LANG_FRAME;
}

/* Is `pc` in one of the row's ranges? Without a branch: the verifier would follow both ways of each. */
WALK_INLINE bool lang_in_ranges(const struct ms_walk *w, __u64 pc)
{
	__u64 in = 0;

	WALK_UNROLL
	for (int i = 0; i < MS_LANG_RANGES; i++) {
		__u64 off = pc - w->lang.range[i].start;

		in |= (off - (w->lang.range[i].end - w->lang.range[i].start)) & ~off;
	}
	return in >> 63;
}

/* Does the present native frame execute frames of the language? */
WALK_INLINE bool lang_executes(const struct ms_walk *w)
{
	__u64 pc = w->exact ? w->pc : w->pc - 1;

	return lang_in_ranges(w, pc);
}

WALK_INLINE void php_enter(struct ms_walk *w);
WALK_INLINE void ruby_enter(struct ms_walk *w);

/* Before and after the step from such a frame to its caller; `more`: there is one. */
WALK_INLINE void walk_lang_enter(struct ms_walk *w)
{
	walk_notes_drop(w); /* the chain changes where the stack does not */
	w->lang_native = walk_frame(w);
	w->lang_exact = w->exact;
	w->lang_low = w->regs[MS_WALK_SP];
	w->lang_n = w->n;
	w->lang_running = 1;
	if (w->lang.lang == MS_LANG_PHP)
		php_enter(w);
	if (w->lang.lang == MS_LANG_RUBY)
		ruby_enter(w);
}

WALK_INLINE void walk_lang_entered(struct ms_walk *w, bool more)
{
	w->lang_ended = !more;
	w->lang_high = w->regs[MS_WALK_SP];
	w->lang_first = w->lang_at;
}

/* The native frame and the run do not match. */
WALK_INLINE void lang_mismatch(struct ms_walk *w)
{
	w->lang_short = 1;
	w->guessed = 1;
	if (w->lang_ended && w->verdict == MS_COMPLETE)
		w->verdict = MS_GUESSED;
}

#include "walk/php.h"
#include "walk/python.h"
#include "walk/perl.h"
#include "walk/ruby.h"
#ifndef WALK_NO_MANAGED
#include "walk/ghc.h"
#include "walk/hotspot.h"
#include "walk/v8.h"
#endif

/*
 * The head of the chain of the thread whose word (lang_thread()) is `state` into w->lang_at, 0 where it is empty, and
 * w->lang_entry. false: it cannot be read.
 */
WALK_INLINE bool lang_chain_begin(struct ms_walk *w, __u64 state)
{
	switch (w->lang.lang) {
	case MS_LANG_PYTHON:
		return python_begin(w, state);
	case MS_LANG_PHP:
		return php_begin(w, state);
	case MS_LANG_PERL:
		return perl_begin(w, state);
	case MS_LANG_RUBY:
		return ruby_begin(w, state);
	default:
		return false;
	}
}

/* Reads the frame at `at`: its words into w->lang_words, none for one that is not shown. false: it cannot be read. */
WALK_INLINE bool lang_chain_load(struct ms_walk *w, __u64 at, struct lang_link *ret_link)
{
	switch (w->lang.lang) {
	case MS_LANG_PYTHON:
		return python_load(w, at, ret_link);
	case MS_LANG_PHP:
		if (!php_load(w, at))
			return false;
		*ret_link = (struct lang_link){ w->lang_previous, w->lang_boundary };
		return true;
	case MS_LANG_PERL:
		return perl_load(w, at, ret_link);
	case MS_LANG_RUBY:
		if (!ruby_load(w, at))
			return false;
		*ret_link = (struct lang_link){ w->lang_previous, w->lang_boundary };
		return true;
	default:
		return false;
	}
}

/* Each language's has a function, for the stack that it takes; walks have 512 bytes in all on old kernels. */
#define LANG_FUNCTION(name, call)             \
	WALK_FUNCTION int name(__u32 slot)    \
	{                                     \
		struct ms_walk *w = walk_of(slot); \
					      \
		return w ? call : 0;          \
	}

LANG_FUNCTION(walk_python_next, python_next(w))
LANG_FUNCTION(walk_php_next, php_next(w))
LANG_FUNCTION(walk_perl_next, perl_next(w))
LANG_FUNCTION(walk_ruby_next, ruby_next(w))

/* The next frame of the run: enum lang_step. */
WALK_INLINE int lang_chain_next(const struct ms_walk *w, __u32 slot)
{
	switch (w->lang.lang) {
	case MS_LANG_PYTHON:
		return walk_python_next(slot);
	case MS_LANG_PHP:
		return walk_php_next(slot);
	case MS_LANG_PERL:
		return walk_perl_next(slot);
	case MS_LANG_RUBY:
		return walk_ruby_next(slot);
	default:
		return LANG_NONE;
	}
}

/* The head of the chain of the present thread. 0: it cannot be read. */
WALK_FUNCTION int walk_lang_begin(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);
	__u64 state;
	int copied;

	if (!w)
		return 0;
	copied = walk_chain_head(w);
	return copied == CHAIN_COPIED ||
	       (copied == CHAIN_NONE && lang_thread(w, &state) && lang_chain_begin(w, state));
}

/* The next frame of the run of a native frame that has been entered: enum lang_step. */
WALK_INLINE int walk_lang(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);

	if (!w)
		return LANG_NONE;
	if (!w->lang_begun) {
		w->lang_begun = 1;
		if (!walk_lang_begin(slot))
			return lang_lose(w, MS_LOST_STATE);
		w->lang_first = w->lang_at;
	}
	if (w->lang_lost)
		return LANG_NONE;
	return lang_chain_next(w, slot);
}

#ifndef WALK_NO_MANAGED
/* HotSpot's heaps of code are found before their mappings are: they grow. */
WALK_INLINE bool walk_is_managed(const struct ms_walk *w)
{
	return w->managed || (!MS_WALK_ARM64 && w->lang.lang == MS_LANG_HOTSPOT && lang_executes(w));
}

#if !MS_WALK_ARM64
LANG_FUNCTION(walk_ghc_enter, ghc_enter(w, slot))
LANG_FUNCTION(walk_ghc_next, ghc_next(w, slot))

WALK_INLINE int walk_ghc(const struct ms_walk *w, __u32 slot)
{
	int step = w->managed ? GHC_NEXT : walk_ghc_enter(slot);

	return step == GHC_NEXT ? walk_ghc_next(slot) : step;
}

LANG_FUNCTION(walk_hotspot_step, lang_executes(w) ? hotspot_step(w, slot) : MANAGED_NOT_ITS)
LANG_FUNCTION(walk_v8_step, v8_step(w, slot))
#endif
LANG_FUNCTION(walk_php_step, php_step(w))

/*
 * From code without rows to its caller, where it is managed code, and from each frame of that to the next one. What
 * is not is left as it is: what a rule has read to find that out is no part of the walk.
 */
WALK_INLINE int walk_by_lang(__u32 slot)
{
	struct ms_walk *w = walk_of(slot);

	if (!w)
		return MANAGED_END;
#if !MS_WALK_ARM64
	switch (w->lang.lang) {
	case MS_LANG_GHC:
		return walk_ghc(w, slot);
	case MS_LANG_HOTSPOT:
		return walk_hotspot_step(slot);
	case MS_LANG_V8:
		if (!v8_may_be(w))
			return MANAGED_NOT_ITS;
		w->lang_compiled = !w->has_rows;
		w->lang_part = w->exact ? v8_leaf(slot) : V8_FRAME;
		return walk_v8_step(slot);
	}
#endif
	return w->lang.lang == MS_LANG_PHP ? walk_php_step(slot) : MANAGED_NOT_ITS;
}
#endif

#endif
