/*
 * The memory of each container over time: FOLDER/trend.csv, in a run of several containers or of the host,
 * and there, as "host", of the processes that are in none.
 *
 * Who is in a container is asked for at each row. Its CPU time is by its control group's own account, which
 * knows of processes, too, that came and went between two rows, and of groups within it.
 *
 * A row reads two files of each process: where there are thousands, rows come more rarely, as budget.h wants looks to rest.
 */
#include "base/clock.h"
#include "proc/cgroup_use.h"
#include "proc/proc_mem.h"
#include "render/tables/trend_csv.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/members.h"
#include "run/memory/window_rows.h"
#include "run/output/files.h"
#include "run/own_share.h"

#include <string.h>

enum {
	SERIES_MAX = 1024,
	PROCESSES_MAX = 8192, /* of one, for each of which a file is open */
};

struct series {
	char folder[FOLDER_NAME];
	struct proc_mem *mem;
	struct trend_csv *csv;      /* NULL: it could not be written */
	struct long_rows long_rows; /* of csv */
	struct window_rows rows;
	int64_t cpu_seen_ns; /* of the group                  */
	bool begun;          /* there was a row               */
};

struct container_trends {
	struct run *run;
	struct members *members; /* NULL: no files may be made */
	struct series *series;
	uint32_t n;
	uint64_t now_ns;  /* of the row that is taken */
	uint64_t next_ns; /* none before             */
	bool failed;      /* and said so */
};

static void fail(struct container_trends *t, const char *why)
{
	if (!t->failed)
		run_note(t->run, true, "the memory of containers over time is not whole: %s", why);
	t->failed = true;
}

static void open_csv(struct container_trends *t, struct series *s)
{
	struct err e = { 0 };
	char path[4096];

	if (output_in_folder_begin(t->run, s->folder, "trend.csv", path, sizeof(path), &e) == 0 &&
	    trend_csv_append(path, true, &s->csv, &e) == 0)
		return;
	fail(t, e.msg);
}

static struct series *series_of(struct container_trends *t, const char *container)
{
	char folder[FOLDER_NAME];
	struct series *more;

	folder_name(t->run->cfg, container, folder);
	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->series[i].folder, folder) == 0)
			return &t->series[i];
	more = t->n < SERIES_MAX ? reallocarray(t->series, t->n + 1, sizeof(*more)) : NULL;
	if (!more) {
		fail(t, "there are too many of them");
		return NULL;
	}
	t->series = more;
	more = &t->series[t->n];
	*more = (struct series){ .mem = proc_mem_new() };
	memcpy(more->folder, folder, sizeof(folder));
	window_rows_init(&more->rows, t->run->cfg);
	if (!more->mem) {
		window_rows_fini(&more->rows);
		fail(t, "out of memory");
		return NULL;
	}
	t->n++;
	open_csv(t, more);
	return more;
}

static void take_row(void *self, const char *owner, const char *path, const pid_t *pids, uint32_t n)
{
	struct mem_group group = { n,           MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN,
				   MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN };
	struct container_trends *t = self;
	struct series *s = series_of(t, owner);
	struct mem_sample sample;
	struct err e = { 0 };
	uint32_t all = n;

	if (!s || !s->csv)
		return;
	if (n > PROCESSES_MAX)
		fail(t, "there are over 8192 processes in one, and it has those only");
	n = n < PROCESSES_MAX ? n : PROCESSES_MAX;
	for (uint32_t i = 0; i < n; i++)
		proc_mem_add(s->mem, pids[i], s->begun, NULL);
	/* Each has its own account of what that took: all together may take so much. */
	proc_mem_rollup_rest(s->mem, budget_rollup_rest(t->run->cfg) * t->n);
	proc_mem_keep(s->mem, pids, n);
	if (path)
		cgroup_use(members_mounts(t->members), path, &group);
	group.processes = all;
	if (proc_mem_sample(s->mem, &sample) < 0)
		return;
	if (group.cpu_ns >= 0 && s->begun) /* made anew, it counts from 0 */
		sample.interval_cpu_ns =
			group.cpu_ns - (group.cpu_ns < s->cpu_seen_ns ? 0 : s->cpu_seen_ns);
	s->cpu_seen_ns = group.cpu_ns;
	s->begun = true;
	window_rows_add(&s->rows, own_window_factor(t->run), t->now_ns, &sample, MEM_UNKNOWN,
			&group);
	if (long_rows_due(&s->long_rows, t->run->cfg) &&
	    trend_csv_row(s->csv, &sample, MEM_UNKNOWN, &group, NULL, &e) < 0)
		fail(t, e.msg);
}

static void take_rows(struct container_trends *t, uint64_t now)
{
	uint64_t from_ns = thread_cpu_ns();

	t->now_ns = now;
	if (t->members)
		members_each(t->members, take_row, t);
	t->next_ns = now + (uint64_t)(budget_look_rest(t->run->cfg) *
				      (double)(thread_cpu_ns() - from_ns));
}

static void row(void *self, uint64_t now)
{
	struct container_trends *t = self;

	if (now >= t->next_ns)
		take_rows(t, now);
}

static int ready(void *self, struct err *e)
{
	struct container_trends *t = self;

	(void)e;
	if (members_new(t->run->cfg, &t->members, NULL) == 0)
		take_rows(t, now_ns());
	t->next_ns = 0; /* that opened files, too */
	return 0;
}

static int window(void *self, const struct run_window *window, struct err *e)
{
	const struct container_trends *t = self;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < t->n; i++)
		rc = window_rows_write(&t->series[i].rows, window, t->series[i].folder, e);
	return rc;
}

static void closing(void *self)
{
	struct container_trends *t = self;

	for (uint32_t i = 0; i < t->n; i++)
		proc_mem_last(t->series[i].mem);
	take_rows(t, now_ns());
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct container_trends *t = self;

	(void)e;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->series[i].csv)
			output_in_folder(to, t->series[i].folder, "trend.csv");
	return 0;
}

static void free_series(void *self)
{
	struct container_trends *t = self;

	for (uint32_t i = 0; i < t->n; i++) {
		proc_mem_free(t->series[i].mem);
		trend_csv_close(t->series[i].csv);
		window_rows_fini(&t->series[i].rows);
	}
	free(t->series);
	members_free(t->members);
}

const struct component container_trends_component = {
	.name = "memory of containers",
	.size = sizeof(struct container_trends),
	.wanted = folders_wanted,
	.ready = ready,
	.row = row,
	.window = window,
	.closing = closing,
	.write = write_files,
	.free = free_series,
};
