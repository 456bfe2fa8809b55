/*
 * The memory of the targets over time: trend.csv, the rise and the shape of it, and the line of progress on
 * a terminal.
 */
#include "analyse/trend.h"
#include "analyse/leaks.h"
#include "analyse/mem_trend.h"
#include "base/clock.h"
#include "collect/session/stats.h"
#include "proc/cgroup_use.h"
#include "proc/proc_mem.h"
#include "render/tables/trend_csv.h"
#include "run/component.h"
#include "run/group.h"
#include "run/memory/window_rows.h"
#include "run/output/files.h"
#include "run/own_share.h"
#include "run/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct mem_trend_state {
	struct run *run;
	struct proc_mem *mem;
	struct trend_csv *csv; /* NULL: not written any more            */
	bool written;          /* there is one                          */
	struct mem_sample first, last;
	struct trend own;           /* mem_sample.own_kb, one per row         */
	struct long_rows long_rows; /* of csv */
	struct window_rows rows;
	struct cgroup_mounts mounts; /* where there are rows */
	int64_t peak_rss_kb;
	bool known; /* there was a row                        */
};

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct mem_trend_state *t = self;

	(void)opts;
	t->mem = proc_mem_new();
	return t->mem ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static void process(void *self, const struct process_event *event)
{
	struct mem_trend_state *t = self;

	if (event->kind == PROCESS_ADDED)
		proc_mem_add(t->mem, event->pid, event->newborn, NULL);
}

/* Last of all: it empties the trend of an earlier run in the same directory. */
static int ready(void *self, struct err *e)
{
	struct mem_trend_state *t = self;
	const struct run_config *cfg = t->run->cfg;
	char path[4096];
	int rc;

	if (cfg->all || !cfg->dir)
		return 0;
	window_rows_init(&t->rows, cfg);
	if (t->rows.list)
		cgroup_mounts_read(&t->mounts, NULL);
	snprintf(path, sizeof(path), "%s/trend%s%s.csv", cfg->dir, cfg->stamp ? "-" : "",
		 cfg->stamp ? cfg->stamp : "");
	rc = trend_csv_open(AT_FDCWD, path, &t->csv, e);
	t->written = rc == 0;
	return rc;
}

/* The one group that all targets are in, but not the root, which says nothing of itself; false: there is none. */
static bool find_group(const struct mem_trend_state *t, struct cgroup *ret_group)
{
	const struct run_config *cfg = t->run->cfg;
	uint32_t memory = cgroup_memory_hierarchy(&t->mounts);
	char path[PATH_MAX];

	ret_group->hierarchy = memory;
	if (cfg->n_groups == 1) {
		snprintf(ret_group->path, sizeof(ret_group->path), "%s", cfg->groups[0].at.path);
		return true;
	}
	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		if (cgroup_path_in(cfg->pids[i], memory, path, sizeof(path)) < 0 || !path[1] ||
		    (i && strcmp(path, ret_group->path) != 0))
			return false;
		memcpy(ret_group->path, path, sizeof(path));
	}
	return !cfg->n_groups && cfg->n_pids;
}

/* For a window's rows. Others may be in that group: `processes` says how many are. */
static const struct mem_group *group_use(const struct mem_trend_state *t, struct mem_group *use)
{
	static struct cgroup group;

	if (!t->rows.list || !t->mounts.n || !find_group(t, &group))
		return NULL;
	cgroup_use(&t->mounts, group.path, use);
	use->processes = cgroup_processes(&t->mounts, &group, NULL, 0);
	return use;
}

static void take_row(struct mem_trend_state *t, uint64_t now)
{
	const struct alloc_state *alloc = &t->run->alloc;
	struct mem_group use;
	struct mem_sample s;
	struct err e = {};
	int64_t live = alloc->live_bytes ? alloc->live_bytes(alloc->live_ctx) : MEM_UNKNOWN;

	if (!t->csv || proc_mem_sample(t->mem, &s) < 0)
		return;
	if (long_rows_due(&t->long_rows, t->run->cfg) &&
	    trend_csv_row(t->csv, &s, live, NULL, &t->run->row.gc, &e) < 0) {
		run_note(t->run, true, "trend.csv is incomplete: %s", e.msg);
		trend_csv_close(TAKE_PTR(t->csv));
	}
	window_rows_add(&t->rows, own_window_factor(t->run), now, &s, live, group_use(t, &use));
	if (!t->known)
		t->first = s;
	t->known = true;
	t->last = s;
	t->run->row.memory = s;
	trend_add(&t->own, s.own_kb);
	if (s.rss_kb > t->peak_rss_kb)
		t->peak_rss_kb = s.rss_kb;
}

static void progress(const struct mem_trend_state *t, uint64_t now)
{
	uint64_t stats[N_STATS], dropped = 0;
	const struct run *r = t->run;

	if (r->cfg->quiet || !isatty(STDERR_FILENO))
		return;
	drain_stats(r->drain, stats);
	for (int i = 0; i < N_STATS; i++)
		if (stat_rows[i].loss)
			dropped += stats[i];
	fprintf(stderr, "\r\033[Kmemscope: %5.1f s  %llu samples  %llu switches  %llu dropped",
		(double)(now - session_start_ns(r->session)) / 1e9,
		(unsigned long long)stats[STAT_ONCPU_SAMPLES],
		(unsigned long long)stats[STAT_OFFCPU_SWITCHES], (unsigned long long)dropped);
	if (t->known && t->last.rss_kb != MEM_UNKNOWN)
		fprintf(stderr, "  RSS %lld MiB", (long long)t->last.rss_kb / 1024);
	fputs("  (Ctrl-C ends)", stderr);
	fflush(stderr);
}

static void row(void *self, uint64_t now)
{
	take_row(self, now);
	progress(self, now);
}

static void closing(void *self)
{
	struct mem_trend_state *t = self;

	proc_mem_last(t->mem);
	take_row(t, now_ns());
}

static int window(void *self, const struct run_window *window, struct err *e)
{
	return window_rows_write(&((struct mem_trend_state *)self)->rows, window, "", e);
}

static void report(void *self, struct run_summary *to)
{
	struct mem_trend_state *t = self;
	const struct run_config *cfg = t->run->cfg;
	struct point points[TREND_POINTS];
	uint32_t n;

	if (!t->known)
		return;
	to->rss.known = true;
	to->rss.first_kb = t->first.rss_kb;
	to->rss.last_kb = t->last.rss_kb;
	to->rss.peak_kb = t->peak_rss_kb;
	to->rss.shared = t->last.processes > 1;
	to->memory = trend_rise(&t->own, cfg->command && cfg->delay_s <= 0);
	n = trend_points(&t->own, cfg->interval_s, points);
	trend_shape_of(points, n, &to->shape);
	leaks_private(points, n, &to->shape, &to->private);
	to->plain = plain_verdict((double)t->first.rss_kb, (double)t->last.rss_kb);
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	(void)e;
	if (((struct mem_trend_state *)self)->written)
		output_written(to, "trend", ".csv");
	return 0;
}

static void free_trend(void *self)
{
	struct mem_trend_state *t = self;

	trend_csv_close(t->csv);
	window_rows_fini(&t->rows);
	cgroup_mounts_fini(&t->mounts);
	proc_mem_free(t->mem);
}

const struct component trend_component = {
	.name = "memory trend",
	.size = sizeof(struct mem_trend_state),
	.prepare = prepare,
	.process = process,
	.ready = ready,
	.row = row,
	.window = window,
	.closing = closing,
	.report = report,
	.write = write_files,
	.free = free_trend,
};
