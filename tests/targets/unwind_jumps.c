/*
 * Leaves its allocator by a jump, without frame pointers: the allocator is its own (a few hundred bytes
 * of each of many blocks, never released), so that nothing is damaged by that.
 *
 *   unwind_jumps hook      malloc calls a hook, which jumps out of every third call
 *   unwind_jumps signal    a signal's handler jumps out of the malloc that it interrupts
 *
 * What was jumped out of is called from `shallow`; then `deep` calls malloc from far below that, through
 * DEPTH calls of itself, and no jump comes.
 *
 * go    counts: after ROUNDS rounds, more where the machine is so quick that JUMPS or WORK_NS of CPU
 *       time are not reached: `deep BLOCKS`, `jumps N`, end; then waits
 */
#include "target.h"

#include <setjmp.h>
#include <sys/time.h>

#define WORD __attribute__((noinline, noclone, noipa))

enum { DEPTH = 20, ROUNDS = 3000, JUMPS = 300 };
#define WORK_NS (100 * NSEC_PER_MSEC)

static volatile uint64_t sink;
static sigjmp_buf out;
static volatile sig_atomic_t may_jump;
static bool by_signal;
static uint64_t jumps, deep_blocks;

WORD static uint64_t leaf(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink += i;
	return sink;
}

static void WORD handler(int sig)
{
	if (!may_jump)
		return;
	may_jump = 0;
	siglongjmp(out, sig);
}

WORD static void hook(void)
{
	static uint64_t calls;

	if (by_signal)
		leaf(may_jump ? 20000 : 200);
	else if (may_jump && ++calls % 3 == 0)
		siglongjmp(out, 1);
}

/* Instead of libc's, for all that this program calls. */
void *malloc(size_t size)
{
	static char blocks[1 << 20] __attribute__((aligned(16)));
	static size_t used;
	char *p = blocks + used;

	used = (used + (size + 15) / 16 * 16) % (sizeof(blocks) / 2);
	hook();
	return p;
}

void free(void *p)
{
	(void)p;
}

static void *(*volatile allocate)(size_t size) = malloc;

WORD static void shallow(void)
{
	may_jump = 1;
	sink += (uint64_t)(uintptr_t)allocate(32) + 1;
	may_jump = 0;
}

WORD static uint64_t deep(unsigned depth)
{
	if (depth) {
		uint64_t r = deep(depth - 1);

		__asm__ volatile("" : "+r"(r)); /* or a compiler makes a loop of it */
		return r + depth;
	}
	sink += (uint64_t)(uintptr_t)allocate(64) + 1;
	deep_blocks++;
	return leaf(50);
}

WORD static void work(void)
{
	volatile uint64_t begin = cpu_ns();

	for (volatile int i = 0; i < ROUNDS || jumps < JUMPS || cpu_ns() - begin < WORK_NS; i++) {
		if (!sigsetjmp(out, 1))
			shallow();
		else
			jumps++;
		sink += deep(DEPTH);
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler };
	struct itimerval every = { { 0, 700 }, { 0, 700 } }, never = { { 0, 0 }, { 0, 0 } };

	by_signal = argc == 2 && !strcmp(argv[1], "signal");
	if (argc != 2 || (!by_signal && strcmp(argv[1], "hook"))) {
		dprintf(2, "usage: unwind_jumps hook|signal\n");
		return 2;
	}
	sigaction(SIGALRM, &sa, NULL);
	say_ready();
	next_command();
	if (by_signal)
		setitimer(ITIMER_REAL, &every, NULL);
	work();
	setitimer(ITIMER_REAL, &never, NULL);
	say("deep %llu", (unsigned long long)deep_blocks);
	say("jumps %llu", (unsigned long long)jumps);
	say("end");
	next_command();
	return 0;
}
