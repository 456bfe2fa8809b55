#include "collect/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

struct launch {
	char *const *argv;
	pid_t pid;
	int go_fd;    /* a byte here lets the child exec                            */
	int fail_fd;  /* the child's errno when exec failed; end of file when it did not */
	bool traced;
	bool gone;    /* reaped */
	int status;
};

/* The instruction that stops a program, and where the program counter is after it. */
#if defined(__x86_64__)
#define TRAP_WORD(old) (((old) & ~0xffUL) | 0xccUL)
#define REGS_PC(regs)  ((regs).rip)
#define TRAP_PC_DELTA  1
#elif defined(__aarch64__)
#define TRAP_WORD(old) (((old) & ~0xffffffffUL) | 0xd4200000UL)
#define REGS_PC(regs)  ((regs).pc)
#define TRAP_PC_DELTA  0
#else
#error "launch.c: the trap instruction of this architecture is not known"
#endif

static void __attribute__((noreturn)) child(char *const *argv, int go_fd, int fail_fd)
{
	sigset_t none;
	char mode;
	int err;

	if (read(go_fd, &mode, 1) != 1)
		_exit(127); /* memscope gave up */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (mode == 't')
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	execvp(argv[0], argv);
	err = errno;
	(void)!write(fail_fd, &err, sizeof(err));
	_exit(127);
}

int launch_start(char *const *argv, struct launch **ret_launch, struct err *e)
{
	_cleanup_(launch_freep) struct launch *l = calloc(1, sizeof(*l));
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
	l->pid = fork();
	if (l->pid == 0)
		child(argv, go[0], fail[1]);
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

static bool wait_stop(struct launch *l, int *ret_status)
{
	pid_t r;

	do
		r = waitpid(l->pid, ret_status, __WALL);
	while (r < 0 && errno == EINTR);
	if (r == l->pid && WIFSTOPPED(*ret_status))
		return true;
	l->gone = true;
	l->status = *ret_status;
	return false;
}

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

static bool get_regs(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov) == 0;
}

static void set_regs(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov);
}

/*
 * From the stop after exec to the program's entry point: a trap is put there for as long as this
 * takes, and every system call in between (the loader's mmap among them) is a stop.
 */
static void run_to_entry(struct launch *l, void (*held)(void *ctx, pid_t pid), void *ctx)
{
	uint64_t entry = entry_address(l->pid);
	struct user_regs_struct regs;
	long word;
	int status, signal = 0;

	ptrace(PTRACE_SETOPTIONS, l->pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	held(ctx, l->pid);
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, l->pid, (void *)entry, NULL);
	if (!entry || errno || ptrace(PTRACE_POKETEXT, l->pid, (void *)entry, (void *)TRAP_WORD((unsigned long)word)) < 0)
		return; /* it runs on, and libraries are found when their records come */
	while (ptrace(PTRACE_SYSCALL, l->pid, NULL, (void *)(long)signal) == 0 && wait_stop(l, &status)) {
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80)) {
			held(ctx, l->pid);
			signal = 0;
		} else if (signal == SIGTRAP) {
			if (get_regs(l->pid, &regs) && REGS_PC(regs) == entry + TRAP_PC_DELTA) {
				ptrace(PTRACE_POKETEXT, l->pid, (void *)entry, (void *)word);
				REGS_PC(regs) = entry;
				set_regs(l->pid, &regs);
				return;
			}
			signal = 0;
		}
	}
}

int launch_go(struct launch *l, void (*held)(void *ctx, pid_t pid), void *ctx, struct err *e)
{
	int status, failed = 0;

	if (write(l->go_fd, held ? "t" : "g", 1) != 1)
		return err_set(e, -errno, "cannot start '%s': %s", l->argv[0], strerror(errno));
	close(TAKE_FD(l->go_fd));
	if (held) {
		l->traced = true;
		if (wait_stop(l, &status)) {
			run_to_entry(l, held, ctx);
			ptrace(PTRACE_DETACH, l->pid, NULL, NULL);
		}
		l->traced = false;
	}
	if (read(l->fail_fd, &failed, sizeof(failed)) == sizeof(failed))
		return err_set(e, -failed, "cannot run '%s': %s", l->argv[0], strerror(failed));
	return 0;
}

bool launch_ended(struct launch *l, int *ret_status)
{
	if (!l->gone && waitpid(l->pid, &l->status, WNOHANG) == l->pid)
		l->gone = true;
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
