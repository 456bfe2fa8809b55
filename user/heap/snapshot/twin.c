#include "heap/snapshot/twin.h"

#include "base/clock.h"
#include "base/units.h"
#include "inject/remote.h"
#include "proc/cgroup_use.h"
#include "proc/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	CALL_US = 2000000, /* for clone(): 21 ms per GiB in pages of 4 KiB         */
	STOP_US = 200000,  /* for a thread to come by a place to borrow it at       */
	REAP_TRIES = 64,   /* threads that are tried, and again                     */
	CODE_MAX = 64 << 20,
};
#define REAP_NS UINT64_C(5000000000) /* a twin that is never waited for holds no memory */

struct twin {
	pid_t target, pid;
	int mem_fd;
	uint64_t insn, restore; /* syscall; ret, and what handlers of signals return into */
	struct remote thread;
};

/* --- may it, and how --- */

static int seccomp_of(pid_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32], line[256];
	int mode = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	return mode;
}

/* MemAvailable, in bytes; UINT64_MAX: not known. */
static uint64_t available(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kb;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
			return kb << 10;
	return UINT64_MAX;
}

/* What its control groups may still use; UINT64_MAX: there is no limit. */
static uint64_t room_in_groups(pid_t pid)
{
	_cleanup_(cgroup_mounts_fini) struct cgroup_mounts m = { 0 };
	struct err e = { 0 };
	char path[4096];
	uint32_t hierarchy;
	double fixed;
	int64_t kb;

	if (cgroup_mounts_read(&m, &e) < 0 ||
	    cgroup_of_process(pid, &hierarchy, path, sizeof(path)) < 0)
		return UINT64_MAX;
	kb = cgroup_limit_kb(&m, path);
	fixed = cgroup_fixed_part(&m, path);
	if (kb < 0 || isnan(fixed))
		return UINT64_MAX;
	return fixed >= 1 ? 0 : (uint64_t)((double)kb * 1024 * (1 - fixed));
}

static int check_room(pid_t pid, uint64_t bytes, struct err *e)
{
	uint64_t in_groups = room_in_groups(pid), on_machine = available();

	if (in_groups < bytes)
		return err_set(
			e, -ENOMEM,
			"process %d: its control group may use %s more, and with a twin up to %s may be needed; leave out --twin",
			(int)pid, unit_bytes((int64_t)in_groups).s, unit_bytes((int64_t)bytes).s);
	if (on_machine < bytes)
		return err_set(
			e, -ENOMEM,
			"%s of memory are available, and with a twin of process %d up to %s may be needed; leave out --twin",
			unit_bytes((int64_t)on_machine).s, (int)pid, unit_bytes((int64_t)bytes).s);
	return 0;
}

static const uint8_t insn_bytes[] = { 0x0f, 0x05, 0xc3 }; /* syscall; ret */
/* mov $15, %rax; syscall: glibc's. mov $15, %eax; syscall: musl's */
static const uint8_t restore_bytes[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t shorter_bytes[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static bool has(const struct twin *t, uint64_t at, const uint8_t *bytes, size_t n)
{
	uint8_t there[sizeof(restore_bytes)];

	return at && pread(t->mem_fd, there, n, (off_t)at) == (ssize_t)n &&
	       memcmp(there, bytes, n) == 0;
}

/* Looks for both in code of one mapping. */
static int find_code(void *ctx, const struct proc_map *m)
{
	struct twin *t = ctx;
	uint64_t bytes = m->end - m->start;
	_cleanup_(freep) uint8_t *text = NULL;
	const uint8_t *at;

	if (!(m->perms & PROC_MAP_EXEC) || m->path[0] == '[' || bytes > CODE_MAX ||
	    (t->insn && t->restore))
		return 0;
	text = malloc(bytes);
	if (!text || pread(t->mem_fd, text, bytes, (off_t)m->start) != (ssize_t)bytes)
		return 0;
	at = t->insn ? NULL : memmem(text, bytes, insn_bytes, sizeof(insn_bytes));
	if (at)
		t->insn = m->start + (uint64_t)(at - text);
	at = t->restore ? NULL : memmem(text, bytes, restore_bytes, sizeof(restore_bytes));
	if (!at && !t->restore)
		at = memmem(text, bytes, shorter_bytes, sizeof(shorter_bytes));
	if (at)
		t->restore = m->start + (uint64_t)(at - text);
	return 0;
}

static bool is_ready(const struct twin *t)
{
	return t->insn && t->restore;
}

/*
 * Opens the memory that the process has now, and finds that code in it: after it has executed another program, or a library
 * went, what was found before is not there.
 */
static int look(struct twin *t, struct err *e)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->target);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	t->mem_fd = t->thread.mem_fd = fd;
	if (has(t, t->insn, insn_bytes, sizeof(insn_bytes)) &&
	    (has(t, t->restore, restore_bytes, sizeof(restore_bytes)) ||
	     has(t, t->restore, shorter_bytes, sizeof(shorter_bytes))))
		return 0;
	t->insn = t->restore = 0;
	return proc_maps_each(t->target, find_code, t, e);
}

