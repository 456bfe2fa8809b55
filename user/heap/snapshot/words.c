#include "heap/snapshot/words.h"

/* Below the stack pointer a leaf function may have values (System V ABI, AMD64, 3.2.2). */
enum { RED_ZONE = 128 };

struct thread_walk {
	thread_word_fn fn;
	void *ctx;
	enum thread_word kind;
};

static void on_word(void *ctx, uint64_t addr, uint64_t word)
{
	struct thread_walk *w = ctx;

	w->fn(w->ctx, w->kind, addr, word);
}

static uint64_t registers(const struct stopped_thread *t, thread_word_fn fn, void *ctx)
{
	uint64_t n_fp = t->in_call ? 0 : t->fp_bytes / 8, word;

	for (uint32_t i = 0; i < t->n_regs; i++)
		if (t->regs[i])
			fn(ctx, THREAD_WORD_REGISTER, i, t->regs[i]);
	for (uint64_t i = 0; i < n_fp; i++) {
		memcpy(&word, t->fp + 8 * i, 8);
		if (word)
			fn(ctx, THREAD_WORD_REGISTER, STOP_REGS_MAX + i, word);
	}
	return t->n_regs + n_fp;
}

/* A stack of its own is in no block. */
static uint64_t end_of_stack(const struct snapshot *s, const struct heap_map *m, uint64_t sp)
{
	uint32_t offset, node = block_index_find(s->index, sp, &offset);

	return node == BLOCK_NONE ? m->end : sp - offset + snapshot_bytes(s, node);
}

uint64_t thread_words(const struct snapshot *s, const struct stopped_thread *t, thread_word_fn fn,
		      void *ctx)
{
	struct thread_walk w = { fn, ctx, THREAD_WORD_STACK };
	const struct heap_map *m = heap_map_of(copy_memory(s->copy), t->sp);
	uint64_t n = registers(t, fn, ctx), from, end, tls;

	if (!m)
		return n;
	end = end_of_stack(s, m, t->sp);
	/* Of threads that pthread_create() has made, the same mapping has both, TLS and what the library keeps at its end. */
	tls = t->tp > t->sp && t->tp < end ? t->tp : end;
	from = t->sp - m->start > RED_ZONE ? t->sp - RED_ZONE : m->start;
	n += words_each(s->copy, from, tls, on_word, &w);
	w.kind = THREAD_WORD_TLS;
	return n + words_each(s->copy, tls, end, on_word, &w);
}

/* The main thread's is the highest. */
static bool is_last_stack(const struct heap_memory *mem, const struct heap_map *m)
{
	for (const struct heap_map *other = m + 1; other < mem->maps + mem->n_maps; other++)
		if (other->kind == HEAP_MAP_STACK)
			return false;
	return true;
}

bool thread_left_stack(const struct snapshot *s, const struct heap_map *m)
{
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);
	bool is_main = is_last_stack(copy_memory(s->copy), m);

	for (uint32_t i = 0; i < n; i++)
		if ((t[i].sp < m->start || t[i].sp >= m->end) &&
		    ((t[i].tp >= m->start && t[i].tp < m->end) ||
		     (is_main && t[i].tid == s->facts.pid)))
			return true;
	return false;
}
