/*
 * The HTTP server of a run (net/http_server.h): opened before everything else, closed after it; components add their
 * routes. Here: /healthz.
 *
 *   200  {"status": "ok", …}        the kernel's totals were read not long ago
 *   503  {"status": "stalled", …}   they were not, for STALLED_NS
 *
 * Who has not shown the token that a wide address asks for gets the status alone: a kubelet's probe has none.
 */
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/version.h"
#include "collect/session/stats.h"
#include "net/http_server.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/serve/serve_config.h"

#include <cjson/cJSON.h>

#define STALLED_NS 30000000000ULL /* six times the longest pause between two readings */

struct http {
	struct run *run;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->serve->http.n_listen;
}

static void add_losses(const struct run *r, cJSON *to)
{
	cJSON *losses = cJSON_AddObjectToObject(to, "lost");
	uint64_t stats[N_STATS];

	drain_stats(r->drain, stats);
	for (int i = 0; i < N_STATS; i++)
		if (stat_rows[i].loss && stats[i])
			cJSON_AddNumberToObject(losses, stat_rows[i].name, (double)stats[i]);
}

static void add_window(const struct run *r, cJSON *to)
{
	cJSON *window = cJSON_AddObjectToObject(to, "windows");

	cJSON_AddNumberToObject(window, "closed", (double)r->windows.closed);
	cJSON_AddNumberToObject(window, "failed", (double)r->windows.failed);
	cJSON_AddNumberToObject(window, "held_up", (double)r->windows.skipped);
}

static void healthz(void *ctx, struct http_request *q)
{
	const struct http *h = ctx;
	const struct run *r = h->run;
	uint64_t now = now_ns(), read = r->drain ? pipeline_read_ns(r) : 0;
	bool stalled = read && now - read > STALLED_NS;
	cJSON *json = cJSON_CreateObject();
	char *text;

	cJSON_AddStringToObject(json, "status", stalled ? "stalled" : read ? "ok" : "starting");
	if (http_is_trusted(q))
		cJSON_AddStringToObject(json, "version", MEMSCOPE_VERSION);
	if (read && http_is_trusted(q)) {
		cJSON_AddNumberToObject(json, "uptime_seconds",
					(double)(now - session_start_ns(r->session)) / 1e9);
		cJSON_AddNumberToObject(json, "seconds_since_read", (double)(now - read) / 1e9);
		add_window(r, json);
		add_losses(r, json);
	}
	text = cJSON_Print(json);
	cJSON_Delete(json);
	if (text)
		http_answer(q, stalled ? 503 : 200, "application/json", text, strlen(text));
	else
		http_error(q, 500, "out of memory");
	cJSON_free(text);
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct http *h = self;
	const struct serve_config *serve = h->run->cfg->serve;
	struct err why = { 0 };
	int rc = http_server_open(h->run->loop, &serve->http, &h->run->serving.http, &why);

	(void)opts;
	/* Nobody asked for it: another memscope has the address. */
	if (rc < 0 && serve->listen_default && !serve->http.group) {
		run_note(h->run, false, "no HTTP: %s", why.msg);
		return 0;
	}
	if (rc < 0) {
		if (e)
			*e = why;
		return rc;
	}
	rc = http_route(h->run->serving.http, "GET", "/healthz", HTTP_ALWAYS | HTTP_OPEN, healthz,
			h);
	return rc < 0 ? err_set(e, rc, "out of memory") : 0;
}

/* Nobody is answered while the run is written down: what is wanted of it then is in its files. */
static void closed(void *self)
{
	struct http *h = self;

	http_server_close(TAKE_PTR(h->run->serving.http));
}

const struct component http_component = {
	.name = "HTTP server",
	.size = sizeof(struct http),
	.wanted = wanted,
	.prepare = prepare,
	.closed = closed,
	.free = closed,
};
