/*
 * A thread's stack, and the tree of all stacks. Part of exact.c, which says how a walk stops where the
 * last one was.
 *
 * A step whose rule is of the usual form (the CFA by sp or the frame pointer, the return address and
 * the caller's frame pointer at places known from it) is taken by what was kept of that rule, by pc
 * (struct move). The walker takes the stacks in which another one comes, from their beginning, because
 * such a rule may need registers that were not followed.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_STACK_H
#define MEMSCOPE_PRELOAD_EXACT_STACK_H

/* --- what the walker reads ---------------------------------------------------------------------- */

static inline bool lang_is_there(struct thread *t, uint64_t addr, uint64_t size);

/* Whose walk it is: not the calling thread's first state, where that is in the middle of another. */
static inline struct thread *thread_of(struct ms_walk *w)
{
	return (struct thread *)((char *)w - offsetof(struct thread, walk));
}

WALK_INLINE struct ms_walk *walk_of(__u32 slot)
{
	return &threads[slot]->walk;
}

/* Through the kernel; once for what lies close together. */
static SLOW bool read_other(struct thread *t, void *dst, uint32_t size, uint64_t addr)
{
	int before = errno;

	if (addr - t->copy_at >= t->copy_len || size > t->copy_len - (addr - t->copy_at)) {
		uint64_t end = (addr & ~4095ULL) + 4096;
		struct iovec to = { t->copy, sizeof(t->copy) }, from[2];
		ssize_t n;

		if (no_syscalls)
			return false;
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

/* There, and the thread's own: the walk's start and all above it. */
static inline bool is_near(const struct thread *t, uint64_t addr, uint64_t size)
{
	uint64_t off = addr - t->near_at;

	return off < t->near_len && size <= t->near_len - off;
}

WALK_INLINE bool walk_read(struct ms_walk *w, void *dst, __u32 size, __u64 addr)
{
	struct thread *t = thread_of(w);

	if (LIKELY(is_near(t, addr, size)) || (t->lang_live && lang_is_there(t, addr, size))) {
		__builtin_memcpy(dst, (const void *)addr, size);
		return true;
	}
	return read_other(t, dst, size, addr);
}

WALK_INLINE const struct ms_pool_page *walk_pool_page(struct ms_walk *w, __u32 ix)
{
	const struct thread *t = thread_of(w);

	return ix < t->n_pages ? &t->pool[ix] : NULL;
}

WALK_INLINE const struct ms_table *walk_table(struct ms_walk *w, __u32 ix)
{
	const struct thread *t = thread_of(w);

	return ix < t->n_tables ? &t->tables[ix] : NULL;
}

WALK_INLINE const struct ms_rule *walk_rule(struct ms_walk *w, __u32 ix)
{
	const struct thread *t = thread_of(w);

	return ix < t->n_rules ? &t->rules[ix] : NULL;
}

WALK_INLINE bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra)
{
	(void)w;
	(void)at;
	(void)ret_ra;
	return false;
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

/* Does it execute frames of a language? A return address; no other word of a stack is one of its. */
static bool executes(const struct exact_area *a, uint64_t pc)
{
	const struct ms_lang_row *lang =
		&a->sets[__atomic_load_n(&a->tables_seq, __ATOMIC_ACQUIRE) & 1].lang;

	for (uint32_t i = 0; lang->lang && i < MS_LANG_RANGES; i++)
		if (pc - 1 - lang->range[i].start < lang->range[i].end - lang->range[i].start)
			return true;
	return false;
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
				nodes[made].executes = nodes[caller].executes || executes(a, pc);
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

static SLOW uint32_t child_found(struct exact_area *a, struct edge *e, uint32_t caller, uint64_t pc)
{
	memmove(&e[1], &e[0], (EDGE_WAYS - 1) * sizeof(*e));
	e[0] = (struct edge){ pc, caller, child(a, caller, pc) };
	if (!e[0].node)
		e[0].pc = 0;
	return e[0].node;
}

/* Of all frames from the outermost on. Where a frame's edge is depends on this, and not on the number
 * of its caller's node: so the edges of a stack are read side by side. */
static inline uint32_t path_hash(uint32_t caller, uint64_t pc)
{
	return (uint32_t)((pc ^ (uint64_t)caller << 16) * 0x9e3779b97f4a7c15ULL >> 32);
}

static inline uint32_t child_of(struct thread *t, struct exact_area *a, uint32_t hash,
				uint32_t caller, uint64_t pc)
{
	struct edge *e = &t->edges[hash % (t->many ? FEW : EDGES) & ~(EDGE_WAYS - 1)];

	for (uint32_t i = 0; i < EDGE_WAYS; i++)
		if (LIKELY(e[i].pc == pc && e[i].caller == caller))
			return e[i].node;
	return child_found(a, e, caller, pc);
}

/* Other tables, or the first ones: what was known of the stack is forgotten. */
static SLOW void new_tables(struct thread *t, struct exact_area *a, uint32_t seq)
{
	const struct exact_tables *set = &a->sets[seq & 1];

	if (t->epoch != epoch) {
		memset(t->memo, 0, (t->many ? FEW : MEMOS) * sizeof(*t->memo));
		memset(t->edges, 0, (t->many ? FEW : EDGES) * sizeof(*t->edges));
		t->last = t->deleted = 0;
		t->epoch = epoch;
	}
	memset(t->moves, 0, (t->many ? FEW : MOVES) * sizeof(*t->moves));
	memset(t->walk.memo, 0, sizeof(t->walk.memo));
	memset(t->lang_pages, 0, sizeof(t->lang_pages));
	t->lang_live = false;
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
		t->walk.lang = set->lang;
	} else {
		t->walk.space = (struct ms_space){ 0 };
		t->walk.lang.lang = MS_LANG_NONE;
	}
	t->generation = child(a, 0,
			      EXACT_GENERATION |
				      (seq ? (uint64_t)(set->lang_gen & 0xffff) << 32 | set->as_gen :
					     0));
}

/* --- steps -------------------------------------------------------------------------------------- */

/* How many of the outermost `n` words are as they were, counted from outside. */
static uint32_t unchanged(const struct thread *t, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && *t->deps[i].at == t->deps[i].word)
		i++;
	return i;
}

/* One step of the walker outwards, and what it depended on. false: the walk has ended. */
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
	more = walk_step(w, t->slot);
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
		s->opaque |= at < t->near_at + RED_ZONE || !is_near(t, at, 8);
	}
	s->opaque |= s->fp_at &&
		     (s->fp_at < t->near_at + RED_ZONE || !is_near(t, s->fp_at, 8) || s->fp_at & 7);
	return more;
}

