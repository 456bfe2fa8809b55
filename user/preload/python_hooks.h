/*
 * What CPython calls for objects and memory instead of its own allocator (python.h). Part of alloc.c.
 *
 * CPython's allocator serves small blocks from its arenas and hands on larger ones to malloc, where they are seen
 * as any other. Which it was is known by what came to malloc meanwhile, from this thread: so the largest size that
 * arenas have need not be known, and no block counts twice.
 */
#ifndef MEMSCOPE_PRELOAD_PYTHON_HOOKS_H
#define MEMSCOPE_PRELOAD_PYTHON_HOOKS_H

static inline bool is_on(void)
{
	return LIKELY(__atomic_load_n(&python_on, __ATOMIC_RELAXED));
}

/* Sampled: `until` is as it was before unless malloc has counted the block. */
static inline void *object_sampled(void *p, size_t size, uint64_t until)
{
	if (UNLIKELY(self.until != until) || LIKELY(pass(size)))
		return p;
	return maybe_sampled(p, size);
}

static void *object_malloc(void *ctx, size_t size)
{
	const struct python_domain *d = ctx;
	uint64_t until = self.until;
	void *p;

	if (!is_on())
		return d->next.malloc(d->next.ctx, size);
	if (!exact)
		return object_sampled(d->next.malloc(d->next.ctx, size), size, until);
	exact_object_begins();
	p = d->next.malloc(d->next.ctx, size);
	exact_object_allocated(p, size, d->malloc, EXACT_CALLER);
	return p;
}

static void *object_calloc(void *ctx, size_t n, size_t size)
{
	const struct python_domain *d = ctx;
	uint64_t until = self.until;
	void *p;

	if (!is_on())
		return d->next.calloc(d->next.ctx, n, size);
	/* CPython has refused products that do not fit. */
	if (!exact)
		return object_sampled(d->next.calloc(d->next.ctx, n, size), n * size, until);
	exact_object_begins();
	p = d->next.calloc(d->next.ctx, n, size);
	exact_object_allocated(p, n * size, d->calloc, EXACT_CALLER);
	return p;
}

static void *object_realloc(void *ctx, void *p, size_t size)
{
	const struct python_domain *d = ctx;
	struct exact_old old = { .was_there = false };
	uint64_t until;
	void *to;

	if (!is_on())
		return d->next.realloc(d->next.ctx, p, size);
	if (!exact) {
		if (p && set_maybe(&sampled, p))
			maybe_forget(p);
		until = self.until;
		return object_sampled(d->next.realloc(d->next.ctx, p, size), size, until);
	}
	if (p)
		exact_object_realloc_begins(p, EXACT_CALLER, &old);
	exact_object_begins();
	to = d->next.realloc(d->next.ctx, p, size);
	if (p)
		exact_object_realloc_ends(p, to, EXACT_CALLER, &old);
	exact_object_allocated(to, size, d->realloc, EXACT_CALLER);
	return to;
}

static void object_free(void *ctx, void *p)
{
	const struct python_domain *d = ctx;

	if (is_on() && p) {
		if (exact)
			exact_object_freed(p, EXACT_CALLER);
		else if (UNLIKELY(set_maybe(&sampled, p)))
			maybe_forget(p);
	}
	d->next.free(d->next.ctx, p);
}

const struct python_allocator python_hooks = {
	.malloc = object_malloc,
	.calloc = object_calloc,
	.realloc = object_realloc,
	.free = object_free,
};

#endif
