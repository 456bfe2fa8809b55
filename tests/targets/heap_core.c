/* Two threads at known places, with variables of known values, beside a reservation as GHC's runtime makes it: what a core has to show. */
#include "target.h"

#include <pthread.h>

struct known {
	long number;
	char text[16];
	double real;
};

struct known known = { 4711, "a known text", 2.5 };
char *on_heap;

static NOINLINE void innermost(int depth)
{
	if (depth > 10) {
		puts("thread");
		fflush(stdout);
	}
	sys(SYS_ppoll, 0, 0, 0, 0, 0, 0);
	__asm__ volatile("" : : "r"(depth));
}

static NOINLINE void middle(int depth)
{
	innermost(depth + 1);
	__asm__ volatile("");
}

static void *thread(void *arg)
{
	middle(10);
	return arg;
}

int main(void)
{
	pthread_t t;

	on_heap = strdup("a text on the heap");
	mmap((void *)0x4200000000, 1ul << 40, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_create(&t, NULL, thread, NULL);
	middle(1);
	return 0;
}
