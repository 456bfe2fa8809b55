/*
 * Events of which it knows how many there were, and in which function of its own.
 *
 *   events
 *
 * Each command is answered by `end` when it is done.
 *
 *   touch N [NAME]  touch_a() (or touch_b()) touches N fresh pages: N page faults
 *   fork N          fork_n() starts N children, which end at once
 *   call N          call_n() makes N system calls openat, which fail
 *   threads N M     N threads that make M such calls each, in call_n()
 *   faults          `minor N`, the page faults of the process so far
 *   work N US       work() N times, which takes US microseconds each time; `took NS`: all of them
 *   nest N DEPTH    nest() N times, which calls itself DEPTH - 1 times
 *   leave N         leave() N times, which a longjmp() leaves
 *   below N         … once, then N times from further down the stack, where it returns
 *   end N           N threads end in finish()
 */
#include "target.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PAGE 4096

#define TOUCHER(name)                                                                              \
	static NOINLINE void name(volatile char *p, size_t n)                                      \
	{                                                                                          \
		KEEP_FRAME();                                                                      \
		for (size_t i = 0; i < n; i++)                                                     \
			p[i * PAGE] = 1;                                                           \
	}
TOUCHER(touch_a)
TOUCHER(touch_b)

static void touch(size_t n, char name)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, n * PAGE, MADV_NOHUGEPAGE) < 0)
		die("mmap");
	if (name == 'b')
		touch_b(p, n);
	else
		touch_a(p, n);
	munmap(p, n * PAGE);
}

static NOINLINE void fork_n(size_t n)
{
	KEEP_FRAME();
	for (size_t i = 0; i < n; i++) {
		pid_t pid = (pid_t)sys(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);

		if (pid < 0)
			die("clone");
		if (!pid)
			_exit(0);
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid");
	}
}

static NOINLINE void call_n(size_t n)
{
	KEEP_FRAME();
	for (size_t i = 0; i < n; i++)
		sys(SYS_openat, AT_FDCWD, (long)"/nonexistent", O_RDONLY, 0, 0, 0);
}

static size_t calls_each;

static void *caller(void *arg)
{
	(void)arg;
	call_n(calls_each);
	return NULL;
}

static void threads(size_t n)
{
	pthread_t ids[64];

	for (size_t i = 0; i < n && i < 64; i++)
		if (pthread_create(&ids[i], NULL, caller, NULL))
			die("pthread_create");
	for (size_t i = 0; i < n && i < 64; i++)
		pthread_join(ids[i], NULL);
}

static NOINLINE void work(uint64_t us)
{
	uint64_t end = mono_ns() + us * 1000;

	KEEP_FRAME();
	while (us && mono_ns() < end)
		;
}

static void work_n(size_t n, uint64_t us)
{
	uint64_t began = mono_ns();

	for (size_t i = 0; i < n; i++)
		work(us);
	say("took %llu", (unsigned long long)(mono_ns() - began));
}

static NOINLINE void nest(size_t depth)
{
	KEEP_FRAME();
	if (depth > 1)
		nest(depth - 1);
}

static jmp_buf to;
static volatile bool leaves = true;

static NOINLINE void leave(void)
{
	KEEP_FRAME();
	if (leaves)
		longjmp(to, 1);
}

static void leave_n(volatile size_t n)
{
	for (volatile size_t i = 0; i < n; i++)
		if (!setjmp(to))
			leave();
}

static NOINLINE void leave_below(size_t n)
{
	volatile char room[8192];

	memset((char *)room, 0, sizeof(room));
	for (size_t i = 0; i < n; i++)
		leave();
	KEEP_FRAME();
}

static void below(volatile size_t n)
{
	if (!setjmp(to))
		leave();
	leaves = false;
	leave_below(n);
	leaves = true;
}

static NOINLINE void finish(void)
{
	KEEP_FRAME();
	if (leaves)
		pthread_exit(NULL);
}

static void *finisher(void *arg)
{
	(void)arg;
	finish();
	return NULL;
}

static void end_n(size_t n)
{
	pthread_t id;

	for (size_t i = 0; i < n; i++)
		if (pthread_create(&id, NULL, finisher, NULL) || pthread_join(id, NULL))
			die("pthread_create");
}

static void say_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	say("minor %ld", usage.ru_minflt);
}

int main(void)
{
	const char *line;
	size_t n, m;
	char name;

	say_ready();
	while ((line = next_command())) {
		name = 'a';
		if (sscanf(line, "touch %zu %c", &n, &name) >= 1)
			touch(n, name);
		else if (sscanf(line, "fork %zu", &n) == 1)
			fork_n(n);
		else if (sscanf(line, "call %zu", &n) == 1)
			call_n(n);
		else if (sscanf(line, "threads %zu %zu", &n, &calls_each) == 2)
			threads(n);
		else if (sscanf(line, "work %zu %zu", &n, &m) == 2)
			work_n(n, m);
		else if (sscanf(line, "nest %zu %zu", &n, &m) == 2)
			for (size_t i = 0; i < n; i++)
				nest(m);
		else if (sscanf(line, "leave %zu", &n) == 1)
			leave_n(n);
		else if (sscanf(line, "below %zu", &n) == 1)
			below(n);
		else if (sscanf(line, "end %zu", &n) == 1)
			end_n(n);
		else if (strcmp(line, "faults") == 0)
			say_faults();
		else
			die(line);
		say("end");
	}
	return 0;
}
