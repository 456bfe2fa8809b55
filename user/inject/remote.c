#include "inject/remote.h"

#include "inject/remote_frame.h"

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often its patience is spent on a thread that only lacks a CPU. */
#define CALL_WAITS   15
#define LET_GO_TRIES 100
#define LET_GO_US    1000

/* What the kernel keeps to itself in a result (include/linux/errno.h). */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

/*
 * Of the C library's own two signals, the one that it waits for in other threads (setuid). The other
 * cancels a thread, at once where that is in a system call: here that would be within the call.
 */
#define LIBRARYS_SIGNAL (1ULL << (33 - 1))

/* --- time and stops --------------------------------------------------------------------------- */

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* The next stop. -ETIMEDOUT: none yet; -ESRCH: it has ended. */
static int wait_stop(struct remote *t, uint64_t until_us, int *ret_status)
{
	for (uint32_t tries = 0;; tries++) {
		int status;
		pid_t r = waitpid(t->tid, &status, __WALL | WNOHANG);

		if (r == t->tid && WIFSTOPPED(status)) {
			*ret_status = status;
			return 0;
		}
		if (r == t->tid || (r < 0 && errno != EINTR)) {
			t->traced = false;
			return -ESRCH;
		}
		if (now_us() >= until_us)
			return -ETIMEDOUT;
		if (tries > 10)
			usleep(tries < 100 ? 20 : 200);
	}
}

static bool is_syscall_stop(int status)
{
	return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

static bool is_trap(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* A signal that stopped it on its way to the thread; 0: it stopped for another reason. */
static int signal_of(int status)
{
	return status >> 16 || is_syscall_stop(status) ? 0 : WSTOPSIG(status);
}

/* Of an instruction that cannot be carried out. */
static bool is_fatal(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE ||
	       sig == SIGTRAP || sig == SIGABRT;
}

/*
 * Ends our trace of a thread: one that is stopped is detached; the end of another one is waited for, because an execve(2) of
 * its process waits for that, too. One that does neither soon stays traced, and stops at some time.
 */
static void let_go(struct remote *t)
{
	for (int tries = 0; t->traced && tries < LET_GO_TRIES; tries++) {
		int status;
		pid_t r;

		if (ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(long)t->signal) == 0) {
			t->traced = false;
			break;
		}
		r = waitpid(t->tid, &status, __WALL | WNOHANG);
		if (r == t->tid && WIFSTOPPED(status))
			t->signal = signal_of(status);
		else if (r == t->tid || (r < 0 && errno != EINTR))
			t->traced = false;
		else
			usleep(LET_GO_US);
	}
}

static int resume(struct remote *t, enum __ptrace_request how, int sig)
{
	if (ptrace(how, t->tid, NULL, (void *)(long)sig) == 0)
		return 0;
	return -errno;
}

/* --- registers -------------------------------------------------------------------------------- */

static int get_regs(struct remote *t, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	return ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

static int set_regs(struct remote *t, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	return ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

static int set_mask(struct remote *t, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, t->tid, (void *)sizeof(mask), &mask) < 0 ? -errno : 0;
}

/* It ends with EINTR when a thread is stopped in it, signal or not (signal(7)), and has done nothing. */
static bool ends_by_stop(uint64_t number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_msgrcv:
	case SYS_msgsnd:
	/* On a socket that has a time limit (SO_RCVTIMEO, SO_SNDTIMEO). */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return true;
	}
	return false;
}

/* Whether a signal waits that the thread would take. */
static bool is_signalled(const struct remote *t)
{
	char path[64], line[256];
	unsigned long long pending = 0, v;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)t->pid, (int)t->tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigPnd: %llx", &v) == 1 || sscanf(line, "ShdPnd: %llx", &v) == 1)
			pending |= v;
	if (f)
		fclose(f);
	return pending & ~t->mask;
}

/* Once more, from the instruction that makes the system call. */
static void rewind_call(struct user_regs_struct *regs, uint64_t number)
{
	regs->rip -= 2;
	regs->rax = number;
	regs->orig_rax = ~0ULL;
}

#define GET_RSEQ_CONFIGURATION 0x420f /* PTRACE_…, since Linux 5.13 */

/*
 * Whether it is, or may be, in a sequence that the kernel would begin anew on its return: elsewhere by then,
 * it would go on in the middle.
 */
