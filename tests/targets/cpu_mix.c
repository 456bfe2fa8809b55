/*
 * cpu_mix N [more]: twelve functions that compute, in three groups, N times over; `more`: one of them
 * that is not called otherwise as well. The work is the same in each run.
 */
#include <stdlib.h>

static volatile unsigned long x;

#define F(n)                                                                                       \
	__attribute__((noinline)) static void mix_##n(int k)                                       \
	{                                                                                          \
		for (int i = 0; i < k * 10000; i++)                                                \
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

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100;

	for (int i = 0; i < n; i++) {
		group_a();
		group_b();
		group_c(argc > 2);
	}
	return 0;
}
