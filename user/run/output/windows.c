/*
 * Windows: a run that writes its profiles every so many seconds, or when SIGUSR1 or a trigger (--when) asks for
 * them, and goes on.
 *
 * A window is what pipeline_now() says there was since the one before, so windows add up to the run: nothing
 * falls between two, nothing is in both. What is live in the heap is that of the window's end.
 *
 * That of a trigger has some of the time before (profile_ring.h), so those of triggers and the others overlap.
 * Its name has a word for the trigger, and when that was: oncpu_rss_4G-20261123-101010.pb.gz.
 *
 * In a run of several containers each has its windows in its own folder (folders.h): with one stamp, they
 * are one window, which is put in place and removed as a whole.
 *
 * Naming and writing is done by a child process over a copy of what was gathered, so that it never
 * holds up the emptying of the kernel's maps; a memscope that is killed loses the open window only.
 */
#include "base/archive.h"
#include "base/clock.h"
#include "base/fresh_heap.h"
#include "base/host_share.h"
#include "base/rights.h"
#include "base/units.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/let_go.h"
#include "run/name_used.h"
#include "run/output/files.h"
#include "run/output/profile_ring.h"
#include "run/output/window_write.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/window_room.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define RETRY_NS      100000000ULL /* until a writer is free for what SIGUSR1 asked for */
#define ASKED_MAX     8            /* triggers that wait for a writer */
#define RING_PART     8            /* of --mem, for what came before a trigger: this part at most */
#define SERVE_AT_ONCE 2 /* … of a service, which has little memory for copies of itself */
#define WRITERS       4 /* windows in the making at a time; with more to do, the open one grows longer */

struct windows {
	struct run *run;
	struct profile_since since;
	uint64_t due_ns;              /* CLOCK_MONOTONIC; LOOP_NEVER: when it is asked for */
	uint64_t asked_ns;            /* by SIGUSR1: from when on it can be made; 0: nobody asks */
	struct profile_ring *ring;    /* what came before a trigger; NULL: there are none */
	char triggers[ASKED_MAX][48]; /* that wait for a writer, by their words           */
	uint32_t n_triggers;
	uint64_t triggers_ns; /* as asked_ns                                      */
	uint64_t by_trigger, triggers_lost;
	struct window_write w; /* the window in hand */
	char stamp_before[32], trigger_before[32];
	char (*asked_stamps)[32]; /* of those without --every: they go with the run's files */
	uint32_t n_asked;
	pid_t writers[WRITERS];    /* 0: none */
	int names[WRITERS];        /* of each, for what it names (name_used.h) */
	int64_t lines_ns[WRITERS]; /* of each, what debug info may take        */
	uint64_t wait_for_ns;      /* before any is read again                 */
	uint64_t spent_ns;         /* CPU time of those that have ended               */
	char writing[WRITERS][32]; /* their stamps */
	uint64_t unwritten;        /* since the disk is full */
};

/* A writer's exit status: the disk is full, and nothing was left there; all is written, but for lines whose time was over. */
enum { EXIT_FULL = 4, EXIT_CUT = 5 };

static bool is_being_written(const struct windows *ws)
{
	for (int i = 0; i < WRITERS; i++)
		if (ws->writers[i] && strcmp(ws->writing[i], ws->w.stamp) == 0)
			return true;
	return false;
}

/*
 * Names of files have whole seconds: a second window of one second has a number. So has one of another kind
 * that is being written: what is put in place goes by its stamp.
 */
static void make_stamp(struct windows *ws, int64_t wall_ns, char before[32])
{
	time_t sec = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	size_t len;
	int nth = 1;

	localtime_r(&sec, &tm);
	len = strftime(ws->w.stamp, sizeof(ws->w.stamp), "%Y%m%d-%H%M%S", &tm);
	if (strncmp(ws->w.stamp, before, len) == 0)
		nth = before[len] == '-' ? atoi(before + len + 1) + 1 : 2;
	for (; nth > 1 || is_being_written(ws); nth++) {
		if (nth > 1)
			snprintf(ws->w.stamp + len, sizeof(ws->w.stamp) - len, "-%d", nth);
		if (!is_being_written(ws))
			break;
	}
	memcpy(before, ws->w.stamp, sizeof(ws->w.stamp));
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->dir != NULL;
}