static bool is_restartable(const struct remote *t, uint64_t pc)
{
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} conf = { 0 };
	struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} cs;
	uint64_t at;

	if (ptrace(GET_RSEQ_CONFIGURATION, t->tid, (void *)sizeof(conf), &conf) < 0)
		return true;
	if (!conf.area)
		return false;
	if (pread(t->mem_fd, &at, sizeof(at), (off_t)(conf.area + 8)) != sizeof(at))
		return true;
	return at && (pread(t->mem_fd, &cs, sizeof(cs), (off_t)at) != sizeof(cs) ||
		      pc - cs.start < cs.bytes);
}

/*
 * The thread has stopped: is it in a system call that can be left and resumed, or, where that is enough, in
 * none? Sets how. 0, -EAGAIN.
 */
static int read_state(struct remote *t, bool anywhere)
{
	struct user_regs_struct *regs = &t->regs;
	uint64_t number;
	uint8_t insn[2];
	int64_t result;

	if (get_regs(t, regs) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, t->tid, (void *)sizeof(t->mask), &t->mask) < 0)
		return -ESRCH;
	t->back = *regs;
	t->running = false;
	number = t->number = regs->orig_rax;
	result = (int64_t)regs->rax;
	if (anywhere && (int64_t)number == -1 && regs->cs == 0x33 && !t->entering &&
	    !is_restartable(t, regs->rip)) {
		t->running = true;
		return 0;
	}
	if ((int64_t)number < 0 || regs->cs != 0x33 || number == SYS_rt_sigreturn ||
	    pread(t->mem_fd, insn, 2, (off_t)(regs->rip - 2)) != 2 || insn[0] != 0x0f ||
	    insn[1] != 0x05)
		return -EAGAIN;
	if (t->entering) {
		rewind_call(regs, number);
		t->back = *regs;
		return 0;
	}
	switch (-result) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		rewind_call(&t->back, number);
		return 0;
	case ERESTART_RESTARTBLOCK: /* the kernel knows how long it has still to wait */
		rewind_call(&t->back, number);
		return 0;
	case EINTR:
		if (ends_by_stop(number) && !is_signalled(t)) {
			rewind_call(regs, number);
			t->back = *regs;
		}
		return 0;
	}
	t->back.orig_rax = ~0ULL;
	return 0;
}

/* --- the call --------------------------------------------------------------------------------- */

/* It lacks a CPU, and waits for nothing. */
static bool is_running(const struct remote *t)
{
	char path[64], line[512], *paren;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)t->pid, (int)t->tid);
	f = fopen(path, "re");
	paren = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return paren && strchr("RD", paren[2]);
}

/* The next stop of a thread that is in a call: to be put back while it holds a lock of the allocator's
 * would be the end of the program, so that a machine that is busy is waited for. */
static int wait_patiently(struct remote *t, uint32_t patience_us, int *ret_status)
{
	int r = -ETIMEDOUT;

	for (int i = 0; i < CALL_WAITS && r == -ETIMEDOUT; i++) {
		r = wait_stop(t, now_us() + patience_us, ret_status);
		if (r == -ETIMEDOUT && !is_running(t))
			break;
	}
	return r;
}

/*
 * It is about to restore its state by rt_sigreturn: by us instead, since the kernel forgets then how
 * a wait with a time limit is continued. One at a time, so that killed between any two of them, we
 * leave a thread that does it itself, or needs not.
 */
static int return_instead(struct remote *t)
{
	struct iovec xstate = { t->xstate, t->xstate_bytes };
	struct user_regs_struct back = t->back;
	int r = set_mask(t, t->mask);

	back.orig_rax = ~0ULL;
	ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_X86_XSTATE, &xstate);
	if (r == 0)
		r = set_regs(t, &back);
	if (r == 0 && ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)
		r = -errno;
	return r;
}

/*
 * The same under a seccomp filter, which is asked about a system call that is left out as well: so it is made,
 * and a wait with a time limit begins anew with the whole of it.
 */
static int return_itself(struct remote *t)
{
	if ((int64_t)t->regs.orig_rax >= 0 && (int64_t)t->regs.rax == -ERESTART_RESTARTBLOCK)
		t->regs = t->back;
	return ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0 ? -errno : 0;
}

