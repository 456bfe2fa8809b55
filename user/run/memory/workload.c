/*
 * The work of the targets beside their memory: requests and the like from files and servers (--series), their
 * CPU time and what they allocate. What was read is kept in workload.csv; in the end growth is held against
 * each (analyse/workload.h).
 *
 * Memory is bounded: of each series, and of memory, WORKLOAD_POINTS are kept; when there are more, every
 * other goes, and from then on only every second, fourth, … counts.
 */
#include "analyse/leaks.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "import/work_series.h"
#include "render/tables/csv_name.h"
#include "run/component.h"
#include "run/memory/fetch.h"
#include "run/output/files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define SERIES_MAX   64
#define SOURCES_MAX  8
#define LINE_MAX_LEN 4096
#define READ_MAX     (8 << 20) /* of a file, for a row */

struct kept {
	struct point points[WORKLOAD_POINTS];
	uint32_t n, stride;
	uint64_t seen;
};

struct work_series {
	char name[WORK_NAME];
	struct kept kept;
	double last, offset; /* as it was told; what it had counted before it began anew */
	double sum;          /* of a page: all its labels    */
	bool in_page, counter, fell;
};

struct work_source {
	const char *where;
	char *path;        /* without "#NAME,…"  */
	const char *names; /* those wanted; NULL: all */
	int fd;            /* of a file; -1      */
	off_t at;
	char line[LINE_MAX_LEN];
	size_t len;
	bool long_line;
	struct fetch *fetch;
	uint64_t lines, unread;
};

struct workload {
	struct run *run;
	struct work_source sources[SOURCES_MAX];
	uint32_t n_sources;
	struct work_series *series; /* SERIES_MAX; the first two are ours */
	uint32_t n;
	uint64_t no_room;
	struct kept memory;
	double seen_s; /* of the last row of the trend */
	FILE *csv;
	bool written;
	char csv_path[4096];
	struct summary_workload rows[SERIES_MAX];
};

enum { CPU_TIME, ALLOCATED, N_OWN };

/* --- series --- */

static void keep(struct kept *k, double t_s, double value)
{
	if (k->n && t_s <= k->points[k->n - 1].t)
		return; /* out of order */
	if (!k->stride)
		k->stride = 1;
	if (k->seen++ % k->stride)
		return;
	if (k->n == WORKLOAD_POINTS) {
		for (uint32_t i = 0; i < WORKLOAD_POINTS / 2; i++)
			k->points[i] = k->points[2 * i];
		k->n = WORKLOAD_POINTS / 2;
		k->stride *= 2;
		if ((k->seen - 1) % k->stride)
			return;
	}
	k->points[k->n++] = (struct point){ t_s, value };
}

/* Between the two that are nearest; NAN before the first and after the last. */
static double value_at(const struct kept *k, double t_s)
{
	for (uint32_t i = 0; i < k->n; i++) {
		const struct point *b = &k->points[i], *a = b - 1;

		if (b->t == t_s)
			return b->y;
		if (b->t > t_s)
			return i ? a->y + (b->y - a->y) * (t_s - a->t) / (b->t - a->t) : NAN;
	}
	return NAN;
}

static struct work_series *series_of(struct workload *w, const char *name)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (strcmp(w->series[i].name, name) == 0)
			return &w->series[i];
	if (w->n == SERIES_MAX) {
		w->no_room++;
		return NULL;
	}
	snprintf(w->series[w->n].name, WORK_NAME, "%s", name);
	w->series[w->n].counter = work_is_counter(name);
	return &w->series[w->n++];
}

static void put(struct workload *w, struct work_series *s, double t_s, double value)
{
	_cleanup_(strbuf_free) struct strbuf when = { 0 };

	if (s->counter && s->kept.n && value < s->last)
		s->offset += s->last; /* its program was started again */
	s->fell |= s->kept.n && value < s->last;
	s->last = value;
	keep(&s->kept, t_s, value + s->offset);
	if (!w->csv)
		return;
	csv_time_add(&when, (int64_t)(t_s * 1e9));
	fprintf(w->csv, "%s,\"%s\",%.15g\n", when.s ? when.s : "", s->name, value);
}

/* --- sources --- */

static bool is_wanted(const struct work_source *src, const char *name)
{
	size_t len = strlen(name);

	for (const char *s = src->names; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
		if (strncmp(s, name, len) == 0 && (!s[len] || s[len] == ','))
			return true;
	return !src->names;
}

static void take_line(struct workload *w, struct work_source *src, const char *line)
{
	struct work_value v;
	struct work_series *s;

	src->lines++;
	if (!work_csv_line(line, &v))
		src->unread += *line != '\0' && src->lines > 1; /* the first may be a header */
	else if (is_wanted(src, v.name) && (s = series_of(w, v.name)))
		put(w, s, v.time_s, v.value);
}

static void take_text(struct workload *w, struct work_source *src, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] != '\n' && src->len < sizeof(src->line) - 1) {
			src->line[src->len++] = text[i];
			continue;
		}
		src->long_line |= text[i] != '\n';
		if (text[i] != '\n')
			continue;
		src->line[src->len] = '\0';
		if (src->long_line)
			src->unread++;
		else
			take_line(w, src, src->line);
		src->len = 0;
		src->long_line = false;
	}
}

