/*
 * Memory that becomes resident, and is released, in functions of known names.
 *
 *   growth
 *
 * Each command is answered by `end` when it is done; MIB are mebibytes.
 *
 *   a MIB          touch_a() touches fresh memory, a page at a time
 *   b MIB          touch_b() the same
 *   mixed MIB      both in turn, a page of touch_a() and three of touch_b()
 *   populate MIB   populate_d() maps memory that the kernel fills in at once
 *   huge MIB       touch_huge() touches fresh memory in huge pages
 *   file MIB       touch_file() reads a file through a mapping
 *   shared MIB     touch_shared() touches a shared anonymous mapping
 *   map MIB        maps memory that nobody touches: `at ADDRESS` before the end
 *   give-back      give_back_c() gives back all of the anonymous memory above: madvise()
 *   unmap          unmap_c() unmaps it
 *   threads MIB    two threads, each on a CPU of its own, touch fresh memory in touch_a() and touch_b()
 *   fork MIB       a child writes to memory it has inherited, all of it, in touch_inherited(), then
 *                  touches fresh memory in touch_child(), and waits; `child PID` before the end
 *   stop-child     the child ends
 *   speed MIB N    touches and gives back fresh memory N times: `ns NS`, of the fastest turn
 */
#include "target.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE        4096
#define MIB         (1 << 20)
#define MAX_REGIONS 64

static struct region {
	char *p;
	size_t size;
} regions[MAX_REGIONS];
static int n_regions;

static char *map_fresh(size_t size, int flags, int advice)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	if (p == MAP_FAILED || n_regions == MAX_REGIONS)
		die("mmap");
	if (advice >= 0)
		madvise(p, size, advice);
	regions[n_regions++] = (struct region){ p, size };
	return p;
}

static char *map_small(size_t mib)
{
	return map_fresh(mib * MIB, 0, MADV_NOHUGEPAGE);
}

#define TOUCHER(name, step)                                                                        \
	static NOINLINE void name(char *p, size_t size)                                            \
	{                                                                                          \
		KEEP_FRAME();                                                                      \
		for (size_t i = 0; i < size; i += (step))                                          \
			((volatile char *)p)[i] = 1;                                               \
	}

TOUCHER(touch_a, PAGE)
TOUCHER(touch_b, PAGE)
TOUCHER(touch_huge, PAGE)
TOUCHER(touch_shared, PAGE)
TOUCHER(touch_inherited, PAGE)
TOUCHER(touch_child, PAGE)

static NOINLINE char touch_file(const char *p, size_t size)
{
	char sum = 0;

	KEEP_FRAME();
	for (size_t i = 0; i < size; i += PAGE)
		sum += ((const volatile char *)p)[i];
	return sum;
}

static NOINLINE void populate_d(size_t mib)
{
	KEEP_FRAME();
	regions[n_regions++] =
		(struct region){ (char *)sys(SYS_mmap, 0, (long)(mib * MIB), PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
				 mib * MIB };
}

static NOINLINE void give_back_c(void)
{
	KEEP_FRAME();
	for (int i = 0; i < n_regions; i++)
		sys(SYS_madvise, (long)regions[i].p, (long)regions[i].size, MADV_DONTNEED, 0, 0, 0);
}

static NOINLINE void unmap_c(void)
{
	KEEP_FRAME();
	while (n_regions) {
		n_regions--;
		sys(SYS_munmap, (long)regions[n_regions].p, (long)regions[n_regions].size, 0, 0, 0,
		    0);
	}
}

static void mixed(size_t mib)
{
	char *p = map_small(mib);

	for (size_t i = 0; i < mib * MIB; i += 4 * PAGE) {
		touch_a(p + i, PAGE);
		touch_b(p + i + PAGE, 3 * PAGE);
	}
}

static void file(size_t mib)
{
	char name[] = "/tmp/memscope-growth-XXXXXX", page[PAGE] = { 1 };
	int fd = mkstemp(name);
	char *p;

	unlink(name);
	for (size_t i = 0; i < mib * MIB; i += PAGE)
		if (write(fd, page, PAGE) != PAGE)
			die("write");
	p = mmap(NULL, mib * MIB, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap of a file");
	touch_file(p, mib * MIB);
	close(fd);
}

static void shared(size_t mib)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	touch_shared(p, mib * MIB);
}

struct job {
	char *p;
	size_t size;
	int cpu;
	void (*touch)(char *p, size_t size);
};

static void *on_cpu(void *arg)
{
	struct job *job = arg;

	pin_to_cpu(job->cpu);
	job->touch(job->p, job->size);
	return NULL;
}

static void threads(size_t mib)
{
	struct job jobs[2] = { { map_small(mib), mib * MIB, 0, touch_a },
			       { map_small(mib), mib * MIB, 0, touch_b } };
	pthread_t ids[2];
	cpu_set_t set;
	int n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			jobs[n++].cpu = cpu;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&ids[i], NULL, on_cpu, &jobs[i]))
			die("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
}

static pid_t child = -1;

static void forked(size_t mib)
{
	int done[2];
	char c;

	if (pipe(done) < 0)
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < n_regions; i++)
			touch_inherited(regions[i].p, regions[i].size);
		touch_child(map_small(mib), mib * MIB);
		if (write(done[1], "x", 1) != 1)
			_exit(1);
		wait_for_ever();
	}
	if (read(done[0], &c, 1) != 1)
		die("the child");
	close(done[0]);
	close(done[1]);
	say("child %d", (int)child);
}

static void speed(size_t mib, int turns)
{
	char *p = map_small(mib);
	uint64_t best = UINT64_MAX;

	while (turns-- > 0) {
		uint64_t start = cpu_ns(), took;

		touch_a(p, mib * MIB);
		took = cpu_ns() - start;
		if (took < best)
			best = took;
		madvise(p, mib * MIB, MADV_DONTNEED);
	}
	say("ns %llu", (unsigned long long)best);
}

int main(void)
{
	say_ready();
	for (;;) {
		unsigned long mib = 0;
		char what[32] = "";
		int turns = 1;

		sscanf(next_command(), "%31s %lu %d", what, &mib, &turns);
		if (!strcmp(what, "a"))
			touch_a(map_small(mib), mib * MIB);
		else if (!strcmp(what, "b"))
			touch_b(map_small(mib), mib * MIB);
		else if (!strcmp(what, "mixed"))
			mixed(mib);
		else if (!strcmp(what, "populate"))
			populate_d(mib);
		else if (!strcmp(what, "huge"))
			touch_huge(map_fresh(mib * MIB, 0, MADV_HUGEPAGE), mib * MIB);
		else if (!strcmp(what, "file"))
			file(mib);
		else if (!strcmp(what, "shared"))
			shared(mib);
		else if (!strcmp(what, "map"))
			say("at %llu", (unsigned long long)(uintptr_t)map_small(mib));
		else if (!strcmp(what, "give-back"))
			give_back_c();
		else if (!strcmp(what, "unmap"))
			unmap_c();
		else if (!strcmp(what, "threads"))
			threads(mib);
		else if (!strcmp(what, "fork"))
			forked(mib);
		else if (!strcmp(what, "stop-child")) {
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		} else if (!strcmp(what, "speed"))
			speed(mib, turns);
		else
			die("what?");
		say("end");
	}
}
