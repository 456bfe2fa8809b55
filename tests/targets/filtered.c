/*
 * A program that allocates under a seccomp filter.
 *
 *   filtered ACTION NUMBER…       ACTION for those system calls, all others are allowed
 *   filtered only NUMBER…         those and what it makes itself are allowed, and any other ends it
 *   filtered strict               seccomp's strict mode
 *   filtered ACTION NUMBER… -- PROGRAM ARGUMENT…   another program, under that filter
 *
 * ACTION: allow, errno, kill, trap, trace, notify, log. `run`: 1000 blocks of 96 bytes, half of them freed.
 */
#include "target.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define CALLS 1000

static const struct {
	const char *name;
	uint32_t action;
} actions[] = {
	{ "allow", SECCOMP_RET_ALLOW },       { "errno", SECCOMP_RET_ERRNO | EPERM },
	{ "kill", SECCOMP_RET_KILL_PROCESS }, { "trap", SECCOMP_RET_TRAP },
	{ "trace", SECCOMP_RET_TRACE },       { "notify", SECCOMP_RET_USER_NOTIF },
	{ "log", SECCOMP_RET_LOG },
};

static uint32_t action_of(const char *name)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (strcmp(name, actions[i].name) == 0)
			return actions[i].action;
	die("usage: filtered ACTION NUMBER…");
}

/* What it makes itself: reading commands, answers, its end, memory. */
static const int own[] = { SYS_read, SYS_write, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap };

static void install(int argc, char **argv)
{
	static struct sock_filter f[512];
	bool only = strcmp(argv[1], "only") == 0;
	uint32_t listed = only ? SECCOMP_RET_ALLOW : action_of(argv[1]);
	size_t n = 0, n_own = only ? sizeof(own) / sizeof(*own) : 0;
	struct sock_fprog prog = { .filter = f };

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (int i = 2; i < argc + (int)n_own && n < 500; i++) {
		uint32_t number = (uint32_t)(i < argc ? atoi(argv[i]) : own[i - argc]);

		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					      only ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
	prog.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		die("prctl");
}

static NOINLINE void work(void)
{
	static void *volatile blocks[CALLS];

	for (int i = 0; i < CALLS; i++)
		blocks[i] = malloc(96);
	for (int i = 0; i < CALLS; i += 2)
		free(blocks[i]);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: filtered ACTION NUMBER…");
	bool strict = strcmp(argv[1], "strict") == 0;
	int dashes = 1;

	while (dashes < argc && strcmp(argv[dashes], "--"))
		dashes++;

	if (!strict)
		install(dashes, argv);
	if (dashes + 1 < argc) {
		execv(argv[dashes + 1], argv + dashes + 1);
		die("execv");
	}
	say_ready();
	if (strict)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	for (;;) {
		if (strcmp(next_command(), "run") == 0)
			work();
		say("end");
	}
}
