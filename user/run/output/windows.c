/*
 * Windows: a run that writes its profiles every so many seconds, or when SIGUSR1 asks for them, and goes on.
 *
 * A window is what pipeline_now() says there was since the one before, so windows add up to the run: nothing
 * falls between two, nothing is in both. What is live in the heap is that of the window's end.
 *
 * Naming and writing is done by a child process over a copy of what was gathered, so that it never
 * holds up the emptying of the kernel's maps; a memscope that is killed loses the open window only.
 */
#include "base/archive.h"
#include "base/clock.h"
#include "base/units.h"
#include "run/component.h"
#include "run/output/files.h"
#include "run/pipeline.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#define RETRY_NS 100000000ULL /* until a writer is free for what SIGUSR1 asked for */
#define WRITERS  4 /* windows in the making at a time; with more to do, the open one grows longer */

struct windows {
	struct run *run;
	struct profile_since since;
	uint64_t due_ns;   /* CLOCK_MONOTONIC; LOOP_NEVER: when it is asked for */
	uint64_t asked_ns; /* by SIGUSR1: from when on it can be made; 0: nobody asks */
	char stamp[32], stamp_before[32];
	pid_t writers[WRITERS]; /* 0: none */
	uint64_t closed, failed, skipped;
};

/* Names of files have whole seconds: a second window of one second has a number. */
static void make_stamp(struct windows *ws, int64_t begin_wall_ns)
{
	time_t sec = (time_t)(begin_wall_ns / 1000000000);
	struct tm tm;
	int nth = 1;

	localtime_r(&sec, &tm);
	strftime(ws->stamp, sizeof(ws->stamp), "%Y%m%d-%H%M%S", &tm);
	if (strncmp(ws->stamp, ws->stamp_before, strlen(ws->stamp)) == 0) {
		if (ws->stamp_before[strlen(ws->stamp)] == '-')
			nth = atoi(ws->stamp_before + strlen(ws->stamp) + 1);
		snprintf(ws->stamp + strlen(ws->stamp), sizeof(ws->stamp) - strlen(ws->stamp),
			 "-%d", nth + 1);
	}
	memcpy(ws->stamp_before, ws->stamp, sizeof(ws->stamp));
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->dir != NULL;
}

/* --- writing --- */

static int write_file(const struct windows *ws, const struct profile_now *now, int kind,
		      const struct format *f, struct err *e)
{
	const struct run_config *cfg = ws->run->cfg;
	const char *dir =
		cfg->archive && cfg->every_s > 0 ? archive_making(cfg->archive) : cfg->dir;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s-%s%s", dir, profile_rows[kind].name, ws->stamp, f->ext);
	return output_write(ws->run, now->profiles[kind], f, path, e);
}

/* What it is worth, and what it cost. */
static void set_meta(const struct windows *ws, const struct profile_now *now, int kind,
		     struct profile_meta *meta)
{
	char comment[400];
	int n = snprintf(comment, sizeof(comment), "%s", now->comment[kind]);

	if (now->cost_percent[kind] >= 0)
		snprintf(comment + n, sizeof(comment) - (size_t)n,
			 "%scost in this window: %.3g %% of a CPU", n ? "; " : "",
			 now->cost_percent[kind]);
	output_set_meta(ws->run, now->profiles[kind], meta, comment);
}

/* Writes every file that can be written; returns the first error. */
static int write_window(const struct windows *ws, const struct profile_now *now, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		struct profile_meta meta = output_profile_meta(ws->run, &profile_rows[i]);

		meta.time_ns = now->time_ns;
		meta.duration_ns = now->duration_ns;
		if (now->period[i])
			meta.period = now->period[i];
		if (now->profiles[i])
			set_meta(ws, now, i, &meta);
		for (const struct format *f = formats; now->profiles[i] && f->name; f++) {
			struct err one = { 0 };
			int r2 = f->on_demand ? 0 : write_file(ws, now, i, f, &one);

			if (r2 < 0 && r2 != -ENODATA && rc == 0) {
				rc = r2;
				*e = one;
			}
		}
	}
	return rc;
}

static int put_in_place(const struct windows *ws, int rc, struct err *e)
{
	const struct run_config *cfg = ws->run->cfg;
	struct err one = { 0 };
	int r2 = 0;

	if (cfg->archive && cfg->every_s > 0)
		r2 = archive_commit(cfg->archive, ws->stamp, &cfg->keep, &one);
	if (rc == 0 && r2 < 0)
		*e = one;
	return rc < 0 ? rc : r2;
}

/* What the kernel gave us descriptors of would live as long as the writer, should we be killed. */
static void let_go_of_the_kernel(void)
{
	_cleanup_(freep) struct dirent **names = NULL;
	int n = scandir("/proc/self/fd", &names, NULL, NULL);

	for (int i = 0; i < n; i++) {
		char path[300], to[64] = "";
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", names[i]->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		if (len > 0 && strncmp(to, "anon_inode:", 11) == 0)
			close(atoi(names[i]->d_name));
		free(names[i]);
	}
}