/* What was appended; another file of that name, or one that was cut, is read from its beginning. */
static void read_file(struct workload *w, struct work_source *src)
{
	char text[65536];
	struct stat now, ours;
	size_t most = READ_MAX;
	ssize_t n;

	if (src->fd >= 0 && stat(src->path, &now) == 0 && fstat(src->fd, &ours) == 0 &&
	    (now.st_ino != ours.st_ino || now.st_dev != ours.st_dev || now.st_size < src->at)) {
		closep(&src->fd);
		src->fd = -1;
	}
	if (src->fd < 0) {
		src->fd = open(src->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		src->at = 0;
		src->len = 0;
	}
	while (src->fd >= 0 && most && (n = pread(src->fd, text, sizeof(text), src->at)) > 0) {
		take_text(w, src, text, (size_t)n);
		src->at += n;
		most = most > (size_t)n ? most - (size_t)n : 0;
	}
}

static void take_page(struct workload *w, struct work_source *src, char *page, double t_s)
{
	struct work_value v;

	for (uint32_t i = 0; i < w->n; i++)
		w->series[i].in_page = false;
	for (char *line = page, *next; line && *line; line = next) {
		struct work_series *s;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!work_prometheus_line(line, &v) || !is_wanted(src, v.name) ||
		    !(s = series_of(w, v.name)))
			continue;
		s->sum = s->in_page ? s->sum + v.value : v.value;
		s->in_page = true;
	}
	for (uint32_t i = N_OWN; i < w->n; i++)
		if (w->series[i].in_page)
			put(w, &w->series[i], t_s, w->series[i].sum);
}

static void read_page(struct workload *w, struct work_source *src, bool again)
{
	int64_t wall;
	char *page = fetch_take(src->fetch, &wall);

	if (page)
		take_page(w, src, page, (double)wall / 1e9);
	free(page);
	if (again)
		fetch_ask(src->fetch);
}

static bool is_address(const char *where)
{
	return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

static int open_source(struct work_source *src, const char *where, struct err *e)
{
	char *hash;

	src->where = where;
	src->fd = -1;
	src->path = strdup(where);
	if (!src->path)
		return err_set(e, -ENOMEM, "out of memory");
	hash = strrchr(src->path, '#');
	if (hash)
		*hash++ = '\0';
	src->names = hash && *hash ? hash : NULL;
	if (is_address(where)) {
		int rc = fetch_new(src->path, &src->fetch, e);

		if (rc == 0)
			fetch_ask(src->fetch);
		return rc;
	}
	if (strstr(where, "://"))
		return err_set(e, -EINVAL, "--series takes a file, http:// or https://, not \"%s\"",
			       where);
	if (access(src->path, R_OK) < 0)
		return err_set(e, -errno, "cannot read the series in '%s': %s", src->path,
			       strerror(errno));
	return 0;
}

/* --- the component --- */

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	const struct run_config *cfg = ((struct workload *)self)->run->cfg;
	struct workload *w = self;
	int rc = 0;

	(void)opts;
	w->series = calloc(SERIES_MAX, sizeof(*w->series));
	if (!w->series)
		return err_set(e, -ENOMEM, "out of memory");
	series_of(w, "cpu_seconds");
	series_of(w, "allocated_bytes");
	for (uint32_t i = 0; rc == 0 && i < cfg->n_series; i++)
		rc = open_source(&w->sources[w->n_sources++], cfg->series[i], e);
	return rc;
}

static int ready(void *self, struct err *e)
{
	struct workload *w = self;
	const struct run_config *cfg = w->run->cfg;
	struct stat st;
	int fd;

	if (!cfg->n_series || !cfg->dir)
		return 0;
	snprintf(w->csv_path, sizeof(w->csv_path), "%s/workload%s%s.csv", cfg->dir,
		 cfg->stamp ? "-" : "", cfg->stamp ? cfg->stamp : "");
	fd = open(w->csv_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		  0600);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		closep(&fd);
		fd = -1;
		errno = EEXIST;
	}
	w->csv = fd < 0 ? NULL : fdopen(fd, "w");
	if (!w->csv) {
		closep(&fd);
		return err_set(e, -errno, "cannot write '%s': %s", w->csv_path, strerror(errno));
	}
	fchmod(fd, 0600);
	fputs("timestamp,name,value\n", w->csv);
	w->written = true;
	return 0;
}