/* What becomes of the system call that it was sent to. */
static void note(struct remote *t, int status)
{
	struct user_regs_struct regs;
	unsigned long child;

	if (status >> 16 == PTRACE_EVENT_CLONE &&
	    ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &child) == 0)
		t->child = (pid_t)child;
	if (is_syscall_stop(status) && get_regs(t, &regs) == 0 &&
	    regs.orig_rax != SYS_rt_sigreturn && (int64_t)regs.rax != -ENOSYS)
		t->result = (int64_t)regs.rax;
}

/* To the rt_sigreturn, and into a trap behind it, where registers may be set. */
static int run_to_end(struct remote *t, uint64_t sp, uint32_t patience_us)
{
	bool returning = false;
	int sig = 0, status, r;

	for (;;) {
		struct user_regs_struct regs;

		r = resume(t, returning ? PTRACE_CONT : PTRACE_SYSCALL, sig);
		if (r == 0)
			r = wait_patiently(t, patience_us, &status);
		if (r < 0)
			return r;
		sig = signal_of(status);
		if (returning && is_trap(status))
			return 0;
		note(t, status);
		if (is_fatal(sig))
			return -EFAULT;
		if (is_syscall_stop(status) && get_regs(t, &regs) == 0 &&
		    regs.orig_rax == SYS_rt_sigreturn && regs.rsp == sp + sizeof(sp)) {
			r = t->filtered ? return_itself(t) : return_instead(t);
			if (r < 0)
				return r;
			returning = true;
		}
	}
}

/* All that the call has changed, as it was: also where it did not end. */
static int put_back(struct remote *t)
{
	struct iovec xstate = { t->xstate, t->xstate_bytes };
	int r = set_regs(t, &t->regs);

	if (r == 0)
		r = set_mask(t, t->mask);
	ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_X86_XSTATE, &xstate);
	return r;
}

/* It is on its way; from here on it comes back by itself. `number`: of the system call, where `function` makes one. */
static int depart(struct remote *t, uint64_t function, const uint64_t args[6], uint64_t stack,
		  uint64_t restore, uint64_t number, uint64_t *ret_sp, struct err *e)
{
	struct iovec xstate = { t->xstate, sizeof(t->xstate) };
	struct user_regs_struct there = t->back;
	int r;

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_X86_XSTATE, &xstate) < 0)
		return err_set(e, -errno, "cannot read the vector registers of thread %d: %s",
			       (int)t->tid, strerror(errno));
	t->xstate_bytes = xstate.iov_len;
	r = remote_frame_put(t, &t->back, stack ? stack : t->back.rsp - REMOTE_RED_ZONE, restore,
			     ret_sp);
	if (r < 0)
		return err_set(e, r, "no room on the stack of thread %d", (int)t->tid);
	there.rip = function;
	there.rsp = *ret_sp;
	there.rdi = args[0];
	there.rsi = args[1];
	there.rdx = args[2];
	there.rcx = there.r10 = args[3];
	there.r8 = args[4];
	there.r9 = args[5];
	there.rax = number;
	there.orig_rax = ~0ULL;
	there.eflags &= ~0x400ULL; /* the direction flag */
	r = set_regs(t, &there);
	t->entering = false;
	/* Last: were it first, and memscope killed between the two, it would stay. */
	if (r == 0)
		r = set_mask(t, ~LIBRARYS_SIGNAL);
	return r < 0 ? err_set(e, r, "thread %d has ended", (int)t->tid) : 0;
}

/* `r`: how it went. */
static int arrive(struct remote *t, int r, struct err *e)
{
	int status;

	if (r == 0) {
		r = put_back(t);
		return r == 0 ? 0 : err_set(e, r, "thread %d has ended", (int)t->tid);
	}
	if (r == -ESRCH)
		return err_set(e, r, "the process has ended");
	if (r == -ETIMEDOUT) {
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
		if (wait_stop(t, now_us() + 1000000, &status) < 0)
			return err_set(e, -ESRCH, "thread %d does not stop any more", (int)t->tid);
	}
	put_back(t);
	return err_set(e, r,
		       r == -EFAULT ? "a call made in thread %d failed; the thread was put back as "
				      "it was"
				    : "a call made in thread %d did not return; the thread was put "
				      "back as it was",
		       (int)t->tid);
}

