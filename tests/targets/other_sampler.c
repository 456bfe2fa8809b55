/*
 * A sampler that is not memscope's: speaks the otel_memory contract with arguments in other places
 * (on the stack, in registers no call uses, of four bytes, a constant) and asks semaphores first, as
 * the contract's own implementations do.
 *
 * run N → N allocations are told, the i-th (from 0) of 1000 + i bytes at 0x10000 + 64 i, each of
 *         weight 50000; every second one is freed; `told ALLOCS FREES`; end. Nothing is told while
 *         nobody listens.
 */
#include "target.h"

#if defined(__x86_64__)
#define NOTE(name, semaphore, args)                                                                \
	"990: nop\n"                                                                               \
	".pushsection .note.stapsdt, \"\", \"note\"\n"                                             \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991: .asciz \"stapsdt\"\n"                                                                \
	"992: .balign 4\n"                                                                         \
	"993: .8byte 990b, 0, " semaphore "\n"                                                     \
	".asciz \"otel_memory\", \"" name "\", \"" args "\"\n"                                     \
	"994: .balign 4\n"                                                                         \
	".popsection\n"

volatile unsigned short alloc_semaphore __attribute__((section(".probes")));
volatile unsigned short free_semaphore __attribute__((section(".probes")));

static uint64_t told_allocs, told_frees;

static NOINLINE void other_alloc(uint64_t addr, int32_t size)
{
	register uint64_t a asm("r12") = addr;
	volatile int32_t on_stack[3] = { 0, size, 0 };
	register volatile int32_t *at asm("rbx") = on_stack;

	if (!alloc_semaphore)
		return;
	told_allocs++;
	asm volatile(NOTE("alloc", "alloc_semaphore", "8@%%r12 -4@4(%%rbx) 8@$50000")
		     :
		     : "r"(a), "r"(at), "m"(on_stack));
}

static NOINLINE void other_free(uint64_t addr)
{
	register uint64_t a asm("r14") = addr;

	if (!free_semaphore)
		return;
	told_frees++;
	asm volatile(NOTE("free", "free_semaphore", "8@%%r14") : : "r"(a));
}

static NOINLINE void work(int n)
{
	told_allocs = told_frees = 0;
	for (int i = 0; i < n; i++) {
		other_alloc(0x10000 + 64 * (uint64_t)i, 1000 + i);
		if (i % 2)
			other_free(0x10000 + 64 * (uint64_t)i);
	}
}
#else
static uint64_t told_allocs, told_frees;

static void work(int n)
{
	(void)n;
}
#endif

int main(void)
{
	const char *command;

	say_ready();
	while ((command = next_command())) {
		if (strncmp(command, "run ", 4) == 0)
			work(atoi(command + 4));
		say("told %llu %llu", (unsigned long long)told_allocs,
		    (unsigned long long)told_frees);
		say("end");
	}
	return 0;
}