int twin_prepare(pid_t pid, uint64_t bytes, struct twin **ret_twin, struct err *e)
{
	_cleanup_(twin_freep) struct twin *t = calloc(1, sizeof(*t));
	int r;

#if !defined(__x86_64__)
	return err_set(e, -EOPNOTSUPP, "--twin works on x86-64 only");
#endif
	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->target = pid;
	t->mem_fd = -1;
	if (seccomp_of(pid))
		return err_set(
			e, -EPERM,
			"process %d is under seccomp, which may end it for the system call that makes a twin; leave out --twin",
			(int)pid);
	r = check_room(pid, bytes, e);
	if (r < 0)
		return r;
	r = look(t, e);
	if (r == 0 && !is_ready(t))
		r = err_set(
			e, -EOPNOTSUPP,
			"process %d has no code that a twin could be made with (syscall and return, and the end of a signal's handler); leave out --twin",
			(int)pid);
	if (r < 0)
		return r;
	*ret_twin = TAKE_PTR(t);
	return 0;
}

/* --- making it --- */

static int clone_in(struct twin *t, struct err *e)
{
	uint64_t args[6] = { 0 };
	int status, r;

	r = remote_ready_twin(&t->thread, t->insn, t->restore, &args[1], e);
	if (r == 0)
		r = remote_syscall(&t->thread, t->insn, SYS_clone, args, args[1], t->restore,
				   CALL_US, e);
	t->pid = t->thread.child;
	if (t->pid) {
		while (waitpid(t->pid, &status, __WALL) < 0 && errno == EINTR)
			;
		ptrace(PTRACE_SETOPTIONS, t->pid, NULL, (void *)(long)PTRACE_O_EXITKILL);
	}
	if (r < 0)
		return r;
	if (t->thread.result <= 0 || !t->pid)
		return err_set(e, t->thread.result < 0 ? (int)t->thread.result : -EIO,
			       "process %d: a twin could not be made: %s; leave out --twin",
			       (int)t->target,
			       strerror(t->thread.result < 0 ? (int)-t->thread.result : EIO));
	return 0;
}

int twin_make(struct twin *t, const struct stopped *stopped, struct err *e)
{
	int r = look(t, e);

	if (r < 0)
		return r;
	for (uint32_t i = 0; is_ready(t) && i < stopped->n; i++) {
		const struct stopped_thread *s = &stopped->threads[i];

		/* One that a signal was on its way to is not between two of its own instructions. */
		if (s->is_stopped && !s->signal &&
		    remote_adopt(t->target, s->tid, t->mem_fd, &t->thread) == 0)
			return clone_in(t, e);
	}
	return err_set(
		e, -EAGAIN,
		"process %d: none of its threads was at a place where it could be made to call clone(); try again, or leave out --twin",
		(int)t->target);
}

pid_t twin_pid(const struct twin *t)
{
	return t->pid;
}

/* --- its end --- */

static bool is_there(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* Has a stopped thread of the process wait for it. */
static int wait_in(struct twin *t)
{
	uint64_t args[6] = { (uint64_t)t->pid, 0, __WALL | WNOHANG, 0 };
	struct err e = { 0 };
	int r = look(t, &e); /* it may have executed another program until it stopped */

	if (r == 0 && !is_ready(t))
		r = -ENOENT;
	return r < 0 ? r
		     : remote_syscall(&t->thread, t->insn, SYS_wait4, args, 0, t->restore, CALL_US,
				      &e);
}

static void reap_in(struct twin *t, struct stopped *stopped, pid_t tid)
{
	struct err e = { 0 };

	if (look(t, &e) < 0)
		return;
	if (remote_stop(t->target, tid, t->mem_fd, STOP_US, true, &t->thread, &e) == 0) {
		wait_in(t);
		remote_release(&t->thread);
	}
	if (t->thread.traced)
		stop_add_late(stopped, tid);
}

int twin_end(struct twin *t, struct stopped *stopped)
{
	uint64_t until_ns = now_ns() + REAP_NS;
	char path[64];
	int status;

	if (!t->pid)
		return 0;
	kill(t->pid, SIGKILL);
	while (waitpid(t->pid, &status, __WALL) < 0 && errno == EINTR)
		;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->target);
	for (int tries = 0; tries < REAP_TRIES && now_ns() < until_ns && is_there(t->pid);) {
		DIR *dir = opendir(path);
		struct dirent *ent;

		if (!dir) /* it has ended, and with it what it leaves */
			break;
		while (tries < REAP_TRIES && now_ns() < until_ns && is_there(t->pid) &&
		       (ent = readdir(dir)))
			if (ent->d_name[0] != '.' && ++tries)
				reap_in(t, stopped, (pid_t)atoi(ent->d_name));
		closedir(dir);
	}
	status = is_there(t->pid) ? -EAGAIN : 0;
	t->pid = 0;
	return status;
}

void twin_free(struct twin *t)
{
	if (!t)
		return;
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	free(t);
}
