#include "cmd/run_windows.h"

#include "base/tree.h"
#include "base/units.h"
#include "cmd/run_parts.h"
#include "model/alloc_site.h"
#include "model/merge.h"
#include "model/profile_mark.h"
#include "render/render.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define WRITERS 4 /* windows in the making at a time; with more to do, the open one grows longer */

struct windows {
	uint64_t begin_ns, due_ns; /* of the open window, CLOCK_MONOTONIC                */
	int64_t begin_wall_ns;
	char stamp[32], stamp_before[32];
	struct profile_mark marks[N_PROFILE_KINDS];
	struct profile *open;        /* waits that were going on at its begin              */
	struct profile *opening;     /* those at its end                                   */
	struct open_thread *threads; /* as they were just before its end              */
	uint32_t n_threads, cap_threads;
	bool gathering;
	uint64_t boundary_ns;
	pid_t writers[WRITERS]; /* 0: none                                            */
	uint64_t closed, failed, skipped;
};

struct open_thread {
	uint32_t tid;
	struct ms_thread state;
};

/* One window, ready to be written. */
struct window {
	struct profile *profiles[N_PROFILE_KINDS];
	const char *stamp;
	int64_t time_ns, duration_ns;
};

static void window_fini(struct window *w)
{
	for (int i = 0; i < N_PROFILE_KINDS; i++)
		profile_free(w->profiles[i]);
}

/* Names of files have whole seconds: a second window of one second has a number. */
static void make_stamp(struct windows *ws)
{
	time_t sec = (time_t)(ws->begin_wall_ns / 1000000000);
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

static int64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int run_windows_begin(struct run *r, struct err *e)
{
	struct windows *ws;

	if (r->cfg->every_s <= 0)
		return 0;
	ws = r->windows = calloc(1, sizeof(*ws));
	if (!ws)
		return err_set(e, -ENOMEM, "out of memory for windows");
	ws->begin_ns = session_start_ns(r->session);
	ws->begin_wall_ns = r->start_wall_ns;
	ws->due_ns = ws->begin_ns + (uint64_t)(r->cfg->every_s * 1e9);
	make_stamp(ws);
	return 0;
}

int run_windows_due_ms(const struct run *r)
{
	uint64_t now = run_now_ns();

	if (!r->windows)
		return -1;
	return now < r->windows->due_ns ? (int)((r->windows->due_ns - now + 999999) / 1000000) : 0;
}

/* --- making --- */

bool run_windows_thread(struct run *r, uint32_t tid, const struct ms_thread *thread)
{
	struct windows *ws = r->windows;

	if (!ws || !ws->gathering)
		return false;
	if (ws->n_threads == ws->cap_threads) {
		uint32_t cap = ws->cap_threads ? 2 * ws->cap_threads : 256;
		struct open_thread *grown = reallocarray(ws->threads, cap, sizeof(*grown));

		if (!grown) {
			r->oom = true;
			return true;
		}
		ws->threads = grown;
		ws->cap_threads = cap;
	}
	ws->threads[ws->n_threads++] = (struct open_thread){ tid, *thread };
	return true;
}

/*
 * Who waits, just before the totals are exchanged: that takes the kernel tens of ms, during which waits
 * end that were going on. Their stacks may be on the way; so they are understood later.
 */
static int gather_threads(struct run *r, struct err *e)
{
	struct windows *ws = r->windows;
	int rc;

	if (!r->cfg->sources[MS_OFFCPU])
		return 0;
	ws->n_threads = 0;
	ws->gathering = true;
	ws->boundary_ns = run_now_ns();
	rc = drain_threads(r->drain, true, e);
	ws->gathering = false;
	return rc;
}

/*
 * A wait that ended between the reading of the threads and the exchange of the totals is in both, and
 * leaves the window after it less than nothing: that is nothing there, and taken off the one that
 * follows. `open`: what will be taken off.
 */
static int keep_positive(struct profile **p, struct profile *open)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	struct profile *kept = profile_new(profile_dict(*p), row->types, row->n_types);

	for (uint32_t i = 0; kept && i < profile_n_samples(*p); i++) {
		struct profile_sample s = profile_sample(*p, i);
		int64_t values[PROFILE_MAX_TYPES], later[PROFILE_MAX_TYPES];
		bool any = false, some_later = false;
		int rc = 0;

		for (uint32_t j = 0; j < row->n_types; j++) {
			values[j] = s.values[j] > 0 ? s.values[j] : 0;
			later[j] = values[j] - s.values[j];
			any |= values[j] > 0;
			some_later |= later[j] > 0;
		}
		if (any)
			rc = profile_add(kept, s.stack, s.labels, values);
		if (rc == 0 && some_later && open)
			rc = profile_add(open, s.stack, s.labels, later);
		if (rc < 0) {
			profile_free(kept);
			return rc;
		}
	}
	if (!kept)
		return -ENOMEM;
	profile_free(*p);
	*p = kept;
	return 0;
}

