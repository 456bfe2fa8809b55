/*
 * Large inputs for readers.py: a program that allocates from N different stacks and ends, for heap profilers; and the same
 * number of stacks as text.
 *
 *   many_stacks alloc N          one block from each, kept
 *   many_stacks folded N         folded stacks of 24 frames, in no order, of some 140,000 functions
 *   many_stacks perf N           the same as `perf script` prints samples
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

enum { DEPTH = 24 };

/* --- allocations: the bits of a number are the path to it --- */

static void *volatile kept;

static NOINLINE void left(uint64_t i, int depth);
static NOINLINE void right(uint64_t i, int depth);

static NOINLINE void next(uint64_t i, int depth)
{
	if (!depth) {
		kept = malloc(16 + i % 113);
		return;
	}
	if (i >> (depth - 1) & 1)
		right(i, depth - 1);
	else
		left(i, depth - 1);
}

/* Neither a tail call nor the same code. */
static NOINLINE void left(uint64_t i, int depth)
{
	next(i, depth);
	kept = (void *)1;
}

static NOINLINE void right(uint64_t i, int depth)
{
	next(i, depth);
	kept = (void *)2;
}

static void allocate(uint64_t n)
{
	int depth = 1;

	while (1ull << depth < n)
		depth++;
	for (uint64_t i = 0; i < n; i++)
		next(i, depth);
}

/* --- text --- */

static uint64_t seed = 88172645463325252ull;

static uint32_t random_below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % n);
}

/* A function calls one other mostly, and up to eleven more. */
static void make_stack(uint32_t functions[DEPTH])
{
	uint32_t parent = 1;

	functions[0] = 0;
	for (uint32_t d = 1; d < DEPTH; d++) {
		uint32_t w = random_below(1000);
		uint32_t k = w < 600 ? 0 : w < 800 ? 1 : w < 900 ? 2 : 3 + random_below(9);

		functions[d] = (parent * 2654435761u + k * 40503u) % 20000;
		parent = functions[d] * 7 + d;
	}
}

static void print_name(uint32_t function)
{
	if (function)
		printf("ns::Class_%u::method_%u", function % 97, function);
	else
		printf("server");
}

static void print_stacks(uint64_t n, int perf)
{
	uint32_t functions[DEPTH];

	for (uint64_t i = 0; i < n; i++) {
		make_stack(functions);
		if (perf)
			printf("server 100/%u [00%u] %u.%06u: 10101010 cpu-clock:\n",
			       101 + (uint32_t)(i % 8), (uint32_t)(i % 4), (uint32_t)(i / 99),
			       (uint32_t)(i % 99 * 10101));
		for (uint32_t d = 0; d < DEPTH; d++) {
			uint32_t function = functions[perf ? DEPTH - 1 - d : d];

			if (perf)
				printf("\t%16x ", 0x401000 + function * 64 + 5);
			else if (d)
				putchar(';');
			print_name(function);
			if (perf)
				printf("+0x5 (/usr/bin/server)\n");
		}
		if (perf)
			putchar('\n');
		else
			printf(" %u\n", 1 + random_below(20));
	}
}

int main(int argc, char **argv)
{
	uint64_t n = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (!n)
		return 2;
	if (!strcmp(argv[1], "alloc"))
		allocate(n);
	else
		print_stacks(n, !strcmp(argv[1], "perf"));
	return 0;
}
