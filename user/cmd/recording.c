#include "cmd/recording.h"
#include "base/archive_claim.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/rights.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/awaiting.h"
#include "collect/probes/uprobes.h"
#include "run/about.h"
#include "run/archive_name.h"
#include "run/let_go.h"
#include "run/run.h"
#include "run/serve/serve_config.h"
#include "run/target.h"
#include "run/targets.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* The groups, and who is in them now. */
static int find_groups(const struct run_args *a, struct run_config *cfg, struct err *e)
{
	static struct cgroup_mounts mounts;
	static struct group groups[GROUPS_MAX];
	static struct strbuf missing;
	int n = cgroup_mounts_read(&mounts, e);

	if (n < 0)
		return n;
	strbuf_reset(&missing);
	if (cfg->serve)
		n = groups_there(&mounts, a->containers, a->containers ? a->containers : a->cgroups,
				 groups, &missing, e);
	else
		n = a->cgroups ? groups_of_cgroups(&mounts, a->cgroups, groups, e)
			       : groups_of_containers(&mounts, a->containers, groups, e);
	if (n <= 0)
		return n < 0 ? n : -ESRCH;
	cfg->awaited = missing.len ? missing.s : NULL;
	cfg->awaited_containers = a->containers;
	cfg->mounts = &mounts;
	cfg->groups = groups;
	cfg->n_groups = (uint32_t)n;
	cfg->n_pids = groups_processes(&mounts, groups, cfg->n_groups, cfg->pids, RUN_MAX_PIDS);
	return 0;
}