static void take_memory(struct workload *w)
{
	const struct mem_sample *m = &w->run->row.memory;
	double t_s = (double)m->time_ns / 1e9, bytes = NAN;

	if (!m->time_ns || t_s <= w->seen_s || m->own_kb < 0)
		return;
	w->seen_s = t_s;
	keep(&w->memory, t_s, (double)m->own_kb * 1024);
	put(w, &w->series[CPU_TIME], t_s, (double)m->cpu_ns / 1e9);
	if (w->run->alloc.total_bytes)
		bytes = w->run->alloc.total_bytes(w->run->alloc.live_ctx);
	if (!isnan(bytes))
		put(w, &w->series[ALLOCATED], t_s, bytes);
}

static void take_all(struct workload *w, bool again)
{
	for (uint32_t i = 0; i < w->n_sources; i++) {
		if (w->sources[i].fetch)
			read_page(w, &w->sources[i], again);
		else
			read_file(w, &w->sources[i]);
	}
	take_memory(w);
	if (w->csv)
		fflush(w->csv);
}

static void row(void *self, uint64_t ns)
{
	(void)ns;
	take_all(self, true);
}

static void closing(void *self)
{
	take_all(self, false);
}

static void fit(const struct workload *w, const struct work_series *s, struct workload_fit *ret)
{
	struct workload_point p[WORKLOAD_POINTS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->memory.n; i++) {
		double work = value_at(&s->kept, w->memory.points[i].t);

		if (!isnan(work))
			p[n++] = (struct workload_point){ w->memory.points[i].t,
							  w->memory.points[i].y, work };
	}
	workload_fit(p, n, ret);
}

static void notes(struct workload *w)
{
	for (uint32_t i = 0; i < w->n_sources; i++) {
		const struct work_source *src = &w->sources[i];
		struct fetch_stats stats = { 0 };

		if (src->fetch)
			fetch_stats(src->fetch, &stats);
		if (stats.failed)
			run_note(w->run, !stats.fetched,
				 "--series %s: %llu of %llu times not read: %s", src->where,
				 (unsigned long long)stats.failed,
				 (unsigned long long)(stats.failed + stats.fetched), stats.why);
		if (src->unread)
			run_note(w->run, false,
				 "--series %s: %llu lines are not timestamp,name,value", src->where,
				 (unsigned long long)src->unread);
	}
	if (w->no_room)
		run_note(
			w->run, false,
			"--series: there is room for %d series; %llu values of others were left out "
			"(name those wanted: --series '%s#NAME,…')",
			SERIES_MAX - N_OWN, (unsigned long long)w->no_room, w->sources[0].where);
}

/* By its name; or it never fell, and is not named as something that there is so much of. */
static bool counts(const struct work_series *s)
{
	static const char *const levels[] = { "key",     "entr",   "item",      "size",  "session",
					      "conn",    "client", "user",      "open",  "active",
					      "current", "in_use", "in_flight", "bytes", "depth",
					      "length",  "queue" };

	for (size_t i = 0; !s->counter && i < sizeof(levels) / sizeof(*levels); i++)
		if (strstr(s->name, levels[i]))
			return false;
	return s->counter || !s->fell;
}

static void report(void *self, struct run_summary *to)
{
	struct workload *w = self;

	for (uint32_t i = 0; i < w->n; i++) {
		struct summary_workload *row = &w->rows[to->n_workload];

		*row = (struct summary_workload){
			.name = w->series[i].name,
			.own = i < N_OWN,
			.counter = counts(&w->series[i]),
			.points = w->series[i].kept.points,
			.n_points = w->series[i].kept.n,
			.begin_s = (double)w->run->clock.start_wall_ns / 1e9,
		};
		fit(w, &w->series[i], &row->fit);
		if (row->fit.says != WORKLOAD_SHORT || !row->own)
			to->n_workload++;
	}
	to->workload = w->rows;
	leaks_against_work(to); /* what those before this one have found */
	notes(w);
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct workload *w = self;

	if (!w->written)
		return 0;
	if (w->csv && (ferror(w->csv) || fclose(TAKE_PTR(w->csv)) != 0))
		return err_set(e, -EIO, "%s is incomplete", w->csv_path);
	output_written(to, "workload", ".csv");
	return 0;
}

static void free_workload(void *self)
{
	struct workload *w = self;

	for (uint32_t i = 0; i < w->n_sources; i++) {
		fetch_free(w->sources[i].fetch);
		if (w->sources[i].path && w->sources[i].fd >= 0)
			closep(&w->sources[i].fd);
		free(w->sources[i].path);
	}
	if (w->csv)
		fclose(w->csv);
	free(w->series);
}

const struct component workload_component = {
	.name = "workload",
	.size = sizeof(struct workload),
	.prepare = prepare,
	.ready = ready,
	.row = row,
	.closing = closing,
	.report = report,
	.write = write_files,
	.free = free_workload,
};
