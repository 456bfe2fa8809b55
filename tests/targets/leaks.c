/*
 * One function leaks, one gives back what it takes, one fills a cache and then replaces its oldest
 * entries, and one hands out blocks that live for some rounds, more of them all the time.
 *
 *   leaks ROUNDS MS
 *
 * go → ROUNDS rounds, one every MS:
 *      leaked BYTES BYTES_A_SECOND; end
 */
#include "target.h"

#define PER_ROUND  64
#define LEAK_BYTES 1024
#define CACHE      1024
#define QUEUE      8 /* rounds */

static void *cache[CACHE], *queue[QUEUE][1024];
static void *volatile kept;

static NOINLINE void leak_here(void)
{
	for (int i = 0; i < PER_ROUND; i++)
		kept = malloc(LEAK_BYTES);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void churn_here(void)
{
	for (int i = 0; i < PER_ROUND; i++) {
		kept = malloc(10000);
		free(kept);
	}
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void cache_here(int round)
{
	for (int i = 0; i < CACHE / 8; i++) {
		int at = (round * CACHE / 8 + i) % CACHE;

		free(cache[at]);
		cache[at] = malloc(4000);
	}
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void queue_here(int round)
{
	for (int i = 0; i < 8 * round && i < 1024; i++) {
		free(queue[round % QUEUE][i]);
		queue[round % QUEUE][i] = malloc(500);
	}
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0, ms = argc > 2 ? atoi(argv[2]) : 0;
	uint64_t begin, bytes;

	if (rounds <= 0)
		die("usage: leaks ROUNDS MS");
	say_ready();
	next_command();
	begin = mono_ns();
	for (int i = 0; i < rounds; i++) {
		leak_here();
		churn_here();
		cache_here(i);
		queue_here(i);
		sleep_ns((uint64_t)ms * NSEC_PER_MSEC);
	}
	bytes = (uint64_t)rounds * PER_ROUND * LEAK_BYTES;
	say("leaked %llu %llu", (unsigned long long)bytes,
	    (unsigned long long)((double)bytes * 1e9 / (double)(mono_ns() - begin)));
	say("end");
	for (;;)
		next_command();
}
