/*
 * A process that executes itself while its threads are being seized one after the other.
 *
 *   exec_held [again]
 *
 * The last of its threads does so as soon as the first one has a tracer. The kernel then waits until that tracer has seen the end of
 * every thread that it has seized, while the tracer, as it seizes the last one, waits for the execve(2).
 * With `again` it only answers any line with: generation 2
 */
#include "target.h"

#include <pthread.h>

enum { THREADS = 1000, STACK_BYTES = 64 << 10, STOPPED_NS = 5 * NSEC_PER_MSEC };

static void *held(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static int tracer_of_first(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	const char *at;

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "TracerPid:");
	return at ? atoi(at + 10) : 0;
}

static void *last(void *arg)
{
	/* It must see it at once, while other threads are still being seized. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	printf("ready\n");
	fflush(stdout);
	/* Or when it has been stopped itself, before it saw that. */
	for (uint64_t seen = mono_ns(); !tracer_of_first() && mono_ns() - seen < STOPPED_NS;)
		seen = mono_ns();
	execl("/proc/self/exe", (const char *)arg, "again", NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;
	char line[64];

	(void)argc;
	if (!argv[1]) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK_BYTES);
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&thread, &attr, i + 1 < THREADS ? held : last,
					   argv[0]) != 0)
				return 1;
		pthread_join(thread, NULL);
	}
	while (fgets(line, sizeof(line), stdin)) {
		printf("generation 2\nend\n");
		fflush(stdout);
	}
	return 0;
}