/* --- writing --- */

struct writing {
	struct windows *ws;
	const struct profile_now *now;
	int names;
};

/* In the child; its end. */
static void write_and_exit(void *arg)
{
	const struct writing *w = arg;
	struct windows *ws = w->ws;
	struct err why = { 0 };
	int rc;

	let_go_of_the_kernel();
	rc = name_used(ws->run, w->now->profiles, N_PROFILE_KINDS, ws->w.lines_ns, w->names, &why);
	ws->w.lines_cut = rc > 0;
	if (rc >= 0)
		rc = window_put_in_place(&ws->w, window_write(&ws->w, w->now, &why), &why);
	if (archive_is_full(rc) && ws->run->cfg->serve)
		_exit(EXIT_FULL);
	if (rc < 0)
		fprintf(stderr, "memscope: window %s: %s\n", ws->w.stamp, why.msg);
	fflush(NULL);
	_exit(rc < 0 ? EXIT_FAILURE : ws->w.lines_cut ? EXIT_CUT : EXIT_SUCCESS);
}

static int start_writer(struct windows *ws, const struct profile_now *now, int writer,
			struct err *e)
{
	int names = names_back_open(NULL); /* without, the next one finds them anew */
	pid_t pid;
	int rc;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		rc = err_set(e, -errno, "cannot start a writer: %s", strerror(errno));
		closep(&names);
		return rc;
	}
	if (pid) {
		ws->writers[writer] = pid;
		ws->names[writer] = names;
		return 0;
	}
	if (ws->run->cfg->serve)
		setpriority(PRIO_PROCESS, 0, 19);
	rights_enter(RIGHTS_WRITE);
	with_fresh_heap(write_and_exit, &(struct writing){ ws, now, names });
	_exit(EXIT_FAILURE);
}

static uint64_t cpu_ns(const struct rusage *use)
{
	return ((uint64_t)use->ru_utime.tv_sec + (uint64_t)use->ru_stime.tv_sec) * 1000000000ULL +
	       ((uint64_t)use->ru_utime.tv_usec + (uint64_t)use->ru_stime.tv_usec) * 1000;
}

/*
 * Debug info is most of what a window costs. Names that are known come back, so what is left out once is seldom missing. A file
 * that needs more than is left is read when there is more of it: each window whose time was over makes the next ones wait for twice
 * as much.
 */
static int64_t lines_may_take_ns(const struct windows *ws)
{
	uint64_t share_ns = own_share_ns(ws->run, SHARE_LINES);

	if (!share_ns)
		return LINES_ANY_NS;
	if (share_ns <= ws->spent_ns || share_ns - ws->spent_ns < ws->wait_for_ns)
		return 0;
	return (int64_t)(share_ns - ws->spent_ns);
}

static void note_cut(struct windows *ws, int writer, int code)
{
	if (code == EXIT_CUT) {
		ws->run->windows.no_lines++;
		if (ws->lines_ns[writer] > 0)
			ws->wait_for_ns = 2 * (uint64_t)ws->lines_ns[writer];
	} else if (code == EXIT_SUCCESS && ws->lines_ns[writer] > 0) {
		ws->wait_for_ns = 0;
	}
}

/* true: it has ended, and what it found is taken over. */
static bool reap_writer(struct windows *ws, int i, int flags)
{
	struct rusage use;
	int status, code;

	if (!ws->writers[i] || wait4(ws->writers[i], &status, flags, &use) != ws->writers[i])
		return false;
	ws->spent_ns += cpu_ns(&use);
	ws->writers[i] = 0;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
	note_cut(ws, i, code);
	if (code == EXIT_CUT)
		code = EXIT_SUCCESS;
	ws->run->windows.failed += code != EXIT_SUCCESS;
	if (code == EXIT_SUCCESS || code == EXIT_FULL)
		window_room_note(&ws->unwritten, ws->run->cfg->dir, code == EXIT_FULL);
	if (code == EXIT_SUCCESS)
		names_back_take(ws->names[i], ws->run);
	closep(&ws->names[i]);
	return true;
}

/* A place for a writer, -1: all are busy. */
static int free_writer(struct windows *ws)
{
	int found = -1, n = ws->run->cfg->serve ? SERVE_AT_ONCE : WRITERS;

	for (int i = 0; i < n; i++) {
		reap_writer(ws, i, WNOHANG);
		if (!ws->writers[i])
			found = i;
	}
	return found;
}

