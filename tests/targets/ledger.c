/*
 * What was allocated before anyone looked: small blocks of the main thread and of others, in their arenas,
 * and large ones with mappings of their own; all touched.
 *
 *   ledger THREADS
 *
 * go → every fourth is given back, and some are allocated:
 *      kept BLOCKS BYTES; freed BLOCKS BYTES; made BLOCKS BYTES ASKED; end
 * bytes by malloc_usable_size(), ASKED as it was asked for
 */
#include "target.h"

#include <malloc.h>
#include <pthread.h>

#define MAIN    90000
#define PER     2000
#define THREADS 8
#define LARGE   4
#define MADE    500

static void *small[MAIN + THREADS * PER + LARGE];
static int n_small;
static pthread_barrier_t filled;
static void *volatile made;

static NOINLINE void *fill(size_t bytes)
{
	void *block = malloc(bytes);

	if (!block)
		die("malloc");
	return memset(block, 1, bytes);
}

static void *work(void *arg)
{
	int from = (int)(intptr_t)arg;

	for (int i = 0; i < PER; i++)
		small[from + i] = fill((size_t)(i % 900) + 1);
	pthread_barrier_wait(&filled);
	while (n_small)
		pause();
	return NULL;
}

static NOINLINE void make_here(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < MADE; i++) {
		made = fill(3000);
		bytes += malloc_usable_size(made);
	}
	say("made %d %llu %d", MADE, (unsigned long long)bytes, MADE * 3000);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : -1;
	uint64_t kept = 0, freed = 0, kept_bytes = 0, freed_bytes = 0;
	pthread_t thread;

	if (threads < 0 || threads > THREADS)
		die("usage: ledger THREADS");
	pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&thread, NULL, work, (void *)(intptr_t)n_small))
			die("pthread_create");
		n_small += PER;
	}
	for (int i = 0; i < MAIN; i++)
		small[n_small++] = fill((size_t)(i % 2000) + 1);
	for (int i = 0; i < LARGE; i++)
		small[n_small++] = fill((size_t)(i + 1) << 20);
	pthread_barrier_wait(&filled);
	say_ready();
	next_command();
	for (int i = 0; i < n_small; i++) {
		size_t bytes = malloc_usable_size(small[i]);

		if (i % 4) {
			kept++;
			kept_bytes += bytes;
			continue;
		}
		freed++;
		freed_bytes += bytes;
		free(small[i]);
	}
	make_here();
	say("kept %llu %llu", (unsigned long long)kept, (unsigned long long)kept_bytes);
	say("freed %llu %llu", (unsigned long long)freed, (unsigned long long)freed_bytes);
	say("end");
	for (;;)
		next_command();
}
