#include "proc/launch.h"
#include "base/clock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct launch {
	char *const *argv;
	pid_t pid;
	int go_fd;   /* a byte here lets the child exec                            */
	int fail_fd; /* the child's errno when exec failed; end of file when it did not */
	bool traced;
	bool entered_it; /* `entered` was called */
	int (*entered)(void *ctx, pid_t pid, struct err *e);
	void *entered_ctx;
	bool gone; /* reaped */
	int status;
};

/* The instruction that stops a program, and where the program counter is after it. */
#if defined(__x86_64__)
#define TRAP_MASK     0xffUL
#define TRAP_INSN     0xccUL
#define REGS_PC(regs) ((regs).rip)
#define TRAP_PC_DELTA 1
#elif defined(__aarch64__)
#define TRAP_MASK     0xffffffffUL
#define TRAP_INSN     0xd4200000UL
#define REGS_PC(regs) ((regs).pc)
#define TRAP_PC_DELTA 0
#else
#error "launch.c: the trap instruction of this architecture is not known"
#endif

/* How long a program may run held before it is let go: constructors that take longer are its
 * work. */
#define HOLD_NS 2000000000ULL
/* How soon a signal to us is noticed while the program runs held and does not stop. */
#define POLL_NS 50000000ULL

/* `chld`: what SIGCHLD did before memscope changed it; an ignored one stays ignored across exec. */
static void __attribute__((noreturn))
child(char *const *argv, int go_fd, int fail_fd, const struct sigaction *chld)
{
	sigset_t none;
	char go;
	int err;

	if (read(go_fd, &go, 1) != 1)
		_exit(127); /* memscope gave up */
	sigaction(SIGCHLD, chld, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	err = errno;
	(void)!write(fail_fd, &err, sizeof(err));
	_exit(127);
}

int launch_start(char *const *argv, struct launch **ret_launch, struct err *e)
{
	_cleanup_(launch_freep) struct launch *l = calloc(1, sizeof(*l));
	struct sigaction by_default = { .sa_handler = SIG_DFL }, chld;
	int go[2], fail[2];

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	l->argv = argv;
	l->go_fd = l->fail_fd = -1;
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_set(e, -errno, "cannot start '%s': %s", argv[0], strerror(errno));
	if (pipe2(fail, O_CLOEXEC) < 0) {
		int r = -errno;

		close(go[0]);
		close(go[1]);
		return err_set(e, r, "cannot start '%s': %s", argv[0], strerror(-r));
	}
	/* Whoever started us may ignore SIGCHLD: then the kernel keeps no exit status, and no stop
	 * of a held program is a signal. */
	sigaction(SIGCHLD, &by_default, &chld);
	l->pid = fork();
	if (l->pid == 0) {
		/* Else it would wait for itself when memscope is killed. */
		close(go[1]);
		close(fail[0]);
		child(argv, go[0], fail[1], &chld);
	}
	close(go[0]);
	close(fail[1]);
	l->go_fd = go[1];
	l->fail_fd = fail[0];
	if (l->pid < 0)
		return err_set(e, -errno, "cannot start '%s': %s", argv[0], strerror(errno));
	*ret_launch = TAKE_PTR(l);
	return 0;
}

pid_t launch_pid(const struct launch *l)
{
	return l->pid;
}

void launch_on_entry(struct launch *l, int (*entered)(void *ctx, pid_t pid, struct err *e),
		     void *ctx)
{
	l->entered = entered;
	l->entered_ctx = ctx;
}

bool launch_entered(const struct launch *l)
{
	return l->entered_it;
}

/* --- the trap at the entry point --- */

struct trap {
	uint64_t addr; /* 0: none is planted                         */
	uint64_t word; /* what was there; TRAP_MASK of it is covered */
};

/* AT_ENTRY of the new image: where the program itself begins, after the dynamic loader. */
static uint64_t entry_address(pid_t pid)
{
	uint64_t pair[2];
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	f = fopen(path, "re");
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == AT_ENTRY)
			return pair[1];
	return 0;
}

static bool word_get(pid_t pid, uint64_t addr, uint64_t *ret_word)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, (void *)addr, NULL);
	if (errno)
		return false;
	*ret_word = (uint64_t)word;
	return true;
}

/* Only the bytes of the trap: a probe may have been put next to it meanwhile. */
static bool word_put(pid_t pid, uint64_t addr, uint64_t word, uint64_t insn)
{
	word = (word & ~TRAP_MASK) | (insn & TRAP_MASK);
	return ptrace(PTRACE_POKETEXT, pid, (void *)addr, (void *)word) == 0;
}

