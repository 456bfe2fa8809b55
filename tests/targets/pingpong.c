/*
 * Two threads on one CPU that hand a byte to and fro through two pipes: a context switch for each
 * hand-over, as many a second as the kernel can do.
 *
 *   pingpong CPU
 *
 * The kernel counts each thread's switches by itself (getrusage: voluntary = it blocked,
 * involuntary = it was pushed off).
 *
 * go ROUNDS → thread TID VOLUNTARY INVOLUNTARY (both threads)
 *             took WALL_NS
 *             end
 * rate FILE  (no answer)  plays until the end, counting rounds in the first 8 bytes of FILE
 */
#include "target.h"

#include <pthread.h>
#include <sys/resource.h>

static int there[2], back[2], begin_pipe[2], result_pipe[2];
static uint64_t rounds;
static volatile uint64_t *counter;
static uint64_t nothing;

struct switches {
	uint64_t voluntary, involuntary;
};

static struct switches switches_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return (struct switches){ (uint64_t)ru.ru_nvcsw, (uint64_t)ru.ru_nivcsw };
}

static void say_switches(struct switches a)
{
	struct switches b = switches_now();

	say("thread %d %llu %llu", self_tid(), (unsigned long long)(b.voluntary - a.voluntary),
	    (unsigned long long)(b.involuntary - a.involuntary));
}

static NOINLINE void wait_for_byte(int fd)
{
	char c;

	if (sys(SYS_read, fd, (long)&c, 1, 0, 0, 0) != 1)
		_exit(72);
}

static NOINLINE void send_byte(int fd)
{
	if (sys(SYS_write, fd, (long)"x", 1, 0, 0, 0) != 1)
		_exit(73);
}

static NOINLINE void play_ping(void)
{
	for (uint64_t i = 0; i < rounds; i++) {
		send_byte(there[1]);
		wait_for_byte(back[0]);
		*counter = i + 1;
	}
}

static NOINLINE void play_pong(void)
{
	for (uint64_t i = 0; i < rounds; i++) {
		wait_for_byte(there[0]);
		send_byte(back[1]);
	}
}

static void *pong(void *arg)
{
	struct switches a;

	for (;;) {
		wait_for_byte(begin_pipe[0]);
		a = switches_now();
		play_pong();
		say_switches(a);
		send_byte(result_pipe[1]);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	pin_to_cpu(argc > 1 ? atoi(argv[1]) : 0);
	counter = &nothing;
	if (pipe(there) || pipe(back) || pipe(begin_pipe) || pipe(result_pipe) ||
	    pthread_create(&t, NULL, pong, NULL))
		die("set-up");
	say_ready();
	for (;;) {
		const char *command = next_command();
		struct switches a;
		uint64_t begin;

		if (!strncmp(command, "rate ", 5)) {
			counter = map_counter(command + 5);
			rounds = ~0ull;
		} else {
			rounds = strtoull(command + strcspn(command, " "), NULL, 10);
		}
		send_byte(begin_pipe[1]);
		begin = mono_ns();
		a = switches_now();
		play_ping();
		say_switches(a);
		begin = mono_ns() - begin;
		wait_for_byte(result_pipe[0]);
		say("took %llu", (unsigned long long)begin);
		say("end");
	}
}
