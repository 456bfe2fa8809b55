/* The other of two libraries of the same shape that reload.c loads at one address, one after the
 * other. */
#include <stdint.h>

void library_work(uint64_t n);

static __attribute__((noinline)) void work_of_second(uint64_t n)
{
	__asm__ volatile("" : : "r"(__builtin_frame_address(0))); /* as KEEP_FRAME() of target.h */
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(i));
}

void library_work(uint64_t n)
{
	work_of_second(n);
	__asm__ volatile("");
}
