/*
 * Frames of an interpreted language among a stack's native ones (bpf/walk/walk_lang.h, which says how they
 * belong together; it is the walker here, too). Part of exact.c.
 *
 * A language's frames change where the native stack does not, so what was kept of that says nothing of them.
 * All of them are looked at in each call whose native stack has an interpreter in it (struct exact_node), and
 * are one number with that: a stack whose number is known has its site. The others are walked.
 *
 * They lie in the program's memory, and are loaded as they are if this thread holds the interpreter's lock, by
 * the interpreter's own account: then nobody else frees them. Even so each page is asked for once, of the
 * kernel, since the offsets may be another build's. Else (the lock is released, or the interpreter is being
 * finalized, which frees the frames of threads that are still there) all is read through the kernel.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_LANG_H
#define MEMSCOPE_PRELOAD_EXACT_LANG_H

/* The process's, if it has one: exact_interpreter(). */
static struct exact_interpreter interpreter;

/* --- what is there ------------------------------------------------------------------------------ */

static SLOW bool lang_ask(struct thread *t, uint64_t page)
{
	uint8_t byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(page * MS_PAGE_BYTES), 1 };
	int before = errno;
	long n;

	if (no_syscalls || !page || page >= MS_USER_TOP / MS_PAGE_BYTES)
		return false;
	n = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, &from, 1, 0);
	errno = before;
	if (n != 1)
		return false;
	t->lang_pages[page % LANG_PAGES] = page;
	return true;
}

static inline bool lang_page(struct thread *t, uint64_t page)
{
	return LIKELY(t->lang_pages[page % LANG_PAGES] == page) || lang_ask(t, page);
}

/* May it be loaded? Only between lang_enter() and lang_leave(). */
static inline bool lang_is_there(struct thread *t, uint64_t addr, uint64_t size)
{
	uint64_t page = addr / MS_PAGE_BYTES, last = (addr + size - 1) / MS_PAGE_BYTES;

	return lang_page(t, page) && (page == last || lang_page(t, last));
}

/* --- the chain ---------------------------------------------------------------------------------- */

static inline uint64_t thread_base(void)
{
	uint64_t base;

#if MS_WALK_ARM64
	__asm__("mrs %0, tpidr_el0" : "=r"(base));
#else
	__asm__("movq %%fs:0, %0" : "=r"(base)); /* the first word is its own address */
#endif
	return base;
}

/* Does this thread hold the interpreter's lock, with this state? */
static inline bool lang_holds(uint64_t state)
{
	return interpreter.current && state && (uint64_t)(uintptr_t)interpreter.current() == state &&
	       !interpreter.finalizing();
}

static inline uint64_t lang_word(const char *at, uint32_t off)
{
	uint64_t word;

	__builtin_memcpy(&word, at + off, sizeof(word));
	return word;
}

static inline const char *lang_bytes(struct thread *t, uint64_t addr, uint64_t size)
{
	return is_near(t, addr, size) || lang_is_there(t, addr, size) ? (const char *)addr : NULL;
}

/* All that walk_lang() will make of the chain, as a number. 0: it cannot be read. */
static inline uint64_t chain_number(struct thread *t, uint64_t sp)
{
	const struct ms_walk *w = &t->walk;
	const struct ms_python *p = &w->lang.python;
	uint64_t at = w->lang_at, entry = w->lang_entry, h = mix(entry - sp, 1);
	uint32_t base = p->code_first_line & ~7u;

	for (uint32_t i = 0; at && i < MS_MAX_FRAMES / 2; i++) {
		const char *frame = lang_bytes(t, at, p->frame_bytes), *code;
		uint64_t object, instr;
		uint8_t boundary;

		if (!frame)
			return 0;
		object = lang_word(frame, p->frame_code) & ~(uint64_t)p->code_mask;
		boundary = (uint8_t)frame[p->frame_boundary];
		if (p->boundary_kind == MS_PYTHON_OWNER && boundary >= p->boundary) {
			h = mix(h ^ (at - sp), 2);
			at = lang_word(frame, p->frame_previous);
			continue;
		}
		code = lang_bytes(t, object + base, p->code_linetable + 8u - base);
		if (!code)
			return 0;
		instr = lang_word(frame, p->frame_instr & ~7u);
		if (p->instr_kind == MS_PYTHON_LASTI)
			instr = (uint32_t)(instr >> (p->frame_instr & 4) * 8);
		h = mix(h ^ object, instr);
		h = mix(h ^ lang_word(code, p->code_name - base),
			lang_word(code, p->code_linetable - base) << 1 ^
				(uint32_t)(lang_word(code, 0) >> (p->code_first_line & 4) * 8));
		if (p->boundary_kind == MS_PYTHON_ENTRY && boundary == p->boundary) {
			code = lang_bytes(t, entry + p->cframe_previous, 8);
			if (!code)
				return 0;
			entry = lang_word(code, 0);
			h = mix(h ^ (entry - sp), 3);
		}
		at = lang_word(frame, p->frame_previous);
	}
	return h ? h : 1;
}

/*
 * Of a stack that has an interpreter in it, after stack_node(): a number that stands for the chain; 0: it is
 * not to be remembered.
 */
static inline uint64_t lang_key(struct thread *t, uint64_t sp)
{
	struct ms_walk *w = &t->walk;
	__u64 state;
	uint64_t key;

	w->thread_base = thread_base();
	w->lang_at = w->lang_entry = 0;
	t->lang_live = true; /* where a thread keeps its state is its own */
	t->lang_live = lang_thread(w, &state) && lang_holds(state);
	if (UNLIKELY(!t->lang_live))
		return 0;
	key = python_begin(w, state) ? chain_number(t, sp) : 0;
	t->lang_live = false;
	return key;
}

/* --- the stack ---------------------------------------------------------------------------------- */

/* Walks it into t->words, leaf first; how many there are. */
static uint32_t lang_walk(struct thread *t)
{
	struct ms_walk *w = &t->walk;
	uint32_t n = 0;

	while (n + 2 < MS_MAX_FRAMES) {
		w->n = n + 1; /* with the allocator's function */
		if (w->lang_running) {
			int step = walk_lang(t->slot);

			if (step == LANG_FRAME) {
				t->words[n++] = w->lang_words[0];
				t->words[n++] = w->lang_words[1];
				continue;
			}
			if (step == LANG_NOT_OURS)
				n = w->lang_n - 1;
			t->words[n++] = w->lang_native;
			w->lang_running = 0;
			if (w->lang_ended)
				return n;
		} else if (lang_executes(w)) {
			walk_lang_enter(w);
			walk_lang_entered(w, walk_step(w, t->slot));
		} else {
			t->words[n++] = walk_frame(w);
			if (!walk_step(w, t->slot))
				return n;
		}
	}
	w->verdict = MS_TRUNCATED;
	return n;
}

/* The node of a call's stack with the language's frames; 0: no room. `key`: lang_key(). */
static SLOW uint32_t lang_node(struct thread *t, struct exact_area *a, uint64_t pc, uint64_t sp,
			       uint64_t fp, uint64_t key, enum ms_verdict *ret_verdict)
{
	uint32_t node = t->generation, n;

	walk_start(t, pc, sp, fp);
	t->walk.notes.kept = 0;
	t->lang_live = key != 0;
	n = lang_walk(t);
	t->lang_live = false;
	*ret_verdict = (enum ms_verdict)t->walk.verdict;
	while (n-- > 0 && node)
		node = child(a, node, t->words[n]);
	return node;
}

#endif
