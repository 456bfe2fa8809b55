#include "heap/snapshot/stop.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/small_file.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { ROUNDS_MAX = 64, TEND_US = 100000 };

/* --- ends, and stops that come too late --- */

static struct stopped *volatile tended;

static void release(struct stopped_thread *t)
{
	ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(long)t->signal);
	t->is_ours = t->is_stopped = false;
}

/* Stops are left to wait_for_stops() as long as it may wait for them. */
static void tend(struct stopped_thread *t, bool all_released)
{
	siginfo_t info = { 0 };
	int status;

	if (!t->is_ours ||
	    waitid(P_PID, (id_t)t->tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
	    !info.si_pid)
		return;
	if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
	    info.si_code == CLD_DUMPED) {
		waitpid(t->tid, &status, __WALL | WNOHANG);
		t->is_ours = t->is_stopped = false;
	} else if (all_released && waitpid(t->tid, &status, __WALL | WNOHANG) == t->tid) {
		t->signal = status >> 16 ? 0 : WSTOPSIG(status);
		release(t);
	}
}

static void on_child(int signal)
{
	int before = errno;

	(void)signal;
	for (uint32_t i = 0; tended && i < tended->n; i++)
		tend(&tended->threads[i], tended->ended_ns != 0);
	errno = before;
}

static void begin_tending(struct stopped *s)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };

	tended = s;
	sigaction(SIGCHLD, &action, NULL);
}

/*
 * While threads are being stopped the handler runs at times only: each of their stops is a signal, and it looks at all of
 * them. It has to run, since PTRACE_SEIZE waits for an execve(2), and this for the ends of the other threads.
 */
static void tend_at_times(bool on)
{
	const struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	const struct timeval period = { 0, on ? TEND_US : 0 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* It stays: the last one may come late. */
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ period, period }, NULL);
	sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &child, NULL);
}

/* The list changes while the handler does not read it. */
static sigset_t hold_handler(void)
{
	sigset_t held, before;

	sigemptyset(&held);
	sigaddset(&held, SIGCHLD);
	sigaddset(&held, SIGALRM);
	sigprocmask(SIG_BLOCK, &held, &before);
	return before;
}

/* Listed before it is seized, so that its end is seen from the very beginning. */
static int add(struct stopped *s, pid_t tid)
{
	sigset_t before = hold_handler();
	bool ok = GROW(s->threads, s->n, s->room);

	if (ok)
		s->threads[s->n++] = (struct stopped_thread){ .tid = tid, .is_ours = true };
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ok ? 0 : -ENOMEM;
}

static void forget(struct stopped *s, uint32_t i)
{
	sigset_t before = hold_handler();

	s->threads[i] = s->threads[--s->n];
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* --- stopping --- */

static struct stopped_thread *find(struct stopped *s, pid_t tid)
{
	/* The kernel lists them in one order: most that are new are behind all others, and those that are here in the order of the rows. */
	for (uint32_t k = 0; tid <= s->highest && k < s->n; k++) {
		uint32_t i = (s->after_found + k) % s->n;

		if (s->threads[i].tid != tid)
			continue;
		s->after_found = i + 1;
		return &s->threads[i];
	}
	return NULL;
}

/* 1: it is one of ours now; 0: it was, or has ended. */
static int seize(struct stopped *s, pid_t tid)
{
	if (find(s, tid))
		return 0;
	if (add(s, tid) < 0)
		return -ENOMEM;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		int r = errno == ESRCH ? 0 : -errno;

		forget(s, s->n - 1);
		return r;
	}
	s->highest = tid > s->highest ? tid : s->highest;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 && errno != ESRCH)
		return -errno;
	return 1;
}

/* How many are new. */
static int seize_new(struct stopped *s)
{
	_cleanup_(freep) char *path = NULL;
	struct dirent *ent;
	int n = 0, r = 0;
	DIR *dir;

	if (asprintf(&path, "/proc/%d/task", (int)s->pid) < 0)
		return -ENOMEM;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (r >= 0 && (ent = readdir(dir)))
		if (isdigit((unsigned char)ent->d_name[0])) {
			r = seize(s, (pid_t)atoi(ent->d_name));
			n += r > 0;
		}
	closedir(dir);
	return r < 0 ? r : n;
}

/* The first part of XSAVE's area is what NT_PRFPREG has (Intel SDM 1, 13.4.1); without XSAVE that is all there is. */
static void read_fp(struct stopped_thread *t)
{
	struct iovec fp = { t->fp, sizeof(t->fp) };

#if defined(__x86_64__)
	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_X86_XSTATE, &fp) == 0) {
		t->fp_bytes = (uint32_t)fp.iov_len;
		t->core_fp_bytes = sizeof(struct user_fpregs_struct);
		return;
	}
	fp.iov_len = sizeof(t->fp);
#endif
	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRFPREG, &fp) == 0)
		t->fp_bytes = t->core_fp_bytes = (uint32_t)fp.iov_len;
}

