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

struct open_thread {
	uint32_t tid;
	struct ms_thread state;
};

struct thread_list {
	struct open_thread *rows;
	uint32_t n, cap;
};

/* Waits of a busy thread that are in no total then; how many of them came in one after all. */
struct rest {
	struct ms_total_key key;
	struct ms_total total;
	int64_t came;
};

struct rest_list {
	struct rest *rows;
	uint32_t n, cap;
};

/* What is not in the totals yet. */
struct gathered {
	struct thread_list threads;
	struct rest_list rests;
};

struct windows {
	uint64_t begin_ns, due_ns; /* of the open window, CLOCK_MONOTONIC                */
	int64_t begin_wall_ns;
	char stamp[32], stamp_before[32];
	struct profile_mark marks[N_PROFILE_KINDS];
	struct profile *open;          /* waits that were going on at its begin           */
	struct gathered before, after; /* the exchange of totals at its end               */
	struct gathered *gathering;
	bool exchanging;
	uint64_t boundary_ns;
	pid_t writers[WRITERS]; /* 0: none                                            */
	uint64_t closed, failed, skipped;
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
	struct thread_list *to;

	if (!r->windows || !r->windows->gathering)
		return false;
	to = &r->windows->gathering->threads;
	if (to->n == to->cap) {
		uint32_t cap = to->cap ? 2 * to->cap : 256;
		struct open_thread *grown = reallocarray(to->rows, cap, sizeof(*grown));

		if (!grown) {
			r->oom = true;
			return true;
		}
		to->rows = grown;
		to->cap = cap;
	}
	to->rows[to->n++] = (struct open_thread){ tid, *thread };
	return true;
}

bool run_windows_rest(struct run *r, const struct ms_total_key *key, const struct ms_total *total)
{
	struct rest_list *to;

	if (!r->windows || !r->windows->gathering)
		return false;
	to = &r->windows->gathering->rests;
	if (to->n == to->cap) {
		uint32_t cap = to->cap ? 2 * to->cap : 256;
		struct rest *grown = reallocarray(to->rows, cap, sizeof(*grown));

		if (!grown) {
			r->oom = true;
			return true;
		}
		to->rows = grown;
		to->cap = cap;
	}
	to->rows[to->n++] = (struct rest){ *key, *total, 0 };
	return true;
}

static int by_tid(const void *a, const void *b)
{
	const struct open_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* By thread, state and stack. */
static int by_wait(const void *a, const void *b)
{
	const struct ms_total_key *x = &((const struct rest *)a)->key,
				  *y = &((const struct rest *)b)->key;
	int order = x->tid < y->tid ? -1 : x->tid > y->tid;

	if (!order)
		order = (int)x->state - (int)y->state;
	if (!order)
		order = memcmp(&x->user, &y->user, sizeof(x->user));
	return order ? order : memcmp(&x->kernel, &y->kernel, sizeof(x->kernel));
}

static struct rest *rest_find(const struct rest_list *in, const struct rest *like)
{
	return in->n ? bsearch(like, in->rows, in->n, sizeof(*in->rows), by_wait) : NULL;
}

/* One row for each, whatever number of places it has. */
static void sort_rests(struct rest_list *l)
{
	uint32_t kept = 0;

	if (l->n)
		qsort(l->rows, l->n, sizeof(*l->rows), by_wait);
	for (uint32_t i = 0; i < l->n; i++) {
		if (!kept || by_wait(&l->rows[kept - 1], &l->rows[i])) {
			l->rows[kept++] = l->rows[i];
			continue;
		}
		l->rows[kept - 1].total.count += l->rows[i].total.count;
		l->rows[kept - 1].total.value += l->rows[i].total.value;
	}
	l->n = kept;
}

void run_windows_total(struct run *r, const struct ms_total_key *key, const struct ms_total *total)
{
	struct rest like = { .key = *key }, *rest;

	if (!r->windows || !r->windows->exchanging)
		return;
	rest = rest_find(&r->windows->before.rests, &like);
	if (rest && (int64_t)total->count > 0) /* less than nothing: moved from there */
		rest->came += (int64_t)total->count;
}

static int gather_threads(struct run *r, struct gathered *to, struct err *e)
{
	struct windows *ws = r->windows;
	int rc;

	if (!r->cfg->sources[MS_OFFCPU])
		return 0;
	to->threads.n = to->rests.n = 0;
	ws->gathering = to;
	rc = drain_threads(r->drain, true, e);
	ws->gathering = NULL;
	if (to->threads.n)
		qsort(to->threads.rows, to->threads.n, sizeof(*to->threads.rows), by_tid);
	sort_rests(&to->rests);
	return rc;
}

/* Is the wait that was open before the exchange of the totals open still behind it? */
static bool goes_on(const struct windows *ws, const struct open_thread *was)
{
	const struct thread_list *after = &ws->after.threads;
	const struct open_thread *is =
		after->n ? bsearch(was, after->rows, after->n, sizeof(*was), by_tid) : NULL;

	return is && is->state.since_ns == was->state.since_ns &&
	       is->state.state == was->state.state;
}

/* Will what was in no total before the exchange be in one of a later window? It grows until it goes into
 * one. */
static bool is_to_come(const struct windows *ws, const struct rest *was)
{
	const struct rest *is = rest_find(&ws->after.rests, was);

	return (is && is->total.count >= was->total.count) || was->came < (int64_t)was->total.count;
}

/*
 * Waits at a boundary: what of them is before it, into `opening`. One that is open on both sides of the
 * exchange of the totals, which takes the kernel tens of ms, will be told as a whole in a later window, and is
 * taken off there. One that ended meanwhile was told in this window or will be in the next, and must
 * not be in both: it is still to come if this window has less of its thread and stack than it is long.
 */
static int find_opening(struct run *r, const struct profile *window, struct profile *opening)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	_cleanup_(profile_freep) struct profile *ended =
		profile_new(r->dict, row->types, row->n_types);
	_cleanup_(profile_freep) struct profile *rest =
		profile_new(r->dict, row->types, row->n_types);
	const struct windows *ws = r->windows;
	int rc = ended && rest ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < ws->before.threads.n; i++) {
		const struct open_thread *t = &ws->before.threads.rows[i];

		rc = ingest_open_wait(r->ingest, goes_on(ws, t) ? opening : ended, t->tid,
				      &t->state, ws->boundary_ns);
	}
	for (uint32_t i = 0; rc == 0 && i < ws->before.rests.n; i++) {
		const struct rest *was = &ws->before.rests.rows[i];

		if (is_to_come(ws, was))
			rc = ingest_rest(r->ingest, opening, &was->key, &was->total);
	}
	/* Samples of `rest` begin with those of `ended`, in their order. */
	if (rc == 0)
		rc = profile_add_all(rest, ended, NULL, -1);
	if (rc == 0)
		rc = profile_add_all(rest, window, NULL, 1);
	for (uint32_t i = 0; rc == 0 && i < profile_n_samples(ended); i++) {
		struct profile_sample s = profile_sample(ended, i), left = profile_sample(rest, i);
		bool to_come = false;

		for (uint32_t j = 0; j < row->n_types; j++)
			to_come |= left.values[j] < 0;
		if (to_come)
			rc = profile_add(opening, s.stack, s.labels, s.values);
	}
	return rc;
}