#if MS_WALK_ARM64
#define FP_SAVED 10 /* in ms_rule.save */
#else
#define FP_SAVED 1
#endif

/* What the rule at this return address does, as far as a move can say it. */
static SLOW enum move_kind move_find(struct thread *t, struct move *m, uint64_t pc)
{
	const struct ms_rule *rule = NULL;
	struct ms_walk *w = &t->walk;

	*m = (struct move){ .pc = pc, .kind = MOVE_OTHER };
	w->look = pc - 1;
	if (walk_find_span(t->slot) && w->has_rows) {
		w->look -= w->span.bias;
		walk_find_rule(t->slot);
		rule = walk_rule(w, w->rule);
	}
	if (!rule)
		return m->kind;
	if (rule->kind == MS_RULE_END) {
		m->kind = MOVE_END;
	} else if (rule->kind == MS_RULE_REG &&
		   !(rule->flags & (MS_RULE_RA_REG | MS_RULE_RA_BASE)) &&
		   (rule->reg == MS_WALK_SP || rule->reg == MS_WALK_FP) &&
		   !(rule->from_reg >> FP_SAVED & 1) && !(rule->lost >> FP_SAVED & 1)) {
		m->off = rule->off;
		m->ra_off = rule->ra_off;
		m->fp_off = rule->save[FP_SAVED];
		m->kind = rule->reg == MS_WALK_SP ? MOVE_BY_SP : MOVE_BY_FP;
	}
	return m->kind;
}

