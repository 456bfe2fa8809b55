#include "inject/choose.h"

#include "inject/filter.h"
#include "inject/safe.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SEARCH_US 5000000 /* for a thread that may be asked            */
#define RUNS_US   200000  /* for one of which it is known what it does */

#define THREADS_MAX 4096

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

struct candidate {
	pid_t tid;
	int trouble; /* how much it would notice: the least first */
	int filters; /* of seccomp: none, or how many             */
};

#define FILTERS_MANY 1000000 /* their number is not said before Linux 5.9 */

/* What it does is not known: it may be in the middle of a system call that would be cut short. */
#define TROUBLE_RUNS 3

/* How many seccomp filters it is under: they are a thread's own. -1: its strict mode allows nothing. */
static int filters_of(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	int mode = 0, filters = FILTERS_MANY;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Seccomp: %d", &mode);
		sscanf(line, "Seccomp_filters: %d", &filters);
	}
	if (f)
		fclose(f);
	return mode == SECCOMP_MODE_STRICT ? -1 : mode ? filters : 0;
}

bool choose_is_filtered(pid_t pid)
{
	return filters_of(pid, pid);
}

/*
 * It waits in a system call that has perhaps been carried out in part: stopped, it would end with
 * that part, as only a signal's handler makes it do otherwise.
 */
static bool may_be_cut(long number, const unsigned long long args[4])
{
	switch (number) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_vmsplice:
	case SYS_tee:
	case SYS_copy_file_range:
	case SYS_recvmmsg:
		return true;
	case SYS_recvfrom:
		return args[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return args[2] & MSG_WAITALL;
	}
	return false;
}

/* By what the kernel says of it, without touching it. -1: not to be stopped now. */
static int trouble_of(pid_t pid, pid_t tid)
{
	char path[64], line[512], *paren;
	unsigned long long args[4] = { 0 };
	long number;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	f = fopen(path, "re");
	paren = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	if (!paren || !strchr("RS", paren[2]))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(line, "%ld %llx %llx %llx %llx", &number, &args[0], &args[1], &args[2],
		   &args[3]) < 1)
		number = -1;
	if (f)
		fclose(f);
	if (may_be_cut(number, args))
		return -1;
	switch (number) {
	case -1:
		return TROUBLE_RUNS;
#if defined(__x86_64__)
	case SYS_poll: /* these would wait longer if memscope were killed on the way */
	case SYS_nanosleep:
#endif
	case SYS_clock_nanosleep:
		return 1;
#if defined(__x86_64__)
	case SYS_epoll_wait: /* these may wait longer then */
#endif
	case SYS_epoll_pwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
		return 2;
	}
	return 0;
}

static int by_trouble(const void *a, const void *b)
{
	const struct candidate *l = a, *r = b;

	return l->trouble != r->trouble ? l->trouble - r->trouble : l->filters - r->filters;
}

static uint32_t find_candidates(pid_t pid, struct candidate *out, uint32_t cap)
{
	char path[64];
	struct dirent *d;
	uint32_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && n < cap && (d = readdir(dir))) {
		pid_t tid = (pid_t)atoi(d->d_name);

		if (tid <= 0)
			continue;
		out[n] = (struct candidate){ tid, trouble_of(pid, tid), filters_of(pid, tid) };
		n += out[n].trouble >= 0 && out[n].filters >= 0;
	}
	if (dir)
		closedir(dir);
	qsort(out, n, sizeof(*out), by_trouble);
	return n;
}

/* The memory that it had is nobody's any more: this is no error of an address, which would be one. */
static bool is_gone(int mem_fd)
{
	char byte;

	return pread(mem_fd, &byte, 1, 4096) == 0;
}

/* Its seccomp filters allow all of it. -EPERM: they do not; -EAGAIN: not where it is now. */
static int check_filters(const struct errand *errand, struct remote *t, struct err *e)
{
	_cleanup_(filters_fini) struct filters filters = { 0 };
	int r = filters_read(t->tid, &filters, e);

	if (r == 0)
		r = filters_check(&filters, errand->pid, errand->exact, errand->memfd, e);
	/* At the beginning of a system call, which would be left out. */
	if (r == 0 && t->entering && !filters_allow_skipping(&filters))
		r = err_set(e, -EAGAIN, "it is about to make a system call");
	t->filtered = true;
	return r;
}

/* One of them: 0; -EAGAIN, -ESRCH: not now; or what stands in the way of any. */
static int try_thread(const struct errand *errand, struct safe *safe, const struct candidate *c,
		      uint32_t patience_us, bool anywhere, struct remote *ret_thread, struct err *e)
{
	int r = remote_stop(errand->pid, c->tid, errand->mem_fd, patience_us, anywhere, ret_thread,
			    e);

	if (r < 0)
		return r;
	r = safe_check(safe, ret_thread, e);
	if (r == 0 && c->filters)
		r = check_filters(errand, ret_thread, e);
	if (r < 0)
		remote_release(ret_thread);
	return r;
}

int choose_thread(const struct errand *errand, struct remote *ret_thread, struct err *e)
{
	static struct candidate threads[THREADS_MAX];
	struct safe *safe = NULL;
	struct err why = { .msg = "none was in a system call that can be left" };
	uint64_t from_us = now_us(), until_us = from_us + SEARCH_US;
	int r = safe_new(errand->pid, errand->mem_fd, &safe, e), denied = 0;
	bool anywhere = false;

	for (uint32_t patience_us = 2000; r == 0; anywhere = !anywhere) {
		uint32_t n = find_candidates(errand->pid, threads, THREADS_MAX);
		int least = FILTERS_MANY + 1; /* filters of any thread that can be asked */

		if (is_gone(errand->mem_fd)) {
			r = err_set(e, -ESRCH, "process %d has ended, or runs another program",
				    (int)errand->pid);
			break;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint64_t at_us = now_us();

			if (threads[i].filters < least)
				least = threads[i].filters;
			if (at_us >= until_us)
				break;
			if ((threads[i].trouble == TROUBLE_RUNS && at_us < from_us + RUNS_US) ||
			    (denied && threads[i].filters >= denied))
				continue;
			r = try_thread(errand, safe, &threads[i], patience_us, anywhere, ret_thread,
				       &why);
			if (r == -EPERM && threads[i].filters)
				denied = threads[i].filters;
			else if (r != -EAGAIN && r != -ESRCH)
				goto out;
		}
		r = 0;
		/* Others have no fewer. */
		if (denied && least >= denied) {
			r = -EPERM;
			break;
		}
		if (now_us() >= until_us) {
			r = err_set(
				e, -EAGAIN,
				"no thread of process %d could be asked to load the library within "
				"%d s; the last one: %.300s",
				(int)errand->pid, SEARCH_US / 1000000, why.msg);
			break;
		}
		/* Longer each time: a thread that computes comes to a system call in the end. */
		if (now_us() >= from_us + RUNS_US && patience_us < 500000 && !anywhere)
			patience_us *= 2;
		usleep(500);
	}
out:
	if (r < 0 && r != -ESRCH && r != -EAGAIN && e)
		*e = why;
	safe_free(safe);
	return r;
}
