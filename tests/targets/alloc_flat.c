/*
 * Nothing but malloc and free, as fast as it goes, or at a chosen rate.
 *
 *   alloc_flat THREADS
 *
 * go PAIRS       → pairs N; bytes N; took WALL_NS; end   (PAIRS in each thread)
 * rate FILE [PER_SEC]   (no answer) plays until the end in one thread, counting pairs in the first
 *                8 bytes of FILE; with PER_SEC, in bursts each millisecond with work between
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

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

static NOINLINE void play_for_ever(volatile uint64_t *counter, uint64_t per_sec)
{
	uint64_t per_ms = per_sec / 1000, begin = mono_ns(), done = 0;

	for (;;) {
		if (!per_sec) {
			play(100);
			*counter += 100;
			continue;
		}
		play(per_ms);
		*counter += per_ms;
		done++;
		while (mono_ns() - begin < done * NSEC_PER_MSEC)
			burn(200);
	}
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

static volatile uint64_t *map_counter(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die(path);
	return p;
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

		if (!strncmp(command, "rate ", 5)) {
			char path[112];
			unsigned long long per_sec = 0;

			if (sscanf(command, "rate %111s %llu", path, &per_sec) < 1)
				die(command);
			play_for_ever(map_counter(path), per_sec);
		}
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
