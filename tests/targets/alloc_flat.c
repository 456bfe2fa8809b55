/*
 * Nothing but malloc and free, as fast as it goes, or at a chosen rate.
 *
 *   alloc_flat THREADS
 *
 * go PAIRS       → pairs N; bytes N; took WALL_NS; end   (PAIRS in each thread)
 * rate FILE      (no answer) plays until the end in one thread, counting pairs in the first 8
 *                bytes of FILE
 * rate FILE N    the same in bursts each millisecond, N pairs a second whatever happens
 * jump FILE N S  the same for S seconds, and then as fast as it goes
 * mix FILE N     the same with work between the pairs, so that undisturbed there are N a second
 */
#include "target.h"

#include <pthread.h>

#define BLOCK_BYTES 48

static uint64_t pairs;
static pthread_barrier_t barrier;

static NOINLINE void malloc_and_free(void)
{
	void *volatile p = malloc(BLOCK_BYTES);

	free(p);
}

static NOINLINE void play(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		malloc_and_free();
}

static __attribute__((noreturn)) void play_flat_out(volatile uint64_t *counter)
{
	for (;;) {
		play(100);
		*counter += 100;
	}
}

static void play_bursts(volatile uint64_t *counter, uint64_t per_sec, uint64_t ms_in_all)
{
	uint64_t begin = mono_ns();

	for (uint64_t ms = 1; ms <= ms_in_all; ms++) {
		play(per_sec / 1000);
		*counter += per_sec / 1000;
		while (mono_ns() - begin < ms * NSEC_PER_MSEC)
			burn(200);
	}
}

static __attribute__((noreturn)) void play_mixed(volatile uint64_t *counter, uint64_t per_sec)
{
	uint64_t work = burn_per_ms() * 1000 / per_sec;

	for (;;) {
		malloc_and_free();
		burn(work);
		++*counter;
	}
}

static __attribute__((noreturn)) void play_for_ever(const char *command)
{
	unsigned long long per_sec = 0, seconds = 0;
	volatile uint64_t *counter;
	char path[112];
	int n = sscanf(command, "%*s %111s %llu %llu", path, &per_sec, &seconds);

	if (n < 1)
		die(command);
	counter = map_counter(path);
	if (*command == 'm')
		play_mixed(counter, per_sec);
	if (n > 1)
		play_bursts(counter, per_sec, *command == 'j' ? seconds * 1000 : UINT64_MAX);
	play_flat_out(counter);
}

static void *thread_main(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&barrier);
		play(pairs);
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;

	if (threads < 1)
		die("usage: alloc_flat THREADS");
	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t, NULL, thread_main, NULL))
			die("pthread_create");
	say_ready();
	for (;;) {
		const char *command = next_command();
		uint64_t begin;

		if (*command == 'r' || *command == 'm' || *command == 'j')
			play_for_ever(command);
		pairs = strtoull(command + strcspn(command, " "), NULL, 10);
		begin = mono_ns();
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		begin = mono_ns() - begin;
		say("pairs %llu", (unsigned long long)(pairs * (uint64_t)threads));
		say("bytes %llu", (unsigned long long)(pairs * (uint64_t)threads * BLOCK_BYTES));
		say("took %llu", (unsigned long long)begin);
		say("end");
	}
}
