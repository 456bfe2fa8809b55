/*
 * libmemscope-alloc.so: a sampler in front of whatever allocator a program uses.
 *
 * Preloaded (LD_PRELOAD), its malloc is found before the allocator's. It hands every call on to the
 * next one, counts the bytes asked for, and reports the few blocks that a sample point falls into
 * (draw.h), at the sites of sites.h. The stack is taken by who listens there: memscope, or any
 * other profiler that knows the contract. Nobody listening, a site does nothing.
 *
 * Or, where memscope asks for it (agent.c), every call is recorded (recorded.h).
 *
 *   MEMSCOPE_ALLOC_RATE   mean bytes between samples; K, M and G are known; default 512K
 *
 * What a program must not notice: blocks are the allocator's own, with its alignment and usable
 * size; errno, the floating-point environment and signals are left alone; no lock is taken, no
 * system call made and no memory allocated, after the first call. A thread's counter is its own
 * (initial-exec TLS, 24 bytes: of what the C library keeps for libraries that are loaded later, when
 * this one is injected into a process that runs; that is agent.c).
 *
 * What it costs: nearly every call finds that no sample point is within reach, or that the block is none
 * of the samples, and jumps to the allocator's function. That is six or seven instructions, three or two
 * loads and a store, all in a few lines of the caches that every call shares (sampled_set.h says why that
 * matters most). All else is out of the way, in functions of the slow path.
 *
 * What it does not see: calls that never come here. A program that has an allocator, or an operator
 * new, linked into itself; mallocx and its kin; mmap. A sampled block released by such a way (sdallocx, free_sized) counts as live
 * until its address is allocated or freed again.
 *
 * A realloc gives its old block back, then is an allocation of its new size, as exact tracing has
 * it. The old block is reported before the call, since afterwards its address may already be
 * another's: if the call then fails for want of memory, that sample is no longer followed.
 */
#include "preload/alloc.h"

#include "preload/draw.h"
#include "preload/exact.h"
#include "preload/python.h"
#include "preload/sampled_set.h"
#include "preload/sites.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#define SIZE_POSSIBLE ((size_t)1 << 56) /* no address space is larger: a call for more fails */

#define EXPORT      __attribute__((visibility("default")))
#define FAST        __attribute__((hot, aligned(32))) /* one after the other, in whole lines */
#define SLOW        __attribute__((noinline, cold))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t n, size_t size);
EXPORT void *realloc(void *p, size_t size);
EXPORT void *reallocarray(void *p, size_t n, size_t size);
EXPORT void *aligned_alloc(size_t align, size_t size);
EXPORT void *memalign(size_t align, size_t size);
EXPORT void *valloc(size_t size);
EXPORT void *pvalloc(size_t size);
EXPORT int posix_memalign(void **ret_p, size_t align, size_t size);
EXPORT void free(void *p);

/* --- the allocator behind us ------------------------------------------------------------------ */

static void *first_malloc(size_t size);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t size);
static void *first_aligned_alloc(size_t align, size_t size);
static void *first_memalign(size_t align, size_t size);
static void *first_valloc(size_t size);
static void *first_pvalloc(size_t size);
static int first_posix_memalign(void **ret_p, size_t align, size_t size);
static void first_free(void *p);

#define FUNCTIONS(X)                                                                               \
	X(malloc)                                                                                  \
	X(free)                                                                                    \
	X(calloc)                                                                                  \
	X(realloc)                                                                                 \
	X(aligned_alloc)                                                                           \
	X(memalign)                                                                                \
	X(valloc)                                                                                  \
	X(pvalloc)                                                                                 \
	X(posix_memalign)

struct functions {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	int (*posix_memalign)(void **, size_t, size_t);
};

/* The allocator's. Begin with functions that look them up: so no call need ask whether that was done. */
#define FIRST(name) .name = first_##name,
static struct functions real = { FUNCTIONS(FIRST) };
/* What the fast path jumps to: those, or the ones that record (recorded.h). One line of the caches. */
static struct functions next __attribute__((aligned(64))) = { FUNCTIONS(FIRST) };
static const struct functions recording;

/* Loaded into a process that runs: calls come by what agent.c exchanges. Set before any do. */
static void *(*injected)(const char *name);

