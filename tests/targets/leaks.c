/*
 * One function leaks, one gives back what it takes, one fills a cache and then replaces its oldest
 * entries, and one hands out blocks that live for some rounds, more of them all the time.
 *
 *   leaks ROUNDS MS
 *
 * go → ROUNDS rounds, one every MS; what a round is late by the next ones make up for, but a quarter of
 *      MS is always slept. When the leak of each of the first LOGGED began and ended, by CLOCK_MONOTONIC:
 *      leaked BYTES
 *      round BEGIN_NS END_NS
 *      end
 */
#include "target.h"

#define PER_ROUND  64
#define LEAK_BYTES 1024
#define CACHE      1024
#define QUEUE      8 /* rounds */
#define LOGGED     1000

static void *cache[CACHE], *queue[QUEUE][1024];
static void *volatile kept;
static uint64_t begun[LOGGED], ended[LOGGED];

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

/* Until `ns` since `begin`. */
static void sleep_until(uint64_t begin, uint64_t ns, uint64_t at_least)
{
	uint64_t passed = mono_ns() - begin;

	sleep_ns(passed + at_least < ns ? ns - passed : at_least);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0, ms = argc > 2 ? atoi(argv[2]) : 0;
	uint64_t begin, ns = (uint64_t)ms * NSEC_PER_MSEC;

	if (rounds <= 0)
		die("usage: leaks ROUNDS MS");
	say_ready();
	next_command();
	begin = mono_ns();
	for (int i = 0; i < rounds; i++) {
		if (i < LOGGED)
			begun[i] = mono_ns();
		leak_here();
		if (i < LOGGED)
			ended[i] = mono_ns();
		churn_here();
		cache_here(i);
		queue_here(i);
		sleep_until(begin, (uint64_t)(i + 1) * ns, ns / 4);
	}
	say("leaked %llu", (unsigned long long)rounds * PER_ROUND * LEAK_BYTES);
	for (int i = 0; i < rounds && i < LOGGED; i++)
		say("round %llu %llu", (unsigned long long)begun[i], (unsigned long long)ended[i]);
	say("end");
	for (;;)
		next_command();
}
