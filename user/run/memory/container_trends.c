/*
 * The memory of each container over time: FOLDER/trend.csv, in a run of several containers or of the host,
 * and there, as "host", of the processes that are in none.
 *
 * Who is in a container is asked for at each row. Its CPU time is by its control group's own account, which
 * knows of processes, too, that came and went between two rows.
 */
#include "proc/cgroup_use.h"
#include "proc/proc_mem.h"
#include "render/tables/trend_csv.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/output/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>

enum { PIDS_MAX = 8192, SERIES_MAX = 1024 };

struct pids {
	pid_t list[PIDS_MAX];
	uint32_t n;
};

struct series {
	char folder[FOLDER_NAME];
	struct proc_mem *mem;
	struct trend_csv *csv; /* NULL: it could not be written */
	int64_t cpu_seen_ns;   /* of the group                  */
	bool begun;            /* there was a row               */
};

struct container_trends {
	struct run *run;
	struct cgroup_mounts mounts;
	bool known; /* the mounts are; files may be made */
	struct series *series;
	uint32_t n;
	struct pids one, in_containers; /* in ascending order */
	bool failed;                    /* and said so        */
};

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

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
	if (!more->mem) {
		fail(t, "out of memory");
		return NULL;
	}
	t->n++;
	open_csv(t, more);
	return more;
}

/* A row of the processes in t->one; `path`: of their control group, or NULL. */
static void take_row(struct container_trends *t, const char *container, const char *path)
{
	struct mem_group group = { t->one.n,    MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN,
				   MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN };
	struct series *s = series_of(t, container);
	struct mem_sample sample;
	struct err e = { 0 };

	if (!s || !s->csv)
		return;
	for (uint32_t i = 0; i < t->one.n; i++)
		proc_mem_add(s->mem, t->one.list[i], s->begun, NULL);
	proc_mem_keep(s->mem, t->one.list, t->one.n);
	if (path)
		cgroup_use(&t->mounts, path, &group);
	group.processes = t->one.n;
	if (proc_mem_sample(s->mem, &sample) < 0)
		return;
	if (group.cpu_ns >= 0 && s->begun) /* made anew, it counts from 0 */
		sample.interval_cpu_ns =
			group.cpu_ns - (group.cpu_ns < s->cpu_seen_ns ? 0 : s->cpu_seen_ns);
	s->cpu_seen_ns = group.cpu_ns;
	s->begun = true;
	if (trend_csv_row(s->csv, &sample, MEM_UNKNOWN, &group, &e) < 0)
		fail(t, e.msg);
}

static void take_container(struct container_trends *t, const char *title, const struct cgroup *at)
{
	struct pids *all = &t->in_containers;

	t->one.n = cgroup_processes(&t->mounts, at, t->one.list, PIDS_MAX);
	if (t->one.n > PIDS_MAX)
		t->one.n = PIDS_MAX;
	if (!t->one.n)
		return;
	qsort(t->one.list, t->one.n, sizeof(*t->one.list), compare_pids);
	for (uint32_t i = 0; i < t->one.n && all->n < PIDS_MAX; i++)
		all->list[all->n++] = t->one.list[i];
	take_row(t, title, at->path);
}

/* A kernel thread has no memory of its own. */
static bool has_program(pid_t pid)
{
	char path[32], to[2];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, to, sizeof(to)) > 0;
}

static void take_host(struct container_trends *t)
{
	struct pids *in = &t->in_containers;
	DIR *d = opendir("/proc");

	qsort(in->list, in->n, sizeof(*in->list), compare_pids);
	t->one.n = 0;
	for (struct dirent *entry; d && (entry = readdir(d)) && t->one.n < PIDS_MAX;) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (pid && !bsearch(&pid, in->list, in->n, sizeof(pid), compare_pids) &&
		    has_program(pid))
			t->one.list[t->one.n++] = pid;
	}
	if (d)
		closedir(d);
	qsort(t->one.list, t->one.n, sizeof(*t->one.list), compare_pids);
	take_row(t, NULL, NULL);
}

static void take_all(struct container_trends *t)
{
	struct container_list all = { 0 };

	t->in_containers.n = 0;
	if (containers_read(NULL, &t->mounts, &all, NULL) == 0)
		for (uint32_t i = 0; i < all.n; i++) {
			const struct container *c = &all.list[i];
			struct cgroup at = { .hierarchy = c->hierarchy };

			if (!c->running || !c->path || strlen(c->path) >= sizeof(at.path))
				continue;
			strcpy(at.path, c->path);
			take_container(t, container_title(c), &at);
		}
	containers_fini(&all);
	take_host(t);
}

static void row(void *self, uint64_t now)
{
	struct container_trends *t = self;
	const struct run_config *cfg = t->run->cfg;

	(void)now;
	if (!t->known)
		return;
	if (cfg->all) {
		take_all(t);
		return;
	}
	t->in_containers.n = 0;
	for (uint32_t i = 0; i < cfg->n_groups; i++)
		if (!cfg->groups[i].gone_ns)
			take_container(t, group_unique_title(cfg->groups, cfg->n_groups, i),
				       &cfg->groups[i].at);
}

static int ready(void *self, struct err *e)
{
	struct container_trends *t = self;

	(void)e;
	t->known = cgroup_mounts_read(&t->mounts, NULL) == 0;
	row(t, 0);
	return 0;
}

static void closing(void *self)
{
	struct container_trends *t = self;

	for (uint32_t i = 0; i < t->n; i++)
		proc_mem_last(t->series[i].mem);
	row(t, 0);
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
	}
	free(t->series);
	cgroup_mounts_fini(&t->mounts);
}

const struct component container_trends_component = {
	.name = "memory of containers",
	.size = sizeof(struct container_trends),
	.wanted = folders_wanted,
	.ready = ready,
	.row = row,
	.closing = closing,
	.write = write_files,
	.free = free_series,
};