/* Every call is recorded instead; where to is exact.c's. */
static bool exact;

static struct sampled_set sampled;
static double rate = DRAW_RATE_DEFAULT; /* 0: off */
static uint64_t process_seed, n_streams;

/* Of a thread. Zero: its first call comes to the slow path. */
static __thread struct {
	uint64_t until; /* bytes that pass before the next sample point      */
	uint64_t random;
	bool seeded;
	bool looking_up; /* in dlsym(), which may allocate                    */
} self __attribute__((tls_model("initial-exec")));

#include "preload/behind.h"

/* --- sampling --------------------------------------------------------------------------------- */

/*
 * The program may have floating-point traps on, another rounding, or look at the flags: ours are
 * the default's while we compute. In and out through volatile memory, which keeps the computing
 * between the two.
 */
#if defined(__x86_64__)
typedef uint32_t fp_state;
static inline fp_state fp_enter(void)
{
	uint32_t theirs, ours = 0x1f80;

	asm volatile("stmxcsr %0" : "=m"(theirs));
	asm volatile("ldmxcsr %0" : : "m"(ours));
	return theirs;
}
static inline void fp_leave(fp_state theirs)
{
	asm volatile("ldmxcsr %0" : : "m"(theirs));
}
#else
typedef struct {
	uint64_t control, status;
} fp_state;
static inline fp_state fp_enter(void)
{
	fp_state theirs;

	asm volatile("mrs %0, fpcr" : "=r"(theirs.control));
	asm volatile("mrs %0, fpsr" : "=r"(theirs.status));
	asm volatile("msr fpcr, %0" : : "r"(0ULL));
	return theirs;
}
static inline void fp_leave(fp_state theirs)
{
	asm volatile("msr fpcr, %0" : : "r"(theirs.control));
	asm volatile("msr fpsr, %0" : : "r"(theirs.status));
}
#endif

/* The distance to the next sample point. */
static SLOW void draw_next(void)
{
	volatile uint64_t random = self.random, until;
	fp_state theirs = fp_enter();
	uint64_t state = random;

	until = rate > 0 ? draw_interval(&state, rate) - 1 : UINT64_MAX;
	random = state;
	fp_leave(theirs);
	self.random = random;
	self.until = until;
}

static SLOW uint64_t weight_of(size_t size)
{
	volatile uint64_t in = size, out;
	fp_state theirs = fp_enter();

	out = (uint64_t)(draw_weight((double)in, rate) + 0.5);
	fp_leave(theirs);
	return out;
}

/* Does a sample point fall into these bytes? For a thread's first call that is not known before. */
static bool is_due(size_t size)
{
	if (!self.seeded) {
		self.seeded = true;
		self.random = draw_mix(process_seed +
				       __atomic_add_fetch(&n_streams, 1, __ATOMIC_RELAXED) *
					       0x9e3779b97f4a7c15ULL);
		draw_next();
	}
	if (size > self.until)
		return true;
	self.until -= size;
	return false;
}

/* Of the slow path: every call is recorded. Sample points are passed over, as where nobody listens. */
static bool is_recorded(size_t size)
{
	if (!exact)
		return false;
	if (is_due(size))
		draw_next();
	return true;
}

/* CPython's hooks wait for somebody who may exchange them. */
static inline void try_python(void)
{
	if (UNLIKELY(__atomic_load_n(&python_pending, __ATOMIC_ACQUIRE)))
		python_try();
}

/* The slow path of every allocation: `p` is new, NULL if the call failed. */
static SLOW void *maybe_sampled(void *p, size_t size)
{
	uint64_t weight;

	if (!p || is_early(p) || !is_due(size))
		return p;
	try_python();
	draw_next();
	weight = weight_of(size);
	if (set_add(&sampled, p))
		SITE_ALLOC(p, size, weight);
	else
		SITE_UNTRACKED(p, size, weight);
	return p;
}

/* The fast path: true when no sample point is within reach. */
static inline bool pass(size_t size)
{
	uint64_t left;

	if (UNLIKELY(__builtin_sub_overflow(self.until, size, &left)))
		return false;
	self.until = left;
	return true;
}

/* Of the slow path of free. -> whether the allocator is to know of it. */
static SLOW bool maybe_forget(void *p)
{
	if (is_early(p))
		return false;
	if (set_take(&sampled, p))
		SITE_FREE(p);
	return true;
}

