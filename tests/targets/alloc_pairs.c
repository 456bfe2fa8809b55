/*
 * What a malloc and its free cost: `alloc_pairs N` prints ns of CPU time for each of N pairs, first
 * of one block after the other, then of 64 blocks that are freed in another order.
 */
#include "target.h"

#define BLOCKS 64

static double ns_each(uint64_t from, long n)
{
	return (double)(cpu_ns() - from) / (double)n;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;
	void *volatile one, *many[BLOCKS];
	uint64_t from = cpu_ns();
	double first;

	for (long i = 0; i < n; i++) {
		one = malloc(64);
		free(one);
	}
	first = ns_each(from, n);
	from = cpu_ns();
	for (long i = 0; i < n / BLOCKS; i++) {
		for (size_t j = 0; j < BLOCKS; j++)
			many[j] = malloc(32 + j * 8);
		for (size_t j = 0; j < BLOCKS; j++)
			free(many[j * 7 % BLOCKS]);
	}
	printf("%.3f %.3f\n", first, ns_each(from, n));
	return 0;
}
