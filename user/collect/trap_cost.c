#include "collect/trap_cost.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRIALS 11
#define HITS   400

/* Its first instruction is one that the kernel emulates. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".type memscope_trap_here, @function\n"
	"memscope_trap_here:\n"
	"	push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size memscope_trap_here, . - memscope_trap_here\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".type memscope_trap_here, %function\n"
	"memscope_trap_here:\n"
	"	nop\n"
	"	ret\n"
	".size memscope_trap_here, . - memscope_trap_here\n"
	".popsection\n");
#endif
void memscope_trap_here(void);

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Where in our file the function is; 0: not found. */
static uint64_t file_offset(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/maps", "re");
	uint64_t addr = (uintptr_t)memscope_trap_here, low, high, off;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &low, &high, &off) == 3 &&
		    addr >= low && addr < high)
			return addr - low + off;
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_ns(void)
{
	double ns[TRIALS];

	for (int i = 0; i < TRIALS; i++) {
		uint64_t begin = now_ns();

		for (int j = 0; j < HITS; j++)
			memscope_trap_here();
		ns[i] = (double)(now_ns() - begin) / HITS;
	}
	qsort(ns, TRIALS, sizeof(*ns), by_size);
	return ns[TRIALS / 2];
}

int trap_cost_measure(const struct bpf_program *prog, enum uprobe_end end, double *ret_ns)
{
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t offset = file_offset(), cookie = 0;
	int link, r;

	if (fd < 0 || !offset)
		return fd < 0 ? -errno : -ENOENT;
	r = uprobes_attach(prog, fd, &offset, &cookie, 1, getpid(), end, &link);
	if (r < 0)
		return r;
	*ret_ns = median_ns();
	uprobes_detach(&link, 1);
	return 0;
}