/* One step by a move, from *s to its caller. MOVE_OTHER: it takes the walker. */
static inline enum move_kind move(struct thread *t, struct step *s, bool known, uint64_t *ret_pc,
				  uint64_t *ret_sp, uint64_t *ret_fp)
{
	struct move *m = &t->moves[(s->pc ^ s->pc >> 10) % (t->many ? FEW : MOVES)];
	uint64_t cfa, at, ra;

	if (UNLIKELY(m->pc != s->pc))
		move_find(t, m, s->pc);
	s->uses_fp = m->kind == MOVE_BY_FP;
	s->opaque = false;
	s->n_deps = 0;
	s->fp_at = 0;
	if (UNLIKELY(m->kind <= MOVE_END))
		return m->kind;
	if (s->uses_fp && !known)
		return MOVE_OTHER;
	cfa = (s->uses_fp ? s->fp : s->sp) + (uint64_t)(int64_t)m->off;
	at = cfa + (uint64_t)(int64_t)m->ra_off;
	if (UNLIKELY(cfa <= s->sp || at < s->sp || at & 7 || !is_near(t, at, 8)))
		return MOVE_OTHER;
	ra = *(const uint64_t *)at;
	s->deps[0] = (struct dep){ (const uint64_t *)at, ra };
	s->n_deps = 1;
#if MS_WALK_ARM64
	ra &= (1ULL << 48) - 1;
#endif
	if (UNLIKELY(ra < MS_PAGE_BYTES || ra >= MS_USER_TOP))
		return MOVE_OTHER;
	*ret_fp = s->fp;
	if (m->fp_off) {
		at = cfa + (uint64_t)(int64_t)m->fp_off;
		if (UNLIKELY(at < s->sp || at & 7 || !is_near(t, at, 8)))
			return MOVE_OTHER;
		*ret_fp = *(const uint64_t *)at;
		s->fp_at = at;
	}
	*ret_sp = cfa;
	*ret_pc = ra;
	return m->kind;
}

/* --- stacks ------------------------------------------------------------------------------------- */

/* Where a walk comes to a frame of the last one: its index, or -1. Cuts off what has changed. */
static inline int meets(struct thread *t, int j, uint64_t pc, uint64_t sp, uint64_t fp,
			bool fp_known)
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

static SLOW void walk_start(struct thread *t, uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct ms_walk *w = &t->walk;

	w->regs[MS_WALK_SP] = sp;
	w->regs[MS_WALK_FP] = fp;
	w->pc = pc;
	w->trampoline = 0;
	w->at_entry = 0;
	walk_begin(w, t->slot, true);
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
	uint32_t hash = j >= 0 ? t->frames[j].hash : t->generation;
	bool need = j >= 0 && t->frames[j].needs_fp;

	for (uint32_t i = n; i-- > 0;) {
		const struct step *s = &t->steps[i];

		hash = path_hash(hash, s->pc);
		node = node ? child_of(t, a, hash, node, s->pc) : 0;
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
		t->frames[++j] = (struct frame){ s->pc, s->sp, s->fp, node, deps, hash, need };
	}
	t->n = (uint32_t)(j + 1);
	return node;
}

/* A walk that is under way: where it is, and what it has come to. */
struct progress {
	uint64_t pc, sp, fp;
	uint32_t n; /* steps taken */
	int j;      /* the frame of the last walk that was met; -1: none */
	bool known; /* fp */
	bool ended; /* nobody has called the last frame, or it is not known who */
};

