/*
 * What allocators have beside the C functions, counted by the program itself. The allocator is
 * whatever is preloaded or linked; its functions are looked up by name.
 *
 *   alloc_api jemalloc PREFIX     mallocx and its kin, PREFIX before each name ("" for none)
 *   alloc_api tcmalloc
 *   alloc_api google              lib_google.c
 *   alloc_api mimalloc            mi_heap_malloc and its kin among them
 *
 * run → site NAME CALLS BYTES LIVE_CALLS LIVE_BYTES (each); total …; frees N; end
 *
 * xallocx that cannot do what it is asked is no call; what it can is one of the new size, and a free.
 */
#include "target.h"

#include <dlfcn.h>

enum { ROUNDS = 240, MAX_SITES = 48 };

typedef void *(*size_fn)(size_t size, int flags);
typedef void *(*count_fn)(size_t n, size_t size); /* or (align, size) */
typedef int (*out_fn)(void **p, size_t align, size_t size);
typedef void *(*realloc_fn)(void *p, size_t size, size_t flags); /* or (ptr, n, size) */
typedef void *(*heap_new_fn)(void);
typedef void *(*heap_fn)(void *heap, size_t size,
			 ...); /* or (heap, n, size), (heap, size, align) */
typedef void *(*heap_realloc_fn)(void *heap, void *p, size_t size,
				 ...); /* or (heap, ptr, n, size) */
typedef size_t (*in_place_fn)(void *p, size_t size, size_t extra, int flags);
typedef void (*free_fn)(void *p, size_t size_or_flags, size_t flags_or_align);

static struct site {
	const char *name;
	uint64_t calls, bytes, live_calls, live_bytes;
} sites[MAX_SITES];
static int n_sites;
static uint64_t n_frees, seed = 11;

static const char *prefix = "";

static void *find(const char *name)
{
	char full[64];
	void *f;

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	f = dlsym(RTLD_DEFAULT, full);
	if (!f)
		die(full);
	return f;
}

static struct site *site_of(const char *name)
{
	for (int i = 0; i < n_sites; i++)
		if (!strcmp(sites[i].name, name))
			return &sites[i];
	sites[n_sites].name = name;
	return &sites[n_sites++];
}

static void count(const char *name, size_t size, int sign)
{
	struct site *s = site_of(name);

	if (sign > 0) {
		s->calls++;
		s->bytes += size;
	} else {
		n_frees++;
	}
	s->live_calls += (uint64_t)(int64_t)sign;
	s->live_bytes += (uint64_t)(int64_t)sign * size;
}