static bool trap_plant(pid_t pid, struct trap *ret_trap)
{
	uint64_t addr = entry_address(pid), word;

	if (!addr || !word_get(pid, addr, &word) || !word_put(pid, addr, word, TRAP_INSN))
		return false;
	*ret_trap = (struct trap){ addr, word };
	return true;
}

static bool trap_is_in(pid_t pid, const struct trap *t)
{
	uint64_t word;

	return t->addr && word_get(pid, t->addr, &word) && (word & TRAP_MASK) == TRAP_INSN;
}

static void trap_remove(pid_t pid, const struct trap *t)
{
	uint64_t word;

	if (trap_is_in(pid, t) && word_get(pid, t->addr, &word))
		word_put(pid, t->addr, word, t->word);
}

/* Whether `pid` has run into the trap; then it is gone, and the program begins where it was. */
static bool trap_sprung(pid_t pid, const struct trap *t)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	if (!t->addr || ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov) < 0 ||
	    REGS_PC(regs) != t->addr + TRAP_PC_DELTA)
		return false;
	trap_remove(pid, t);
	REGS_PC(regs) = t->addr;
	iov.iov_len = sizeof(regs);
	ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov);
	return true;
}

/* --- held --- */

struct hold {
	struct launch *l;
	void (*held)(void *ctx, pid_t pid);
	void *ctx;
	struct trap trap;
	uint64_t until_ns; /* the caller's limit, CLOCK_MONOTONIC                */
	uint64_t left_ns;  /* how long the program may still run held            */
	int rc;            /* of what was done at its entry point                */
	struct err *e;
};

/* The caller has these blocked, to read them later: that must not be long after they came. */
static bool asked_to_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigpending(&set);
	return sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP);
}

static void set_gone(struct launch *l, int status)
{
	l->gone = true;
	l->status = status;
}

/*
 * Waits until the program stops: 1 and how. 0: it is time to let it go, it runs. -ESRCH: it has
 * ended. SIGCHLD is blocked, so a stop between the look and the wait is not missed. `ending`:
 * nothing but the stop is waited for (it was asked for, and comes as soon as the kernel can).
 */
static int hold_wait(struct hold *h, bool ending, int *ret_status)
{
	uint64_t from = now_ns(), now = from, until = from + h->left_ns;
	sigset_t chld;
	int status;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (until > h->until_ns)
		until = h->until_ns;
	for (;; now = now_ns()) {
		pid_t pid = waitpid(h->l->pid, &status, __WALL | WNOHANG);
		uint64_t ns = POLL_NS;

		if (pid == h->l->pid && WIFSTOPPED(status)) {
			h->left_ns -= now - from < h->left_ns ? now - from : h->left_ns;
			*ret_status = status;
			return 1;
		}
		if (pid == h->l->pid || (pid < 0 && errno == ECHILD)) {
			set_gone(h->l, pid < 0 ? LAUNCH_STATUS_UNKNOWN : status);
			return -ESRCH;
		}
		if (!ending && (now >= until || asked_to_end()))
			return 0;
		if (!ending && until - now < ns)
			ns = until - now;
		sigtimedwait(&chld, NULL, &(struct timespec){ .tv_nsec = (long)ns });
	}
}

/*
 * A task that the program made is traced from its start, and stops before its first instruction.
 * It must never meet the trap with nobody there to take it away. One with its own copy of memory
 * loses the trap there. One that shares the program's memory (a thread, vfork) loses it for both,
 * and that is the end of the hold. -> whether the program itself is still held.
 */
static bool release_new_task(struct hold *h)
{
	unsigned long tid = 0;
	int status;
	pid_t r;

	if (ptrace(PTRACE_GETEVENTMSG, h->l->pid, NULL, &tid) < 0)
		return false;
	do /* the kernel's own stop, or its end by SIGKILL: neither takes long */
		r = waitpid((pid_t)tid, &status, __WALL);
	while (r < 0 && errno == EINTR);
	if (r > 0 && WIFSTOPPED(status)) {
		trap_remove((pid_t)tid, &h->trap);
		ptrace(PTRACE_DETACH, (pid_t)tid, NULL, NULL);
	}
	return trap_is_in(h->l->pid, &h->trap);
}

