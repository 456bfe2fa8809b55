/*
 * The thread that makes a call, its stack, and the tree of all stacks. Part of exact.c, which says how
 * a walk stops where the last one was.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_STACK_H
#define MEMSCOPE_PRELOAD_EXACT_STACK_H

/* --- what the walker reads ---------------------------------------------------------------------- */

WALK_INLINE struct ms_walk *walk_of(__u32 slot)
{
	(void)slot;
	return &mine->walk;
}

/* Through the kernel; once for what lies close together. */
static SLOW bool read_other(struct thread *t, void *dst, uint32_t size, uint64_t addr)
{
	int before = errno;

	if (addr - t->copy_at >= t->copy_len || size > t->copy_len - (addr - t->copy_at)) {
		uint64_t end = (addr & ~4095ULL) + 4096;
		struct iovec to = { t->copy, sizeof(t->copy) }, from[2];
		ssize_t n;

		from[0] = (struct iovec){ (void *)addr, end - addr };
		from[1] = (struct iovec){ (void *)end, sizeof(t->copy) - (end - addr) };
		n = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, from, 2, 0);
		errno = before;
		t->copy_at = addr;
		t->copy_len = n > 0 ? (uint64_t)n : 0;
		if (size > t->copy_len)
			return false;
	}
	__builtin_memcpy(dst, t->copy + (addr - t->copy_at), size);
	return true;
}

WALK_INLINE bool walk_read(void *dst, __u32 size, __u64 addr)
{
	struct thread *t = mine;

	if (LIKELY(addr >= t->start - RED_ZONE && addr <= t->high - size)) {
		__builtin_memcpy(dst, (const void *)addr, size);
		return true;
	}
	return read_other(t, dst, size, addr);
}

WALK_INLINE const struct ms_pool_page *walk_pool_page(__u32 ix)
{
	return ix < mine->n_pages ? &mine->pool[ix] : NULL;
}

WALK_INLINE const struct ms_table *walk_table(__u32 ix)
{
	return ix < mine->n_tables ? &mine->tables[ix] : NULL;
}

WALK_INLINE const struct ms_rule *walk_rule(__u32 ix)
{
	return ix < mine->n_rules ? &mine->rules[ix] : NULL;
}

WALK_INLINE bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra)
{
	(void)w;
	(void)at;
	(void)ret_ra;
	return false;
}

/* --- threads ------------------------------------------------------------------------------------ */

