/*
 * Where memory lives in a busy allocator: one function leaks, one fills a cache and then replaces entries at
 * random, one hands out blocks of mixed sizes that live briefly, one keeps a set that was there before.
 *
 *   live_truth MS SPINS [LEAK_PER_S]
 *
 * SPINS: work between two calls. It leaks with every 128th block, or LEAK_PER_S bytes a second. go → works for
 * MS:
 *      site NAME LIVE_BYTES
 *      blocks N             that were allocated
 *      end
 */
#include "target.h"

#define LEAK_BYTES  200
#define CACHE       4000
#define CACHE_BYTES 120
#define POOL        600
#define SET         2000
#define SET_BYTES   72

static void *cache[CACHE], *pool[POOL], *set[SET];
static size_t pool_bytes[POOL];
static uint64_t leaked, cached, pooled, blocks, state = 88172645463325252ULL;
static void *volatile kept;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static NOINLINE void leak_here(void)
{
	kept = malloc(LEAK_BYTES);
	leaked += LEAK_BYTES;
	blocks++;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void cache_here(void)
{
	uint32_t at = draw(CACHE);

	cached += cache[at] ? 0 : CACHE_BYTES;
	free(cache[at]);
	cache[at] = malloc(CACHE_BYTES);
	blocks++;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void pool_here(void)
{
	uint32_t at = draw(POOL);

	free(pool[at]);
	pooled -= pool_bytes[at];
	pool_bytes[at] = 24 + draw(300);
	pooled += pool_bytes[at];
	pool[at] = malloc(pool_bytes[at]);
	blocks++;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void before_here(void)
{
	for (int i = 0; i < SET; i++)
		set[i] = malloc(SET_BYTES);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	int ms = argc > 1 ? atoi(argv[1]) : 0, spins = argc > 2 ? atoi(argv[2]) : 0;
	double leak_per_s = argc > 3 ? atof(argv[3]) : 0;
	uint64_t begin, end;

	if (ms <= 0)
		die("usage: live_truth MS SPINS [LEAK_PER_S]");
	before_here();
	say_ready();
	next_command();
	begin = mono_ns();
	end = begin + (uint64_t)ms * NSEC_PER_MSEC;
	for (uint64_t i = 0; i % 64 || mono_ns() < end; i++) {
		pool_here();
		if (i % 16 == 0)
			cache_here();
		if (i % 128 == 0 &&
		    (leak_per_s <= 0 ||
		     (double)leaked < leak_per_s * (double)(mono_ns() - begin) / 1e9))
			leak_here();
		for (volatile int k = 0; k < spins; k++)
			;
	}
	say("site leak_here %llu", (unsigned long long)leaked);
	say("site cache_here %llu", (unsigned long long)cached);
	say("site pool_here %llu", (unsigned long long)pooled);
	say("blocks %llu", (unsigned long long)blocks);
	say("end");
	for (;;)
		next_command();
}