/* Off-CPU times: cut at both boundaries. `last`: the waits that go on are in the profile already. */
static int cut_waits(struct run *r, struct profile **window, bool last, struct err *e)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	struct windows *ws = r->windows;
	int rc = 0;

	if (!last) {
		ws->opening = profile_new(r->dict, row->types, row->n_types);
		if (!ws->opening)
			return err_set(e, -ENOMEM, "out of memory for a window");
		for (uint32_t i = 0; rc == 0 && i < ws->n_threads; i++)
			rc = ingest_open_wait(r->ingest, ws->opening, ws->threads[i].tid,
					      &ws->threads[i].state, ws->boundary_ns);
	}
	if (rc == 0 && ws->opening)
		rc = profile_add_all(*window, ws->opening, NULL, 1);
	if (rc == 0 && ws->open)
		rc = profile_add_all(*window, ws->open, NULL, -1);
	if (rc == 0)
		rc = keep_positive(window, ws->opening);
	profile_free(ws->open);
	ws->open = TAKE_PTR(ws->opening);
	return rc;
}

static bool lives(const struct run *r, labels_id labels)
{
	const struct label *pid = dict_label_find(r->dict, labels, "pid");

	return !pid || proc_table_live(r->procs, (pid_t)pid->num);
}

/* What is live now, by stack, of processes that run, into the last two values of a heap profile. */
static int add_live(const struct run *r, struct profile *heap)
{
	int rc = 0;

	for (uint32_t i = 0; r->sites && rc == 0 && i < profile_n_samples(r->sites); i++) {
		struct profile_sample s = profile_sample(r->sites, i);
		const int64_t values[4] = { 0, 0, s.values[SITE_OBJECTS] - s.values[SITE_FREED],
					    s.values[SITE_BYTES] - s.values[SITE_FREED_BYTES] };

		if (values[2] > 0 && lives(r, s.labels))
			rc = profile_add(heap, s.stack, s.labels, values);
	}
	return rc;
}

static bool is_told(const struct run *r, int kind)
{
	if (!r->profiles[kind])
		return false;
	return profile_rows[kind].source != MS_ALLOC || r->tier == ALLOC_TIER_EXACT;
}

static int make_window(struct run *r, bool last, uint64_t end_ns, struct window *w, struct err *e)
{
	struct windows *ws = r->windows;
	int rc = 0;

	w->stamp = ws->stamp;
	w->time_ns = ws->begin_wall_ns;
	w->duration_ns = (int64_t)(end_ns - ws->begin_ns);
	for (int i = 0; rc == 0 && i < N_PROFILE_KINDS; i++) {
		struct profile_meta meta;

		/* The highest point is known at the end, and is that of the whole run. */
		if (!is_told(r, i) || (i == PROFILE_PEAK && !last))
			continue;
		rc = profile_since(r->profiles[i], &ws->marks[i], &w->profiles[i]);
		if (rc == 0 && i == PROFILE_OFFCPU)
			rc = cut_waits(r, &w->profiles[i], last, e);
		if (rc == 0 && i == PROFILE_HEAP && !last)
			rc = add_live(r, w->profiles[i]);
		if (rc < 0)
			break;
		meta = run_profile_meta(r, &profile_rows[i]);
		meta.time_ns = w->time_ns;
		meta.duration_ns = w->duration_ns;
		rc = profile_set_meta(w->profiles[i], &meta);
	}
	return rc < 0 && e && !*e->msg ? err_set(e, rc, "out of memory for a window") : rc;
}

/* --- writing --- */

static int write_file(const struct run *r, const struct window *w, int kind, const struct format *f,
		      struct err *e)
{
	char file[128], path[4096];
	int rc;

