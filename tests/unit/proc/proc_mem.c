#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "proc/proc_mem.h"

#define MIB 1048576

static int64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A child that runs `body`, says that it is ready, and waits to be killed. */
static pid_t start(void (*body)(void))
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (body)
			body();
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void touch_32_mib(void)
{
	memset(mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
	       32 * MIB);
}

static void rss_is_anonymous_plus_file(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t pid = start(touch_32_mib);
	struct mem_sample s;

	assert_int_equal(proc_mem_add(m, pid, false, NULL), 0);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_true(s.anonymous_kb >= 32 * 1024);
	assert_int_equal(s.rss_kb, s.anonymous_kb + s.file_kb);
	assert_true(s.vsz_kb > s.rss_kb);
	assert_int_equal(s.threads, 1);
	assert_int_equal(s.processes, 1);
	/* Nobody else maps the 32 MiB. */
	assert_true(s.private_kb >= 32 * 1024);
	assert_true(s.pss_kb >= s.private_kb);
	stop(pid);
}

static void sums_of_mappings_are_read_as_often_as_their_rest_allows(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t pid = start(touch_32_mib);
	struct mem_sample s;

	assert_int_equal(proc_mem_add(m, pid, false, NULL), 0);
	proc_mem_rollup_rest(m, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(proc_mem_sample(m, &s), 0);
		assert_true(s.pss_kb >= 32 * 1024);
	}
	proc_mem_rollup_rest(m, 1e9);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_int_equal(s.pss_kb, MEM_UNKNOWN);
	assert_true(s.anonymous_kb >= 32 * 1024);
	stop(pid);
}

static void cpu_of_the_interval_is_what_was_burnt(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	int64_t before_ns = cpu_now_ns(), after_ns;
	struct mem_sample s;

	assert_int_equal(proc_mem_add(m, getpid(), false, NULL), 0);
	while (cpu_now_ns() - before_ns < 50000000)
		;
	assert_int_equal(proc_mem_sample(m, &s), 0);
	after_ns = cpu_now_ns();
	/* What it took to add and to sample lies between the two clocks. */
	assert_true(s.interval_cpu_ns <= after_ns - before_ns);
	assert_true(s.interval_cpu_ns >= 40000000);
	assert_true(s.interval_ns >= s.interval_cpu_ns);
}

static void processes_are_summed(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t a = start(touch_32_mib), b = start(touch_32_mib);
	struct mem_sample s;

	assert_int_equal(proc_mem_add(m, a, false, NULL), 0);
	assert_int_equal(proc_mem_add(m, b, false, NULL), 0);
	assert_int_equal(proc_mem_add(m, b, false, NULL), 0);
	assert_int_equal(proc_mem_count(m), 2);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_true(s.anonymous_kb >= 64 * 1024 && s.anonymous_kb < 96 * 1024);
	assert_int_equal(s.threads, 2);
	stop(a);
	stop(b);
}

static void pages_that_two_processes_share_are_their_own_once(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	struct mem_sample s;
	pid_t a, b;

	touch_32_mib();
	a = start(NULL);
	b = start(NULL);
	assert_int_equal(proc_mem_add(m, a, false, NULL), 0);
	assert_int_equal(proc_mem_add(m, b, false, NULL), 0);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	/* Each shows all of it as anonymous; of one page that three share (we do too), two have
	 * two thirds. */
	assert_true(s.anonymous_kb >= 64 * 1024);
	assert_true(s.own_kb > 0 && s.own_kb < 48 * 1024);
	/* Not read again so soon, but for the last time. */
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_int_equal(s.own_kb, MEM_UNKNOWN);
	proc_mem_last(m);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_true(s.own_kb > 0);
	stop(a);
	stop(b);
}

static void faults_of_an_ended_process_stay(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t a = start(touch_32_mib), b = start(NULL);
	struct mem_sample both, one;

	assert_int_equal(proc_mem_add(m, a, false, NULL), 0);
	assert_int_equal(proc_mem_add(m, b, false, NULL), 0);
	assert_int_equal(proc_mem_sample(m, &both), 0);
	stop(a);
	assert_int_equal(proc_mem_sample(m, &one), 0);
	assert_int_equal(one.processes, 1);
	assert_true(one.minor_faults >= both.minor_faults);
	assert_true(one.cpu_ns >= both.cpu_ns);
	assert_true(one.rss_kb < both.rss_kb);
	stop(b);
}

