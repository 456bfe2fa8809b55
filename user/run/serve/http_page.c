/*
 * The live page, and what it shows, as JSON for others too:
 *
 *   /                       the page: it loads nothing from elsewhere
 *   /api/targets            who used how much over the last rows (target_series.h), losses, memscope's own cost
 *   /api/windows            the last windows in the archive, the newest first, with their files
 *   /api/windows/FILE       one of those files; format=NAME: in another of memscope's formats
 */
#include "base/clock.h"
#include "base/version.h"
#include "collect/session/stats.h"
#include "import/readers.h"
#include "net/http_server.h"
#include "proc/proc_mem.h"
#include "render/render.h"
#include "run/component.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/serve/answer_child.h"
#include "run/serve/serve_config.h"
#include "run/serve/target_series.h"
#include "run/targets.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define WINDOWS     "/api/windows/"
#define WINDOWS_MAX 60
#define ENDING      ".pb.gz"

extern const char asset_live_html[], asset_live_css[], asset_live_js[], asset_theme_js[];
extern const char asset_live_css_sha256[], asset_live_js_sha256[], asset_theme_js_sha256[];

struct page {
	struct run *run;
	struct target_series series;
	int64_t cpu_ns; /* memscope's own, at the last row */
	uint64_t row_ns;
	double cpu_percent; /* … in it; below 0: not known */
	struct answer_children children;
	char *html;
	size_t html_len;
	char policy[400];
};

/* --- the page --- */

/* Puts `text` where NAME stands between two @. */
static void fill(struct strbuf *out, const char *html)
{
	static const struct {
		const char *mark, *text;
	} parts[] = { { "@STYLE@", asset_live_css },
		      { "@THEME@", asset_theme_js },
		      { "@SCRIPT@", asset_live_js } };
	size_t i = 0, n = sizeof(parts) / sizeof(*parts);

	while (*html) {
		for (i = 0; i < n; i++)
			if (strncmp(html, parts[i].mark, strlen(parts[i].mark)) == 0)
				break;
		if (i < n) {
			strbuf_puts(out, parts[i].text);
			html += strlen(parts[i].mark);
		} else {
			strbuf_putc(out, *html++);
		}
	}
}

