/*
 * A service. One function leaks, one has filled a cache before anybody looked, of which entries are now and then
 * renewed, one churns, one grows buffers and drops them. Two threads do all of that.
 *
 *   service SPINS
 *
 * With RJEM on jemalloc as Rust's crates link it: its functions have a prefix, and once the program is stripped
 * nothing has a name. Else with an allocator of its own, which only moves a pointer: there is nothing to walk.
 *
 *   go → end; works until
 *   stop → site NAME LIVE_BYTES; end
 */
#include "target.h"

#include <pthread.h>

#define LEAK_BYTES  200
#define CACHE       3000
#define CACHE_BYTES 300
#define POOL        600
#define BUFFERS     16

#ifdef RJEM
void *_rjem_malloc(size_t size);
void *_rjem_calloc(size_t n, size_t size);
void *_rjem_mallocx(size_t size, int flags);
void *_rjem_realloc(void *old, size_t size);
void _rjem_sdallocx(void *block, size_t size, int flags);

#define MALLOC(size)       _rjem_malloc(size)
#define CALLOC(n, size)    _rjem_calloc(n, size)
#define REALLOC(old, size) _rjem_realloc(old, size)
#define FREE(block, size)  _rjem_sdallocx(block, size, 0)
#else
/* Blocks are used again in turn: what lives long is never freed here, and the others are short-lived. */
static char arena[256 << 20];
static size_t used;

static NOINLINE void *own_malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 31) & ~15ul, __ATOMIC_RELAXED);

	at %= sizeof(arena) - (1 << 20);
	memcpy(arena + at, &size, sizeof(size));
	return arena + at + 16;
}

static void *own_calloc(size_t n, size_t size)
{
	return memset(own_malloc(n * size), 0, n * size);
}

static void *own_realloc(void *old, size_t size)
{
	size_t had = 0;
	void *new = own_malloc(size);

	if (old)
		memcpy(&had, (char *)old - 16, sizeof(had));
	return old ? memcpy(new, old, had < size ? had : size) : new;
}

#define MALLOC(size)       own_malloc(size)
#define CALLOC(n, size)    own_calloc(n, size)
#define REALLOC(old, size) own_realloc(old, size)
#define FREE(block, size)  ((void)(block), (void)(size))
#endif

struct worker {
	pthread_t thread;
	uint64_t state, leaked;
	void *pool[POOL], *buffers[BUFFERS];
	size_t pool_bytes[POOL], buffer_bytes[BUFFERS];
	int spins;
};

static struct worker workers[2];
static void *cache[CACHE];
static int stopping;
static void *volatile kept;

static uint32_t draw(struct worker *w, uint32_t n)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return (uint32_t)(w->state >> 33) % n;
}

static NOINLINE void leak_here(struct worker *w)
{
	kept = MALLOC(LEAK_BYTES);
	memset(kept, 1, LEAK_BYTES);
	w->leaked += LEAK_BYTES;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void cache_here(int at)
{
	cache[at] = CALLOC(1, CACHE_BYTES);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void pool_here(struct worker *w)
{
	uint32_t at = draw(w, POOL);

	if (w->pool[at])
		FREE(w->pool[at], w->pool_bytes[at]);
	w->pool_bytes[at] = 24 + draw(w, 300);
	w->pool[at] = MALLOC(w->pool_bytes[at]);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void buffer_here(struct worker *w)
{
	uint32_t at = draw(w, BUFFERS);

	w->buffer_bytes[at] += 100 + draw(w, 1000);
	w->buffers[at] = REALLOC(w->buffers[at], w->buffer_bytes[at]);
	__asm__ volatile("" ::: "memory");
	if (w->buffer_bytes[at] < 30000)
		return;
	FREE(w->buffers[at], w->buffer_bytes[at]);
	w->buffers[at] = NULL;
	w->buffer_bytes[at] = 0;
}

/* Each thread has a half of the cache of its own. */
static void *work(void *arg)
{
	struct worker *w = arg;
	int first = w == workers ? 0 : CACHE / 2;

	for (uint64_t i = 0; !__atomic_load_n(&stopping, __ATOMIC_RELAXED); i++) {
		pool_here(w);
		if (i % 8 == 0)
			buffer_here(w);
		if (i % 64 == 0) {
			uint32_t at = (uint32_t)first + draw(w, CACHE / 2);

			FREE(cache[at], CACHE_BYTES);
			cache_here((int)at);
		}
		if (i % 32 == 0)
			leak_here(w);
		for (volatile int k = 0; k < w->spins; k++)
			;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int spins = argc > 1 ? atoi(argv[1]) : 0;
	uint64_t leaked = 0;

	for (int i = 0; i < CACHE; i++)
		cache_here(i);
	say_ready();
	next_command();
	for (int i = 0; i < 2; i++) {
		workers[i].state = 88172645463325252ULL + (uint64_t)i * 1000003;
		workers[i].spins = spins;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("pthread_create");
	}
	say("end");
	next_command();
	__atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++) {
		pthread_join(workers[i].thread, NULL);
		leaked += workers[i].leaked;
	}
	say("site leak_here %llu", (unsigned long long)leaked);
	say("site cache_here %llu", (unsigned long long)CACHE * CACHE_BYTES);
	say("end");
	for (;;)
		next_command();
}
