/*
 * A busy allocator, and one thing in it whose memory grows: a leak, or a cache, queue or table that fills
 * and stays.
 *
 *   busy_sites ROLE BYTES_S FILL_S CALLS_S [BLOCK]
 *
 * ROLE is what grows, in a function of that name with _here:
 *   leak      BYTES_S for ever, while the program has a CPU
 *   lru       a cache that gets an entry and, when it is full, loses the oldest
 *   random    a cache that gets an entry and, when it is full, loses any
 *   queue     a queue, of which one in three written is read at first, and as many as written once it is full
 *   table     a dictionary that knows all its keys in the end: an array that doubles, and the keys
 *   buffers   connections that are kept open, of which each has a buffer and gets a new one now and then
 * All but the leak hold BYTES_S * FILL_S when they are full, after FILL_S seconds (queue: half as many more), by the clock,
 * however late the program is; what is replaced then is replaced at the same rate. BLOCK: bytes of a block on average, 64
 * without it.
 *
 * Beside it CALLS_S calls a second of functions that allocate and keep nothing, or a constant amount:
 * churn_small, churn_large, pool_here, and before_here, which runs once before the program is ready. What the
 * program is late by in these, and in a leak, is caught up with for 20 ms at most: a burst sees them as they are on average.
 *
 *   run MS   works for MS, or until the next command comes:
 *      site NAME LIVE_BYTES BLOCKS_MADE    as asked for; of each function
 *      calls N NS                          allocations and frees of all, and how long it worked
 *      live T_NS BYTES                     of what grows, by CLOCK_MONOTONIC; LOGGED or fewer
 *      end
 */
#include "target.h"

#include <poll.h>

#define LOGGED   512
#define TICK_NS  NSEC_PER_MSEC
#define LATE_NS  (20 * NSEC_PER_MSEC)
#define POOL     600
#define SET      2000
#define SET_SIZE 72

struct site {
	const char *name;
	uint64_t live, made;
};

enum { ROLE, SMALL, LARGE, POOLED, BEFORE, N_SITES };
static struct site sites[N_SITES] = {
	[SMALL] = { "churn_small", 0, 0 },
	[LARGE] = { "churn_large", 0, 0 },
	[POOLED] = { "pool_here", 0, 0 },
	[BEFORE] = { "before_here", 0, 0 },
};

struct entry {
	void *p;
	size_t bytes;
};

static struct entry *entries, pool[POOL]; /* entries: what grows has, but for a leak's       */
static void *set[SET], **table;
static uint64_t cap, head, calls, state = 88172645463325252ULL;
static size_t block = 64;
static void *volatile kept;

static struct {
	uint64_t at_ns, bytes;
} logged[LOGGED];
static uint32_t n_logged, log_stride = 1, log_seen;

static uint32_t draw(uint32_t n)
{
	return random_next(&state) % n;
}

/* A block's size: around `block`, from half of it to one and a half. */
static size_t size_of_block(void)
{
	return block / 2 + draw((uint32_t)block + 1);
}

static void took(struct site *s, size_t bytes)
{
	s->live += bytes;
	s->made++;
	calls++;
}

static void gave(struct site *s, size_t bytes)
{
	s->live -= bytes;
	calls++;
}

static NOINLINE void leak_here(void)
{
	size_t n = size_of_block();

	kept = malloc(n);
	took(&sites[ROLE], n);
	__asm__ volatile("" ::: "memory");
}

static void drop(struct entry *e)
{
	if (!e->p)
		return;
	free(e->p);
	gave(&sites[ROLE], e->bytes);
	e->p = NULL;
}