int remote_call(struct remote *t, uint64_t function, const uint64_t args[6], uint64_t stack,
		uint64_t restore, uint32_t patience_us, struct err *e)
{
	uint64_t sp;
	int r = depart(t, function, args, stack, restore, 0, &sp, e);

	return r < 0 ? r : arrive(t, run_to_end(t, sp, patience_us), e);
}

int remote_syscall(struct remote *t, uint64_t insn, uint64_t number, const uint64_t args[6],
		   uint64_t stack, uint64_t restore, uint32_t patience_us, struct err *e)
{
	uint64_t sp;
	int r = depart(t, insn, args, stack, restore, number, &sp, e);

	t->result = -ENOSYS;
	t->child = 0;
	return r < 0 ? r : arrive(t, run_to_end(t, sp, patience_us), e);
}

int remote_ready_twin(struct remote *t, uint64_t insn, uint64_t restore, uint64_t *ret_stack,
		      struct err *e)
{
	struct iovec xstate = { t->xstate, sizeof(t->xstate) };
	struct user_regs_struct end = t->back;
	int r;

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_X86_XSTATE, &xstate) < 0)
		return err_set(e, -errno, "cannot read the vector registers of thread %d: %s",
			       (int)t->tid, strerror(errno));
	t->xstate_bytes = xstate.iov_len;
	end.rip = insn;
	end.rax = SYS_exit_group;
	end.rdi = 0;
	r = remote_frame_put(t, &end, t->back.rsp - REMOTE_RED_ZONE, restore, ret_stack);
	return r < 0 ? err_set(e, r, "no room on the stack of thread %d", (int)t->tid) : 0;
}

static int run_until_told(struct remote *t, uint64_t told, uint32_t patience_us)
{
	uint64_t until_us = now_us() + patience_us;
	int r = resume(t, PTRACE_CONT, 0), status, waits = 0;
	uint64_t word = 0;

	while (r == 0) {
		if (pread(t->mem_fd, &word, sizeof(word), (off_t)told) == sizeof(word) && word)
			return 0;
		r = wait_stop(t, now_us(), &status);
		if (r == 0) {
			int sig = signal_of(status);

			if (is_fatal(sig))
				return -EFAULT;
			r = resume(t, PTRACE_CONT, sig);
		} else if (r == -ETIMEDOUT) {
			if (now_us() >= until_us && (!is_running(t) || ++waits == CALL_WAITS))
				return r;
			if (now_us() >= until_us)
				until_us = now_us() + patience_us;
			usleep(20);
			r = 0;
		}
	}
	return r;
}

int remote_call_told(struct remote *t, uint64_t code, uint64_t bytes, uint64_t entry,
		     const uint64_t args[6], uint64_t stack, uint64_t restore, uint64_t told,
		     uint32_t patience_us, struct err *e)
{
	struct user_regs_struct regs;
	uint64_t sp;
	int r = depart(t, code + entry, args, stack, restore, 0, &sp, e), status;

	if (r < 0)
		return r;
	r = run_until_told(t, told, patience_us);
	if (r < 0)
		return arrive(t, r, e);
	ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	do
		r = wait_stop(t, now_us() + 1000000, &status);
	while (r == 0 && !is_trap(status) && resume(t, PTRACE_CONT, signal_of(status)) == 0);
	if (r < 0 || get_regs(t, &regs) < 0)
		return err_set(e, -ESRCH, "thread %d does not stop any more", (int)t->tid);
	if (regs.rip - code < bytes)
		return arrive(t, 0, e);
	/* We were late, and it is about its own work again. */
	if (read_state(t, false) < 0)
		t->regs = regs;
	return 0;
}

/* --- hold and release ------------------------------------------------------------------------- */

static void begin(struct remote *t, pid_t pid, pid_t tid, int mem_fd)
{
	memset(t, 0, offsetof(struct remote, xstate));
	t->pid = pid;
	t->tid = tid;
	t->mem_fd = mem_fd;
	t->signal = 0;
	t->traced = t->entering = t->running = t->held = t->filtered = false;
}