/* --- every call ------------------------------------------------------------------------------- */

#include "preload/recorded.h"

/* --- the functions ---------------------------------------------------------------------------- */

/*
 * A pair each. The first does what nearly every call needs and jumps on. The other is jumped to, so that
 * its caller is the program (EXACT_CALLER), and does all else; it asks again what the first one has found.
 */

static SLOW void *slow_malloc(size_t size)
{
	if (is_recorded(size))
		return exact_malloc(size);
	return maybe_sampled(real.malloc(size), size);
}

FAST void *malloc(size_t size)
{
	if (LIKELY(pass(size)))
		return next.malloc(size);
	return slow_malloc(size);
}

static SLOW void slow_free(void *p)
{
	if (exact)
		exact_free(p);
	else if (!set_maybe(&sampled, p) || maybe_forget(p))
		real.free(p);
}

FAST void free(void *p)
{
	if (LIKELY(!set_page_maybe(&sampled, p)))
		next.free(p);
	else
		slow_free(p);
}

static SLOW void *slow_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return exact ? exact_calloc(n, size) : real.calloc(n, size);
	if (is_recorded(bytes))
		return exact_calloc(n, size);
	return maybe_sampled(real.calloc(n, size), bytes);
}

FAST void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (LIKELY(!__builtin_mul_overflow(n, size, &bytes) && pass(bytes)))
		return next.calloc(n, size);
	return slow_calloc(n, size);
}

static SLOW void *slow_realloc(void *p, size_t size)
{
	if (is_recorded(size))
		return exact_realloc(p, size);
	if (set_maybe(&sampled, p) && size <= SIZE_POSSIBLE && !maybe_forget(p))
		return early_realloc(p, size);
	if (pass(size)) /* it was its page that brought it here */
		return real.realloc(p, size);
	return maybe_sampled(real.realloc(p, size), size);
}

FAST void *realloc(void *p, size_t size)
{
	if (LIKELY(!set_page_maybe(&sampled, p) && pass(size)))
		return next.realloc(p, size);
	return slow_realloc(p, size);
}

/* The C library's does this too, and calls realloc. */
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		if (UNLIKELY(exact))
			exact_allocated(NULL, 0, NULL, EXACT_CALLER);
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

static SLOW void *slow_aligned_alloc(size_t align, size_t size)
{
	if (is_recorded(size))
		return exact_aligned_alloc(align, size);
	return maybe_sampled(real.aligned_alloc(align, size), size);
}

FAST void *aligned_alloc(size_t align, size_t size)
{
	if (LIKELY(pass(size)))
		return next.aligned_alloc(align, size);
	return slow_aligned_alloc(align, size);
}

static SLOW void *slow_memalign(size_t align, size_t size)
{
	if (is_recorded(size))
		return exact_memalign(align, size);
	return maybe_sampled(real.memalign(align, size), size);
}

FAST void *memalign(size_t align, size_t size)
{
	if (LIKELY(pass(size)))
		return next.memalign(align, size);
	return slow_memalign(align, size);
}

static SLOW void *slow_valloc(size_t size)
{
	if (is_recorded(size))
		return exact_valloc(size);
	return maybe_sampled(real.valloc(size), size);
}

FAST void *valloc(size_t size)
{
	if (LIKELY(pass(size)))
		return next.valloc(size);
	return slow_valloc(size);
}

static SLOW void *slow_pvalloc(size_t size)
{
	if (is_recorded(size))
		return exact_pvalloc(size);
	return maybe_sampled(real.pvalloc(size), size);
}

FAST void *pvalloc(size_t size)
{
	if (LIKELY(pass(size)))
		return next.pvalloc(size);
	return slow_pvalloc(size);
}

static SLOW int slow_posix_memalign(void **ret_p, size_t align, size_t size)
{
	int r;

	if (is_recorded(size))
		return exact_posix_memalign(ret_p, align, size);
	r = real.posix_memalign(ret_p, align, size);
	if (r == 0)
		maybe_sampled(*ret_p, size);
	return r;
}

