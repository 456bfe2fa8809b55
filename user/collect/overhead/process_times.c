#include "collect/overhead/process_times.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROWS_MAX = 4096, THREADS_MAX = 512, READS_AFTER = 2 };

struct thread {
	pid_t tid;
	int fd;
};

struct row {
	pid_t pid;
	struct thread *threads;
	uint32_t n;
	uint32_t reads_left; /* 0: it lives */
};

struct process_times {
	pthread_mutex_t lock;
	uint32_t n;
	struct row rows[ROWS_MAX];
};

struct process_times *process_times_new(void)
{
	struct process_times *t = calloc(1, sizeof(*t));

	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

static void row_close(struct row *row)
{
	for (uint32_t i = 0; i < row->n; i++)
		close(row->threads[i].fd);
	free(row->threads);
	row->threads = NULL;
	row->n = 0;
}

void process_times_free(struct process_times *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		row_close(&t->rows[i]);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int open_clock(pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = 1,
		.inherit_thread = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	/* Before Linux 5.13 children would be counted, too: then threads that are made later are not. */
	attr.inherit = attr.inherit_thread = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool has_thread(const struct row *row, pid_t tid)
{
	for (uint32_t i = 0; i < row->n; i++)
		if (row->threads[i].tid == tid)
			return true;
	return false;
}

/* Threads that are not in `row` yet: how many were added; -1: it cannot be timed. */
static int add_threads(struct row *row)
{
	char path[64];
	struct dirent *d;
	int added = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)row->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		struct thread one = { .tid = (pid_t)atoi(d->d_name) };

		if (one.tid <= 0 || has_thread(row, one.tid))
			continue;
		one.fd = row->n < THREADS_MAX ? open_clock(one.tid) : -1;
		if (one.fd < 0 && row->n < THREADS_MAX && errno == ESRCH)
			continue;
		if (one.fd < 0) {
			added = -1;
			break;
		}
		row->threads[row->n++] = one;
		added++;
	}
	if (dir)
		closedir(dir);
	return added;
}

/* A thread made while they are listed is in the next list; when nothing comes, all are there. */
static bool row_open(struct row *row, pid_t pid)
{
	int added = 1;

	*row = (struct row){ .pid = pid, .threads = calloc(THREADS_MAX, sizeof(*row->threads)) };
	for (int round = 0; row->threads && added > 0 && round < 5; round++)
		added = add_threads(row);
	if (added >= 0 && row->n) {
		struct thread *less = realloc(row->threads, row->n * sizeof(*less));

		row->threads = less ? less : row->threads;
		return true;
	}
	row_close(row);
	return false;
}

static struct row *row_of(struct process_times *t, pid_t pid)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->rows[i].pid == pid && !t->rows[i].reads_left)
			return &t->rows[i];
	return NULL;
}

void process_times_add(struct process_times *t, pid_t pid)
{
	struct row row;

	pthread_mutex_lock(&t->lock);
	if (!row_of(t, pid) && t->n < ROWS_MAX && row_open(&row, pid))
		t->rows[t->n++] = row;
	pthread_mutex_unlock(&t->lock);
}

void process_times_end(struct process_times *t, pid_t pid)
{
	struct row *row;

	pthread_mutex_lock(&t->lock);
	row = row_of(t, pid);
	if (row)
		row->reads_left = READS_AFTER;
	pthread_mutex_unlock(&t->lock);
}

static uint64_t row_read(const struct row *row)
{
	uint64_t sum = 0, ns;

	for (uint32_t i = 0; i < row->n; i++)
		if (read(row->threads[i].fd, &ns, sizeof(ns)) == sizeof(ns))
			sum += ns;
	return sum;
}

uint32_t process_times_read(struct process_times *t, struct process_time *ret_rows, uint32_t max)
{
	uint32_t n = 0, left = 0;

	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; i < t->n; i++) {
		struct row *row = &t->rows[i];

		if (n < max)
			ret_rows[n++] = (struct process_time){ (uint32_t)row->pid, row_read(row) };
		if (row->reads_left && --row->reads_left == 0)
			row_close(row);
		else
			t->rows[left++] = *row;
	}
	t->n = left;
	pthread_mutex_unlock(&t->lock);
	return n;
}
