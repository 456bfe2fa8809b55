/* One of two libraries without frame pointers that bare.c loads, of one shape but for their frames. */
#include <stdint.h>

uint64_t library_work(uint64_t n);

static __attribute__((noinline)) uint64_t inner_of_first(uint64_t n, uint64_t x)
{
	for (uint64_t i = 0; i < n; i++) {
		x = x * 31 + i;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static __attribute__((noinline)) uint64_t work_of_first(uint64_t n)
{
	volatile uint64_t room[11];

	room[n % 7] = inner_of_first(n, n);
	return room[n % 7] + 1;
}

uint64_t library_work(uint64_t n)
{
	return work_of_first(n) + 1;
}