FAST int posix_memalign(void **ret_p, size_t align, size_t size)
{
	if (LIKELY(pass(size)))
		return next.posix_memalign(ret_p, align, size);
	return slow_posix_memalign(ret_p, align, size);
}

/* --- C++ -------------------------------------------------------------------------------------- */

#include "preload/operators.h"

/* --- CPython ---------------------------------------------------------------------------------- */

#include "preload/python_hooks.h"

/* --- fork ------------------------------------------------------------------------------------- */

/* Held while words are exchanged and the dynamic linker is held up: a child would have to live with
 * half of it, for the thread that was at work is not there. Taken with the dynamic linker's lock held,
 * but not waited for: who forks may be waiting for that one, in another's handler. */
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	pthread_mutex_lock(&exchange_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&exchange_lock);
}

/* The child has its parent's blocks, and the set with them; its sample points are to be its own. */
static void in_child(void)
{
	pthread_mutex_unlock(&exchange_lock);
	process_seed = draw_mix(process_seed ^ (uint64_t)getpid());
	self.seeded = false;
	self.until = 0;
	exact_in_child();
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
	/* Preloaded, a program's malloc is ours; the first of several such libraries, that is. */
	if (!is_ours(dlsym(RTLD_DEFAULT, "malloc")))
		return;
	if (dlsym(RTLD_NEXT, "_Znwm"))
		look_up_operators();
	else
		dlerror();
}

/* --- what agent.c needs ----------------------------------------------------------------------- */

int alloc_inject(double bytes, bool every, void *(*find)(const char *name))
{
	if (every && !injected && real.malloc != first_malloc) {
		look_up_operators(); /* preloaded: calls come here already */
		exact = true;
		hand_on_to(&recording);
		return 0;
	}
	exact = every;
	if (injected) {
		hand_on_to(exact ? &recording : &real);
		return 0;
	}
	if (real.malloc != first_malloc)
		return -EEXIST;
	injected = find;
	rate = bytes;
	begin();
	look_up_operators();
	return 0;
}

void alloc_exact_end(void)
{
	exact_end();
	exact = false;
	hand_on_to(&real);
}

double alloc_rate(void)
{
	return rate;
}

bool alloc_no_fork(void)
{
	return pthread_mutex_trylock(&exchange_lock) == 0;
}

void alloc_may_fork(void)
{
	pthread_mutex_unlock(&exchange_lock);
}

void alloc_forget(void)
{
	for (uint32_t i = 0; i < SET_LINES; i++)
		for (uint32_t j = 0; j < SET_WAYS; j++)
			set_take(&sampled, (void *)sampled.slots[i][j]);
}

bool alloc_function_at(unsigned i, struct alloc_function *ret_f)
{
#define FUNCTION(name, back)                                                                       \
	{                                                                                          \
#name, (void *)name, (void *)real.name, back                                       \
	}
	const struct alloc_function own[] = {
		FUNCTION(free, true),
		FUNCTION(realloc, true),
		FUNCTION(malloc, false),
		FUNCTION(calloc, false),
		FUNCTION(aligned_alloc, false),
		FUNCTION(memalign, false),
		FUNCTION(valloc, false),
		FUNCTION(pvalloc, false),
		FUNCTION(posix_memalign, false),
		{ "reallocarray", (void *)reallocarray, find_next("reallocarray"), true },
	};
	static const struct {
		const char *name;
		void *ours;
	} operators[N_OPERATORS] = {
#define OPERATOR(name) { #name, (void *)name },
		OPERATORS_NEW(OPERATOR) OPERATORS_DELETE(OPERATOR)
#undef OPERATOR
	};
	const unsigned n_own = sizeof(own) / sizeof(*own);

	if (i < n_own) {
		*ret_f = own[i];
	} else if (own_some && i < n_own + N_OPERATORS) {
		bool deletes = i - n_own > OP__ZnamSt11align_val_tRKSt9nothrow_t;

		*ret_f = (struct alloc_function){ operators[i - n_own].name,
						  operators[i - n_own].ours,
						  (void *)next_operator[i - n_own], deletes };
		if (!deletes && !own_operator[i - n_own])
			ret_f->real = NULL;
	} else {
		return false;
	}
	if (ret_f->real == (void *)no_such_function || ret_f->real == (void *)no_such_memalign)
		ret_f->real = NULL;
	return true;
}
