/*
 * Works in signal handlers that interrupt a leaf function, without frame pointers.
 *
 *   unwind_signals plain|altstack|nested
 *
 * plain: on the stack of what is interrupted; altstack: on one of its own; nested: a handler, on the
 * alternate stack, interrupted by another one.
 *
 * go    (no answer)  works until the end
 */
#include "target.h"

#include <sys/time.h>

#define WORD __attribute__((noinline, noclone, noipa))

static volatile uint64_t sink;
static int nested;

/* Leaves without a frame, that use the red zone. */
WORD static uint64_t leaf(uint64_t n)
{
	volatile uint64_t zone[4] = { n, n, n, n };

	for (uint64_t i = 0; i < n; i++)
		zone[i & 3] += i;
	return zone[0];
}

WORD static uint64_t inner_leaf(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(x));
	return x;
}

static void WORD inner_handler(int sig)
{
	sink += inner_leaf(1000000) + (uint64_t)sig;
}

static void WORD handler(int sig)
{
	if (nested)
		raise(SIGUSR1);
	sink += inner_leaf(3000000) + (uint64_t)sig;
}

WORD static void work(void)
{
	for (;;)
		sink += leaf(100000) + 1;
}

int main(int argc, char **argv)
{
	static char other_stack[1 << 16];
	stack_t ss = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction sa = { .sa_handler = handler }, inner = { .sa_handler = inner_handler };
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } };

	if (argc != 2)
		return 2;
	nested = !strcmp(argv[1], "nested");
	if (nested || !strcmp(argv[1], "altstack")) {
		sa.sa_flags = inner.sa_flags = SA_ONSTACK;
		sigaltstack(&ss, NULL);
	}
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGUSR1, &inner, NULL);
	say_ready();
	next_command();
	setitimer(ITIMER_REAL, &every, NULL);
	work();
	return 0;
}
