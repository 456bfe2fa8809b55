/*
 * What was allocated before anyone looked: small blocks of the main thread and of others, in their arenas,
 * and large ones with mappings of their own; all touched.
 *
 *   ledger THREADS
 *
 * go → every fourth is released, and some are allocated:
 *      kept BLOCKS BYTES; freed BLOCKS BYTES; made BLOCKS BYTES ASKED; end
 * bytes by malloc_usable_size(), ASKED as it was asked for; and where jemalloc is the allocator
 *      stats ALLOCATED ACTIVE RETAINED
 */
#include "target.h"

#include <dlfcn.h>
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

typedef int (*mallctl_fn)(const char *name, void *old, size_t *len, void *new, size_t new_len);

static uint64_t stat_of(mallctl_fn mallctl, const char *name)
{
	uint64_t epoch = 1;
	size_t value = 0, len = sizeof(value);

	if (mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) ||
	    mallctl(name, &value, &len, NULL, 0))
		die(name);
	return value;
}

static void say_stats(mallctl_fn mallctl)
{
	unsigned long long stats[3];

	if (!mallctl)
		return;
	stats[0] = stat_of(mallctl, "stats.allocated");
	stats[1] = stat_of(mallctl, "stats.active");
	stats[2] = stat_of(mallctl, "stats.retained");
	say("stats %llu %llu %llu", stats[0], stats[1], stats[2]);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : -1;
	uint64_t kept = 0, freed = 0, kept_bytes = 0, freed_bytes = 0;
	mallctl_fn mallctl = (mallctl_fn)dlsym(RTLD_DEFAULT, "mallctl"); /* it may allocate */
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
	say_stats(mallctl);
	say("end");
	for (;;)
		next_command();
}
