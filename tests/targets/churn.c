/*
 * One kind of event at a rate, as fast as it can with 0, and how much work was done.
 *
 *   churn threads|processes|switches|faults RATE [WORKERS]
 *
 *   threads    pthread_create() and its end
 *   processes  fork(), and the child ends at once
 *   switches   two threads on one CPU hand a byte to and fro; a round is two switches
 *   faults     the first write to a page
 *
 * RATE: events a second of all WORKERS (default 1) together. A line on stdout each second: the events of that
 * second, and the CPU time of process and children in it, ns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ULL
#define PAGES  4096

static _Atomic uint64_t events;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void *short_thread(void *unused)
{
	return unused;
}

static uint32_t one_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, short_thread, NULL) == 0)
		pthread_join(t, NULL);
	return 1;
}

static uint32_t one_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return 1;
}

static uint32_t one_fault(void)
{
	static _Thread_local char *area;
	static _Thread_local uint32_t at;

	if (!area)
		area = mmap(NULL, PAGES * 4096UL, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		exit(1);
	madvise(area, PAGES * 4096UL, MADV_NOHUGEPAGE);
	if (at == PAGES) {
		madvise(area, PAGES * 4096UL, MADV_DONTNEED);
		at = 0;
	}
	area[4096UL * at++] = 1;
	return 1;
}

struct pair {
	int there[2], back[2];
	int cpu;
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *echo(void *arg)
{
	const struct pair *p = arg;
	char c;

	pin(p->cpu);
	while (read(p->there[0], &c, 1) == 1 && write(p->back[1], &c, 1) == 1)
		;
	return NULL;
}

static uint32_t one_round(void)
{
	static _Thread_local struct pair *p;
	char c = 0;

	if (!p) {
		pthread_t t;

		p = calloc(1, sizeof(*p));
		if (!p || pipe(p->there) < 0 || pipe(p->back) < 0)
			exit(1);
		p->cpu = sched_getcpu();
		pin(p->cpu);
		pthread_create(&t, NULL, echo, p);
	}
	if (write(p->there[1], &c, 1) != 1 || read(p->back[0], &c, 1) != 1)
		exit(1);
	return 2;
}

struct work {
	uint32_t (*one)(void);
	double rate;
};

/* Events as they come due, a hundredth of a second's at a time. */
static void *worker(void *arg)
{
	const struct work *w = arg;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), done = 0;

	for (;;) {
		uint32_t n = w->one();

		done += n;
		atomic_fetch_add_explicit(&events, n, memory_order_relaxed);
		while (w->rate > 0 &&
		       (double)done > (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9 * w->rate)
			usleep(10000);
	}
	return NULL;
}

static uint64_t cpu_ns(void)
{
	struct rusage ended;

	getrusage(RUSAGE_CHILDREN, &ended);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
	       (uint64_t)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * SECOND +
	       (uint64_t)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) * 1000;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t (*one)(void);
	} kinds[] = { { "threads", one_thread },
		      { "processes", one_process },
		      { "switches", one_round },
		      { "faults", one_fault } };
	int workers = argc > 3 ? atoi(argv[3]) : 1;
	struct work w = { 0 };
	uint64_t had = 0, cpu = 0;
	pthread_t t;

	for (uint32_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			w.one = kinds[i].one;
	if (!w.one || workers < 1) {
		fprintf(stderr, "churn threads|processes|switches|faults RATE [WORKERS]\n");
		return 2;
	}
	w.rate = atof(argv[2]) / workers;
	while (workers--)
		if (pthread_create(&t, NULL, worker, &w) != 0)
			return 1;
	for (;;) {
		uint64_t n, ns;

		sleep(1);
		n = atomic_load(&events);
		ns = cpu_ns();
		printf("%llu %llu\n", (unsigned long long)(n - had),
		       (unsigned long long)(ns - cpu));
		fflush(stdout);
		had = n;
		cpu = ns;
	}
}
