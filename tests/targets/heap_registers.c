/*
 * Blocks to which nothing refers but a function that runs, in places that are easy to miss, and two that are lost.
 *
 *   heap_registers    then "ready"; ends with its input
 *
 *   100 bytes    their address is in a vector register only
 *   200 bytes    only the address of their chunk, 16 bytes before, is in a register, as in the middle of malloc() and free()
 *   300 bytes    their address is on the main thread's stack, while that thread runs on another stack, which is a block
 *   500 bytes    lost; they lie behind that block
 *   700 bytes    lost; only the former refer to them
 */
#include "target.h"

#include <pthread.h>
#include <ucontext.h>

enum { STACK_BYTES = 64 << 10, THREADS = 2 };

volatile int n_ready;
static ucontext_t home, away;

/* Neither a register nor the stack below has anything of the functions before. */
#define FORGET                                                                                           \
	"xor %%eax, %%eax; xor %%ebx, %%ebx; xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi\n\t"   \
	"xor %%edi, %%edi; xor %%ebp, %%ebp; xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d\n\t" \
	"xor %%r11d, %%r11d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d\n\t"             \
	"mov $-256, %%rcx\n\t"                                                                           \
	"1: movq $0, (%%rsp, %%rcx); add $8, %%rcx; jnz 1b\n\t"
#define SPIN                                                                                       \
	"lock incl n_ready(%%rip)\n\t"                                                             \
	"2: pause; jmp 2b\n\t"

__attribute__((noreturn, noinline)) static void *spin_with_vector(void *arg)
{
	(void)arg;
	__asm__ volatile("movq %0, %%xmm9; xor %%r12d, %%r12d\n\t" FORGET SPIN
			 :
			 : "a"(malloc(100)));
	__builtin_unreachable();
}

__attribute__((noreturn, noinline)) static void *spin_with_chunk(void *arg)
{
	(void)arg;
	__asm__ volatile("mov %0, %%r12; pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1\n\t" FORGET SPIN
			 :
			 : "a"((char *)malloc(200) - 16));
	__builtin_unreachable();
}

/* On the stack that is a block. */
static void wait_for_end(void)
{
	char line[8];

	while (n_ready < THREADS)
		usleep(1000);
	dprintf(1, "ready %d\n", getpid());
	while (read(0, line, sizeof(line)) > 0)
		;
	_exit(0);
}

static void __attribute__((noinline)) lose(void)
{
	void **first = malloc(500);

	if (!first)
		die("malloc");
	memset(first, 0, 500);
	*first = malloc(700);
}

static void __attribute__((noinline)) wipe(void)
{
	volatile char bytes[4096];

	memset((char *)bytes, 0, sizeof(bytes));
}

int main(void)
{
	void *volatile mine;
	pthread_t tid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&tid, NULL, spin_with_vector, NULL) != 0 ||
	    pthread_create(&tid, NULL, spin_with_chunk, NULL) != 0 || getcontext(&away) < 0)
		die("start");
	away.uc_stack.ss_sp = malloc(STACK_BYTES);
	away.uc_stack.ss_size = STACK_BYTES;
	makecontext(&away, wait_for_end, 0);
	lose();
	mine = malloc(300);
	wipe();
	swapcontext(&home, &away);
	free(mine);
	return 0;
}
