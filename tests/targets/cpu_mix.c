/*
 * cpu_mix MS [more]: twelve functions that compute, in three groups, over and over; `more`: one of them
 * that is not called otherwise as well. Each takes the same CPU time in each run, however fast the
 * machine is just then: MS are those of all but the last.
 */
#include <stdlib.h>
#include <time.h>

/* What a function is given, `k`, is in units of CPU time; those of a round, and what `more` adds. */
#define UNIT_NS       20000
#define UNITS         53
#define UNITS_OF_MORE 10

static volatile unsigned long x;
static int per_unit = 2000; /* iterations */

#define F(n)                                                                                       \
	__attribute__((noinline)) static void mix_##n(int k)                                       \
	{                                                                                          \
		for (int i = 0; i < k * per_unit; i++)                                             \
			x += (unsigned long)(i ^ n);                                               \
	}

F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)
F(8)
F(9)
F(10)
F(11)
F(12)

__attribute__((noinline)) static void group_a(void)
{
	mix_1(12);
	mix_2(9);
	mix_3(7);
	mix_4(5);
}

__attribute__((noinline)) static void group_b(void)
{
	mix_5(4);
	mix_6(4);
	mix_7(3);
	mix_8(3);
}

__attribute__((noinline)) static void group_c(int more)
{
	mix_9(2);
	mix_10(2);
	mix_11(2);
	if (more)
		mix_12(10);
}

static long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	long rounds = (argc > 1 ? atol(argv[1]) : 100) * 1000000 / (UNITS * UNIT_NS);
	long units = UNITS + (argc > 2 ? UNITS_OF_MORE : 0), begin = cpu_ns(), before = begin;

	for (long i = 1; i <= rounds; i++) {
		long now, took, due;

		group_a();
		group_b();
		group_c(argc > 2);
		/* The next one ends when as many should have: it makes up for this one, by half at most. */
		now = cpu_ns();
		took = now - before;
		due = begin + (i + 1) * units * UNIT_NS - now;
		if (due < took / 2)
			due = took / 2;
		if (due > took * 2)
			due = took * 2;
		if (took > 0)
			per_unit = (int)((double)per_unit * (double)due / (double)took) + 1;
		before = now;
	}
	return 0;
}