static void read_regs(struct stopped_thread *t)
{
	struct iovec iov = { t->regs, sizeof(t->regs) };

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &iov) < 0)
		return;
	t->n_regs = (uint32_t)(iov.iov_len / sizeof(t->regs[0]));
	read_fp(t);
#if defined(__x86_64__)
	t->pc = t->regs[offsetof(struct user_regs_struct, rip) / 8];
	t->sp = t->regs[offsetof(struct user_regs_struct, rsp) / 8];
	t->tp = t->regs[offsetof(struct user_regs_struct, fs_base) / 8];
	t->in_call = (int64_t)t->regs[offsetof(struct user_regs_struct, orig_rax) / 8] >= 0;
#elif defined(__aarch64__)
	struct iovec tls = { &t->tp, sizeof(t->tp) };
	int call = -1;
	struct iovec number = { &call, sizeof(call) };

	t->sp = t->regs[31];
	t->pc = t->regs[32];
	ptrace(PTRACE_GETREGSET, t->tid, (void *)0x401 /* NT_ARM_TLS */, &tls);
	ptrace(PTRACE_GETREGSET, t->tid, (void *)0x404 /* NT_ARM_SYSTEM_CALL */, &number);
	t->in_call = call >= 0;
#endif
}

/* Its stop, if there is one. false: it has ended. */
static bool look_at(struct stopped_thread *t)
{
	int status;
	pid_t r = waitpid(t->tid, &status, __WALL | WNOHANG);

	if (r == 0)
		return true;
	if (r < 0 || !WIFSTOPPED(status))
		return false;
	t->is_stopped = true;
	if (!(status >> 16))
		t->signal = WSTOPSIG(status);
	read_regs(t);
	return true;
}

/* Waits for all that were seized. */
static void wait_for_stops(struct stopped *s, uint64_t until_ns)
{
	for (uint32_t tries = 0;; tries++) {
		s->n_missed = 0;
		for (uint32_t i = 0; i < s->n;) {
			if (!s->threads[i].is_stopped && !look_at(&s->threads[i])) {
				forget(s, i);
				continue;
			}
			s->n_missed += !s->threads[i].is_stopped;
			i++;
		}
		if (!s->n_missed || now_ns() > until_ns)
			return;
		usleep(tries < 100 ? 10 : 200);
	}
}

/* Yama, Linux 3.4. */
bool stop_is_barred(void)
{
	char text[16];

	return small_file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) >
		       0 &&
	       atoi(text) == 3;
}

static const char *why_not(int r)
{
	if (r == -EPERM && stop_is_barred())
		return STOP_BARRED;
	return r == -EPERM ? "it may not be traced" : strerror(-r);
}

/* Who traces the process; 0: nobody, or it has ended. */
static int tracer_of(pid_t pid)
{
	char path[32], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nTracerPid:");
	return at ? atoi(at + strlen("\nTracerPid:")) : 0;
}

static int cannot_stop(pid_t pid, int r, struct err *e)
{
	int tracer = r == -EPERM ? tracer_of(pid) : 0;
	char path[32], name[32];

	if (r == -ESRCH)
		return err_set(e, r, "process %d: no such process", (int)pid);
	if (!tracer)
		return err_set(e, r, "process %d cannot be stopped: %s", (int)pid, why_not(r));
	snprintf(path, sizeof(path), "/proc/%d/comm", tracer);
	small_file_read(AT_FDCWD, path, name, sizeof(name));
	return err_set(
		e, -EBUSY,
		"process %d cannot be stopped: process %d (%s) traces it, and there can be one tracer only",
		(int)pid, tracer, name);
}

int stop_all(pid_t pid, uint32_t patience_ms, struct stopped *s, struct err *e)
{
	uint64_t until_ns;
	int r = 1;

	*s = (struct stopped){ .pid = pid, .began_ns = now_ns() };
	until_ns = s->began_ns + patience_ms * UINT64_C(1000000);
	begin_tending(s);
	tend_at_times(true);
	for (int round = 0; r > 0 && round < ROUNDS_MAX; round++) {
		r = seize_new(s);
		wait_for_stops(s, until_ns);
	}
	tend_at_times(false);
	if (r >= 0 && s->n == 0)
		r = -ESRCH;
	if (r < 0) {
		stop_fini(s);
		return cannot_stop(pid, r, e);
	}
	s->stopped_ns = now_ns();
	return 0;
}

void stop_release(struct stopped *s)
{
	if (s->ended_ns)
		return;
	s->releases_ns = now_ns();
	for (uint32_t i = 0; i < s->n; i++)
		if (s->threads[i].is_stopped)
			release(&s->threads[i]);
	s->ended_ns = now_ns();
	for (uint32_t i = 0; i < s->n; i++)
		tend(&s->threads[i], true);
}

int stop_add_late(struct stopped *s, pid_t tid)
{
	if (add(s, tid) < 0)
		return -ENOMEM;
	tend(&s->threads[s->n - 1], true);
	return 0;
}

void stop_fini(struct stopped *s)
{
	stop_release(s);
	if (tended == s)
		tended = NULL;
	free(s->threads);
	*s = (struct stopped){ .ended_ns = 1 };
}