static int start_writer(struct windows *ws, const struct profile_now *now, pid_t *ret_pid,
			struct err *e)
{
	pid_t pid;
	int rc;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return err_set(e, -errno, "cannot start a writer: %s", strerror(errno));
	if (pid) {
		*ret_pid = pid;
		return 0;
	}
	let_go_of_the_kernel();
	rc = output_name(ws->run, NULL, e);
	if (rc == 0)
		rc = put_in_place(ws, write_window(ws, now, e), e);
	if (rc < 0)
		fprintf(stderr, "memscope: window %s: %s\n", ws->stamp, e->msg);
	fflush(NULL);
	_exit(rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void writer_ended(struct windows *ws, int i, int status)
{
	ws->writers[i] = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
		ws->failed++;
}

/* A place for a writer, -1: all are busy. */
static int free_writer(struct windows *ws)
{
	int found = -1, status;

	for (int i = 0; i < WRITERS; i++) {
		if (ws->writers[i] && waitpid(ws->writers[i], &status, WNOHANG) == ws->writers[i])
			writer_ended(ws, i, status);
		if (!ws->writers[i])
			found = i;
	}
	return found;
}

static int close_window(struct windows *ws, int writer, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	int rc = pipeline_now(ws->run, &ws->since, &now, e);

	if (rc < 0)
		return rc;
	make_stamp(ws, now.time_ns);
	rc = start_writer(ws, &now, &ws->writers[writer], e);
	if (rc < 0)
		return rc;
	ws->closed++;
	if (!ws->run->cfg->quiet)
		fprintf(stderr, "memscope: window %s: %s\n", ws->stamp, unit_ns(now.duration_ns).s);
	return 0;
}

/* --- when --- */

static uint64_t due(void *ctx)
{
	const struct windows *ws = ctx;

	return ws->asked_ns && ws->asked_ns < ws->due_ns ? ws->asked_ns : ws->due_ns;
}

static int on_due(void *ctx, struct err *e)
{
	struct windows *ws = ctx;
	int writer = free_writer(ws), rc = 0;
	uint64_t now = now_ns();

	if (writer >= 0)
		rc = close_window(ws, writer, e);
	else if (now >= ws->due_ns)
		ws->skipped++;
	if (ws->asked_ns)
		ws->asked_ns = writer < 0 ? now + RETRY_NS : 0;
	while (ws->due_ns <= now)
		ws->due_ns += (uint64_t)(ws->run->cfg->every_s * 1e9);
	return rc;
}

static int ready(void *self, struct err *e)
{
	struct windows *ws = self;
	const struct run *r = ws->run;
	int rc;

	ws->due_ns = r->cfg->every_s > 0
			     ? session_start_ns(r->session) + (uint64_t)(r->cfg->every_s * 1e9)
			     : LOOP_NEVER;
	rc = loop_at(r->loop, due, on_due, ws);
	return rc < 0 ? err_set(e, rc, "out of memory for windows") : 0;
}

static void asked(void *self)
{
	((struct windows *)self)->asked_ns = 1;
}

/* The last window, with all names there; then waits for those still in the making. */
static int write_last(void *self, struct run_output *to, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	struct windows *ws = self;
	struct run *r = ws->run;
	int status, rc = 0;

	(void)to;
	if (r->cfg->every_s > 0) {
		make_stamp(ws,
			   ws->since.begin_ns ? ws->since.begin_wall_ns : r->clock.start_wall_ns);
		rc = pipeline_now(r, &ws->since, &now, e);
		if (rc == 0) {
			ws->closed++;
			rc = write_window(ws, &now, e);
		}
	}
	for (int i = 0; i < WRITERS; i++)
		if (ws->writers[i] && waitpid(ws->writers[i], &status, 0) == ws->writers[i])
			writer_ended(ws, i, status);
	if (r->cfg->every_s > 0) /* the last: what is to be kept is counted from it */
		rc = put_in_place(ws, rc, e);
	if (r->cfg->every_s > 0)
		run_note(r, false, "%llu windows of %g s are in %s", (unsigned long long)ws->closed,
			 r->cfg->every_s, r->cfg->dir);
	else if (ws->closed)
		run_note(r, false, "%llu profiles that SIGUSR1 asked for are in %s",
			 (unsigned long long)ws->closed, r->cfg->dir);
	if (ws->failed)
		run_note(r, true, "%llu windows could not be written completely",
			 (unsigned long long)ws->failed);
	if (ws->skipped)
		run_note(
			r, false,
			"%llu times a window was kept open longer because earlier ones were still being "
			"written",
			(unsigned long long)ws->skipped);
	return rc;
}

static void free_windows(void *self)
{
	profile_since_fini(&((struct windows *)self)->since);
}

const struct component windows_component = {
	.name = "windows",
	.size = sizeof(struct windows),
	.wanted = wanted,
	.ready = ready,
	.asked = asked,
	.write = write_last,
	.free = free_windows,
};
