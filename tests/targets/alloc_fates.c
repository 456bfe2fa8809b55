/*
 * A program that knows what becomes of every block it allocates: who frees it, how long it was there,
 * whether its thread allocated anything in between, and what was live when most was.
 *
 *   alloc_fates          waits for commands
 *   alloc_fates after    what `exec` becomes
 *
 * Each site is a function of its own that calls malloc (grow: realloc). All is kept in arrays: nothing
 * else here allocates, and threads are there before `ready`.
 *
 * go      → pairs, two and two, a chain of reallocs, blocks that one thread makes and another frees, and
 *           a sawtooth of three teeth, of which the second is the highest; its blocks stay, by half
 * threads → four threads allocate at once until all of it is live, which is the most ever, and free it
 * fork    → `child PID`: it waits for another command, does a tooth, answers, and lives until the end
 * exec    → `execing`, then the new image: `after PID`, a tooth, its answer
 *
 * The answer: site NAME CALLS BYTES FREED TEMPORARY CROSS LIVE LIVE_BYTES AT_PEAK AT_PEAK_BYTES; peak
 * BYTES; sizes CLASS:N…; life NAME FREED AT_LEAST_NS AT_MOST_NS; thread TID CALLS BYTES; end.
 * At the peak of `threads` the sum is known, and the sites at it are what each had allocated.
 */
#include "target.h"

#include <pthread.h>

#define THREADS 4
#define BLOCKS  4096
#define CLASSES 32
#define EACH    500
#define HELD_MS 30

/* clang-format off */
#define SITES(X)         \
	X(pair)          \
	X(first_of_two)  \
	X(second_of_two) \
	X(chain)         \
	X(grow)          \
	X(keep_a_while)  \
	X(produce)       \
	X(tooth_a)       \
	X(tooth_b)       \
	X(together)      \
	X(child_tooth)
/* clang-format on */

enum site_id {
#define X(name) SITE_##name,
	SITES(X)
#undef X
		N_SITES,
};

struct site {
	const char *name;
	uint64_t calls, bytes, freed, temporary, cross, live, live_bytes, at_peak, at_peak_bytes;
	uint64_t at_least_ns, at_most_ns; /* sums of lifetimes */
};

static struct site sites[N_SITES] = {
#define X(site_name) [SITE_##site_name] = { .name = #site_name },
	SITES(X)
#undef X
};

struct block {
	void *p;
	size_t size;
	int site, thread;
	uint64_t before_ns, after_ns; /* its allocation */
};

static struct worker {
	pthread_t id;
	int tid;
	void *last; /* allocated by it */
	uint64_t calls, bytes;
} workers[THREADS + 1]; /* the last one is the main thread */