/* At its entry point. Threads that are made in it now are its own affair. */
static void enter(struct hold *h)
{
	struct launch *l = h->l;

	if (!l->entered)
		return;
	ptrace(PTRACE_SETOPTIONS, l->pid, NULL,
	       (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	l->entered_it = true;
	h->rc = l->entered(l->entered_ctx, l->pid, h->e);
}

/* What a stop means: false: the hold is over. `*ret_signal`: to be delivered when it continues. */
static bool hold_stop(struct hold *h, int status, int *ret_signal)
{
	int signal = WSTOPSIG(status);

	*ret_signal = 0;
	switch (status >> 16) {
	case 0:
		if (signal == (SIGTRAP | 0x80)) {
			h->held(h->ctx, h->l->pid);
			return true;
		}
		if (signal == SIGTRAP && trap_sprung(h->l->pid, &h->trap)) {
			enter(h);
			return false;
		}
		*ret_signal = signal;
		return true;
	case PTRACE_EVENT_EXEC: /* the first, or a constructor did it again: all memory is new */
		h->trap = (struct trap){};
		h->held(h->ctx, h->l->pid);
		return trap_plant(h->l->pid, &h->trap);
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		return release_new_task(h);
	case PTRACE_EVENT_STOP: /* SIGTRAP: woken by SIGCONT; else job control: let go, it stays stopped */
		return signal == SIGTRAP;
	}
	return true;
}

/*
 * From the exec to the program's entry point: a trap is put there for as long as this takes, and
 * every system call in between (the loader's mmap among them) is a stop. Where no trap can be put,
 * the program runs on at once, and libraries are found when their records come.
 */
static void hold_run(struct hold *h)
{
	bool ending = false, holds = true;
	int status, signal = 0;

	while (holds) {
		int r = hold_wait(h, ending, &status);

		if (r < 0)
			return;
		if (r == 0) {
			ptrace(PTRACE_INTERRUPT, h->l->pid, NULL, NULL);
			ending = true;
			continue;
		}
		holds = hold_stop(h, status, &signal) && !ending;
		if (holds)
			ptrace(h->trap.addr ? PTRACE_SYSCALL : PTRACE_CONT, h->l->pid, NULL,
			       (void *)(long)signal);
	}
	if (h->rc < 0) {
		kill(h->l->pid, SIGKILL);
		if (waitpid(h->l->pid, &status, __WALL) == h->l->pid)
			set_gone(h->l, status);
		return;
	}
	trap_remove(h->l->pid, &h->trap);
	ptrace(PTRACE_DETACH, h->l->pid, NULL, (void *)(long)signal);
}

/* --- the command --- */

/* Seized before its exec: nothing of memory or signals changes for it until it stops there. */
static bool seize(struct launch *l)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC |
		       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;

	return ptrace(PTRACE_SEIZE, l->pid, NULL, (void *)options) == 0;
}

int launch_go(struct launch *l, void (*held)(void *ctx, pid_t pid), void *ctx, uint64_t until_ns,
	      struct err *e)
{
	struct hold h = { l, held, ctx, {}, until_ns ? until_ns : UINT64_MAX, HOLD_NS, 0, e };
	int failed = 0;
	sigset_t chld, before;
	ssize_t n;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	l->traced = held && seize(l);
	if (write(l->go_fd, "g", 1) != 1) {
		int r = -errno;

		sigprocmask(SIG_SETMASK, &before, NULL);
		return err_set(e, r, "cannot start '%s': %s", l->argv[0], strerror(-r));
	}
	close(TAKE_FD(l->go_fd));
	if (l->traced)
		hold_run(&h);
	l->traced = false;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (h.rc < 0)
		return h.rc;
	do
		n = read(l->fail_fd, &failed, sizeof(failed));
	while (n < 0 && errno == EINTR);
	if (n == sizeof(failed))
		return err_set(e, -failed, "cannot run '%s': %s", l->argv[0], strerror(failed));
	return 0;
}

bool launch_ended(struct launch *l, int *ret_status)
{
	int status;
	pid_t pid;

	if (!l->gone) {
		pid = waitpid(l->pid, &status, WNOHANG);
		if (pid == l->pid)
			set_gone(l, status);
		else if (pid < 0 && errno == ECHILD)
			set_gone(l, LAUNCH_STATUS_UNKNOWN);
	}
	if (l->gone)
		*ret_status = l->status;
	return l->gone;
}

void launch_free(struct launch *l)
{
	if (!l)
		return;
	if (l->pid > 0 && !l->gone && (l->go_fd >= 0 || l->traced)) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
	}
	if (l->go_fd >= 0)
		close(l->go_fd);
	if (l->fail_fd >= 0)
		close(l->fail_fd);
	free(l);
}

int launch_open_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int fd = -1;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	for (const char *dir = dirs; dir && *dir && fd < 0;) {
		int len = (int)strcspn(dir, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", len, dir, name);
		if (access(path, X_OK) == 0)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		dir += len + (dir[len] == ':');
	}
	return fd;
}
