/*
 * The code that loads the library into a process, run here as it runs there: copied to memory of its own,
 * with functions in place of the C library's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/loader.h"
#include "preload/agent.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 8192

static struct agent_block *block;
static struct loader loader;
static uint8_t *code;

/* What the functions below were given; shared, for one runs in a child. */
static struct calls {
	uint64_t thread, attr, function, argument;
	uint64_t flags, path, handle, name, agent, detached;
} * calls;

static int fake_create(uint64_t *thread, void *attr, void *function, void *argument)
{
	calls->thread = (uint64_t)(uintptr_t)thread;
	calls->attr = (uint64_t)(uintptr_t)attr;
	calls->function = (uint64_t)(uintptr_t)function;
	calls->argument = (uint64_t)(uintptr_t)argument;
	*thread = 77;
	return 11;
}

static void *fake_dlopen(const char *path, int flags)
{
	calls->path = (uint64_t)(uintptr_t)path;
	calls->flags = (uint64_t)flags;
	return (void *)0x1234;
}

static void *no_dlopen(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return NULL;
}

static void *agent(void *argument)
{
	calls->agent = (uint64_t)(uintptr_t)argument;
	return NULL;
}

static void *fake_dlsym(void *handle, const char *name)
{
	calls->handle = (uint64_t)(uintptr_t)handle;
	calls->name = (uint64_t)(uintptr_t)name;
	return (void *)(uintptr_t)agent;
}

static void *no_dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

static const char *sentence = "no such library";

static const char *fake_dlerror(void)
{
	return sentence;
}

static int fake_detach(uint64_t thread)
{
	calls->detached = thread;
	return 0;
}

static void *shared(size_t bytes, int protection)
{
	void *at = mmap(NULL, bytes, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static int setup(void **state)
{
	(void)state;
	loader_get(&loader);
	if (!loader.bytes)
		return 0;
	block = shared(sizeof(*block), PROT_READ | PROT_WRITE);
	calls = shared(sizeof(*calls), PROT_READ | PROT_WRITE);
	code = shared(BYTES, PROT_READ | PROT_WRITE);
	assert_true(loader.bytes <= BYTES);
	memcpy(code, loader.code, loader.bytes);
	assert_int_equal(mprotect(code, BYTES, PROT_READ | PROT_EXEC), 0);
	block->dlopen = (uint64_t)(uintptr_t)fake_dlopen;
	block->dlsym = (uint64_t)(uintptr_t)fake_dlsym;
	block->dlerror = (uint64_t)(uintptr_t)fake_dlerror;
	block->detach = (uint64_t)(uintptr_t)fake_detach;
	block->thread = 77;
	strcpy(block->function, AGENT_FUNCTION);
	strcpy(block->path, "/a/library.so");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (loader.bytes) {
		munmap(block, sizeof(*block));
		munmap(calls, sizeof(*calls));
		munmap(code, BYTES);
	}
	return 0;
}

static void needs_loader(void)
{
	if (!loader.bytes) {
		print_message("no loader for this machine\n");
		skip();
	}
}

#if defined(__x86_64__)
/* rbx is its own there: memscope puts all registers back. */
static void call_create(void *function)
{
	register uint64_t rdi asm("rdi") = (uint64_t)(uintptr_t)block;
	register uint64_t rsi asm("rsi") = (uint64_t)(uintptr_t)fake_create;
	register uint64_t rdx asm("rdx") = (uint64_t)(uintptr_t)function;
	uint64_t at = (uint64_t)(uintptr_t)code + loader.create, kept;

	/* A multiple of 16, and 8 less behind the call: as the ABI has it. */
	asm volatile(
		"mov %%rbx, %[kept]\n\tmov %%rsp, %%r12\n\tsub $256, %%rsp\n\tand $-16, %%rsp\n\t"
		"call *%[at]\n\tmov %%r12, %%rsp\n\tmov %[kept], %%rbx"
		: "+r"(rdi), "+r"(rsi), "+r"(rdx), [kept] "=&m"(kept)
		: [at] "r"(at)
		: "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "rbx", "memory", "cc");
}
#else
static void call_create(void *function)
{
	(void)function;
	(void)fake_create;
}
#endif

static void the_thread_is_created_with_the_block_as_its_argument(void **state)
{
	void *function = code + loader.thread;

	(void)state;
	needs_loader();
	call_create(function);
	assert_int_equal(calls->thread, (uint64_t)(uintptr_t)&block->thread);
	assert_int_equal(calls->attr, 0);
	assert_int_equal(calls->function, (uint64_t)(uintptr_t)function);
	assert_int_equal(calls->argument, (uint64_t)(uintptr_t)block);
	/* What pthread_create returned, plus 1: 0 says that it has not yet. */
	assert_int_equal(block->created, 12);
}

/* In a child: the thread begins by closing all descriptors that are its own. */
static int in_a_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		void *(*thread)(void *) = (void *(*)(void *))(uintptr_t)(code + loader.thread);

		thread(block);
		_exit(fcntl(0, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_library_is_loaded_and_its_function_takes_over(void **state)
{
	(void)state;
	needs_loader();
	assert_int_equal(in_a_child(), 0);
	assert_int_equal(calls->path, (uint64_t)(uintptr_t)block->path);
	assert_int_equal(calls->flags, 0x1002); /* RTLD_NOW | RTLD_NODELETE */
	assert_int_equal(calls->handle, 0x1234);
	assert_int_equal(calls->name, (uint64_t)(uintptr_t)block->function);
	assert_int_equal(calls->agent, (uint64_t)(uintptr_t)block);
	assert_int_equal(block->state, AGENT_NONE);
	assert_int_equal(calls->detached, 0);
}

static void a_library_that_cannot_be_loaded_leaves_the_reason(void **state)
{
	(void)state;
	needs_loader();
	block->dlopen = (uint64_t)(uintptr_t)no_dlopen;
	in_a_child();
	assert_int_equal(block->state, AGENT_NOT_LOADED);
	assert_string_equal(block->path, "no such library");
	assert_int_equal(calls->detached, 77);
	assert_int_equal(calls->agent, 0);
	assert_true(block->tid > 0 && block->tid != getpid());
}

static void a_library_without_the_function_leaves_the_reason(void **state)
{
	(void)state;
	needs_loader();
	block->dlsym = (uint64_t)(uintptr_t)no_dlsym;
	in_a_child();
	assert_int_equal(block->state, AGENT_NOT_LOADED);
	assert_string_equal(block->path, "no such library");
	assert_int_equal(calls->agent, 0);
}

static void a_long_reason_stays_in_its_place(void **state)
{
	char text[2000];

	(void)state;
	needs_loader();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	sentence = text;
	block->dlopen = (uint64_t)(uintptr_t)no_dlopen;
	memset(block->path, 0, sizeof(block->path));
	in_a_child();
	sentence = "no such library";
	assert_int_equal(strlen(block->path), 1000);
	assert_int_equal(block->state, AGENT_NOT_LOADED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_thread_is_created_with_the_block_as_its_argument, setup, teardown),
		cmocka_unit_test_setup_teardown(the_library_is_loaded_and_its_function_takes_over,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_library_that_cannot_be_loaded_leaves_the_reason,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_library_without_the_function_leaves_the_reason,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_reason_stays_in_its_place, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
