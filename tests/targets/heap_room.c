/*
 * Holds GIB of memory in pages of 4 KiB (small) or 2 MiB (huge), touched, in blocks of 64 MiB; THREADS threads compute and
 * write to it now and then. `gap`: the longest time that the main thread was kept from its CPU since it was last asked, in ns.
 *
 *   heap_room GIB small|huge THREADS
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>

enum { BLOCK = 64 << 20, BLOCKS_MAX = 1024, SPIN = 20000 };

static unsigned char *block[BLOCKS_MAX];
static int n_blocks;

__attribute__((noreturn)) static void *compute(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;

	for (;;) {
		for (volatile int i = 0; i < SPIN; i++)
			;
		state = state * 1664525 + 1013904223;
		block[(state >> 8) % (uint32_t)n_blocks][(state >> 4) % BLOCK]++;
	}
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	uint64_t last, longest = 0;
	char line[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 4)
		return 2;
	n_blocks = (int)(atof(argv[1]) * 16);
	if (n_blocks < 1 || n_blocks > BLOCKS_MAX)
		return 2;
	for (int i = 0; i < n_blocks; i++) {
		uintptr_t first;

		block[i] = malloc(BLOCK);
		if (!block[i])
			die("malloc");
		first = ((uintptr_t)block[i] + 4095) & ~(uintptr_t)4095;
		madvise((void *)first, BLOCK - 4096,
			strcmp(argv[2], "huge") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
		memset(block[i], 1, BLOCK);
	}
	for (int i = 1; i < atoi(argv[3]); i++) {
		pthread_t tid;

		if (pthread_create(&tid, NULL, compute, (void *)(uintptr_t)i) != 0)
			die("pthread_create");
	}
	dprintf(1, "ready %d\n", getpid());
	for (last = mono_ns();;) {
		uint64_t now = mono_ns();

		longest = now - last > longest ? now - last : longest;
		last = now;
		if (poll(&in, 1, 0) <= 0)
			continue;
		if (read(0, line, sizeof(line)) <= 0)
			return 0;
		dprintf(1, "gap %llu\nend\n", (unsigned long long)longest);
		longest = 0;
		last = mono_ns();
	}
}