static __thread int self = THREADS;
static struct block blocks[BLOCKS];
static uint64_t live_bytes, peak_bytes, classes[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start, done;
static volatile int task;

enum { TASK_PRODUCE, TASK_FREE, TASK_TOGETHER, TASK_APART };

/* --- the truth --- */

static int class_of(size_t size)
{
	int class = 0;

	while (class < CLASSES - 1 && size > (size_t)8 << class)
		class ++;
	return class;
}

static void *made(struct block *b, void *p, size_t size, int site, uint64_t before_ns)
{
	struct site *s = &sites[site];

	*b = (struct block){ p, size, site, self, before_ns, mono_ns() };
	pthread_mutex_lock(&lock);
	workers[self].last = p;
	workers[self].calls++;
	workers[self].bytes += size;
	classes[class_of(size)]++;
	s->calls++;
	s->bytes += size;
	s->live++;
	s->live_bytes += size;
	live_bytes += size;
	if (live_bytes > peak_bytes) {
		peak_bytes = live_bytes;
		for (int i = 0; i < N_SITES; i++) {
			sites[i].at_peak = sites[i].live;
			sites[i].at_peak_bytes = sites[i].live_bytes;
		}
	}
	pthread_mutex_unlock(&lock);
	return p;
}

static void unmade(const struct block *b, uint64_t before_ns, uint64_t after_ns)
{
	struct site *s = &sites[b->site];

	pthread_mutex_lock(&lock);
	s->freed++;
	s->live--;
	s->live_bytes -= b->size;
	live_bytes -= b->size;
	s->cross += b->thread != self;
	s->temporary += b->thread == self && workers[self].last == b->p;
	s->at_least_ns += before_ns - b->after_ns;
	s->at_most_ns += after_ns - b->before_ns;
	pthread_mutex_unlock(&lock);
}

static NOINLINE void drop(struct block *b)
{
	uint64_t before_ns = mono_ns();

	free(b->p);
	unmade(b, before_ns, mono_ns());
	b->p = NULL;
}

#define MALLOC_SITE(name)                                                                          \
	static NOINLINE void *name(struct block *b, size_t size)                                   \
	{                                                                                          \
		uint64_t before_ns = mono_ns();                                                    \
                                                                                                   \
		return made(b, malloc(size), size, SITE_##name, before_ns);                        \
	}

MALLOC_SITE(pair)
MALLOC_SITE(first_of_two)
MALLOC_SITE(second_of_two)
MALLOC_SITE(chain)
MALLOC_SITE(keep_a_while)
MALLOC_SITE(produce)
MALLOC_SITE(tooth_a)
MALLOC_SITE(tooth_b)
MALLOC_SITE(together)
MALLOC_SITE(child_tooth)

static NOINLINE void *grow(struct block *b, size_t size)
{
	uint64_t before_ns = mono_ns();
	struct block old = *b;
	void *p = realloc(b->p, size);

	unmade(&old, before_ns, mono_ns());
	return made(b, p, size, SITE_grow, before_ns);
}

static void say_truth(void)
{
	char line[400];
	int n = 0;

	for (int i = 0; i < N_SITES; i++) {
		const struct site *s = &sites[i];

		say("site %s %lu %lu %lu %lu %lu %lu %lu %lu %lu", s->name, s->calls, s->bytes,
		    s->freed, s->temporary, s->cross, s->live, s->live_bytes, s->at_peak,
		    s->at_peak_bytes);
		if (s->freed)
			say("life %s %lu %lu %lu", s->name, s->freed, s->at_least_ns,
			    s->at_most_ns);
	}
	say("peak %lu", peak_bytes);
	for (int i = 0; i < CLASSES; i++)
		if (classes[i])
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %d:%lu", i, classes[i]);
	say("sizes%s", n ? line : "");
	for (int i = 0; i <= THREADS; i++)
		if (workers[i].calls)
			say("thread %d %lu %lu", workers[i].tid, workers[i].calls,
			    workers[i].bytes);
	say("end");
}

/* --- the threads --- */

static void work(int index)
{
	switch (task) {
	case TASK_PRODUCE:
		for (int i = 0; index == 0 && i < EACH; i++)
			produce(&blocks[i], 40 + (size_t)i % 100);
		break;
	case TASK_FREE: /* a fifth of it by who made it */
		for (int i = 0; i < EACH; i++)
			if (index == (i % 5 == 0 ? 0 : 1))
				drop(&blocks[i]);
		break;
	case TASK_TOGETHER:
		for (int i = 0; i < EACH; i++)
			together(&blocks[index * EACH + i], 2000 + (size_t)index * 16);
		break;
	case TASK_APART:
		for (int i = 0; i < EACH; i++)
			drop(&blocks[index * EACH + i]);
		break;
	}
}

static void *worker_main(void *arg)
{
	self = (int)(intptr_t)arg;
	workers[self].tid = self_tid();
	pthread_barrier_wait(&done); /* all are there */
	for (;;) {
		pthread_barrier_wait(&start);
		work(self);
		pthread_barrier_wait(&done);
	}
	return NULL;
}

static void all_do(int what)
{
	task = what;
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&done);
}

/* --- the main thread --- */

static void tooth(int a, int b)
{
	for (int i = 0; i < a; i++)
		tooth_a(&blocks[i], 1000);
	for (int i = 0; i < b; i++)
		tooth_b(&blocks[a + i], 3000);
	/* Down by both at once, and a little up again on the way. */
	for (int i = 0; i < a + b; i++) {
		drop(&blocks[i]);
		if (i % 10 == 0) {
			tooth_a(&blocks[i], 500);
			drop(&blocks[i]);
		}
	}
}

static void go(void)
{
	for (int i = 0; i < 200; i++) {
		pair(&blocks[0], 100);
		drop(&blocks[0]);
	}
	for (int i = 0; i < 50; i++) {
		first_of_two(&blocks[0], 8);
		second_of_two(&blocks[1], 9);
		drop(&blocks[0]);
		drop(&blocks[1]);
	}
	for (int i = 0; i < 20; i++) {
		chain(&blocks[0], 100);
		grow(&blocks[0], 200);
		grow(&blocks[0], 100000);
		grow(&blocks[0], 50);
		drop(&blocks[0]);
	}
	for (int i = 0; i < 3; i++) {
		keep_a_while(&blocks[0], 16);
		sleep_ns(HELD_MS * NSEC_PER_MSEC);
		drop(&blocks[0]);
	}
	all_do(TASK_PRODUCE);
	all_do(TASK_FREE);
	tooth(100, 50);
	for (int i = 0; i < 10; i++) /* lower than what comes, and there all the time */
		chain(&blocks[3000 + i], 700);
	tooth(300, 100);
	tooth(200, 80);
}

static void child_does(void)
{
	for (int i = 0; i < 30; i++)
		child_tooth(&blocks[i], 5000);
	for (int i = 0; i < 25; i++)
		drop(&blocks[i]);
}

/* A child or another image knows nothing of what was before. */
static void forget(void)
{
	for (int i = 0; i < N_SITES; i++)
		sites[i] = (struct site){ .name = sites[i].name };
	memset(workers, 0, sizeof(workers));
	memset(classes, 0, sizeof(classes));
	workers[self].tid = self_tid();
	live_bytes = peak_bytes = 0;
}

static void fork_now(void)
{
	int pipe_fds[2];
	char byte;
	pid_t pid;

	if (pipe(pipe_fds) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		say("child %d", (int)getpid());
		next_command();
		forget();
		child_does();
		say_truth();
		(void)!write(pipe_fds[1], "", 1);
		wait_for_ever();
	}
	(void)!read(pipe_fds[0], &byte, 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

int main(int argc, char **argv)
{
	const char *command;

	workers[THREADS].tid = self_tid();
	if (argc > 1 && !strcmp(argv[1], "after")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		say("after %d", (int)getpid());
		child_does();
		say_truth();
		wait_for_ever();
	}
	pthread_barrier_init(&start, NULL, THREADS + 1);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].id, NULL, worker_main, (void *)i))
			die("pthread_create");
	pthread_barrier_wait(&done);
	say_ready();
	for (;;) {
		command = next_command();
		if (!strcmp(command, "go")) {
			go();
			say_truth();
		} else if (!strcmp(command, "threads")) {
			all_do(TASK_TOGETHER);
			all_do(TASK_APART);
			say_truth();
		} else if (!strcmp(command, "fork")) {
			fork_now();
		} else if (!strcmp(command, "exec")) {
			say("execing");
			execl("/proc/self/exe", "alloc_fates", "after", (char *)NULL);
			die("exec");
		}
	}
}