static int make_page(struct page *p, struct err *e)
{
	struct strbuf html = { 0 };

	fill(&html, asset_live_html);
	p->html_len = html.len;
	p->html = strbuf_take(&html);
	if (!p->html)
		return err_set(e, -ENOMEM, "out of memory");
	snprintf(
		p->policy, sizeof(p->policy),
		"default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s' 'sha256-%s'; connect-src 'self'; "
		"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		asset_live_css_sha256, asset_theme_js_sha256, asset_live_js_sha256);
	return 0;
}

static void page(void *ctx, struct http_request *q)
{
	struct page *p = ctx;

	http_header(q, "Content-Security-Policy", p->policy);
	http_header(q, "Referrer-Policy", "no-referrer");
	http_answer(q, 200, "text/html; charset=utf-8", p->html, p->html_len);
}

/* --- /api/targets --- */

static void send_json(struct http_request *q, cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	if (text)
		http_answer(q, 200, "application/json", text, strlen(text));
	else
		http_error(q, 500, "out of memory");
	cJSON_free(text);
	cJSON_Delete(json);
}

static void add_values(const struct page *p, const struct target_row *row, cJSON *to)
{
	static const char *const names[N_TARGET_VALUES] = { "cpu_percent", "blocked", "runnable",
							    "rss_kb" };
	const struct target_series *s = &p->series;
	double interval_ns = p->run->cfg->interval_s * 1e9;

	for (int v = 0; v < N_TARGET_VALUES; v++) {
		cJSON *list = cJSON_AddArrayToObject(to, names[v]);

		for (uint32_t i = 0; i < s->n_points; i++) {
			uint32_t at = target_series_point(s, i);
			double value = (double)row->points[at][v];

			if (v != TARGET_RSS_KB)
				value /= interval_ns;
			if (v == TARGET_CPU_NS)
				value *= 100;
			cJSON_AddItemToArray(
				list, cJSON_CreateNumber((double)(int64_t)(value * 1000) / 1000));
		}
	}
}

static bool is_empty(const struct target_row *row)
{
	int64_t sum = 0;

	for (int i = 0; i < TARGET_POINTS; i++)
		for (int v = 0; v < N_TARGET_VALUES; v++)
			sum |= row->points[i][v];
	return sum == 0;
}

static void add_targets(const struct page *p, cJSON *to)
{
	cJSON *list = cJSON_AddArrayToObject(to, "targets");
	cJSON *times = cJSON_AddArrayToObject(to, "times_ms");
	const struct target_series *s = &p->series;

	for (uint32_t i = 0; i < s->n_points; i++)
		cJSON_AddItemToArray(
			times, cJSON_CreateNumber(
				       (double)(s->times_ns[target_series_point(s, i)] / 1000000)));
	for (uint32_t i = 0; i < s->n_rows; i++) {
		const struct target_row *row = &s->rows[i];
		cJSON *json;

		if (is_empty(row))
			continue;
		json = cJSON_CreateObject();
		cJSON_AddItemToArray(list, json);
		cJSON_AddStringToObject(json, "name", row->name);
		cJSON_AddStringToObject(json, "kind",
					row->container ? "container"
					: i            ? "processes"
						       : "others");
		cJSON_AddNumberToObject(json, "processes", row->n_pids);
		if (row->n_pids == 1)
			cJSON_AddNumberToObject(json, "pid", row->pids[0]);
		add_values(p, row, json);
	}
}

static void add_own(const struct page *p, cJSON *to)
{
	cJSON *own = cJSON_AddObjectToObject(to, "own");
	int64_t cpu_ns, rss_kb, peak_kb;

	proc_mem_self(&cpu_ns, &rss_kb, &peak_kb);
	cJSON_AddNumberToObject(own, "rss_kb", (double)rss_kb);
	cJSON_AddNumberToObject(own, "map_bytes", (double)session_map_bytes(p->run->session));
	if (p->cpu_percent >= 0)
		cJSON_AddNumberToObject(own, "cpu_percent", p->cpu_percent);
}

static void add_losses(const struct run *r, cJSON *to)
{
	cJSON *list = cJSON_AddArrayToObject(to, "lost");
	uint64_t stats[N_STATS];

	drain_stats(r->drain, stats);
	for (int i = 0; i < N_STATS; i++) {
		cJSON *row;

		if (!stat_rows[i].loss || !stats[i])
			continue;
		row = cJSON_CreateObject();
		cJSON_AddItemToArray(list, row);
		cJSON_AddStringToObject(row, "name", stat_rows[i].name);
		cJSON_AddStringToObject(row, "help", stat_rows[i].help);
		cJSON_AddNumberToObject(row, "count", (double)stats[i]);
	}
}

/* What may be asked for under /debug/pprof/. */
static void add_profiles(const struct run *r, cJSON *to)
{
	cJSON *list = cJSON_AddArrayToObject(to, "profiles");

	for (int i = 0; i < profile_kinds(); i++)
		if (pipeline_has(r, (enum profile_kind)i))
			cJSON_AddItemToArray(list, cJSON_CreateString(profile_rows[i].name));
}

static void targets(void *ctx, struct http_request *q)
{
	const struct page *p = ctx;
	const struct run *r = p->run;
	cJSON *json = cJSON_CreateObject();
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	cJSON_AddStringToObject(json, "version", MEMSCOPE_VERSION);
	cJSON_AddStringToObject(json, "host", host);
	cJSON_AddBoolToObject(json, "all", r->cfg->all);
	cJSON_AddNumberToObject(json, "uptime_seconds",
				(double)(now_ns() - session_start_ns(r->session)) / 1e9);
	cJSON_AddNumberToObject(json, "interval_seconds", r->cfg->interval_s);
	cJSON_AddNumberToObject(json, "window_seconds", r->cfg->every_s * own_window_factor(r));
	cJSON_AddNumberToObject(json, "hz", r->cfg->hz);
	add_profiles(r, json);
	add_targets(p, json);
	add_own(p, json);
	add_losses(r, json);
	send_json(q, json);
}

/* --- /api/windows, in a child --- */

static int is_window_file(const struct dirent *f)
{
	size_t len = strlen(f->d_name), ending = strlen(ENDING);

	return *f->d_name != '.' && strchr(f->d_name, '-') && len > ending &&
	       strcmp(f->d_name + len - ending, ENDING) == 0;
}

/* By stamp, the newest first; files of one stamp by name. */
static int by_stamp(const struct dirent **a, const struct dirent **b)
{
	int by = strcmp(strchr((*b)->d_name, '-'), strchr((*a)->d_name, '-'));

	return by ? by : strcmp((*a)->d_name, (*b)->d_name);
}

static cJSON *window_of(cJSON *list, cJSON *last, const char *name)
{
	const char *stamp = strchr(name, '-') + 1;
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(stamp, "."), stamp);
	if (last && strcmp(cJSON_GetObjectItem(last, "stamp")->valuestring, text) == 0)
		return last;
	last = cJSON_CreateObject();
	cJSON_AddItemToArray(list, last);
	cJSON_AddStringToObject(last, "stamp", text);
	cJSON_AddArrayToObject(last, "files");
	return last;
}

static int list_windows(const struct run *r, const char *arg, struct sink *out, struct err *e)
{
	_cleanup_(freep) struct dirent **names = NULL;
	int n = scandir(r->cfg->dir, &names, is_window_file, by_stamp);
	cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "windows"),
	      *at = NULL;
	char *text;

	(void)arg;
	for (int i = 0; i < n; i++) {
		char path[4096 + 256];
		struct stat st;
		cJSON *file;

		snprintf(path, sizeof(path), "%s/%s", r->cfg->dir, names[i]->d_name);
		if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		at = window_of(list, at, names[i]->d_name);
		if (cJSON_GetArraySize(list) > WINDOWS_MAX)
			break;
		file = cJSON_CreateObject();
		cJSON_AddItemToArray(cJSON_GetObjectItem(at, "files"), file);
		cJSON_AddStringToObject(file, "name", names[i]->d_name);
		cJSON_AddNumberToObject(file, "bytes", (double)st.st_size);
	}
	while (cJSON_GetArraySize(list) > WINDOWS_MAX)
		cJSON_DeleteItemFromArray(list, WINDOWS_MAX);
	cJSON_AddBoolToObject(json, "more", n > 0 && cJSON_GetArraySize(list) == WINDOWS_MAX);
	text = cJSON_PrintUnformatted(json);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	sink_puts(out, text);
	return 0;
}