/* What a writer found is there for the next one, and its memory free, soon after it has ended. */
static void row(void *self, uint64_t now)
{
	(void)now;
	free_writer(self);
}

/* false: out of memory. */
static bool note_asked(struct windows *ws)
{
	char(*more)[32] = reallocarray(ws->asked_stamps, ws->n_asked + 1, sizeof(*more));

	if (!more)
		return false;
	ws->asked_stamps = more;
	memcpy(more[ws->n_asked++], ws->w.stamp, sizeof(*more));
	return true;
}

/* Stamp and prefix are made. */
static int hand_to_writer(struct windows *ws, const struct profile_now *now, int writer,
			  struct err *e)
{
	int rc;

	ws->w.lines_ns = ws->lines_ns[writer] = lines_may_take_ns(ws);
	if (ws->run->cfg->every_s <= 0 && !note_asked(ws))
		run_note(ws->run, true,
			 "out of memory: memscope clean will not see the profiles of %s",
			 ws->w.stamp);
	rc = start_writer(ws, now, writer, e);
	if (rc < 0 && ws->run->cfg->serve) {
		/* The host is short of processes or memory: what goes on will be there in the next one. */
		ws->run->windows.failed++;
		fprintf(stderr, "memscope: window %s is missing: %s\n", ws->w.stamp, e->msg);
		return 0;
	}
	if (rc < 0)
		return rc;
	memcpy(ws->writing[writer], ws->w.stamp, sizeof(ws->w.stamp));
	if (ws->run->cfg->serve ? ws->run->cfg->verbose : !ws->run->cfg->quiet)
		fprintf(stderr, "memscope: window %s%s%s: %s\n",
			*ws->w.prefix ? ws->w.prefix + 1 : "", *ws->w.prefix ? "-" : "",
			ws->w.stamp, unit_ns(now->duration_ns).s);
	return 0;
}

static int close_window(struct windows *ws, int writer, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	int rc = pipeline_now(ws->run, &ws->since, &now, e);

	if (rc < 0)
		return rc;
	*ws->w.prefix = '\0';
	make_stamp(ws, now.time_ns, ws->stamp_before);
	ws->run->windows.closed++;
	return hand_to_writer(ws, &now, writer, e);
}

/* The window of the trigger that has waited longest; named by when it was. */
static int take_triggered(struct windows *ws, struct profile_now *ret_now, struct err *e)
{
	int rc = profile_ring_take(ws->ring, ws->run, ret_now, e);

	if (rc < 0)
		return rc;
	snprintf(ws->w.prefix, sizeof(ws->w.prefix), "_%s", ws->triggers[0]);
	memmove(ws->triggers, ws->triggers + 1, --ws->n_triggers * sizeof(*ws->triggers));
	make_stamp(ws, ret_now->time_ns + ret_now->duration_ns, ws->trigger_before);
	ws->by_trigger++;
	return 0;
}

static int close_triggered(struct windows *ws, int writer, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	int rc = take_triggered(ws, &now, e);

	return rc == 0 ? hand_to_writer(ws, &now, writer, e) : rc;
}

/* --- when --- */

static uint64_t due(void *ctx)
{
	const struct windows *ws = ctx;
	uint64_t ns = ws->due_ns;

	if (ws->asked_ns && ws->asked_ns < ns)
		ns = ws->asked_ns;
	if (ws->n_triggers && ws->triggers_ns < ns)
		ns = ws->triggers_ns;
	if (ws->ring && profile_ring_due(ws->ring) < ns)
		ns = profile_ring_due(ws->ring);
	return ns;
}

static int trigger_due(struct windows *ws, struct err *e)
{
	int rc = 0;

	while (rc == 0 && ws->n_triggers) {
		int writer = free_writer(ws);

		ws->triggers_ns = now_ns() + RETRY_NS;
		if (writer < 0)
			break;
		rc = close_triggered(ws, writer, e);
	}
	if (rc == 0 && ws->ring && now_ns() >= profile_ring_due(ws->ring))
		rc = profile_ring_turn(ws->ring, ws->run, e);
	return rc;
}

