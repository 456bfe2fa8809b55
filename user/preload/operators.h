/*
 * C++'s operator new and delete, for allocators that bring their own. Part of alloc.c.
 *
 * libstdc++'s call malloc, and are counted there. Those of jemalloc (5.3), tcmalloc and mimalloc do
 * not, and a program that uses them would hardly be seen. An operator new in one image with the
 * next malloc is tested: it allocates a block, and the counter that our malloc decrements shows
 * whether it called ours.
 *
 * All arguments are words in registers, so one shape does for all forms. What throws is jumped to,
 * or called from a frame that unwinds like any other.
 */
#ifndef MEMSCOPE_PRELOAD_OPERATORS_H
#define MEMSCOPE_PRELOAD_OPERATORS_H

/* size; size, nothrow; size, alignment; size, alignment, nothrow */
#define OPERATORS_NEW(X)                                                                           \
	X(_Znwm)                                                                                   \
	X(_Znam)                                                                                   \
	X(_ZnwmRKSt9nothrow_t)                                                                     \
	X(_ZnamRKSt9nothrow_t)                                                                     \
	X(_ZnwmSt11align_val_t)                                                                    \
	X(_ZnamSt11align_val_t)                                                                    \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                      \
	X(_ZnamSt11align_val_tRKSt9nothrow_t)

/* block, and any of size, alignment, nothrow */
#define OPERATORS_DELETE(X)                                                                        \
	X(_ZdlPv)                                                                                  \
	X(_ZdaPv)                                                                                  \
	X(_ZdlPvm)                                                                                 \
	X(_ZdaPvm)                                                                                 \
	X(_ZdlPvRKSt9nothrow_t)                                                                    \
	X(_ZdaPvRKSt9nothrow_t)                                                                    \
	X(_ZdlPvSt11align_val_t)                                                                   \
	X(_ZdaPvSt11align_val_t)                                                                   \
	X(_ZdlPvmSt11align_val_t)                                                                  \
	X(_ZdaPvmSt11align_val_t)                                                                  \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                                     \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

enum {
#define ID(name) OP_##name,
	OPERATORS_NEW(ID) OPERATORS_DELETE(ID)
#undef ID
	N_OPERATORS,
};

typedef void *(*operator_fn)(uintptr_t a, uintptr_t b, uintptr_t c);

static operator_fn next_operator[N_OPERATORS];
/* Of the forms of new: it does not come to our malloc (nor, for one with an alignment, to our
 * aligned_alloc). An allocator may have some forms and leave the others to libstdc++. */
static bool own_operator[N_OPERATORS];
static bool own_some;

#define TRIAL_BYTES 64
#define TRIAL_UNTIL ((uint64_t)1 << 40)

static bool in_image_of_malloc(operator_fn f)
{
	Dl_info of_malloc, of_new;

	return dladdr((void *)real.malloc, &of_malloc) && dladdr((void *)f, &of_new) &&
	       of_malloc.dli_fbase == of_new.dli_fbase;
}

static bool try_new(int op)
{
	bool aligned = op >= OP__ZnwmSt11align_val_t;
	uintptr_t nothrow = (uintptr_t)&own_some; /* any object will do */
	uint64_t until = self.until;
	bool own;
	void *p;

	self.until = TRIAL_UNTIL;
	p = next_operator[op](TRIAL_BYTES, aligned ? TRIAL_BYTES : nothrow, nothrow);
	own = p && self.until == TRIAL_UNTIL;
	next_operator[aligned ? OP__ZdlPvSt11align_val_t : OP__ZdlPv]((uintptr_t)p, TRIAL_BYTES, 0);
	self.until = until;
	return own;
}

/* When the library is loaded, by a program in C++; by another, at the first call of one of them. */
static SLOW void look_up_operators(void)
{
	static const char *const names[N_OPERATORS] = {
#define NAME(name) #name,
		OPERATORS_NEW(NAME) OPERATORS_DELETE(NAME)
#undef NAME
	};
	operator_fn found[N_OPERATORS];
	bool missing = false;

	if (real.malloc == first_malloc)
		begin();
	for (int i = 0; i < N_OPERATORS; i++) {
		void *f = find_next(names[i]);

		/* A form that does not exist is never called. */
		found[i] = (operator_fn)(f ? f : (void *)no_such_function);
		missing |= !f;
	}
	if (missing)
		dlerror(); /* ours, not the program's */
	for (int i = N_OPERATORS - 1; i >= 0; i--)
		__atomic_store_n(&next_operator[i], found[i], __ATOMIC_RELEASE);
	for (int i = 0; i <= OP__ZnamSt11align_val_tRKSt9nothrow_t; i++)
		if (in_image_of_malloc(found[i])) {
			own_operator[i] = try_new(i);
			own_some |= own_operator[i];
		}
}

/* Jumped to, as those of alloc.c. What throws is called here, and passes through. */
static SLOW void *exact_new(size_t size, uintptr_t b, uintptr_t c, int op)
{
	void *p = next_operator[op](size, b, c);

	exact_allocated(p, size, (void *)next_operator[op], EXACT_CALLER);
	return p;
}

static SLOW void exact_delete(void *p, uintptr_t b, uintptr_t c, int op)
{
	if (p)
		exact_freed(p, EXACT_CALLER, true);
	next_operator[op]((uintptr_t)p, b, c);
}

static SLOW void *slow_new(size_t size, uintptr_t b, uintptr_t c, int op)
{
	if (!next_operator[op])
		look_up_operators();
	if (!own_operator[op])
		return next_operator[op](size, b, c);
	if (is_recorded(size))
		return exact_new(size, b, c, op);
	return maybe_sampled(next_operator[op](size, b, c), size);
}

static SLOW void slow_delete(void *p, uintptr_t b, uintptr_t c, int op)
{
	if (!next_operator[op])
		look_up_operators();
	if (own_some && exact)
		exact_delete(p, b, c, op);
	else if (!own_some || !set_maybe(&sampled, p) || maybe_forget(p))
		next_operator[op]((uintptr_t)p, b, c);
}

/* The allocator's own are not in `next`: while calls are recorded, the slow path does it. */
#define NEW(name)                                                                                  \
	EXPORT void *name(size_t size, uintptr_t b, uintptr_t c);                                  \
	void *name(size_t size, uintptr_t b, uintptr_t c)                                          \
	{                                                                                          \
		operator_fn f = __atomic_load_n(&next_operator[OP_##name], __ATOMIC_ACQUIRE);      \
                                                                                                   \
		if (UNLIKELY(!f || exact))                                                         \
			return slow_new(size, b, c, OP_##name);                                    \
		if (LIKELY(!own_operator[OP_##name] || pass(size)))                                \
			return f(size, b, c);                                                      \
		return slow_new(size, b, c, OP_##name);                                            \
	}

#define DELETE(name)                                                                               \
	EXPORT void name(void *p, uintptr_t b, uintptr_t c);                                       \
	void name(void *p, uintptr_t b, uintptr_t c)                                               \
	{                                                                                          \
		operator_fn f = __atomic_load_n(&next_operator[OP_##name], __ATOMIC_ACQUIRE);      \
                                                                                                   \
		if (UNLIKELY(!f || exact || set_page_maybe(&sampled, p)))                          \
			slow_delete(p, b, c, OP_##name);                                           \
		else                                                                               \
			f((uintptr_t)p, b, c);                                                     \
	}

OPERATORS_NEW(NEW)
OPERATORS_DELETE(DELETE)

#endif
