/*
 * Ways in which a function comes to be called that unwinders trip over, without frame pointers.
 *
 *   unwind_calls plt               through lazily bound PLT stubs
 *   unwind_calls vfork             waits in vfork(), whose return address is in a register
 *   unwind_calls context           in a makecontext() stack, entered by swapcontext()
 *   unwind_calls threads           in four threads
 *   unwind_calls asm               called from assembly without CFI, which keeps a frame pointer
 *   unwind_calls asm_leaf          in assembly without CFI and without a frame
 *   unwind_calls padded            in a loop at the first instruction of a function, behind a
 *                                  linker's int3
 *   unwind_calls dlopen FILE       in `unwind_lib_work` of that library
 *
 * go    (no answer)  works until the end
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>

#define WORD __attribute__((noinline, noclone, noipa))

int unwind_lib_add(int a); /* lib_unwind.c */

static volatile int sink;

WORD static void burn_here(void)
{
	for (int i = 0; i < 100000; i++)
		sink++;
}

WORD static void in_plt(void)
{
	for (;;)
		sink = unwind_lib_add(sink) + 1;
}

WORD static void in_vfork(void)
{
	for (;;) {
		pid_t child = vfork();

		if (child == 0) {
			struct timespec ts = { 0, 2000000 };

			sys(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		sink++;
	}
}

static ucontext_t outside, inside;

WORD static void coroutine(void)
{
	for (;;) {
		burn_here();
		swapcontext(&inside, &outside);
	}
}

WORD static void in_context(void)
{
	static char stack[1 << 16];

	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	for (;;)
		swapcontext(&outside, &inside);
}

static void *in_thread(void *arg)
{
	for (;;)
		burn_here();
	return arg;
}

WORD static void in_threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, in_thread, NULL))
			die("pthread_create");
	pthread_join(t[0], NULL);
}

void asm_with_frame(void (*fn)(void));
void asm_leaf(long n);
void padded_spin(long n);

/* Neither has CFI: nothing says where its caller is. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl asm_with_frame\n"
	".type asm_with_frame, @function\n"
	"asm_with_frame:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call *%rdi\n"
	"	pop %rbp\n"
	"	ret\n"
	".size asm_with_frame, . - asm_with_frame\n"
	".globl asm_leaf\n"
	".type asm_leaf, @function\n"
	"asm_leaf:\n"
	"	sub $24, %rsp\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	add $24, %rsp\n"
	"	ret\n"
	".size asm_leaf, . - asm_leaf\n"
	".p2align 4\n"
	".type filled, @function\n"
	"filled:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size filled, . - filled\n"
	".p2align 4, 0xcc\n" /* as lld and Go fill what is between functions */
	".globl padded_spin\n"
	".type padded_spin, @function\n"
	"padded_spin:\n"
	"	.cfi_startproc\n"
	"	dec %rdi\n"
	"	jnz padded_spin\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size padded_spin, . - padded_spin\n");
#else
__asm__(".text\n"
	".globl asm_with_frame\n"
	".type asm_with_frame, %function\n"
	"asm_with_frame:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x29, sp\n"
	"	blr x0\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	".size asm_with_frame, . - asm_with_frame\n"
	".globl asm_leaf\n"
	".type asm_leaf, %function\n"
	"asm_leaf:\n"
	"1:	subs x0, x0, #1\n"
	"	b.ne 1b\n"
	"	ret\n"
	".size asm_leaf, . - asm_leaf\n"
	".globl padded_spin\n"
	".type padded_spin, %function\n"
	"padded_spin:\n"
	"	.cfi_startproc\n"
	"	subs x0, x0, #1\n"
	"	b.ne padded_spin\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size padded_spin, . - padded_spin\n");
#endif

WORD static void in_asm(void)
{
	for (;;)
		asm_with_frame(burn_here);
}

WORD static void in_asm_leaf(void)
{
	for (;;)
		asm_leaf(1000000);
}

WORD static void in_padded(void)
{
	for (;;) {
		void *block = malloc(100); /* a thread that meets probes */

		__asm__ volatile("" : "+r"(block));
		free(block);
		padded_spin(10000000);
	}
}

WORD static int in_library(void *(*fn)(void))
{
	return fn() != NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		void (*fn)(void);
	} modes[] = {
		{ "plt", in_plt },         { "vfork", in_vfork }, { "context", in_context },
		{ "threads", in_threads }, { "asm", in_asm },     { "asm_leaf", in_asm_leaf },
		{ "padded", in_padded },
	};
	void *lib = NULL, *(*fn)(void) = NULL;

	if (argc == 3) {
		lib = dlopen(argv[2], RTLD_NOW);
		if (lib)
			*(void **)&fn = dlsym(lib, "unwind_lib_work");
		if (!fn) {
			dprintf(2, "unwind_calls: %s\n", dlerror());
			return 2;
		}
	}
	say_ready();
	next_command();
	if (fn)
		return in_library(fn) + sink; /* and so no jump, but a call */
	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].mode))
			modes[i].fn();
	return 2;
}
