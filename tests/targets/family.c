/*
 * A parent with children that come and go.
 *
 *   family MS
 *
 * go    → the parent works MS of CPU time in parent_work(); three children, one after the other,
 *         fork (no exec), work MS in child_work() and exit:
 *         child PID CPU_NS ON_NS (each); parent PID CPU_NS ON_NS; end
 * reuse → two children under one and the same pid, one after the other: the first runs
 *         reuse_first_work(), the second execs exec_after:
 *         first PID CPU_NS ON_NS; after PID CPU_NS ON_NS; end        (or: `denied`; end)
 * leave → works MS in last_work() and exits: last PID CPU_NS ON_NS
 */
#include "target.h"

#include <sys/wait.h>

/* From linux/sched.h, whose other names collide with sched.h's. */
struct clone_args_v1 {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

static uint64_t per_ms, want_ns;
static char exec_after_path[4110];
static const char *ms;

#define WORK(name)                                                                                 \
	static NOINLINE void name(uint64_t n)                                                      \
	{                                                                                          \
		burn(n);                                                                           \
		__asm__ volatile("");                                                              \
	}

WORK(parent_work)
WORK(child_work)
WORK(reuse_first_work)
WORK(last_work)

static void work_for(const char *who, void (*work)(uint64_t))
{
	struct work_clock clock = work_begin();

	while (cpu_ns() - clock.cpu_ns < want_ns)
		work(per_ms);
	work_end(&clock);
	say("%s %d %llu %llu", who, (int)getpid(), (unsigned long long)clock.cpu_ns,
	    (unsigned long long)clock.on_ns);
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

static void go(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			work_for("child", child_work);
			_exit(0);
		}
		wait_for(pid);
	}
	work_for("parent", parent_work);
}

static pid_t fork_as(pid_t pid)
{
	pid_t set[1] = { pid };
	struct clone_args_v1 args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)set,
		.set_tid_size = 1,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void reuse(void)
{
	pid_t first = fork(), second;

	if (first < 0)
		die("fork");
	if (!first) {
		work_for("first", reuse_first_work);
		_exit(0);
	}
	wait_for(first);
	second = fork_as(first);
	if (second < 0) {
		say("denied");
		return;
	}
	if (!second) {
		execl(exec_after_path, "exec_after", ms, "exit", (char *)NULL);
		_exit(75);
	}
	wait_for(second);
}

int main(int argc, char **argv)
{
	static char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc != 2 || n <= 0)
		die("usage: family MS");
	*strrchr(self, '/') = '\0';
	snprintf(exec_after_path, sizeof(exec_after_path), "%s/exec_after", self);
	ms = argv[1];
	want_ns = (uint64_t)atoi(ms) * NSEC_PER_MSEC;
	per_ms = burn_per_ms();
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (!strcmp(command, "go")) {
			go();
		} else if (!strcmp(command, "reuse")) {
			reuse();
		} else if (!strcmp(command, "leave")) {
			work_for("last", last_work);
			return 0;
		}
		say("end");
	}
}