static void ended_process_is_esrch_as_a_zombie_too(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t pid = start(NULL);
	siginfo_t info;
	struct mem_sample s = { .rss_kb = 7 };

	assert_int_equal(proc_mem_add(m, pid, false, NULL), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_mem_sample(m, &s), -ESRCH);
	assert_int_equal(s.rss_kb, 7);
	waitpid(pid, NULL, 0);
	assert_int_equal(proc_mem_sample(m, &s), -ESRCH);
}

static void no_such_process_is_said(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	struct err e = { 0 };

	/* Past the largest pid the kernel gives (PID_MAX_LIMIT, 4,194,304). */
	assert_int_equal(proc_mem_add(m, 1 << 23, false, &e), -ESRCH);
	assert_string_equal(e.msg, "there is no process 8388608");
}

static void take_hostile_name(void)
{
	prctl(PR_SET_NAME, "x) Z 1 (\n2 3");
	touch_32_mib();
}

static void command_name_cannot_shift_the_fields(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	pid_t pid = start(take_hostile_name);
	struct mem_sample s;

	assert_int_equal(proc_mem_add(m, pid, false, NULL), 0);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	/* 8,192 pages of 4 KiB, or 16 huge ones. */
	assert_true(s.minor_faults >= 16 && s.minor_faults < 100000);
	assert_true(s.rss_kb >= 32 * 1024);
	stop(pid);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void *end_main_thread(void *pipe_fd)
{
	/* The main thread is a zombie as soon as its state says so. */
	char text[64];

	for (;;) {
		FILE *f = fopen("/proc/self/stat", "re");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

		if (f)
			fclose(f);
		text[n] = '\0';
		if (strstr(text, ") Z "))
			break;
		usleep(1000);
	}
	if (write(*(int *)pipe_fd, "x", 1) != 1)
		_exit(1);
	return sleep_for_ever(NULL);
}

static void process_whose_main_thread_ended_still_counts(void **state)
{
	_cleanup_(proc_mem_freep) struct proc_mem *m = proc_mem_new();
	struct mem_sample s;
	static int ready[2];
	pthread_t thread;
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		touch_32_mib();
		if (pthread_create(&thread, NULL, end_main_thread, &ready[1]) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(proc_mem_add(m, pid, false, NULL), 0);
	assert_int_equal(proc_mem_sample(m, &s), 0);
	assert_true(s.anonymous_kb >= 32 * 1024);
	stop(pid);
	close(ready[0]);
	close(ready[1]);
}

static void own_use_is_reported(void **state)
{
	int64_t cpu_ns, rss_kb, peak_kb;
	volatile char *p = malloc(32 * MIB);

	for (size_t i = 0; i < 32 * MIB; i += 4096)
		p[i] = 1;
	free((void *)p);
	proc_mem_self(&cpu_ns, &rss_kb, &peak_kb);
	assert_true(cpu_ns > 0);
	assert_true(rss_kb > 0);
	assert_true(peak_kb >= 32 * 1024 && peak_kb >= rss_kb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rss_is_anonymous_plus_file),
		cmocka_unit_test(sums_of_mappings_are_read_as_often_as_their_rest_allows),
		cmocka_unit_test(cpu_of_the_interval_is_what_was_burnt),
		cmocka_unit_test(processes_are_summed),
		cmocka_unit_test(pages_that_two_processes_share_are_their_own_once),
		cmocka_unit_test(faults_of_an_ended_process_stay),
		cmocka_unit_test(ended_process_is_esrch_as_a_zombie_too),
		cmocka_unit_test(no_such_process_is_said),
		cmocka_unit_test(command_name_cannot_shift_the_fields),
		cmocka_unit_test(process_whose_main_thread_ended_still_counts),
		cmocka_unit_test(own_use_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
