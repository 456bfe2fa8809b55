#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/check.h"

enum { ROOM = 1 << 20 };

static char library[4096]; /* any file that the process sees as we do: this program */
static struct inject_place place;
static struct err e;
static pid_t child;
static int ready[2], never[2]; /* nobody writes to the latter */

/* A copy of this program, which does `what` and then waits to be killed. */
static void begin_child(void (*what)(void))
{
	char c = 0;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(never), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (what)
			what();
		(void)!write(ready[1], &c, 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(never[0]);
	close(never[1]);
}

static int end_child(void **state)
{
	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	return 0;
}

static int look(pid_t pid)
{
	e = (struct err){ 0 };
	return inject_look(pid, library, ROOM, false, &place, &e);
}

static void refused(int status, const char *words)
{
	assert_int_equal(look(child), status);
	if (!strstr(e.msg, words))
		fail_msg("\"%s\" is not in \"%s\"", words, e.msg);
}

/* What a sanitizer has in the process is refused by name. */
static void skip_sanitized(void)
{
	if (dlsym(RTLD_DEFAULT, "__asan_init") ||
	    dlsym(RTLD_DEFAULT, "__ubsan_handle_type_mismatch_v1"))
		skip();
}

static void calls_of_the_c_library_are_found_where_they_are(void **state)
{
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	(void)state;
	skip_sanitized();
	begin_child(NULL); /* forked: all is where it is here */
	assert_int_equal(look(child), 0);
	assert_int_equal(place.mmap, (uintptr_t)dlsym(RTLD_DEFAULT, "mmap"));
	assert_int_equal(place.munmap, (uintptr_t)dlsym(RTLD_DEFAULT, "munmap"));
	assert_int_equal(place.mprotect, (uintptr_t)dlsym(RTLD_DEFAULT, "mprotect"));
	assert_int_equal(place.pthread_create, (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_create"));
	assert_int_equal(place.pthread_detach, (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_detach"));
	assert_int_equal(place.dlopen, (uintptr_t)dlsym(RTLD_DEFAULT, "dlopen"));
	assert_int_equal(place.dlsym, (uintptr_t)dlsym(RTLD_DEFAULT, "dlsym"));
	assert_int_equal(place.dlerror, (uintptr_t)dlsym(RTLD_DEFAULT, "dlerror"));
	assert_memory_equal((const void *)(uintptr_t)place.restore, restore, sizeof(restore));
}

static void room_is_where_nothing_is_mapped(void **state)
{
	void *at;

	(void)state;
	skip_sanitized();
	begin_child(NULL);
	assert_int_equal(look(child), 0);
	at = mmap((void *)(uintptr_t)place.room, ROOM, PROT_READ,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_int_equal((uintptr_t)at, place.room);
	munmap(at, ROOM);
	assert_int_equal(inject_look(child, library, 1ull << 46, false, &place, &e), -ENOMEM);
}

static void a_process_that_is_not_there_or_has_ended_is_refused(void **state)
{
	siginfo_t info;

	(void)state;
	assert_int_equal(look(0x7ffffff0), -ESRCH);
	begin_child(NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	refused(-ESRCH, "has ended");
}

static void a_stopped_process_is_refused(void **state)
{
	(void)state;
	begin_child(NULL);
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	refused(-EBUSY, "is stopped");
}

static void a_traced_process_is_refused(void **state)
{
	(void)state;
	begin_child(NULL);
	if (ptrace(PTRACE_SEIZE, child, 0, 0) < 0)
		skip(); /* not permitted here */
	refused(-EBUSY, "is traced by process");
}

/* Reading and writing are all that it may do. */
static void allow_nothing(void)
{
	char c = 0;

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	(void)!write(ready[1], &c, 1);
	for (;;)
		(void)!read(never[0], &c, 1);
}

static void a_process_in_strict_mode_is_refused(void **state)
{
	(void)state;
	skip_sanitized();
	begin_child(allow_nothing);
	refused(-EPERM, "strict mode");
}

static void *wait_here(void *ctx)
{
	for (;;)
		pause();
	return ctx;
}

static void begin_agent(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_here, NULL) == 0)
		pthread_setname_np(thread, "memscope-alloc");
}

static void a_process_that_another_memscope_is_at_work_in_is_refused(void **state)
{
	(void)state;
	skip_sanitized();
	begin_child(begin_agent);
	refused(-EAGAIN, "another memscope has its library");
}

static void a_library_that_the_process_sees_comes_by_its_path(void **state)
{
	(void)state;
	skip_sanitized();
	begin_child(NULL);
	assert_int_equal(look(child), 0);
	assert_false(place.memfd);
	assert_int_equal(place.agent, 0);
}

/* In a root of its own, without it. */
static void hide_proc(void)
{
	(void)!chroot("/usr/share");
}

static void a_process_without_proc_is_refused(void **state)
{
	(void)state;
	skip_sanitized();
	if (geteuid())
		skip();
	begin_child(hide_proc);
	refused(-ENOENT, "has no /proc in its file system");
}

static void a_library_that_is_not_there_is_refused(void **state)
{
	(void)state;
	skip_sanitized();
	begin_child(NULL);
	assert_int_equal(inject_look(child, "/nowhere/lib.so", ROOM, false, &place, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "cannot read /nowhere/lib.so"));
}

static void a_process_that_we_hold_is_not_refused(void **state)
{
	(void)state;
	skip_sanitized();
	begin_child(NULL);
	if (ptrace(PTRACE_SEIZE, child, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, child, 0, 0) < 0)
		skip(); /* not permitted here */
	assert_int_equal(waitpid(child, NULL, __WALL), child);
	assert_int_equal(inject_look(child, library, ROOM, true, &place, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(calls_of_the_c_library_are_found_where_they_are,
					  end_child),
		cmocka_unit_test_teardown(room_is_where_nothing_is_mapped, end_child),
		cmocka_unit_test_teardown(a_process_that_is_not_there_or_has_ended_is_refused,
					  end_child),
		cmocka_unit_test_teardown(a_stopped_process_is_refused, end_child),
		cmocka_unit_test_teardown(a_traced_process_is_refused, end_child),
		cmocka_unit_test_teardown(a_process_in_strict_mode_is_refused, end_child),
		cmocka_unit_test_teardown(a_process_that_another_memscope_is_at_work_in_is_refused,
					  end_child),
		cmocka_unit_test_teardown(a_library_that_the_process_sees_comes_by_its_path,
					  end_child),
		cmocka_unit_test_teardown(a_process_without_proc_is_refused, end_child),
		cmocka_unit_test_teardown(a_library_that_is_not_there_is_refused, end_child),
		cmocka_unit_test_teardown(a_process_that_we_hold_is_not_refused, end_child),
	};

#if !defined(__x86_64__)
	print_message("1..0 # SKIP a library can be injected on x86-64 only\n");
	return 0;
#endif
	if (!realpath("/proc/self/exe", library))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