static int on_due(void *ctx, struct err *e)
{
	struct windows *ws = ctx;
	int writer, rc = trigger_due(ws, e);
	uint64_t now = now_ns();

	if (rc < 0 || (now < ws->due_ns && (!ws->asked_ns || now < ws->asked_ns)))
		return rc;
	writer = free_writer(ws);
	if (writer >= 0)
		rc = close_window(ws, writer, e);
	else if (now >= ws->due_ns)
		ws->run->windows.skipped++;
	if (ws->asked_ns)
		ws->asked_ns = writer < 0 ? now + RETRY_NS : 0;
	while (ws->due_ns <= now)
		ws->due_ns += (uint64_t)(ws->run->cfg->every_s * 1e9 * own_window_factor(ws->run));
	return rc;
}

/*
 * The first window of a service is shorter, by up to a half, on each host by another part: thousands that are started, or reloaded, in
 * the same second do not end their windows, and push them, in the same second ever after.
 */
static uint64_t first_window_ns(const struct run_config *cfg)
{
	return (uint64_t)(cfg->every_s * 1e9 * (cfg->serve ? 1 - host_share() / 2 : 1));
}

static int ready(void *self, struct err *e)
{
	struct windows *ws = self;
	const struct run *r = ws->run;
	int rc;

	ws->w.run = ws->run;
	ws->since.times = true;
	ws->since.forget_times = r->cfg->every_s > 0;
	ws->due_ns = r->cfg->every_s > 0 ? session_start_ns(r->session) + first_window_ns(r->cfg)
					 : LOOP_NEVER;
	if (r->cfg->n_when) {
		ws->ring = profile_ring_new(r->cfg->before_s,
					    ((uint64_t)r->cfg->mem_mb << 20) / RING_PART);
		if (!ws->ring)
			return err_set(e, -ENOMEM, "out of memory for windows");
	}
	rc = loop_at(r->loop, due, on_due, ws);
	return rc < 0 ? err_set(e, rc, "out of memory for windows") : 0;
}

static void asked(void *self, const char *why)
{
	struct windows *ws = self;

	if (!why) {
		ws->asked_ns = 1;
	} else if (ws->n_triggers == ASKED_MAX) {
		ws->triggers_lost++;
	} else {
		snprintf(ws->triggers[ws->n_triggers++], sizeof(*ws->triggers), "%s", why);
		ws->triggers_ns = 1;
	}
}

static bool is_of_asked(const struct windows *ws, const char *file)
{
	for (int kind = 0; kind < profile_kinds(); kind++) {
		size_t len = strlen(profile_rows[kind].name);

		if (strncmp(file, profile_rows[kind].name, len) != 0)
			continue;
		if (file[len] == '_')
			len += strcspn(file + len, "-");
		if (file[len] != '-')
			continue;
		for (uint32_t i = 0; i < ws->n_asked; i++) {
			size_t stamp = strlen(ws->asked_stamps[i]);

			if (strncmp(file + len + 1, ws->asked_stamps[i], stamp) == 0 &&
			    file[len + 1 + stamp] == '.')
				return true;
		}
	}
	return false;
}

/* What the writers have written for SIGUSR1: they could not say. `folder`: "" or one in the directory. */
static void list_asked(const struct windows *ws, const char *folder, struct run_output *to)
{
	_cleanup_(freep) struct dirent **names = NULL;
	char path[4096];
	int n;

	snprintf(path, sizeof(path), "%s/%s", ws->run->cfg->dir, folder);
	n = scandir(path, &names, NULL, NULL);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
		if (is_of_asked(ws, name))
			output_beside(to, path);
		else if (!*folder && *name != '.' && folders_wanted(ws->run->cfg))
			list_asked(ws, name, to); /* of a file there is no list */
		free(names[i]);
	}
}

/* Those that were asked for too late for the loop, as the end of a target that ran out of memory. */
static void write_triggered(struct windows *ws, struct window_outcome *o)
{
	while (ws->n_triggers) {
		_cleanup_(profile_now_fini) struct profile_now now = { 0 };
		struct err one = { 0 };
		int rc = take_triggered(ws, &now, &one);

		if (rc < 0) {
			window_outcome_add(o, rc, &one);
			break;
		}
		if (ws->run->cfg->every_s <= 0)
			note_asked(ws);
		rc = window_put_in_place(&ws->w, window_write_once(&ws->w, &now, &one), &one);
		window_outcome_add(o, rc, &one);
	}
}

