/*
 * A process whose resident memory grows by a known amount.
 *
 *   grow MIB MS
 *
 * go → touches a MiB of fresh memory every MS until MIB are resident, then waits:
 *      grown BYTES; end
 */
#include "target.h"

#include <sys/mman.h>

static NOINLINE void touch_a_mebibyte(char *p)
{
	for (size_t i = 0; i < 1 << 20; i += 4096)
		p[i] = 1;
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	size_t mib = (size_t)atoi(argc > 1 ? argv[1] : "0");
	uint64_t every_ns = (uint64_t)atoi(argc > 2 ? argv[2] : "0") * NSEC_PER_MSEC;
	char *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!mib || p == MAP_FAILED)
		die("usage: grow MIB MS");
	/* Resident bytes are those we touch, not what a huge page rounds them up to. */
	madvise(p, mib << 20, MADV_NOHUGEPAGE);
	say_ready();
	next_command();
	for (size_t i = 0; i < mib; i++) {
		touch_a_mebibyte(p + (i << 20));
		sleep_ns(every_ns);
	}
	say("grown %llu", (unsigned long long)(mib << 20));
	say("end");
	for (;;)
		next_command();
}
