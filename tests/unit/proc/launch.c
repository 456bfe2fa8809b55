/* A command that waits before its exec, and is held until its own first instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proc/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wait_for(struct launch *l)
{
	int status = 0;

	for (int i = 0; i < 2000 && !launch_ended(l, &status); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	return status;
}

static void name_of(pid_t pid, char name[32])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "r");
	name[0] = 0;
	if (f) {
		if (!fgets(name, 32, f))
			name[0] = 0;
		fclose(f);
	}
	name[strcspn(name, "\n")] = 0;
}

static void a_command_is_there_and_does_nothing_until_it_is_let_go(void **state)
{
	char *argv[] = { "/bin/sh", "-c", "exit 7", NULL }, name[32];
	_cleanup_(launch_freep) struct launch *l = NULL;
	int status;

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	assert_true(launch_pid(l) > 0);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	assert_false(launch_ended(l, &status));
	name_of(launch_pid(l), name);
	assert_string_not_equal(name, "sh");
	assert_int_equal(launch_go(l, NULL, NULL, 0, NULL), 0);
	status = wait_for(l);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_command_that_cannot_be_run_is_named(void **state)
{
	static const struct {
		const char *path;
		int error;
	} commands[] = { { "/nowhere/at-all", -ENOENT }, { "/etc/passwd", -EACCES } };

	(void)state;
	for (unsigned i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		char *argv[] = { (char *)(uintptr_t)commands[i].path, NULL };
		_cleanup_(launch_freep) struct launch *l = NULL;
		struct err e = { 0 };

		assert_int_equal(launch_start(argv, &l, &e), 0);
		assert_int_equal(launch_go(l, NULL, NULL, 0, &e), commands[i].error);
		assert_non_null(strstr(e.msg, commands[i].path));
	}
}

static void what_was_never_let_go_is_gone_with_its_launch(void **state)
{
	char *argv[] = { "/bin/sleep", "100", NULL };
	struct launch *l = NULL;
	pid_t pid;

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	pid = launch_pid(l);
	assert_int_equal(kill(pid, 0), 0);
	launch_free(l);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

struct holds {
	pid_t pid;
	int n, named;
	bool refuses;
};

static void a_command_that_waits_ends_when_its_launcher_is_killed(void **state)
{
	pid_t launcher, waits = 0, got = 0;
	int ends[2], status = 0;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(ends), 0);
	launcher = fork();
	if (launcher == 0) {
		char *argv[] = { "true", NULL };
		struct launch *l;

		if (launch_start(argv, &l, NULL) == 0)
			waits = launch_pid(l);
		if (write(ends[1], &waits, sizeof(waits)) != sizeof(waits))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &waits, sizeof(waits)), sizeof(waits));
	assert_true(waits > 0);
	kill(launcher, SIGKILL);
	waitpid(launcher, NULL, 0);
	for (int i = 0; i < 1000 && got == 0; i++) {
		got = waitpid(waits, &status, WNOHANG);
		usleep(10000);
	}
	if (got == 0)
		kill(waits, SIGKILL);
	assert_int_equal(got, waits);
	assert_int_equal(WEXITSTATUS(status), 127);
	close(ends[0]);
	close(ends[1]);
}

static void held(void *ctx, pid_t pid)
{
	struct holds *h = ctx;
	char name[32];

	name_of(pid, name);
	h->pid = pid;
	h->named += !strcmp(name, "sh");
	h->n++;
}

static void a_command_is_held_at_its_mappings_and_runs_on_as_without(void **state)
{
	char *argv[] = { "/bin/sh", "-c", "exit 5", NULL };
	_cleanup_(launch_freep) struct launch *l = NULL;
	struct holds holds = { 0 };
	int status;

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	assert_int_equal(launch_go(l, held, &holds, 0, NULL), 0);
	status = wait_for(l);
	assert_int_equal(WEXITSTATUS(status), 5);
	if (!holds.n) {
		print_message("ptrace is forbidden here\n");
		skip();
	}
	assert_int_equal(holds.pid, launch_pid(l));
	assert_int_equal(holds.named, holds.n);
}

static void no_tracer_stays_on_a_command_that_was_let_go(void **state)
{
	char *argv[] = { "/bin/sleep", "100", NULL }, path[64], line[128];
	_cleanup_(launch_freep) struct launch *l = NULL;
	struct holds holds = { 0 };
	int tracer = -1;
	FILE *f;

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	assert_int_equal(launch_go(l, held, &holds, 0, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)launch_pid(l));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	fclose(f);
	assert_int_equal(tracer, 0);
	kill(launch_pid(l), SIGKILL);
	assert_int_equal(WTERMSIG(wait_for(l)), SIGKILL);
}

static int entered(void *ctx, pid_t pid, struct err *err)
{
	struct holds *h = ctx;
	char name[32];

	name_of(pid, name);
	h->pid = pid;
	h->named += !strcmp(name, "sh");
	h->n = 1000;
	return h->refuses ? err_set(err, -EPERM, "not this one") : 0;
}

static void a_command_is_held_at_its_first_instruction_once(void **state)
{
	char *argv[] = { "/bin/sh", "-c", "exit 5", NULL };
	_cleanup_(launch_freep) struct launch *l = NULL;
	struct holds holds = { 0 };

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	launch_on_entry(l, entered, &holds);
	assert_false(launch_entered(l));
	assert_int_equal(launch_go(l, held, &holds, 0, NULL), 0);
	assert_int_equal(WEXITSTATUS(wait_for(l)), 5);
	if (!holds.n) {
		print_message("ptrace is forbidden here\n");
		skip();
	}
	assert_true(launch_entered(l));
	assert_int_equal(holds.pid, launch_pid(l));
	assert_int_equal(holds.n, 1000); /* nothing is held afterwards */
}

static void a_command_that_is_refused_at_its_first_instruction_is_ended(void **state)
{
	char *argv[] = { "/bin/sh", "-c", "exit 5", NULL };
	_cleanup_(launch_freep) struct launch *l = NULL;
	struct holds holds = { .refuses = true };
	struct err e = { 0 };
	int r;

	(void)state;
	assert_int_equal(launch_start(argv, &l, NULL), 0);
	launch_on_entry(l, entered, &holds);
	r = launch_go(l, held, &holds, 0, &e);
	if (!holds.n) {
		print_message("ptrace is forbidden here\n");
		skip();
	}
	assert_int_equal(r, -EPERM);
	assert_string_equal(e.msg, "not this one");
	assert_int_equal(WTERMSIG(wait_for(l)), SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_there_and_does_nothing_until_it_is_let_go),
		cmocka_unit_test(a_command_that_cannot_be_run_is_named),
		cmocka_unit_test(what_was_never_let_go_is_gone_with_its_launch),
		cmocka_unit_test(a_command_that_waits_ends_when_its_launcher_is_killed),
		cmocka_unit_test(a_command_is_held_at_its_mappings_and_runs_on_as_without),
		cmocka_unit_test(no_tracer_stays_on_a_command_that_was_let_go),
		cmocka_unit_test(a_command_is_held_at_its_first_instruction_once),
		cmocka_unit_test(a_command_that_is_refused_at_its_first_instruction_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
