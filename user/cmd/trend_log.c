/* memscope trend -p, -c: the memory of processes that run, row by row into a log, for days. */
#include "cmd/cmd.h"
#include "cmd/trend_parts.h"
#include "proc/proc_mem.h"
#include "render/tables/trend_csv.h"
#include "run/follow.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SEARCH_S 1.0 /* between two looks for a process that has ended */

struct log {
	struct follow *follow;
	struct trend_groups *groups; /* or NULL */
	struct proc_mem *mem;
	struct trend_csv *csv;
	uint64_t rows, lost;
	bool full;   /* the last row could not be written, and that was said */
	bool missed; /* some process could not be looked at, and that was said */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

bool trend_is_stopped(void)
{
	return stopped;
}

void trend_take_signals(sigset_t *ret_mask)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal }, old;
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		sigaction(ends[i], NULL, &old);
		if (ends[i] == SIGHUP && old.sa_handler == SIG_IGN) /* nohup means it */
			continue;
		sigaddset(&blocked, ends[i]);
		sigaction(ends[i], &sa, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, ret_mask);
}

double trend_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	time_t now = time(NULL);
	char text[512];
	size_t len;
	struct tm tm;
	va_list ap;

	localtime_r(&now, &tm);
	len = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S: ", &tm);
	va_start(ap, fmt);
	vsnprintf(text + len, sizeof(text) - len, fmt, ap);
	va_end(ap);
	err_print(text);
}

static void on_ended(void *ctx, pid_t pid, const char *name)
{
	(void)ctx;
	say("%s (%d) has ended; waiting for one in its place", name, (int)pid);
}

static void on_began(void *ctx, pid_t pid, const char *name)
{
	struct log *l = ctx;
	struct err e = { 0 };

	/* Its CPU time counts from its start: all of it lies in the interval. */
	if (proc_mem_add(l->mem, pid, true, &e) == 0)
		say("%s is back as %d", name, (int)pid);
}

static void on_group(void *ctx, const struct group *group, bool there)
{
	(void)ctx;
	if (there)
		say("%s is there again", group_title(group));
	else
		say("%s has ended; waiting for it to be started again", group_title(group));
}

/* Those that are in the groups at this moment. `first`: what they did before is not ours. */
static void take_members(struct log *l, bool first)
{
	uint32_t n;
	const pid_t *pids = trend_groups_pids(l->groups, &n);
	bool missed = n == TREND_GROUP_PIDS;

	for (uint32_t i = 0; i < n; i++)
		missed |= proc_mem_add(l->mem, pids[i], !first, NULL) == -EMFILE;
	proc_mem_keep(l->mem, pids, n);
	if (missed && !l->missed)
		say("there are more processes than can be looked at: rows are of %u of them",
		    proc_mem_count(l->mem));
	l->missed = missed;
}

/* False: none of them runs. */
static bool look(struct log *l, struct mem_sample *s, struct mem_group *group)
{
	int64_t cpu_ns;

	if (!l->groups)
		return proc_mem_sample(l->mem, s) == 0;
	/* One that was made anew counts its CPU time from 0. */
	trend_groups_check(l->groups, on_group, l);
	take_members(l, false);
	if (proc_mem_sample(l->mem, s) < 0)
		return false;
	/* The groups' own account knows of processes, too, that came and went between two rows. */
	trend_groups_sum(l->groups, group, &cpu_ns);
	if (cpu_ns >= 0)
		s->interval_cpu_ns = cpu_ns;
	return true;
}

static void write_row(struct log *l)
{
	struct mem_sample s;
	struct mem_group group;
	struct err e = { 0 };

	if (!look(l, &s, &group))
		return;
	if (trend_csv_row(l->csv, &s, MEM_UNKNOWN, l->groups ? &group : NULL, NULL, &e) == 0) {
		l->rows++;
		l->full = false;
		return;
	}
	l->lost++;
	if (!l->full)
		say("%s; rows are lost until that changes", e.msg);
	l->full = true;
}

/* Waits until `until_s`, a signal, or the end of a process. */
static int wait_until(const struct log *l, double until_s, const sigset_t *mask)
{
	struct pollfd fds[TREND_PIDS];
	nfds_t n = follow_poll(l->follow, fds);
	double left = until_s - trend_now_s();
	struct timespec ts = { 0 };

	if (left > 0) {
		ts.tv_sec = (time_t)left;
		ts.tv_nsec = (long)((left - (double)ts.tv_sec) * 1e9);
	}
	return ppoll(fds, n, &ts, mask) < 0 && errno != EINTR ? -errno : 0;
}

static int follow_all(struct log *l, const struct trend_target *target, struct err *e)
{
	if (l->groups)
		take_members(l, true);
	for (uint32_t i = 0; i < target->n; i++) {
		int r = follow_add(l->follow, target->pids[i], target->pattern, e);

		if (r == 0)
			r = proc_mem_add(l->mem, target->pids[i], false, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Is anything not there, so that it is worth looking for it? Groups tell nobody when they end. */
static bool must_search(const struct log *l)
{
	return l->groups || follow_running(l->follow) < follow_count(l->follow);
}

static void search(struct log *l)
{
	if (l->groups)
		trend_groups_check(l->groups, on_group, l);
	else
		follow_search(l->follow, on_began, l);
}

static int run_log(struct log *l, double interval_s, double end_s, const sigset_t *mask)
{
	double begin = trend_now_s(), row_s = begin, search_s = 0;

	while (!stopped) {
		double now = trend_now_s(), next;
		int r;

		follow_check(l->follow, on_ended, l);
		if (must_search(l) && now >= search_s) {
			search(l);
			search_s = now + (interval_s < SEARCH_S ? interval_s : SEARCH_S);
		}
		if (now >= row_s || now >= end_s) {
			write_row(l);
			if (now >= end_s)
				return 0;
			/* What was slept through is not made up for. */
			row_s = begin +
				interval_s * ((double)(int64_t)((now - begin) / interval_s) + 1);
		}
		next = row_s < end_s ? row_s : end_s;
		if (must_search(l) && search_s < next)
			next = search_s;
		r = wait_until(l, next, mask);
		if (r < 0)
			return r;
	}
	write_row(l);
	return 0;
}

int trend_log(const struct trend_target *target, const char *path, double interval_s,
	      double duration_s, struct err *e)
{
	_cleanup_(follow_freep) struct follow *follow = follow_new();
	_cleanup_(proc_mem_freep) struct proc_mem *mem = proc_mem_new();
	_cleanup_(trend_csv_closep) struct trend_csv *csv = NULL;
	struct log l = { .follow = follow, .groups = target->groups, .mem = mem };
	sigset_t mask;
	int r;

	if (!follow || !mem)
		return err_set(e, -ENOMEM, "out of memory for the log");
	r = follow_all(&l, target, e);
	if (r == 0)
		r = trend_csv_append(path, l.groups != NULL, &csv, e);
	if (r < 0)
		return r;
	l.csv = csv;
	trend_take_signals(&mask);
	fprintf(stderr, "memscope: a row each %g s into %s; Ctrl-C ends it\n", interval_s, path);
	r = run_log(&l, interval_s, duration_s > 0 ? trend_now_s() + duration_s : HUGE_VAL, &mask);
	if (r < 0)
		return err_set(e, r, "cannot wait: %s", strerror(-r));
	if (l.lost)
		say("%llu rows could not be written", (unsigned long long)l.lost);
	if (!l.rows)
		return err_set(e, -EIO,
			       l.lost ? "%s: no row could be written"
				      : "%s: has no row, because no process was there",
			       path);
	return 0;
}
