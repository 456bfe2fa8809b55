/*
 * Threads pinned to CPUs that spin without ever giving up the CPU.
 *
 *   spinners MS CPU [CPU…]    one thread for each CPU; two on one CPU take turns
 *
 * Each spins for MS of wall time after `go`. The kernel's own figures for the same time come from
 * /proc/thread-self/schedstat (on the CPU, waiting in a run queue), read by the thread itself;
 * ON_NS is perf's account of the time on the CPU, which has what was stolen there in it.
 *
 * go → thread TID CPU WALL_NS CPU_NS RUN_DELAY_NS ON_NS (for each thread); end
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>

static uint64_t per_ms;
static uint64_t want_ns;
static struct gate start, done;
static int left;

BURNER(spin)

static uint64_t run_delay_ns(int fd)
{
	unsigned long long on = 0, wait = 0;
	char b[128];
	ssize_t n = pread(fd, b, sizeof(b) - 1, 0);

	if (n <= 0)
		return 0;
	b[n] = '\0';
	sscanf(b, "%llu %llu", &on, &wait);
	return wait;
}

static void *work(void *arg)
{
	uint64_t wall, on, cpu, delay;
	int fd, on_fd = on_cpu_open(), cpu_nr = (int)(uintptr_t)arg;

	pin_to_cpu(cpu_nr);
	fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	gate_wait(&start);
	wall = mono_ns();
	on = on_cpu_ns(on_fd);
	cpu = cpu_ns();
	delay = run_delay_ns(fd);
	while (mono_ns() - wall < want_ns)
		spin(per_ms);
	delay = run_delay_ns(fd) - delay;
	cpu = cpu_ns() - cpu;
	on = on_cpu_ns(on_fd) - on;
	wall = mono_ns() - wall;
	say("thread %d %d %llu %llu %llu %llu", self_tid(), cpu_nr, (unsigned long long)wall,
	    (unsigned long long)cpu, (unsigned long long)delay, (unsigned long long)on);
	if (!__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL))
		gate_open(&done);
	wait_for_ever();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	left = argc - 2;
	if (left < 1)
		die("usage: spinners MS CPU…");
	want_ns = (uint64_t)atoi(argv[1]) * NSEC_PER_MSEC;
	per_ms = burn_per_ms();
	for (int i = 2; i < argc; i++)
		if (pthread_create(&t, NULL, work, (void *)(uintptr_t)atoi(argv[i])))
			die("pthread_create");
	say_ready();
	next_command();
	gate_open(&start);
	gate_wait(&done);
	say("end");
	for (;;)
		next_command();
}
