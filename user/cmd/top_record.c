#include "cmd/top_record.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "cmd/outputs.h"
#include "collect/probes/uprobes.h"
#include "collect/session/stats.h"
#include "model/pprof.h"
#include "run/output/facts.h"
#include "run/output/files.h"
#include "run/pipeline.h"
#include "run/target.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_PIDS 1024

struct sender {
	struct run run;
	struct profile_since since;
	int out;
	struct strbuf said; /* notes and losses, as they were last sent */
};

/* --- sending --- */

static int send_profile(const struct sender *s, const char *name, const struct profile *p,
			struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	const char *data;
	size_t len;
	int r = sink_open_memory(&sink, e);

	if (r < 0)
		return r;
	sink_write(sink, name, strlen(name) + 1);
	r = pprof_write(p, (module_id){ 0 }, sink, e);
	if (r == 0)
		r = sink_commit(sink, e);
	if (r < 0)
		return r;
	data = sink_memory(sink, &len);
	return worker_send(s->out, WORKER_PROFILE, data, len);
}

/* What was lost, and what could not be gathered, where that has changed. */
static int send_notes(struct sender *s)
{
	const struct run *r = &s->run;
	struct strbuf now = { 0 };
	struct ingest_stats in;
	uint64_t stats[N_STATS], sideband = targets_lost(r);
	int rc = 0;

	drain_stats(r->drain, stats);
	ingest_stats(r->ingest, &in);
	for (int i = 0; i < N_STATS; i++)
		if (stat_rows[i].loss && stats[i])
			strbuf_printf(&now, "%s%s %llu",
				      now.len ? ", " : "lost: ", stat_rows[i].name,
				      (unsigned long long)stats[i]);
	if (in.lost_stacks)
		strbuf_printf(&now, "%sstacks_never_arrived %llu",
			      now.len ? ", " : "lost: ", (unsigned long long)in.lost_stacks);
	if (sideband)
		strbuf_printf(&now, "%srecords of processes %llu",
			      now.len ? ", " : "lost: ", (unsigned long long)sideband);
	if (r->alloc.reason && *r->alloc.reason)
		strbuf_printf(&now, "%s%s", now.len ? "; " : "", r->alloc.reason);
	for (uint32_t i = 0; i < r->notes.n; i++)
		if (r->notes.missing[i])
			strbuf_printf(&now, "%s%s", now.len ? "; " : "", r->notes.text[i]);
	if (now.s && (!s->said.s || strcmp(now.s, s->said.s) != 0))
		rc = worker_send(s->out, WORKER_NOTE, now.s, now.len);
	strbuf_free(&s->said);
	s->said = now;
	return rc;
}

/* What was gathered since the last time. The screen that reads it may be gone. */
static int send_window(struct sender *s, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	uint64_t ns;
	int r = pipeline_now(&s->run, &s->since, &now, e);

	if (r == 0)
		r = output_name(&s->run, true, NULL, e);
	for (int i = 0; r == 0 && i < profile_kinds(); i++)
		if (now.profiles[i] && i != PROFILE_PEAK && i != PROFILE_GOROUTINE &&
		    i != PROFILE_MAPPINGS)
			r = send_profile(s, profile_rows[i].name, now.profiles[i], e);
	ns = (uint64_t)now.duration_ns;
	if (r == 0)
		r = send_notes(s);
	return r == 0 ? worker_send(s->out, WORKER_WINDOW, &ns, sizeof(ns)) : r;
}

static int on_window(void *ctx, struct err *e)
{
	struct sender *s = ctx;
	int r = send_window(s, e);

	if (r == -EPIPE)
		run_ends(&s->run, RUN_END_SIGNAL, "the screen is gone");
	return r == -EPIPE ? 0 : r;
}

/* --- the run --- */

