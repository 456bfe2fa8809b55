/*
 * A bit of everything, without frame pointers: calls of some depth, allocations at their bottom, short
 * sleeps; in several threads, or with signals that come all the time.
 *
 *   unwind_mix threads|signals
 *
 * threads: four of them. signals: one, interrupted a thousand times a second by a handler that calls
 * as deep as what it interrupts, on a stack of its own every other time.
 *
 * go    (no answer)  works until the end
 */
#include "target.h"

#include <pthread.h>
#include <sys/time.h>

#define WORD __attribute__((noinline, noclone, noipa))

enum { BLOCKS = 64, DEPTH = 24 };

static volatile uint64_t sink;
static __thread void *blocks[BLOCKS];

WORD static uint64_t leaf(uint64_t n)
{
	volatile uint64_t zone[4] = { n, n, n, n };

	for (uint64_t i = 0; i < n; i++)
		zone[i & 3] += i;
	return zone[0];
}

WORD static void bottom(uint64_t turn)
{
	unsigned at = (unsigned)(turn % BLOCKS);

	free(blocks[at]);
	blocks[at] = malloc(16 + turn % 4000);
	sink += leaf(2000);
	if (turn % 16 == 0)
		sleep_ns(100000);
}

/* Frames of changing sizes; rbx, rbp and r12 … are saved in some. */
WORD static uint64_t descend(unsigned depth, uint64_t turn)
{
	uint64_t a = sink + depth, b = sink ^ turn, c = sink * depth, r;

	if (!depth) {
		bottom(turn);
		return a;
	}
	if (depth & 1) {
		volatile uint64_t room[8] = { a, b, c };

		r = descend(depth - 1, turn) + room[turn & 7];
	} else {
		r = descend(depth - 1, turn);
	}
	return r + a * b + c;
}

WORD static void *work(void *arg)
{
	for (uint64_t turn = 1;; turn++)
		sink += descend(DEPTH - (unsigned)turn % 8, turn) + (uint64_t)(uintptr_t)arg;
	return NULL;
}

WORD static uint64_t interrupt_deeper(unsigned depth)
{
	return depth ? interrupt_deeper(depth - 1) + leaf(10) : leaf(100000);
}

static void WORD handler(int sig)
{
	struct sigaction sa;

	sink += interrupt_deeper(DEPTH);
	sigaction(sig, NULL, &sa);
	sa.sa_flags ^= SA_ONSTACK;
	sigaction(sig, &sa, NULL);
}

int main(int argc, char **argv)
{
	static char other_stack[1 << 16];
	stack_t ss = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	bool signals = argc == 2 && !strcmp(argv[1], "signals");
	pthread_t thread;

	if (argc != 2 || (!signals && strcmp(argv[1], "threads"))) {
		dprintf(2, "usage: unwind_mix threads|signals\n");
		return 2;
	}
	say_ready();
	next_command();
	if (signals) {
		sigaltstack(&ss, NULL);
		sigaction(SIGALRM, &sa, NULL);
		setitimer(ITIMER_REAL, &every, NULL);
	} else {
		for (uintptr_t i = 1; i < 4; i++)
			if (pthread_create(&thread, NULL, work, (void *)i))
				die("pthread_create");
	}
	work(NULL);
	return 0;
}