static void report_triggers(const struct windows *ws)
{
	struct profile_ring_stats stats;

	if (!ws->ring)
		return;
	profile_ring_stats(ws->ring, &stats);
	run_note(
		ws->run, false,
		"%llu windows that --when asked for; what came before was kept in up to %s of memory "
		"(limit %s)",
		(unsigned long long)ws->by_trigger, unit_bytes((int64_t)stats.peak_bytes).s,
		unit_bytes((int64_t)stats.max_bytes).s);
	if (stats.cut_short)
		run_note(
			ws->run, true,
			"%llu times there was no room to keep all of the %g s before a trigger: its "
			"window begins later; raise --mem (now %u)",
			(unsigned long long)stats.cut_short, ws->run->cfg->before_s,
			ws->run->cfg->mem_mb);
	if (ws->triggers_lost)
		run_note(ws->run, true,
			 "%llu times a trigger got no window: %d others waited to be written",
			 (unsigned long long)ws->triggers_lost, ASKED_MAX);
}

/* The last window of --every. */
static int write_open(struct windows *ws, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now now = { 0 };
	struct run *r = ws->run;
	int rc;

	*ws->w.prefix = '\0';
	make_stamp(ws, ws->since.begin.ns ? ws->since.begin.wall_ns : r->clock.start_wall_ns,
		   ws->stamp_before);
	rc = pipeline_now(r, &ws->since, &now, e);
	if (rc < 0)
		return rc;
	ws->run->windows.closed++;
	return window_write(&ws->w, &now, e);
}

/* What is still to be written, with all names there; then waits for those still in the making. One
 * that fails keeps none of the others from being written. */
static int write_last(void *self, struct run_output *to, struct err *e)
{
	struct windows *ws = self;
	struct window_outcome o = { 0, e };
	struct run *r = ws->run;
	struct err one = { 0 };
	int rc = 0;

	ws->w.lines_ns = LINES_ANY_NS;
	write_triggered(ws, &o);
	if (r->cfg->every_s > 0)
		rc = write_open(ws, &one);
	for (int i = 0; i < WRITERS; i++)
		reap_writer(ws, i, 0);
	if (ws->n_asked)
		list_asked(ws, "", to);
	if (r->cfg->every_s > 0) /* the last: what is to be kept is counted from it */
		rc = window_put_in_place(&ws->w, rc, &one);
	window_outcome_add(&o, rc, &one);
	if (r->cfg->every_s > 0)
		run_note(
			r, false,
			"%llu windows of %g s are in %s; memscope report %s -o FILE.html shows them over time",
			(unsigned long long)ws->run->windows.closed, r->cfg->every_s, r->cfg->dir,
			r->cfg->dir);
	else if (ws->run->windows.closed)
		run_note(r, false, "%llu profiles that SIGUSR1 asked for are in %s",
			 (unsigned long long)ws->run->windows.closed, r->cfg->dir);
	report_triggers(ws);
	if (ws->run->windows.failed)
		run_note(r, true, "%llu windows could not be written completely",
			 (unsigned long long)ws->run->windows.failed);
	if (ws->run->windows.no_lines)
		run_note(
			r, false,
			"%llu windows may lack inlined calls and lines: to read more debug info would have passed "
			"a quarter of --max-overhead",
			(unsigned long long)ws->run->windows.no_lines);
	if (ws->run->windows.skipped)
		run_note(
			r, false,
			"%llu times a window was kept open longer because earlier ones were still being "
			"written",
			(unsigned long long)ws->run->windows.skipped);
	return o.rc;
}

static void free_windows(void *self)
{
	struct windows *ws = self;

	for (int i = 0; i < WRITERS; i++)
		if (ws->writers[i])
			closep(&ws->names[i]);
	profile_since_fini(&ws->since);
	profile_ring_free(ws->ring);
	free(ws->asked_stamps);
}

const struct component windows_component = {
	.name = "windows",
	.size = sizeof(struct windows),
	.wanted = wanted,
	.ready = ready,
	.row = row,
	.asked = asked,
	.write = write_last,
	.free = free_windows,
};
