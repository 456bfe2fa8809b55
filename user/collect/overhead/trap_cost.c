#include "collect/overhead/trap_cost.h"
#include "base/clock.h"

#include "base/cleanup.h"
#include "collect/overhead/counter.h"
#include "collect/session/session_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRIALS 5
#define HITS   64
#define BINS   16

struct trap_cost {
	struct session *session;
	void (*here)(void);
	int link;
};

/* The first instruction of one is one that the kernel emulates, that of the other is not. */
#define FUNCTION(name, type, first)                                                                \
	__asm__(".pushsection .text\n"                                                             \
		".type " name ", " type "\n" name ":\n" first "	ret\n"                             \
		".size " name ", . - " name "\n"                                                   \
		".popsection\n")
#if defined(__x86_64__)
FUNCTION("memscope_trap_here", "@function", "	push %rbp\n	pop %rbp\n");
FUNCTION("memscope_step_here", "@function", "	xor %eax, %eax\n");
#else
FUNCTION("memscope_trap_here", "%function", "	nop\n");
FUNCTION("memscope_step_here", "%function", "	mov x0, x1\n");
#endif
void memscope_trap_here(void);
void memscope_step_here(void);

/* The function's offset in our file; 0: not found. */
static uint64_t file_offset(void (*here)(void))
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/maps", "re");
	uint64_t addr = (uintptr_t)here, low, high, off;
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

/*
 * A program runs more slowly after a trap: its branches are predicted worse, its lines have left
 * the cache. So each hit is followed by work like an allocator's: a list is popped and pushed to.
 */
struct node {
	struct node *next;
	uint64_t size;
};

static __attribute__((noinline)) struct node *pop(struct node **bin)
{
	struct node *n = *bin;

	if (n)
		*bin = n->next;
	return n;
}

static __attribute__((noinline)) void push(struct node **bin, struct node *n)
{
	n->next = *bin;
	*bin = n;
}

static void work(struct node **bins, uint64_t i)
{
	struct node *(*volatile take)(struct node **) = pop;
	void (*volatile give)(struct node **, struct node *) = push;
	struct node *n = take(&bins[i * 7 % BINS]);

	if (n && n->size >= i)
		n->size = i;
	if (n)
		give(&bins[i * 7 % BINS], n);
}

/* ns for each of HITS rounds of that. */
static double rounds_ns(struct node **bins, void (*trap)(void))
{
	uint64_t begin = now_ns();

	for (uint64_t i = 0; i < HITS; i++) {
		if (trap)
			trap();
		work(bins, i);
	}
	return (double)(now_ns() - begin) / HITS;
}

int trap_cost_open(struct session *s, enum trap_kind kind, struct trap_cost **ret_cost)
{
	void (*here)(void) = kind == TRAP_STEPPED ? memscope_step_here : memscope_trap_here;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct bpf_program *prog = session_trap_prog(s);
	uint64_t offset = file_offset(here), cookie = 0;
	_cleanup_(freep) struct trap_cost *t = calloc(1, sizeof(*t));
	int r;

	if (!prog)
		return -EOPNOTSUPP;
	if (!t)
		return -ENOMEM;
	if (fd < 0 || !offset)
		return fd < 0 ? -errno : -ENOENT;
	r = uprobes_attach(prog, fd, &offset, &cookie, 1, getpid(), UPROBE_BOTH, &t->link);
	if (r < 0)
		return r;
	t->session = s;
	t->here = here;
	*ret_cost = TAKE_PTR(t);
	return 0;
}

void trap_cost_close(struct trap_cost *t)
{
	if (t)
		uprobes_detach(&t->link, 1);
	free(t);
}

double trap_cost_ns(struct trap_cost *t)
{
	struct node nodes[BINS] = {}, *bins[BINS];
	double ns[TRIALS];

	for (int i = 0; i < BINS; i++)
		bins[i] = &nodes[i];
	for (int i = 0; i < TRIALS; i++) {
		uint64_t in_program = counter_read(t->session, STAT_TRAP_NS);
		uint64_t timed = counter_read(t->session, STAT_TRAP_TIMED);
		double untouched = rounds_ns(bins, NULL);

		ns[i] = rounds_ns(bins, t->here) - untouched;
		in_program = counter_read(t->session, STAT_TRAP_NS) - in_program;
		timed = counter_read(t->session, STAT_TRAP_TIMED) - timed;
		if (!timed)
			return 0;
		ns[i] -= (double)in_program / (double)timed;
	}
	qsort(ns, TRIALS, sizeof(*ns), by_size);
	return ns[TRIALS / 2];
}
