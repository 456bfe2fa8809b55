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
 */
#include "target.h"

#include <pthread.h>
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

static void say_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	say("minor %ld", usage.ru_minflt);
}

int main(void)
{
	const char *line;
	size_t n;
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
		else if (strcmp(line, "faults") == 0)
			say_faults();
		else
			die(line);
		say("end");
	}
	return 0;
}