static int find(const struct screen_target *t, struct run_config *cfg, struct err *e)
{
	static struct cgroup_mounts mounts;
	static struct group groups[GROUPS_MAX];
	int n;

	cfg->all = t->all;
	if (t->all)
		return 0;
	if (t->pid) {
		cfg->pids[0] = t->pid;
		cfg->n_pids = 1;
		return target_check(t->pid, e);
	}
	n = cgroup_mounts_read(&mounts, e);
	if (n == 0)
		n = groups_of_containers(&mounts, t->container, groups, e);
	if (n < 0)
		return n;
	cfg->mounts = &mounts;
	cfg->groups = groups;
	cfg->n_groups = (uint32_t)n;
	cfg->n_pids = groups_processes(&mounts, groups, cfg->n_groups, cfg->pids, MAX_PIDS);
	return 0;
}

/* As `record` has it without options. */
static void configure(struct run_config *cfg)
{
	for (int i = 0; i < N_SOURCES; i++)
		cfg->sources[i] = i != SOURCE_SYSCALLS && i != SOURCE_EVENTS &&
				  (i != SOURCE_ALLOC || !cfg->all);
	cfg->hz = 99;
	cfg->mem_mb = 64;
	cfg->interval_s = 1;
	cfg->max_overhead = 5;
	cfg->alloc_rate = 512 << 10;
	cfg->children = cfg->user_stacks = cfg->kernel_stacks = true;
	cfg->quiet = true;
}

static int run_all(struct sender *s, const struct run_config *cfg, double delay_s, struct err *e)
{
	struct err later = { 0 };
	int r = run_begin(&s->run, cfg, e), r2;

	if (r < 0) {
		run_end(&s->run, NULL);
		return r;
	}
	worker_say(s->out, WORKER_SAYS, "profiling; the first figures come in %.3g s", delay_s);
	r = loop_every(s->run.loop, (uint64_t)(delay_s * 1e9), on_window, s);
	if (r == 0)
		r = run_loop(&s->run, e);
	r2 = run_end(&s->run, &later);
	/* The last figures; who has asked us to end does not wait for them. */
	if (r == 0 && r2 == 0 && s->run.end.why != RUN_END_SIGNAL)
		r2 = send_window(s, &later);
	if (r == 0 && r2 < 0) {
		*e = later;
		r = r2;
	}
	return r;
}

int top_record(void *ctx, int in, int out)
{
	const struct top_record *t = ctx;
	static pid_t pids[MAX_PIDS];
	struct run_config cfg = { .pids = pids };
	static struct sender s;
	struct err e = { 0 };
	int r;

	(void)in;
	s.out = out;
	r = find(&t->target, &cfg, &e);
	configure(&cfg);
	if (r == 0)
		r = run_all(&s, &cfg, t->delay_s, &e);
	worker_say(out, WORKER_ENDED, "%s", r < 0 ? e.msg : "the target has ended");
	profile_since_fini(&s.since);
	strbuf_free(&s.said);
	run_free(&s.run);
	uprobes_wait();
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- Ctrl-S --- */

static int write_kind(const char *dir, const char *name, const struct profile *p, struct err *e)
{
	for (const struct format *f = formats; f->name; f++) {
		struct render_opts opts = { .value_type = -1 };
		char path[300];
		int r;

		if (f->on_demand)
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", dir, name, f->ext);
		r = output_profile(p, path, f, &opts, e);
		if (r < 0 && r != -ENODATA)
			return r;
	}
	return 0;
}

int top_save(const struct profile_set *set, const char *title, char *ret_path, size_t cap,
	     struct err *e)
{
	char word[64], stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	int r = 0;

	target_file_word(title, word, sizeof(word));
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	snprintf(ret_path, cap, "memscope-%s-%s", word, stamp);
	if (mkdir(ret_path, 0700) < 0)
		return err_set(e, -errno, "cannot make the directory '%s': %s", ret_path,
			       strerror(errno));
	for (uint32_t i = 0; r == 0 && i < set->n; i++) {
		struct profile_meta meta = *profile_get_meta(set->kinds[i].profile);

		if (!profile_n_samples(set->kinds[i].profile))
			continue;
		meta.duration_ns = set->duration_ns;
		meta.time_ns = wall_ns() - set->duration_ns;
		r = profile_set_meta(set->kinds[i].profile, &meta);
		if (r == 0)
			r = write_kind(ret_path, set->kinds[i].name, set->kinds[i].profile, e);
	}
	return r;
}
