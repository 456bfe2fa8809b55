/*
 * What a malloc and its free cost at the end of a deep stack: `alloc_depth FRAMES SECONDS [THREADS]`
 * prints, after each fifth of a second of CPU time of each thread, ns of the thread's CPU time for each pair,
 *
 *   same      from one place
 *   changing  from places some frames apart: before each, a random number of frames, 4 on average,
 *             was left and others entered
 *   spread    like that, with 4096 blocks that live for a while
 *
 * and as its last line the calls and bytes of each thread's three sites together: `truth CALLS BYTES`,
 * of which none is live. SIGTERM ends it sooner, in the same way.
 */
#include "target.h"

#include <pthread.h>

#define HELD  4096
#define BATCH 2000

static double seconds;
static int depth;
static uint64_t calls, bytes;
static volatile sig_atomic_t over;

struct work {
	uint64_t seed, calls, bytes, pairs[3], ns[3], until;
	void *held[HELD];
	uint32_t at;
	int mode;
};

static uint32_t next_random(struct work *w)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(w->seed >> 33);
}

static NOINLINE void pair(struct work *w)
{
	size_t size = 16 + next_random(w) % 240;
	void *volatile p = malloc(size);

	free(p);
	w->calls++;
	w->bytes += size;
}

static NOINLINE void held(struct work *w)
{
	size_t size = 16 + next_random(w) % 240;
	void **slot = &w->held[next_random(w) % HELD];

	free(*slot);
	*slot = malloc(size);
	w->calls++;
	w->bytes += size;
}

static NOINLINE void down_a(struct work *w, int left);

/* Two functions, so that paths differ. */
static NOINLINE void down_b(struct work *w, int left)
{
	if (left <= 0)
		w->mode == 2 ? held(w) : pair(w);
	else if (next_random(w) & 1)
		down_a(w, left - 1);
	else
		down_b(w, left - 1);
	__asm__ volatile("");
}

static NOINLINE void down_a(struct work *w, int left)
{
	if (left <= 0)
		w->mode == 2 ? held(w) : pair(w);
	else if (next_random(w) & 1)
		down_a(w, left - 1);
	else
		down_b(w, left - 1);
	__asm__ volatile("");
}

static NOINLINE void batch(struct work *w)
{
	for (int i = 0; i < BATCH; i++) {
		if (w->mode == 0)
			pair(w);
		else
			down_a(w, (int)(next_random(w) % 9));
	}
}

static NOINLINE void bottom(struct work *w)
{
	uint64_t said = cpu_ns();

	while (!over && mono_ns() < w->until) {
		for (w->mode = 0; w->mode < 3; w->mode++) {
			uint64_t from = cpu_ns();

			batch(w);
			w->ns[w->mode] += cpu_ns() - from;
			w->pairs[w->mode] += BATCH;
		}
		if (cpu_ns() - said < 200000000)
			continue;
		say("same %.1f changing %.1f spread %.1f", (double)w->ns[0] / (double)w->pairs[0],
		    (double)w->ns[1] / (double)w->pairs[1], (double)w->ns[2] / (double)w->pairs[2]);
		for (int i = 0; i < 3; i++)
			w->ns[i] = w->pairs[i] = 0;
		said = cpu_ns();
	}
}

static NOINLINE void enter(struct work *w, int left)
{
	if (left > 0)
		enter(w, left - 1);
	else
		bottom(w);
	__asm__ volatile("");
}

static void *run(void *ctx)
{
	struct work *w = ctx;

	enter(w, depth);
	for (int i = 0; i < HELD; i++)
		free(w->held[i]);
	__atomic_add_fetch(&calls, w->calls, __ATOMIC_RELAXED);
	__atomic_add_fetch(&bytes, w->bytes, __ATOMIC_RELAXED);
	return NULL;
}

static void on_term(int sig)
{
	over = sig;
}

int main(int argc, char **argv)
{
	static struct work work[64];
	pthread_t thread[64];
	int n = argc > 3 ? atoi(argv[3]) : 1;

	depth = argc > 1 ? atoi(argv[1]) : 20;
	seconds = argc > 2 ? atof(argv[2]) : 1;
	signal(SIGTERM, on_term);
	say("ready %d", (int)getpid());
	for (int i = 0; i < n; i++) {
		work[i].seed = (uint64_t)i + 1;
		work[i].until = mono_ns() + (uint64_t)(seconds * 1e9);
		pthread_create(&thread[i], NULL, run, &work[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	say("truth %llu %llu", (unsigned long long)calls, (unsigned long long)bytes);
	return 0;
}