static NOINLINE void lru_here(void)
{
	struct entry *e = &entries[head++ % cap];

	drop(e);
	e->bytes = size_of_block();
	e->p = malloc(e->bytes);
	took(&sites[ROLE], e->bytes);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void random_here(void)
{
	struct entry *e = &entries[head < cap ? head : draw((uint32_t)cap)];

	head++;
	drop(e);
	e->bytes = size_of_block();
	e->p = malloc(e->bytes);
	took(&sites[ROLE], e->bytes);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void queue_here(void)
{
	static uint64_t tail, turn;
	struct entry *e;

	if (head - tail == cap || turn++ % 3 == 2)
		drop(&entries[tail++ % cap]);
	if (head - tail == cap)
		return;
	e = &entries[head++ % cap];
	e->bytes = size_of_block();
	e->p = malloc(e->bytes);
	took(&sites[ROLE], e->bytes);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void table_here(void)
{
	static uint64_t slots;
	size_t n = size_of_block();

	if (head == cap)
		return;
	if (head == slots) {
		uint64_t more = slots ? 2 * slots : 1024;
		void **bigger = realloc(table, more * sizeof(void *));

		if (!bigger)
			die("realloc");
		if (table)
			gave(&sites[ROLE], slots * sizeof(void *));
		took(&sites[ROLE], more * sizeof(void *));
		table = bigger;
		slots = more;
	}
	table[head] = malloc(n);
	took(&sites[ROLE], n);
	head++;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void buffers_here(void)
{
	struct entry *e = &entries[head < cap ? head : draw((uint32_t)cap)];
	size_t n = size_of_block();
	void *p = realloc(e->p, n);

	if (!p)
		die("realloc");
	if (e->p)
		gave(&sites[ROLE], e->bytes);
	*e = (struct entry){ p, n };
	took(&sites[ROLE], n);
	head++;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void churn_small(void)
{
	size_t n = 24 + draw(200);

	kept = malloc(n);
	took(&sites[SMALL], n);
	free(kept);
	gave(&sites[SMALL], n);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void churn_large(void)
{
	size_t n = 1000 + draw(6000);

	kept = malloc(n);
	took(&sites[LARGE], n);
	free(kept);
	gave(&sites[LARGE], n);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void pool_here(void)
{
	struct entry *e = &pool[draw(POOL)];

	if (e->p) {
		free(e->p);
		gave(&sites[POOLED], e->bytes);
	}
	e->bytes = 24 + draw(300);
	e->p = malloc(e->bytes);
	took(&sites[POOLED], e->bytes);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void before_here(void)
{
	for (int i = 0; i < SET; i++) {
		set[i] = malloc(SET_SIZE);
		took(&sites[BEFORE], SET_SIZE);
	}
	__asm__ volatile("" ::: "memory");
}

static const struct {
	const char *name, *site;
	void (*step)(void);
} roles[] = {
	{ "leak", "leak_here", leak_here },       { "lru", "lru_here", lru_here },
	{ "random", "random_here", random_here }, { "queue", "queue_here", queue_here },
	{ "table", "table_here", table_here },    { "buffers", "buffers_here", buffers_here },
};

/* Evenly spaced in the end: when there is no room, every other goes. */
static void log_live(uint64_t now)
{
	if (log_seen++ % log_stride)
		return;
	if (n_logged == LOGGED) {
		for (uint32_t i = 0; i < LOGGED / 2; i++)
			logged[i] = logged[2 * i];
		n_logged /= 2;
		log_stride *= 2;
	}
	logged[n_logged].at_ns = now;
	logged[n_logged++].bytes = sites[ROLE].live;
}

/* What grows has had so many bytes by now, of which it keeps what it can. */
static void grow_to(void (*step)(void), double owed)
{
	static double given;

	while (given < owed) {
		step();
		given += (double)block;
	}
}

static void churn(uint64_t n)
{
	for (uint64_t begin = calls, i = 0; calls - begin < n; i++) {
		churn_small();
		if (i % 4 == 0)
			pool_here();
		if (i % 16 == 0)
			churn_large();
	}
}

static bool asked(void)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void work(void (*step)(void), double bytes_s, double calls_s, uint64_t ms)
{
	static uint64_t grew_ns; /* in earlier commands, too */
	uint64_t begin = mono_ns(), end = begin + ms * NSEC_PER_MSEC, now = begin, paid = begin;
	uint64_t next_log = begin, calls_at_first = calls, late_ns;

	while (now < end && !asked()) {
		late_ns = now - paid < LATE_NS ? now - paid : LATE_NS;
		grew_ns += step == leak_here ? late_ns : now - paid;
		grow_to(step, bytes_s * (double)grew_ns / 1e9);
		churn((uint64_t)(calls_s * (double)late_ns / 1e9));
		paid = now;
		if (now >= next_log) {
			log_live(now);
			next_log += NSEC_PER_SEC / 10;
		}
		now = mono_ns();
		if (now - paid < TICK_NS)
			sleep_ns(TICK_NS - (now - paid));
		now = mono_ns();
	}
	log_live(now);
	for (int i = 0; i < N_SITES; i++)
		say("site %s %llu %llu", sites[i].name, (unsigned long long)sites[i].live,
		    (unsigned long long)sites[i].made);
	say("calls %llu %llu", (unsigned long long)(calls - calls_at_first),
	    (unsigned long long)(now - begin));
	for (uint32_t i = 0; i < n_logged; i++)
		say("live %llu %llu", (unsigned long long)logged[i].at_ns,
		    (unsigned long long)logged[i].bytes);
	say("end");
}

int main(int argc, char **argv)
{
	double bytes_s = argc > 2 ? atof(argv[2]) : 0, fill_s = argc > 3 ? atof(argv[3]) : 0;
	double calls_s = argc > 4 ? atof(argv[4]) : 0;
	void (*step)(void) = NULL;
	unsigned long ms;

	for (size_t i = 0; argc > 4 && i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(argv[1], roles[i].name) == 0) {
			sites[ROLE].name = roles[i].site;
			step = roles[i].step;
		}
	}
	if (argc > 5)
		block = (size_t)atoi(argv[5]);
	if (!step || bytes_s <= 0 || calls_s < 0 || block < 16)
		die("usage: busy_sites ROLE BYTES_S FILL_S CALLS_S [BLOCK]");
	cap = (uint64_t)(bytes_s * fill_s) / block + 1;
	/* Not of the allocator that is watched: it is not of a site. */
	entries = mmap(NULL, cap * sizeof(*entries), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (entries == MAP_FAILED)
		die("mmap");
	before_here();
	say_ready();
	for (;;)
		if (sscanf(next_command(), "run %lu", &ms) == 1)
			work(step, bytes_s, calls_s, ms);
}