	snprintf(file, sizeof(file), "%s-%s%s", profile_rows[kind].name, w->stamp, f->ext);
	snprintf(path, sizeof(path), "%s/%s", r->cfg->dir, file);
	rc = tree_note(r->cfg->dir, file, e);
	return rc < 0 ? rc
		      : run_write_profile(r, w->profiles[kind], profile_rows[kind].name, f, path,
					  e);
}

/* Every file that can be written is; the first error is told. */
static int write_window(const struct run *r, const struct window *w, struct err *e)
{
	struct pruned pruned = { 0 };
	int rc = 0;

	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		for (const struct format *f = formats; w->profiles[i] && f->name; f++) {
			struct err one = { 0 };
			int r2 = f->on_demand ? 0 : write_file(r, w, i, f, &one);

			if (r2 < 0 && r2 != -ENODATA && rc == 0) {
				rc = r2;
				*e = one;
			}
		}
	}
	if (rc == 0 && r->cfg->keep.kind != KEEP_ALL)
		rc = tree_prune(r->cfg->dir, &r->cfg->keep, w->stamp, &pruned, e);
	return rc;
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

static int start_writer(struct run *r, const struct window *w, pid_t *ret_pid, struct err *e)
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
	rc = run_name(r, NULL, e);
	if (rc == 0)
		rc = write_window(r, w, e);
	if (rc < 0)
		fprintf(stderr, "memscope: window %s: %s\n", w->stamp, e->msg);
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

static int close_window(struct run *r, int writer, struct err *e)
{
	_cleanup_(window_fini) struct window w = { 0 };
	struct windows *ws = r->windows;
	uint64_t end_ns, every_ns = (uint64_t)(r->cfg->every_s * 1e9);
	int64_t end_wall_ns;
	int rc = gather_threads(r, e);

	end_ns = run_now_ns();
	end_wall_ns = wall_ns();
	if (rc == 0)
		rc = run_take_totals(r, e);
	if (rc < 0)
		return rc;
	run_finish_pending(r, false);
	rc = make_window(r, false, end_ns, &w, e);
	if (rc == 0)
		rc = start_writer(r, &w, &ws->writers[writer], e);
	if (rc < 0)
		return rc;
	ws->closed++;
	if (!r->cfg->quiet)
		fprintf(stderr, "memscope: window %s: %s\n", ws->stamp, unit_ns(w.duration_ns).s);
	ws->begin_ns = end_ns;
	ws->begin_wall_ns = end_wall_ns;
	while (ws->due_ns <= end_ns)
		ws->due_ns += every_ns;
	make_stamp(ws);
	return 0;
}

int run_windows_tick(struct run *r, struct err *e)
{
	struct windows *ws = r->windows;
	int writer;

	if (!ws || run_now_ns() < ws->due_ns)
		return 0;
	writer = free_writer(ws);
	if (writer < 0) {
		ws->skipped++;
		while (ws->due_ns <= run_now_ns())
			ws->due_ns += (uint64_t)(r->cfg->every_s * 1e9);
		return 0;
	}
	return close_window(r, writer, e);
}

int run_windows_end(struct run *r, struct err *e)
{
	_cleanup_(window_fini) struct window w = { 0 };
	struct windows *ws = r->windows;
	int status, rc;

	rc = make_window(r, true, r->end_ns, &w, e);
	if (rc == 0) {
		ws->closed++;
		rc = write_window(r, &w, e);
	}
	for (int i = 0; i < WRITERS; i++)
		if (ws->writers[i] && waitpid(ws->writers[i], &status, 0) == ws->writers[i])
			writer_ended(ws, i, status);
	run_note(r, false, "%llu windows of %g s are in %s", (unsigned long long)ws->closed,
		 r->cfg->every_s, r->cfg->dir);
	if (ws->failed)
		run_note(r, true, "%llu windows could not be written whole",
			 (unsigned long long)ws->failed);
	if (ws->skipped)
		run_note(
			r, false,
			"%llu times a window was kept open for longer, because those before it were "
			"still being written",
			(unsigned long long)ws->skipped);
	return rc;
}

void run_windows_free(struct run *r)
{
	struct windows *ws = r->windows;

	if (!ws)
		return;
	for (int i = 0; i < N_PROFILE_KINDS; i++)
		profile_mark_fini(&ws->marks[i]);
	profile_free(ws->open);
	profile_free(ws->opening);
	free(ws->threads);
	free(ws);
	r->windows = NULL;
}
