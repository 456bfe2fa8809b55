/*
 * One thread that computes in two functions whose lines are known: those with a mark in their comment. step() is inlined.
 *
 *   lines MS     burns so much CPU time after `go`
 *
 * go → end
 */
#include "target.h"

static volatile uint64_t sink;

__attribute__((always_inline)) static inline uint64_t step(uint64_t h, uint64_t x)
{
	h ^= x;
	return h * 0x9e3779b97f4a7c15ull; /* mark: multiplies */
}

static NOINLINE uint64_t mix(uint64_t n)
{
	uint64_t h = 1;

	for (uint64_t i = 0; i < n; i++) {
		h = step(h, i); /* mark: calls */
		if (h & 1)
			h += i / (h | 1); /* mark: divides */
	}
	return h;
}

int main(int argc, char **argv)
{
	uint64_t begin;

	if (argc != 2)
		die("usage: lines MS");
	say_ready();
	next_command();
	begin = cpu_ns();
	while (cpu_ns() - begin < (uint64_t)atoi(argv[1]) * NSEC_PER_MSEC)
		sink += mix(20000);
	say("end");
	for (;;)
		next_command();
}