int remote_take(pid_t pid, int mem_fd, struct remote *ret_thread, struct err *e)
{
	struct remote *t = ret_thread;

	begin(t, pid, pid, mem_fd);
	t->traced = t->held = true;
	if (read_state(t, true) < 0 || !t->running)
		return err_set(e, -EAGAIN, "process %d is not held at an instruction of its own",
			       (int)pid);
	return 0;
}

int remote_adopt(pid_t pid, pid_t tid, int mem_fd, struct remote *ret_thread)
{
	struct remote *t = ret_thread;

	begin(t, pid, tid, mem_fd);
	t->traced = t->held = true;
	if (read_state(t, true) < 0)
		return -EAGAIN;
	return ptrace(PTRACE_SETOPTIONS, tid, NULL,
		      (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE)) < 0
		       ? -errno
		       : 0;
}

int remote_stop(pid_t pid, pid_t tid, int mem_fd, uint32_t patience_us, bool anywhere,
		struct remote *ret_thread, struct err *e)
{
	struct remote *t = ret_thread;
	uint64_t until_us = now_us() + patience_us;
	int status, r, sig = 0;
	bool first = true;

	begin(t, pid, tid, mem_fd);
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) < 0)
		return errno == ESRCH ? -ESRCH
				      : err_set(e, -errno, "cannot trace thread %d: %s", (int)tid,
						strerror(errno));
	t->traced = true;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	for (;;) {
		/* The first comes as soon as the kernel can. */
		r = first ? wait_patiently(t, 500000, &status) : wait_stop(t, until_us, &status);
		if (r == -ETIMEDOUT) {
			ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
			r = wait_patiently(t, 500000, &status);
			if (r == -ETIMEDOUT)
				let_go(t);
			if (r < 0)
				return r == -ESRCH
					       ? r
					       : err_set(e, -EBUSY,
							 "thread %d does not stop: it is frozen, "
							 "or waits for a device",
							 (int)tid);
			t->signal = signal_of(status);
			t->entering = false;
			if (read_state(t, false) == 0 && is_trap(status))
				set_regs(t, &t->regs);
			remote_release(t);
			return -EAGAIN;
		}
		if (r < 0)
			return r;
		sig = signal_of(status);
		if (!sig) {
			struct user_regs_struct regs;

			/* Of the two stops of a system call, the one before it. */
			t->entering = is_syscall_stop(status);
			if (t->entering &&
			    (get_regs(t, &regs) < 0 || regs.rax != (uint64_t)-ENOSYS))
				t->entering = false;
			else if (is_syscall_stop(status) || is_trap(status))
				r = read_state(t, anywhere && is_trap(status));
			if ((t->entering || is_trap(status)) && r == 0)
				return 0;
			/* On: a system call that can only go on by itself, or code. */
		}
		first = false;
		r = resume(t, PTRACE_SYSCALL, sig);
		if (r < 0) {
			let_go(t);
			return r;
		}
	}
}

void remote_release(struct remote *t)
{
	if (!t->traced)
		return;
	if (!t->entering && !t->signal && t->regs.rip)
		set_regs(t, &t->regs);
	if (t->held)
		t->traced = false;
	else
		let_go(t);
}

#else

#include <errno.h>

int remote_stop(pid_t pid, pid_t tid, int mem_fd, uint32_t patience_us, bool anywhere,
		struct remote *ret_thread, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

int remote_take(pid_t pid, int mem_fd, struct remote *ret_thread, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

int remote_adopt(pid_t pid, pid_t tid, int mem_fd, struct remote *ret_thread)
{
	return -EOPNOTSUPP;
}

int remote_syscall(struct remote *t, uint64_t insn, uint64_t number, const uint64_t args[6],
		   uint64_t stack, uint64_t restore, uint32_t patience_us, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

int remote_ready_twin(struct remote *t, uint64_t insn, uint64_t restore, uint64_t *ret_stack,
		      struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

int remote_call(struct remote *t, uint64_t function, const uint64_t args[6], uint64_t stack,
		uint64_t restore, uint32_t patience_us, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

int remote_call_told(struct remote *t, uint64_t code, uint64_t bytes, uint64_t entry,
		     const uint64_t args[6], uint64_t stack, uint64_t restore, uint64_t told,
		     uint32_t patience_us, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "threads can be made to call functions on x86-64 only");
}

void remote_release(struct remote *t)
{
}

#endif