static uint64_t hex(const char **at)
{
	uint64_t v = 0;

	for (;; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/*
 * The stack that the thread was started with. The C library puts what belongs to a thread at the end
 * of its stack; the main thread's has the kernel's words there, and may grow down to whatever lies
 * below it.
 */
static SLOW void find_stack(struct thread *t, bool main_thread)
{
	uint64_t inside = main_thread ? getauxval(AT_RANDOM)
				      : (uint64_t)(uintptr_t)__builtin_thread_pointer();
	uint64_t start = 0, end = 0, before = 0;
	size_t used = 0, from = 0;
	char *buf = (char *)t->copy;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	t->low = t->high = 0;
	while (fd >= 0) {
		char *newline = memchr(buf + from, '\n', used - from);
		const char *line = buf + from;
		long n;

		if (newline) {
			before = end;
			start = hex(&line);
			line++;
			end = hex(&line);
			if (inside >= start && inside < end && line[1] == 'r') {
				t->low = main_thread ? before : start;
				t->high = main_thread ? end : inside;
				break;
			}
			from = (size_t)(newline - buf) + 1;
			continue;
		}
		used -= from;
		memmove(buf, buf + from, used);
		from = 0;
		n = syscall(SYS_read, fd, buf + used, sizeof(t->copy) - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	t->copy_len = 0;
}

/* What another thread has left, or new; NULL: there are too many, or no memory. */
static struct thread *thread_take(uint32_t tid, long pid)
{
	uint32_t n = __atomic_load_n(&n_threads, __ATOMIC_ACQUIRE);
	struct thread *t;

	for (uint32_t i = 0; i < n && i < THREADS; i++) {
		uint32_t owner;

		t = __atomic_load_n(&threads[i], __ATOMIC_ACQUIRE);
		owner = t ? __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) : 0;
		if (!t || (owner && owner != tid &&
			   (syscall(SYS_tgkill, pid, owner, 0) == 0 || errno != ESRCH)))
			continue;
		if (__atomic_compare_exchange_n(&t->tid, &owner, tid, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return t;
	}
	n = __atomic_fetch_add(&n_threads, 1, __ATOMIC_RELAXED);
	if (n >= THREADS) {
		__atomic_fetch_sub(&n_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->tid = tid;
	__atomic_store_n(&threads[n], t, __ATOMIC_RELEASE);
	return t;
}

static SLOW struct thread *thread_new(void)
{
	long tid = syscall(SYS_gettid), pid = syscall(SYS_getpid);
	int before = errno;
	struct thread *t = thread_take((uint32_t)tid, pid);

	if (t) {
		t->busy = t->last = t->deleted = 0;
		t->seen = t->n = 0;
		t->epoch = 0;
		find_stack(t, tid == pid);
		mine = t;
	}
	errno = before;
	return t;
}

/* --- the tree of stacks ------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b * 0x9e3779b97f4a7c15ULL) * 0xc2b2ae3d27d4eb4fULL;
	return a ^ a >> 32;
}

static void *in_area(struct exact_area *a, uint64_t at)
{
	return (char *)a + at;
}

/* The caller's callee with this pc; 0: no room. */
static uint32_t child(struct exact_area *a, uint32_t caller, uint64_t pc)
{
	uint32_t *slots = in_area(a, a->node_slots), made = 0;
	struct exact_node *nodes = in_area(a, a->nodes);
	uint64_t at = mix(pc, caller);

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t *slot = &slots[(at + i) & (a->n_node_slots - 1)];
		uint32_t ix = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!ix) {
			if (!made) {
				if (__atomic_load_n(&a->used_nodes, __ATOMIC_RELAXED) >= a->n_nodes)
					return 0;
				made = __atomic_fetch_add(&a->used_nodes, 1, __ATOMIC_RELAXED);
				if (made >= a->n_nodes)
					return 0;
				nodes[made].caller = caller;
				__atomic_store_n(&nodes[made].pc, pc, __ATOMIC_RELEASE);
			}
			if (__atomic_compare_exchange_n(slot, &ix, made, false, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				return made;
		}
		if (nodes[ix].pc == pc && nodes[ix].caller == caller)
			return ix;
	}
	return 0;
}

static inline uint32_t child_of(struct thread *t, struct exact_area *a, uint32_t caller,
				uint64_t pc)
{
	struct edge *e = &t->edges[(pc ^ pc >> 11 ^ caller * 31ULL) % EDGES];

	if (LIKELY(e->pc == pc && e->caller == caller))
		return e->node;
	*e = (struct edge){ pc, caller, child(a, caller, pc) };
	if (!e->node)
		e->pc = 0;
	return e->node;
}

/* Other tables, or the first ones: what was known of the stack is forgotten. */
static SLOW void new_tables(struct thread *t, struct exact_area *a, uint32_t seq)
{
	const struct exact_tables *set = &a->sets[seq & 1];

	if (t->epoch != epoch) {
		memset(t->memo, 0, sizeof(t->memo));
		memset(t->edges, 0, sizeof(t->edges));
		t->last = t->deleted = 0;
		t->epoch = epoch;
	}
	memset(t->walk.memo, 0, sizeof(t->walk.memo));
	t->n = 0;
	t->seen = seq;
	t->n_pages = t->n_tables = t->n_rules = 0;
	if (seq) {
		t->pool = in_area(a, set->pool);
		t->tables = in_area(a, set->tables);
		t->rules = in_area(a, set->rules);
		t->n_pages = set->n_words / MS_POOL_PAGE_WORDS;
		t->n_tables = set->n_tables;
		t->n_rules = set->n_rules;
		t->walk.space = (struct ms_space){ .spans = set->spans, .n_spans = set->n_spans };
	} else {
		t->walk.space = (struct ms_space){ 0 };
	}
	t->generation = child(a, 0, EXACT_GENERATION | (seq ? set->as_gen : 0));
}

/* How many of the outermost `n` words are as they were, counted from outside. */
static uint32_t unchanged(const struct thread *t, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && *t->deps[i].at == t->deps[i].word)
		i++;
	return i;
}

/* One step outwards, and what it depended on. false: the walk has ended. */
static bool step(struct thread *t, struct step *s)
{
	struct ms_walk *w = &t->walk;
	struct ms_notes *notes = &w->notes;
	bool more;

	notes->sp = s->sp;
	notes->n = 0;
	notes->bytes = 0;
	notes->far = 0;
	notes->fp_at = MS_FP_BEGAN;
	notes->needs_fp = 0;
	notes->kept = 1;
	more = walk_step(w, 0);
	s->uses_fp = notes->needs_fp;
	s->fp_at = notes->fp_at == MS_FP_BEGAN || notes->fp_at == MS_FP_NOTED ? 0 : notes->fp_at;
	s->opaque = !notes->kept || notes->n > STEP_DEPS;
	s->n_deps = s->opaque ? 0 : notes->n;
	for (uint32_t i = 0; i < s->n_deps; i++) {
		uint64_t off = notes->at[i] * 8ULL, at;

		if (off >= MS_WINDOW_BYTES)
			off += notes->far - MS_WINDOW_BYTES;
		at = (s->sp & ~7ULL) + off;
		s->deps[i] = (struct dep){ (const uint64_t *)at, notes->word[i] };
		s->opaque |= at < t->start || at > t->high - 8;
	}
	s->opaque |= s->fp_at && (s->fp_at < t->start || s->fp_at > t->high - 8 || s->fp_at & 7);
	return more;
}

/* Where a walk comes to a frame of the last one: its index, or -1. Cuts off what has changed. */
static int meets(struct thread *t, int j, uint64_t pc, uint64_t sp, uint64_t fp, bool fp_known)
{
	for (; j >= 0 && t->frames[j].sp == sp; j--) {
		const struct frame *f = &t->frames[j];
		uint32_t same;

		if (f->pc != pc || (f->needs_fp && (!fp_known || f->fp != fp)))
			continue;
		same = unchanged(t, f->deps);
		if (same == f->deps)
			return j;
		while (t->n && t->frames[t->n - 1].deps > same)
			t->n--;
		return -1;
	}
	return -1;
}

static void walk_start(struct thread *t, uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct ms_walk *w = &t->walk;

	w->regs[MS_WALK_SP] = sp;
	w->regs[MS_WALK_FP] = fp;
	w->pc = pc;
	w->trampoline = 0;
	w->at_entry = 0;
	walk_begin(w, 0, true);
	w->exact = 0; /* a return address */
	w->n = 1;
	w->known = 1u << MS_WALK_SP | 1u << MS_WALK_FP;
}

/* The steps that were taken join the tree, from the outermost on, and frames [0, j] that are kept.
 * The node of the innermost one; 0: no room. */
static uint32_t join(struct thread *t, struct exact_area *a, int j, uint32_t n, uint64_t outer_fp,
		     bool keep)
{
	uint32_t node = j >= 0 ? t->frames[j].node : t->generation;
	uint32_t deps = j >= 0 ? t->frames[j].deps : 0;
	bool need = j >= 0 && t->frames[j].needs_fp;

	for (uint32_t i = n; i-- > 0;) {
		const struct step *s = &t->steps[i];

		node = node ? child_of(t, a, node, s->pc) : 0;
		keep = keep && node && !s->opaque && j + 1 < MS_MAX_FRAMES &&
		       deps + STEP_DEPS + 1 <= DEPS_MAX;
		if (!keep)
			continue;
		for (uint32_t d = 0; d < s->n_deps; d++)
			t->deps[deps++] = s->deps[d];
		if (need && s->fp_at)
			t->deps[deps++] = (struct dep){ (const uint64_t *)s->fp_at, outer_fp };
		need = s->uses_fp || (need && !s->fp_at);
		outer_fp = s->fp;
		t->frames[++j] = (struct frame){ s->pc, s->sp, s->fp, node, deps, need };
	}
	t->n = (uint32_t)(j + 1);
	return node;
}

/* The stack of a call with this return address, sp after it, and frame pointer: its node. */
static uint32_t stack_node(struct thread *t, struct exact_area *a, uint64_t pc, uint64_t sp,
			   uint64_t fp, enum ms_verdict *ret_verdict)
{
	struct ms_walk *w = &t->walk;
	bool own = sp >= t->low && sp < t->high, known = true, begun = false, more = true;
	uint64_t high = t->high;
	uint32_t n = 0, kept, node;
	int j;

	t->start = sp;
	t->copy_len = 0;
	kept = t->n;
	if (!own) {
		t->n = 0; /* nothing of it is looked at … */
		t->start = ~0ULL;
		t->high = 8;
	}
	for (j = (int)t->n - 1;; n++) {
		int met;

		while (j >= 0 && t->frames[j].sp < sp)
			j--;
		met = meets(t, j, pc, sp, fp, known);
		if (met >= 0) {
			j = met;
			break;
		}
		if (j >= (int)t->n)
			j = (int)t->n - 1;
		if (n == MS_MAX_FRAMES) {
			j = -1;
			break;
		}
		if (!begun)
			walk_start(t, pc, sp, fp);
		begun = true;
		t->steps[n] = (struct step){ .pc = pc, .sp = sp, .fp = fp };
		more = step(t, &t->steps[n]);
		if (!more) {
			n++;
			j = -1;
			break;
		}
		pc = walk_frame(w);
		sp = w->regs[MS_WALK_SP];
		fp = w->regs[MS_WALK_FP];
		known = w->known >> MS_WALK_FP & 1;
	}
	if (!begun || (more && j >= 0))
		*ret_verdict = begun && w->guessed ? MS_GUESSED : MS_COMPLETE;
	else
		*ret_verdict = more ? MS_TRUNCATED : (enum ms_verdict)w->verdict;
	node = join(t, a, j, n, fp, own && *ret_verdict == MS_COMPLETE);
	if (!own) {
		t->n = kept; /* … and it is the same when this one is left */
		t->high = high;
	}
	return node;
}

#endif