/* What needs /proc: a target that is not there is not a mistake of usage. */
int recording_targets(const struct run_args *a, struct run_config *cfg, struct err *e)
{
	int r = 0;

	if (a->containers || a->cgroups)
		return find_groups(a, cfg, e);
	if (a->pattern)
		r = target_find(a->pattern, cfg->pids, e);
	else if (a->tid)
		r = target_of_thread((pid_t)a->tid, cfg->pids, e);
	if (r < 0)
		return r;
	if (a->pattern || a->tid)
		cfg->n_pids = 1;
	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		r = target_check(cfg->pids[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "web+db" */
static void groups_word(const struct group *groups, uint32_t n, char *out, uint32_t cap)
{
	struct strbuf b = { 0 };

	for (uint32_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s%s", i ? "+" : "", group_title(&groups[i]));
	target_file_word(b.s ? b.s : "", out, cap);
	strbuf_free(&b);
}

/* What is profiled, in one word that is fit for a file name. */
static void target_name(const struct run_config *cfg, char *out, uint32_t cap)
{
	if (cfg->command) {
		const char *base = strrchr(cfg->command[0], '/');

		target_file_word(base ? base + 1 : cfg->command[0], out, cap);
	} else if (cfg->n_groups) {
		groups_word(cfg->groups, cfg->n_groups, out, cap);
	} else if (cfg->all) {
		snprintf(out, cap, "host");
	} else {
		target_file_name(cfg->pids[0], out, cap);
	}
}

/* DIR/NAME/STAMP of a single run in an archive, numbered if another run has the same second. */
static int make_run_dir(const char *of_target, const char *stamp, char *out, size_t cap,
			struct err *e)
{
	int nth = 1;

	if (mkdir(of_target, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make the directory '%s': %s", of_target,
			       strerror(errno));
	snprintf(out, cap, "%s/%s", of_target, stamp);
	while (mkdir(out, 0700) < 0) {
		if (errno != EEXIST || ++nth > 1000)
			return err_set(e, -errno, "cannot make the output directory '%s': %s", out,
				       strerror(errno));
		snprintf(out, cap, "%s/%s-%d", of_target, stamp, nth);
	}
	return 0;
}

/*
 * Where the files go: it is made, and can be written to. `stamp`: when the run began. `of_target`: in an
 * archive, the directory of all runs of this target.
 */
static int make_dir(const struct run_config *cfg, const struct run_args *a, const char *stamp,
		    char *of_target, char *out, size_t cap, struct err *e)
{
	char name[64];
	struct stat st;

	if (a->archive && cfg->n_pids && !cfg->n_groups && !cfg->command && !cfg->all)
		archive_name_of(cfg->pids[0], a->pattern, name, sizeof(name));
	else
		target_name(cfg, name, sizeof(name));
	if (a->archive && mkdir(a->archive, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make the directory '%s': %s", a->archive,
			       strerror(errno));
	if (a->archive)
		snprintf(of_target, cap, "%s/%s", a->archive, name);
	if (a->archive && !a->every_s)
		return make_run_dir(of_target, stamp, out, cap, e);
	if (a->dir)
		snprintf(out, cap, "%s", a->dir);
	else if (a->archive)
		snprintf(out, cap, "%s", of_target);
	else if (cfg->all || cfg->command || cfg->n_groups)
		snprintf(out, cap, "memscope-%s-%s", name, stamp);
	else
		snprintf(out, cap, "memscope-%s-%d-%s", name, (int)cfg->pids[0], stamp);
	if (mkdir(out, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return err_set(e, -errno, "cannot make the output directory '%s': %s", out,
			       strerror(errno));
	if (stat(out, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR,
			       "the output directory '%s' is a file: name another with -o", out);
	if (access(out, W_OK) < 0)
		return err_set(e, -errno, "cannot write to '%s': %s", out, strerror(errno));
	return 0;
}

/* A name that others chose, for the terminal. Until the next call. */
static const char *shown(const char *name)
{
	static struct strbuf b;

	strbuf_reset(&b);
	strbuf_add_clean(&b, name, strnlen(name, 64));
	return b.s ? b.s : "";
}

static void say_ready(const struct run *r)
{
	const struct run_config *cfg = r->cfg;
	uint32_t members = targets_count(r).members;

	if (cfg->quiet)
		return;
	if (cfg->all)
		fprintf(stderr, "memscope: profiling the whole host");
	else if (cfg->n_groups)
		fprintf(stderr, "memscope: profiling %s%s, %u process%s",
			shown(group_title(&cfg->groups[0])), cfg->n_groups > 1 ? " and others" : "",
			members, members == 1 ? "" : "es");
	else if (cfg->command)
		fprintf(stderr, "memscope: profiling '%s' (process %d)", shown(cfg->command[0]),
			(int)targets_command(r));
	else
		fprintf(stderr, "memscope: profiling process %d%s", (int)cfg->pids[0],
			cfg->n_pids > 1 ? " and others" : "");
	if (cfg->serve)
		fprintf(stderr, " at %u Hz: a window of %g s after the other, in %s\n", cfg->hz,
			cfg->every_s, cfg->dir);
	else
		fprintf(stderr, " at %u Hz; Ctrl-C ends\n", cfg->hz);
	if (cfg->awaited)
		fprintf(stderr, "memscope: waiting for %s, too\n", shown(cfg->awaited));
	if (r->alloc.reason && *r->alloc.reason)
		err_print(r->alloc.reason);
	for (uint32_t i = 0; i < r->notes.n; i++)
		err_print(r->notes.text[i]);
}

/* A service's last words, where a run has its summary. */
static void say_end(const struct run *r)
{
	const struct run_windows *w = &r->windows;
	char lost[64] = "";

	if (w->failed)
		snprintf(lost, sizeof(lost), ", %llu of them not complete",
			 (unsigned long long)w->failed);
	if (!r->cfg->quiet)
		fprintf(stderr, "memscope: ended (%s) after %s; windows written: %llu%s\n",
			*r->end.detail ? r->end.detail : "no reason",
			unit_ns((int64_t)(r->clock.end_ns - session_start_ns(r->session))).s,
			(unsigned long long)w->closed, lost);
}

/* Files, summary, and what has to be said of them. `said`: so many notes are known already. */
static enum exit_status write_run(struct run *r, struct run_config *cfg, uint32_t said)
{
	struct err e = { 0 };
	int rc = run_write(r, &e);

	/* What is missing is named on stderr where no summary is there to read. */
	for (uint32_t i = said; i < r->notes.n && (cfg->quiet || cfg->json || cfg->serve); i++)
		if (r->notes.missing[i])
			err_print(r->notes.text[i]);
	if (cfg->serve && rc == 0)
		say_end(r);
	if (rc < 0)
		return command_fail(EXIT_NOTHING, &e);
	/* A service that ends by itself is to be begun again. */
	if (cfg->serve && r->end.why == RUN_END_ERROR)
		return EXIT_NOTHING;
	return r->notes.partial && !cfg->serve ? EXIT_PARTIAL : EXIT_DONE;
}

/* As of a run that nothing follows: the second one leaves out what takes long. */
static void let_signals_through(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * Another run follows in this process, and does not wait for this one's windows: a child writes them. false: it could not be
 * started.
 */
static bool hand_on(struct run *r, struct run_config *cfg, uint32_t said)
{
	enum exit_status status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid > 0;
	let_go_of_the_kernel();
	let_signals_through();
	setpriority(PRIO_PROCESS, 0, 19);
	status = write_run(r, cfg, said);
	archive_close(cfg->archive);
	fflush(NULL);
	_exit(status == EXIT_NOTHING ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Runs, and writes whatever was gathered, also after an error. */
static enum exit_status record(struct run_config *cfg, struct recording_end *ret_end)
{
	const char **about;
	enum exit_status status;
	static struct run r;
	struct err e = {}, later = {};
	uint32_t said;
	int rc, rc2;

	rc = run_begin(&r, cfg, &e);
	if (rc < 0) {
		command_fail(EXIT_NOTHING, &e);
		run_end(&r, NULL);
		run_free(&r);
		uprobes_wait();
		return EXIT_NOTHING;
	}
	about = about_lines(cfg, cfg->command ? targets_command(&r) : 0);
	cfg->about = about;
	say_ready(&r);
	said = r.notes.n;
	rc = run_loop(&r, &e);
	rc2 = run_end(&r, &later);
	if (rc == 0 && rc2 < 0) {
		rc = rc2;
		e = later;
	}
	if (rc < 0) {
		r.end.why = RUN_END_ERROR;
		run_note(&r, true, "%s", e.msg);
	}
	if (ret_end)
		*ret_end = (struct recording_end){ .why = r.end.why,
						   .goes_on = serve_goes_on(&r),
						   .new_config = r.serving.new_config,
						   .ns = r.clock.end_ns,
						   .length_ns = r.clock.end_ns -
								session_start_ns(r.session) };
	if (serve_goes_on(&r) && hand_on(&r, cfg, said)) {
		ret_end->handed_on = true;
		return EXIT_DONE;
	}
	status = write_run(&r, cfg, said);
	run_free(&r);
	about_free(about);
	uprobes_wait();
	return status;
}

/* Those of a run as a whole, which stay beside the windows with its stamp. */
static const char *const run_files[] = {
	"trend.csv",  "rss_breakdown.csv", "live_series.csv", "alloc_series.csv", "workload.csv",
	"sites.csv",  "sites.pb.gz",       "census.csv",      "syscalls.csv",     "events.csv",
	"counts.csv", "summary.txt",       "summary.json",    "report.html",      NULL,
};
static const char *const no_files[] = { NULL };

int recording_allowed(struct err *e)
{
	char names[256];
	uint64_t held = rights_held();

	if (rights_enough())
		return 0;
	if (!rights_are_the_hosts())
		return err_set(
			e, -EPERM,
			"profiling needs the rights of the host's root, and this is a user namespace: run it outside");
	if (rights_missing(held, true, names, sizeof(names)) && (held || geteuid() == 0))
		return err_set(
			e, -EPERM,
			"profiling needs %s, which this process lacks: memscope help kernels",
			names);
	return err_set(
		e, -EPERM,
		"profiling needs root, to load BPF programs and to read other processes: run it with sudo");
}

/* Finds them, and lets a service wait for them. false: there is nothing to record, and *ret_status is the end. */
static bool wait_for_targets(const struct run_args *a, struct run_config *cfg,
			     struct recording_end *ret_end, enum exit_status *ret_status,
			     struct err *e)
{
	uint64_t cpu_ns = thread_cpu_ns();
	struct awaiting w = { 0 };
	int rc;

	while ((rc = recording_targets(a, cfg, e)) < 0) {
		bool may_come = rc == -ESRCH || rc == -ENOENT || (a->pattern && rc == -EEXIST);
		enum awaiting_end end;

		if (!cfg->serve || a->pids || !may_come) {
			*ret_status = command_fail(EXIT_NOTHING, e);
			return false;
		}
		end = awaiting_turn(&w, cfg, thread_cpu_ns() - cpu_ns, e->msg);
		if (end != AWAITING_GOES_ON) {
			*ret_status = EXIT_DONE;
			if (ret_end)
				ret_end->goes_on = ret_end->new_config = end == AWAITING_RELOAD;
			return false;
		}
		cpu_ns = thread_cpu_ns();
	}
	return true;
}

enum exit_status recording_run(const struct run_args *a, struct run_config *cfg,
			       struct recording_end *ret_end)
{
	char dir[4096], of_target[4096] = "", stamp[32];
	_cleanup_(closep) int hold_fd = -1;
	time_t now;
	enum exit_status r;
	struct err e = { 0 };
	struct tm tm;
	int anew; /* the first run of this process that writes there: what others did there is looked for once */

	if (!wait_for_targets(a, cfg, ret_end, &r, &e))
		return r;
	now = time(NULL);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	if (make_dir(cfg, a, stamp, of_target, dir, sizeof(dir), &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	cfg->dir = dir;
	anew = cfg->serve ? archive_claim(dir, &e) : 1;
	if (anew < 0 || (anew && a->every_s > 0 && archive_check(dir, &cfg->keep, &e) < 0))
		return command_fail(EXIT_NOTHING, &e);
	if (a->every_s > 0 && archive_open(dir, stamp, a->archive ? run_files : no_files,
					   &cfg->keep, &cfg->archive, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (a->archive && cfg->archive)
		cfg->stamp = archive_stamp(cfg->archive);
	if (archive_hold_run(dir, &hold_fd, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	target_raise_files();
	r = record(cfg, ret_end);
	if (ret_end && ret_end->handed_on)
		return r;
	archive_close(cfg->archive);
	if (r != EXIT_NOTHING && a->archive && a->keep && !a->every_s &&
	    archive_prune(of_target, &cfg->keep, &(struct pruned){ 0 }, &e) < 0)
		r = command_fail(EXIT_PARTIAL, &e);
	if (r == EXIT_NOTHING)
		rmdir(dir); /* if it is still empty */
	return r;
}
