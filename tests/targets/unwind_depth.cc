/*
 * Works at the bottom of a stack of known depth, without frame pointers, through functions whose
 * frames have every shape that compilers give them.
 *
 *   unwind_depth burn|sleep|malloc DEPTH
 *
 * Prints its chain of functions before it is ready for commands, leaf first, as
 *     chain FUNCTION FUNCTION … main
 * go    (no answer)  works until the end
 */
#include "target.h"

#include <alloca.h>

#define WORD __attribute__((noinline, noclone, noipa))

static int (*bottom)(int depth);
static volatile int sink;
static void *volatile block;

WORD static int bottom_burn(int depth)
{
	for (;;)
		for (int i = 0; i < 1000; i++)
			sink += depth;
}

WORD static int bottom_sleep(int depth)
{
	for (;;) {
		struct timespec ts = { 0, 200000 };

		nanosleep(&ts, NULL);
		sink += depth;
	}
}

WORD static int bottom_malloc(int depth)
{
	for (;;) {
		block = malloc(100);
		sink += depth;
		free(block);
	}
}

WORD static int plain(int depth, int a);

/* rbx, r12 … and rbp as an ordinary register. */
WORD static int saves_registers(int depth, int a)
{
	int b = sink + a, c = sink * a, d = sink - a, e = sink ^ a, f = sink | a, g = sink & a;
	int r = plain(depth - 1, a + 1);

	return r + b + c * d + e * f + g;
}

/* A frame that sp alone does not tell: rbp. */
WORD static int has_alloca(int depth, int a)
{
	char *room = (char *)alloca((size_t)(a & 15) + 16);
	int r;

	room[0] = (char)a;
	__asm__ volatile("" : : "r"(room) : "memory");
	r = saves_registers(depth - 1, a + 1);
	return r + room[0];
}

/* A stack realigned by more than the ABI's 16 bytes, in a function that also moves sp: the CFA is
 * where the function has put it (DW_CFA_def_cfa_expression). */
WORD static int realigns(int depth, int a)
{
	alignas(64) char vector[64];
	char *room = (char *)alloca((size_t)(a & 15) + 16);
	int r;

	vector[0] = room[0] = (char)a;
	__asm__ volatile("" : : "r"(room), "r"(vector) : "memory");
	r = has_alloca(depth - 1, a + 1);
	return r + room[0] + vector[0];
}

/* Arguments on the stack: pushed, and popped after the call. */
WORD static int many_arguments(int depth, int a, int b, int c, int d, int e, int f, int g, int h)
{
	int r = realigns(depth - 1, a);

	return r + a + b + c + d + e + f + g + h;
}

WORD static int plain(int depth, int a)
{
	if (depth > 0)
		return many_arguments(depth - 1, a, 2, 3, 4, 5, 6, 7, 8) + 1;
	return bottom(depth) + 1;
}

/* plain is at depths 0, 5, 10, …: the leaf-most are fewer than a round of all five. */
static void say_chain(const char *leaf, int depth)
{
	static char line[1 << 16];
	static const char *const outwards[] = { "plain", "saves_registers", "has_alloca", "realigns",
						"many_arguments" };
	int n = snprintf(line, sizeof(line), "chain %s", leaf);

	for (int i = 0; i <= depth; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s", outwards[i % 5]);
	n += snprintf(line + n, sizeof(line) - (size_t)n, " main\n");
	for (int done = 0; done < n;) {
		ssize_t r = write(1, line + done, (size_t)(n - done));

		if (r <= 0)
			_exit(71);
		done += (int)r;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode, *function;
		int (*fn)(int);
	} modes[] = {
		{ "burn", "bottom_burn", bottom_burn },
		{ "sleep", "bottom_sleep", bottom_sleep },
		{ "malloc", "bottom_malloc", bottom_malloc },
	};
	int depth = argc == 3 ? atoi(argv[2]) : -1;

	for (size_t i = 0; argc == 3 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].mode))
			continue;
		bottom = modes[i].fn;
		say_ready();
		say_chain(modes[i].function, depth);
	}
	if (!bottom || depth < 0 || depth % 5) {
		dprintf(2, "usage: unwind_depth burn|sleep|malloc DEPTH (a multiple of 5)\n");
		return 2;
	}
	next_command();
	return plain(depth, 1) + sink; /* and so no jump, but a call */
}
