/*
 * What a library's constructor may do before the program's first instruction: starts.c is linked
 * with it. The program's first argument chooses, the second names the file that answers go to:
 *
 *   nothing | fork | shared | vfork | spawn | thread | exec | sleep | stop | signal
 *
 * It allocates BEFORE blocks, does that, and allocates AFTER blocks. A forked child goes on to
 * main(), past the place where whoever started it may have left a trap, and exits with 7.
 */
#include "target.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#define BEFORE 300
#define AFTER  200
#define BLOCK  48

extern char **environ;
extern int starts_is_child, starts_result;
extern pthread_t starts_thread;
void starts_join(void);

int starts_is_child, starts_result = -1;
pthread_t starts_thread;
static volatile int go_on, handled;
static char stack[65536];

static NOINLINE void ctor_before(void)
{
	KEEP_FRAME();
	for (int i = 0; i < BEFORE; i++)
		free(malloc(BLOCK));
	__asm__ volatile("");
}

static NOINLINE void ctor_after(void)
{
	KEEP_FRAME();
	for (int i = 0; i < AFTER; i++)
		free(malloc(BLOCK));
	__asm__ volatile("");
}

static void *thread_main(void *arg)
{
	while (!go_on)
		usleep(1000);
	return arg;
}

void starts_join(void)
{
	go_on = 1;
	pthread_join(starts_thread, NULL);
	starts_result = 7;
}

static int shared_main(void *arg UNUSED)
{
	return 7;
}

static void on_signal(int number)
{
	handled = number;
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void act(const char *how, char **argv)
{
	pid_t pid;

	if (strcmp(how, "fork") == 0) {
		pid = fork();
		starts_is_child = pid == 0;
		if (pid)
			starts_result = wait_for(pid);
	} else if (strcmp(how, "shared") == 0) {
		starts_result = wait_for(
			clone(shared_main, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL));
	} else if (strcmp(how, "vfork") == 0) {
		pid = vfork();
		if (pid == 0)
			_exit(7);
		starts_result = wait_for(pid);
	} else if (strcmp(how, "spawn") == 0) {
		char *args[] = { "sh", "-c", "exit 7", NULL };

		starts_result = posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ)
					? -1
					: wait_for(pid);
	} else if (strcmp(how, "thread") == 0) {
		pthread_create(&starts_thread, NULL, thread_main, NULL);
	} else if (strcmp(how, "exec") == 0) {
		if (!getenv("STARTS_AGAIN")) {
			setenv("STARTS_AGAIN", "1", 1);
			execv("/proc/self/exe", argv);
		}
		starts_result = 7;
	} else if (strcmp(how, "sleep") == 0) {
		uint64_t begin = mono_ns();

		sleep(4);
		starts_result = mono_ns() - begin >= 4 * NSEC_PER_SEC ? 7 : -1;
	} else if (strcmp(how, "stop") == 0) {
		raise(SIGSTOP);
		starts_result = 7;
	} else if (strcmp(how, "signal") == 0) {
		signal(SIGUSR1, on_signal);
		raise(SIGUSR1);
		starts_result = handled == SIGUSR1 ? 7 : -1;
	} else {
		starts_result = 7;
	}
}

static void __attribute__((constructor)) begin(int argc, char **argv)
{
	if (argc != 3)
		return;
	ctor_before();
	act(argv[1], argv);
	if (!starts_is_child)
		ctor_after();
}