/* Outwards to a frame of the last walk, or the end. false: it takes the walker. */
static inline bool by_moves(struct thread *t, struct progress *c)
{
	for (c->j = (int)t->n - 1;; c->n++) {
		struct step *s = &t->steps[c->n];
		enum move_kind kind;

		while (c->j >= 0 && t->frames[c->j].sp < c->sp)
			c->j--;
		if (c->j >= 0 && t->frames[c->j].sp == c->sp) {
			int met = meets(t, c->j, c->pc, c->sp, c->fp, c->known);

			if (met >= 0) {
				c->j = met;
				return true;
			}
			if (c->j >= (int)t->n)
				c->j = (int)t->n - 1;
		}
		if (UNLIKELY(c->n == MS_MAX_FRAMES)) {
			c->j = -1;
			return true;
		}
		s->pc = c->pc;
		s->sp = c->sp;
		s->fp = c->fp;
		kind = move(t, s, c->known, &c->pc, &c->sp, &c->fp);
		if (UNLIKELY(kind == MOVE_OTHER))
			return false;
		if (UNLIKELY(kind == MOVE_END)) {
			c->n++;
			c->j = -1;
			c->ended = true;
			return true;
		}
	}
}

/* The same by the walker. */
static SLOW void by_walker(struct thread *t, struct progress *c)
{
	struct ms_walk *w = &t->walk;

	walk_start(t, c->pc, c->sp, c->fp);
	for (c->j = (int)t->n - 1;; c->n++) {
		struct step *s = &t->steps[c->n];
		int met;

		while (c->j >= 0 && t->frames[c->j].sp < c->sp)
			c->j--;
		met = meets(t, c->j, c->pc, c->sp, c->fp, c->known);
		if (met >= 0) {
			c->j = met;
			return;
		}
		if (c->j >= (int)t->n)
			c->j = (int)t->n - 1;
		if (c->n == MS_MAX_FRAMES) {
			c->j = -1;
			return;
		}
		s->pc = c->pc;
		s->sp = c->sp;
		s->fp = c->fp;
		if (!step(t, s)) {
			c->n++;
			c->j = -1;
			c->ended = true;
			return;
		}
		c->pc = walk_frame(w);
		c->sp = w->regs[MS_WALK_SP];
		c->fp = w->regs[MS_WALK_FP];
		c->known = w->known >> MS_WALK_FP & 1;
	}
}

/* The stack of a call with this return address, sp after it, and frame pointer: its node. */
static inline uint32_t stack_node(struct thread *t, struct exact_area *a, uint64_t pc, uint64_t sp,
				  uint64_t fp, enum ms_verdict *ret_verdict)
{
	const struct progress begin = { pc, sp, fp, 0, -1, true, false };
	struct progress c = begin;
	bool own = is_own(t, sp) || (UNLIKELY(sp - t->floor < t->low - t->floor) && grown(t, sp));
	bool walked = false;
	uint32_t kept = t->n, node;

	t->near_at = sp - RED_ZONE;
	t->near_len = own ? t->high - t->near_at : 0;
	t->copy_len = 0;
	if (UNLIKELY(!own))
		t->n = 0; /* nothing of it is looked at … */
	if (UNLIKELY(!own || !by_moves(t, &c))) {
		c = begin;
		walked = true;
		by_walker(t, &c);
	}
	if (c.j < 0 && !c.ended)
		*ret_verdict = MS_TRUNCATED;
	else if (walked && c.ended)
		*ret_verdict = (enum ms_verdict)t->walk.verdict;
	else
		*ret_verdict = walked && t->walk.guessed ? MS_GUESSED : MS_COMPLETE;
	node = join(t, a, c.j, c.n, c.fp, own && *ret_verdict == MS_COMPLETE);
	if (UNLIKELY(!own)) {
		t->n = kept; /* … and it is the same when this one is left */
		if (!t->walk.guessed && c.n)
			is_proven(t, sp, t->steps[c.n - 1].sp);
	}
	return node;
}

#endif