/* ARG: the name of a file of the archive, a space, the name of a format. */
static int render_window(const struct run *r, const char *arg, struct sink *out, struct err *e)
{
	const struct format *format = format_find(strchr(arg, ' ') + 1);
	struct render_opts opts = { .value_type = -1, .no_comm = r->cfg->no_comm };
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL;
	char path[4096 + 256];
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "%s/%.*s", r->cfg->dir, (int)strcspn(arg, " "), arg);
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, -ENOENT, "there is no such window (any more)");
	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	rc = import_read(d, path, NULL, &p, NULL, e);
	if (rc == 0 && format->gzip)
		rc = sink_gzip(out, e);
	return rc == 0 ? format->write(p, &opts, out, e) : rc;
}

static void windows(void *ctx, struct http_request *q)
{
	struct page *p = ctx;

	answer_by_child(&p->children, p->run, q, "application/json", list_windows, "");
}

/* A name that /api/windows gives: nothing but a file of the archive can be meant. */
static bool is_safe(const char *name)
{
	size_t len = strlen(name), ending = strlen(ENDING);

	return len > ending && len < 200 && *name != '.' &&
	       strcmp(name + len - ending, ENDING) == 0 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
		       len;
}

static void send_window(const struct run *r, struct http_request *q, const char *name)
{
	char path[4096 + 256], disposition[300];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", r->cfg->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		closep(&fd);
		http_error(q, 404, "there is no such window (any more)");
		return;
	}
	snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", name);
	http_header(q, "Content-Disposition", disposition);
	http_answer_fd(q, 200, "application/octet-stream", fd, (uint64_t)st.st_size);
}

static void window(void *ctx, struct http_request *q)
{
	const char *name = http_path(q) + strlen(WINDOWS), *says = http_query(q, "format");
	const struct format *format = format_find(says ? says : "pprof");
	struct page *p = ctx;
	char arg[ANSWER_ARG];

	if (!is_safe(name)) {
		http_error(q, 404, "there is no such window (any more)");
	} else if (!format || format->of_times || format->with_levels) {
		http_error(q, 400, "this format is not known, or not made here");
	} else if (strcmp(format->name, "pprof") == 0) {
		send_window(p->run, q, name);
	} else {
		snprintf(arg, sizeof(arg), "%s %s", name, format->name);
		if (format->picture)
			http_header(q, "Content-Security-Policy",
				    "default-src 'none'; script-src 'unsafe-inline'; style-src "
				    "'unsafe-inline'; sandbox allow-scripts");
		answer_by_child(&p->children, p->run, q,
				format->picture ? "image/svg+xml" : "text/plain; charset=utf-8",
				render_window, arg);
	}
}

/* --- in the order of a run --- */

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->serve->http.n_listen;
}

static int ready(void *self, struct err *e)
{
	struct page *p = self;
	struct http_server *server = p->run->serving.http;
	int rc;

	p->cpu_percent = -1;
	if (!server)
		return 0;
	rc = make_page(p, e);
	if (rc < 0)
		return rc;
	if (http_route(server, "GET", "/", 0, page, p) < 0 ||
	    http_route(server, "GET", "/api/targets", 0, targets, p) < 0 ||
	    http_route(server, "GET", "/api/windows", 0, windows, p) < 0 ||
	    http_route(server, "GET", WINDOWS, 0, window, p) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int64_t rss_kb(pid_t pid)
{
	char path[32], text[100];
	long pages = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	closep(&fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	sscanf(text, "%*s %ld", &pages);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void row(void *self, uint64_t now)
{
	struct page *p = self;
	struct run *r = p->run;
	int64_t cpu_ns, kb, peak_kb;

	if (!r->serving.http)
		return;
	if (target_series_add(&p->series, r->profiles[PROFILE_ONCPU], r->profiles[PROFILE_OFFCPU],
			      wall_ns(), rss_kb) < 0)
		r->oom = true;
	proc_mem_self(&cpu_ns, &kb, &peak_kb);
	if (p->row_ns && now > p->row_ns)
		p->cpu_percent = (double)(cpu_ns - p->cpu_ns) * 100 / (double)(now - p->row_ns);
	p->cpu_ns = cpu_ns;
	p->row_ns = now;
}

static void closing(void *self)
{
	answer_children_end(&((struct page *)self)->children);
}

static void free_page(void *self)
{
	struct page *p = self;

	target_series_fini(&p->series);
	free(p->html);
}

const struct component http_page_component = {
	.name = "HTTP page",
	.size = sizeof(struct page),
	.wanted = wanted,
	.ready = ready,
	.row = row,
	.closing = closing,
	.free = free_page,
};
