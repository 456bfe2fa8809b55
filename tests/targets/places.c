/*
 * A thread that waits very often, in two functions that call the same one from frames of the same
 * size, so that pc and sp do not tell which, and now and then, for long, in a third. Its partner, on
 * the same CPU, answers each byte.
 *
 *   places CPU
 *
 * go ROUNDS NAPS → calls TID OFTEN SELDOM BLOCKS  how often it waited in each, and in all (getrusage)
 *                  naps NAP_NS LONGEST_NS         what the NAPS naps took by its own clock, and the longest
 *                  end
 */
#include "target.h"

#include <pthread.h>
#include <sys/resource.h>

#define NAP_NS 5000000

static int there[2], back[2];

static NOINLINE void wait_for_byte(int fd)
{
	char c;

	if (sys(SYS_read, fd, (long)&c, 1, 0, 0, 0) != 1)
		_exit(72);
	__asm__ volatile("");
}

static NOINLINE void send_byte(int fd)
{
	if (sys(SYS_write, fd, (long)"x", 1, 0, 0, 0) != 1)
		_exit(73);
	__asm__ volatile("");
}

static NOINLINE void wait_often(void)
{
	wait_for_byte(back[0]);
	__asm__ volatile("");
}

static NOINLINE void wait_seldom(void)
{
	wait_for_byte(back[0]);
	__asm__ volatile("");
}

static NOINLINE void wait_long(void)
{
	sleep_ns(NAP_NS);
	__asm__ volatile("");
}

static void *partner(void *arg)
{
	for (;;) {
		wait_for_byte(there[0]);
		send_byte(back[1]);
	}
	return arg;
}

static uint64_t blocks_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return (uint64_t)ru.ru_nvcsw;
}

static NOINLINE void play(uint64_t rounds, uint64_t naps)
{
	uint64_t often = 0, seldom = 0, nap_ns = 0, longest_ns = 0, random = 88172645463325252ull;
	uint64_t blocks = blocks_now(), now;

	for (uint64_t i = 0; i < rounds; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		send_byte(there[1]);
		now = blocks_now();
		if (random >> 20 & 3) {
			wait_often();
			often += blocks_now() - now;
		} else {
			wait_seldom();
			seldom += blocks_now() - now;
		}
		if (naps && i % (rounds / naps) == rounds / naps / 2) {
			uint64_t begin = mono_ns(), took;

			wait_long();
			took = mono_ns() - begin;
			nap_ns += took;
			longest_ns = took > longest_ns ? took : longest_ns;
		}
	}
	blocks = blocks_now() - blocks;
	say("calls %d %llu %llu %llu", self_tid(), (unsigned long long)often,
	    (unsigned long long)seldom, (unsigned long long)blocks);
	say("naps %llu %llu", (unsigned long long)nap_ns, (unsigned long long)longest_ns);
	say("end");
}

int main(int argc, char **argv)
{
	pthread_t t;

	pin_to_cpu(argc > 1 ? atoi(argv[1]) : 0);
	if (pipe(there) || pipe(back) || pthread_create(&t, NULL, partner, NULL))
		die("set-up");
	say_ready();
	for (;;) {
		char *rest = NULL;
		const char *command = next_command();
		uint64_t rounds = strtoull(command + strcspn(command, " "), &rest, 10);

		play(rounds, strtoull(rest, NULL, 10));
	}
}
