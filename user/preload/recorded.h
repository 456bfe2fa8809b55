/*
 * The allocator's functions where every call is recorded (exact.h). Part of alloc.c.
 *
 * They are jumped to, from the fast path in place of the allocator's own or from the slow path, so that
 * their caller is the program: EXACT_CALLER.
 */
#ifndef MEMSCOPE_PRELOAD_RECORDED_H
#define MEMSCOPE_PRELOAD_RECORDED_H

static SLOW void *exact_malloc(size_t size)
{
	void *p;

	try_python();
	p = real.malloc(size);
	exact_allocated(p, size, (void *)real.malloc, EXACT_CALLER);
	return p;
}

static SLOW void *exact_calloc(size_t n, size_t size)
{
	void *p = real.calloc(n, size);
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	exact_allocated(p, bytes, (void *)real.calloc, EXACT_CALLER);
	return p;
}

static SLOW void *exact_realloc(void *p, size_t size)
{
	struct exact_old old = { .was_there = false };
	void *to;

	try_python();
	if (is_early(p))
		return early_realloc(p, size);
	if (p)
		exact_realloc_begins(p, EXACT_CALLER, &old);
	to = real.realloc(p, size);
	if (p)
		exact_realloc_ends(p, to || !size, EXACT_CALLER, &old);
	if (to || size || !p)
		exact_allocated(to, size, (void *)real.realloc, EXACT_CALLER);
	return to;
}

static SLOW void *exact_aligned_alloc(size_t align, size_t size)
{
	void *p = real.aligned_alloc(align, size);

	exact_allocated(p, size, (void *)real.aligned_alloc, EXACT_CALLER);
	return p;
}

static SLOW void *exact_memalign(size_t align, size_t size)
{
	void *p = real.memalign(align, size);

	exact_allocated(p, size, (void *)real.memalign, EXACT_CALLER);
	return p;
}

static SLOW void *exact_valloc(size_t size)
{
	void *p = real.valloc(size);

	exact_allocated(p, size, (void *)real.valloc, EXACT_CALLER);
	return p;
}

static SLOW void *exact_pvalloc(size_t size)
{
	void *p = real.pvalloc(size);

	exact_allocated(p, size, (void *)real.pvalloc, EXACT_CALLER);
	return p;
}

static SLOW int exact_posix_memalign(void **ret_p, size_t align, size_t size)
{
	int r = real.posix_memalign(ret_p, align, size);

	exact_allocated(r == 0 ? *ret_p : NULL, size, (void *)real.posix_memalign, EXACT_CALLER);
	return r;
}

static SLOW void exact_free(void *p)
{
	if (is_early(p))
		return;
	try_python();
	if (p)
		exact_freed(p, EXACT_CALLER, false);
	real.free(p);
}

#define RECORDING(name) .name = exact_##name,
static const struct functions recording = { FUNCTIONS(RECORDING) };

#endif