/* One function for each of theirs, by which they are told apart in a stack. */
#define SIZE(name)                                                                                 \
	static NOINLINE void *do_##name(size_t size)                                               \
	{                                                                                          \
		return ((size_fn)find(#name))(size, 0);                                            \
	}
#define COUNT(name)                                                                                \
	static NOINLINE void *do_##name(size_t size)                                               \
	{                                                                                          \
		return ((count_fn)find(#name))(size / 8, 8);                                       \
	}
#define ALIGN(name)                                                                                \
	static NOINLINE void *do_##name(size_t size)                                               \
	{                                                                                          \
		return ((count_fn)find(#name))(64, size);                                          \
	}
#define OUT(name)                                                                                  \
	static NOINLINE void *do_##name(size_t size)                                               \
	{                                                                                          \
		void *p = NULL;                                                                    \
                                                                                                   \
		return ((out_fn)find(#name))(&p, 64, size) ? NULL : p;                             \
	}
#define REALLOC(name)                                                                              \
	static NOINLINE void *do_##name(void *p, size_t size)                                      \
	{                                                                                          \
		return ((realloc_fn)find(#name))(p, size, 0);                                      \
	}
#define REALLOC_N(name)                                                                            \
	static NOINLINE void *do_##name(void *p, size_t size)                                      \
	{                                                                                          \
		return ((realloc_fn)find(#name))(p, size / 8, 8);                                  \
	}

/* Those of a heap of mimalloc's: it comes first. */
#define HEAP(name, ...)                                                                            \
	static NOINLINE void *do_##name(size_t size)                                               \
	{                                                                                          \
		return ((heap_fn)find(#name))(heap(), __VA_ARGS__);                                \
	}
#define HEAP_REALLOC(name, ...)                                                                    \
	static NOINLINE void *do_##name(void *p, size_t size)                                      \
	{                                                                                          \
		return ((heap_realloc_fn)find(#name))(heap(), p, __VA_ARGS__);                     \
	}

static void *heap(void)
{
	static void *one;

	if (!one)
		one = ((heap_new_fn)find("mi_heap_new"))();
	return one;
}

SIZE(malloc)
SIZE(mallocx)
COUNT(calloc)
ALIGN(aligned_alloc)
OUT(posix_memalign)
REALLOC(realloc)
REALLOC(rallocx)
SIZE(tc_malloc)
SIZE(tc_malloc_skip_new_handler)
COUNT(tc_calloc)
ALIGN(tc_memalign)
OUT(tc_posix_memalign)
SIZE(tc_new)
SIZE(tc_newarray_nothrow)
REALLOC(tc_realloc)
SIZE(TCMallocInternalMalloc)
COUNT(TCMallocInternalCalloc)
ALIGN(TCMallocInternalAlignedAlloc)
REALLOC(TCMallocInternalRealloc)
SIZE(_Znwm)
SIZE(_ZnwmRKSt9nothrow_t)
SIZE(_Znwm12__hot_cold_t)
SIZE(__size_returning_new)
SIZE(tcmalloc_size_returning_operator_new_nothrow)
SIZE(mi_malloc)
SIZE(mi_zalloc)
SIZE(mi_malloc_small)
COUNT(mi_calloc)
COUNT(mi_mallocn)
ALIGN(mi_memalign)
OUT(mi_posix_memalign)
SIZE(mi_new)
SIZE(mi_new_nothrow)
REALLOC(mi_realloc)
REALLOC(mi_rezalloc)
REALLOC_N(mi_reallocn)
REALLOC(mi_reallocf)
HEAP(mi_heap_malloc, size)
HEAP(mi_heap_zalloc, size)
HEAP(mi_heap_malloc_small, size)
HEAP(mi_heap_alloc_new, size)
HEAP(mi_heap_calloc, size / 8, 8)
HEAP(mi_heap_mallocn, size / 8, 8)
HEAP(mi_heap_malloc_aligned, size, 64)
HEAP_REALLOC(mi_heap_realloc, size)
HEAP_REALLOC(mi_heap_rezalloc, size)
HEAP_REALLOC(mi_heap_reallocf, size)
HEAP_REALLOC(mi_heap_reallocn, size / 8, 8)
HEAP_REALLOC(mi_heap_recalloc, size / 8, 8)

/* NULL: it stays as it was. */
static NOINLINE void *do_xallocx(void *p, size_t size)
{
	return ((in_place_fn)find("xallocx"))(p, size, 0, 0) >= size ? p : NULL;
}

/* `grow`: what is made becomes another block of it. `by`: gives back what is left. */
struct way {
	const char *name, *grow_name;
	void *(*make)(size_t size);
	void *(*grow)(void *p, size_t size);
	const char *by;
};

#define MADE(name, by)                                                                             \
	{                                                                                          \
		"do_" #name, NULL, do_##name, NULL, by                                             \
	}
#define GROWN(name, grow, by)                                                                      \
	{                                                                                          \
		"do_" #name, "do_" #grow, do_##name, do_##grow, by                                 \
	}

static const struct way jemalloc[] = {
	MADE(malloc, "free"),
	MADE(mallocx, "dallocx"),
	MADE(calloc, "sdallocx"),
	MADE(aligned_alloc, "free"),
	MADE(posix_memalign, "dallocx"),
	GROWN(mallocx, rallocx, "sdallocx"),
	GROWN(mallocx, xallocx, "dallocx"),
	GROWN(malloc, realloc, "free"),
	{ NULL },
};
static const struct way tcmalloc[] = {
	MADE(tc_malloc, "tc_free"),
	MADE(tc_malloc_skip_new_handler, "tc_cfree"),
	MADE(tc_calloc, "tc_free_sized"),
	MADE(tc_memalign, "tc_free"),
	MADE(tc_posix_memalign, "tc_free"),
	MADE(tc_new, "tc_delete"),
	MADE(tc_new, "tc_delete_sized"),
	MADE(tc_newarray_nothrow, "tc_deletearray_sized"),
	GROWN(tc_malloc, tc_realloc, "tc_free"),
	{ NULL },
};
static const struct way google[] = {
	MADE(TCMallocInternalMalloc, "TCMallocInternalFree"),
	MADE(TCMallocInternalCalloc, "TCMallocInternalSdallocx"),
	MADE(TCMallocInternalAlignedAlloc, "TCMallocInternalFree"),
	GROWN(TCMallocInternalMalloc, TCMallocInternalRealloc, "TCMallocInternalFree"),
	MADE(_Znwm, "_ZdlPv"),
	MADE(_ZnwmRKSt9nothrow_t, "_ZdlPvm"),
	MADE(_Znwm12__hot_cold_t, "_ZdlPvm"),
	MADE(__size_returning_new, "_ZdlPvm"),
	MADE(tcmalloc_size_returning_operator_new_nothrow, "_ZdlPv"),
	{ NULL },
};
static const struct way mimalloc[] = {
	MADE(mi_malloc, "mi_free"),
	MADE(mi_zalloc, "mi_free_size"),
	MADE(mi_malloc_small, "mi_free"),
	MADE(mi_calloc, "mi_free"),
	MADE(mi_mallocn, "mi_cfree"),
	MADE(mi_memalign, "mi_free_aligned"),
	MADE(mi_posix_memalign, "mi_free"),
	MADE(mi_new, "mi_free"),
	MADE(mi_new_nothrow, "mi_free"),
	GROWN(mi_malloc, mi_realloc, "mi_free"),
	GROWN(mi_malloc, mi_rezalloc, "mi_free"),
	GROWN(mi_malloc, mi_reallocn, "mi_free"),
	GROWN(mi_malloc, mi_reallocf, "mi_free"),
	MADE(mi_heap_malloc, "mi_free"),
	MADE(mi_heap_zalloc, "mi_free"),
	MADE(mi_heap_malloc_small, "mi_free"),
	MADE(mi_heap_alloc_new, "mi_free"),
	MADE(mi_heap_calloc, "mi_free"),
	MADE(mi_heap_mallocn, "mi_free"),
	MADE(mi_heap_malloc_aligned, "mi_free"),
	GROWN(mi_heap_malloc, mi_heap_realloc, "mi_free"),
	GROWN(mi_malloc, mi_heap_rezalloc, "mi_free"),
	GROWN(mi_heap_malloc, mi_heap_reallocf, "mi_free"),
	GROWN(mi_heap_malloc, mi_heap_reallocn, "mi_free"),
	GROWN(mi_heap_zalloc, mi_heap_recalloc, "mi_free"),
	{ NULL },
};

static void go(const struct way *w)
{
	free_fn give_back = (free_fn)find(w->by);

	for (int i = 0; i < ROUNDS; i++) {
		size_t size = 64 * (1 + random_next(&seed) % 15), more;
		const char *name = w->name;
		void *p = w->make(size), *q;

		if (!p)
			die(name);
		count(name, size, 1);
		if (w->grow) {
			more = size + 8 * (random_next(&seed) % 100);
			q = w->grow(p, more);
			if (q) {
				count(name, size, -1);
				count(w->grow_name, more, 1);
				p = q;
				size = more;
				name = w->grow_name;
			}
		}
		if (i % 4 == 3)
			continue;
		/* What wants flags gets none; what wants an alignment gets that of all of these. */
		give_back(p, strstr(w->by, "dallocx") && !strstr(w->by, "sdallocx") ? 0 : size,
			  strstr(w->by, "sdallocx") ? 0 : 8);
		count(name, size, -1);
	}
}

int main(int argc, char **argv)
{
	const struct way *ways = argc < 2                       ? NULL
				 : !strcmp(argv[1], "jemalloc") ? jemalloc
				 : !strcmp(argv[1], "tcmalloc") ? tcmalloc
				 : !strcmp(argv[1], "google")   ? google
				 : !strcmp(argv[1], "mimalloc") ? mimalloc
								: NULL;

	if (!ways)
		die("usage: alloc_api jemalloc|tcmalloc|google|mimalloc [PREFIX]");
	if (argc > 2)
		prefix = argv[2];
	if (ways == mimalloc)
		heap(); /* takes a block itself */
	say_ready();
	for (;;) {
		struct site total = { .name = "total" };

		next_command();
		for (const struct way *w = ways; w->name; w++)
			go(w);
		for (int i = 0; i < n_sites; i++) {
			const struct site *s = &sites[i];

			say("site %s %llu %llu %llu %llu", s->name, (unsigned long long)s->calls,
			    (unsigned long long)s->bytes, (unsigned long long)s->live_calls,
			    (unsigned long long)s->live_bytes);
			total.calls += s->calls;
			total.bytes += s->bytes;
			total.live_calls += s->live_calls;
			total.live_bytes += s->live_bytes;
		}
		say("total %llu %llu %llu %llu", (unsigned long long)total.calls,
		    (unsigned long long)total.bytes, (unsigned long long)total.live_calls,
		    (unsigned long long)total.live_bytes);
		say("frees %llu", (unsigned long long)n_frees);
		say("end");
	}
}