/*
 * A wait that was cut and has ended, but whose stack has not come yet, leaves less than nothing: that is
 * nothing here, and taken off the window that has it. `open`: what will be taken off.
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
	_cleanup_(profile_freep) struct profile *opening = NULL;
	struct windows *ws = r->windows;
	int rc = 0;

	if (!last) {
		opening = profile_new(r->dict, row->types, row->n_types);
		if (!opening)
			return err_set(e, -ENOMEM, "out of memory for a window");
	}
	/* Of waits that are left out for their length it is known at their end only. */
	if (opening && !r->cfg->wait_max_ns)
		rc = find_opening(r, *window, opening);
	if (rc == 0 && opening)
		rc = profile_add_all(*window, opening, NULL, 1);
	if (rc == 0 && ws->open)
		rc = profile_add_all(*window, ws->open, NULL, -1);
	/* What was moved from a stack here may have been told in the window before: what is made up for that
	 * is taken back in the next one. */
	if (rc == 0 && r->waits)
		rc = run_waits_settle(*window, opening);
	if (rc == 0)
		rc = keep_positive(window, opening);
	if (rc == 0) {
		profile_free(ws->open);
		ws->open = TAKE_PTR(opening);
	}
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

		/* The highest point and who has what mapped are known at the end, and are those of the
		 * whole run. */
		if (!is_told(r, i) || ((i == PROFILE_PEAK || i == PROFILE_MAPPINGS) && !last))
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

	snprintf(file, sizeof(file), "%s-%s%s", profile_rows[kind].name, w->stamp, f->ext);
	snprintf(path, sizeof(path), "%s/%s", tree_making(r->cfg->tree), file);
	return run_write_profile(r, w->profiles[kind], profile_rows[kind].name, f, path, e);
}

/* Every file that can be written is; the first error is told. */
static int write_window(const struct run *r, const struct window *w, struct err *e)
{
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
	return rc;
}

static int put_in_place(const struct run *r, const struct window *w, int rc, struct err *e)
{
	struct err one = { 0 };
	int r2 = tree_commit(r->cfg->tree, w->stamp, &r->cfg->keep, &one);

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
		rc = put_in_place(r, w, write_window(r, w, e), e);
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
	int rc;

	ws->boundary_ns = run_now_ns();
	rc = gather_threads(r, &ws->before, e);
	end_ns = run_now_ns();
	end_wall_ns = wall_ns();
	ws->exchanging = true;
	if (rc == 0)
		rc = run_take_totals(r, e);
	ws->exchanging = false;
	if (rc == 0)
		rc = gather_threads(r, &ws->after, e);
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
	if (w.stamp) /* the last: what is to be kept is counted from it */
		rc = put_in_place(r, &w, rc, e);
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
	free(ws->before.threads.rows);
	free(ws->before.rests.rows);
	free(ws->after.threads.rows);
	free(ws->after.rests.rows);
	free(ws);
	r->windows = NULL;
}
