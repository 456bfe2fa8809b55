/*
 * Pushing in a run: spools are opened and workers begun before programs are loaded; at the end of the service what the last
 * window brought is given some seconds. What is not sent then is sent by the next run, or when the service is started again.
 */
#include "run/component.h"
#include "base/clock.h"
#include "run/push.h"
#include "run/push/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_NS  1000000000ULL
#define AGAIN_NS 60000000000ULL /* a worker that ended is begun again, but not more often */
#define LAST_NS  5000000000ULL  /* at the end of the service */

struct push_component {
	struct run *run;
	uint64_t next_ns;
	struct summary_push_store *rows;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->dir && cfg->push;
}

/* What cannot work later is said now. */
static int check_files(const struct push_config *cfg, struct err *e)
{
	char line[9000];
	struct stat st;
	int rc;

	if (cfg->ca_file && access(cfg->ca_file, R_OK) < 0)
		return err_set(e, -errno, "--push-ca %s: %m", cfg->ca_file);
	if (!cfg->token_file)
		return 0;
	rc = push_authorization(cfg->token_file, line, sizeof(line), e);
	if (rc == 0 && stat(cfg->token_file, &st) == 0 && st.st_mode & 007)
		rc = err_set(e, -EINVAL, "everybody may read the token in '%s': chmod 600 it",
			     cfg->token_file);
	return rc;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct push_component *c = self;
	const struct run_config *cfg = c->run->cfg;
	const struct push_config *push = cfg->push;
	const char *slash = strrchr(cfg->dir, '/');
	char dir[4096];
	int rc = check_files(push, e);

	(void)opts;
	if (push->spool)
		snprintf(dir, sizeof(dir), "%.3000s", push->spool);
	else
		snprintf(dir, sizeof(dir), "%.*s/.push", slash ? (int)(slash - cfg->dir) : 1,
			 slash ? cfg->dir : ".");
	if (rc == 0)
		rc = push_open(push, dir, &c->run->serving.push, e);
	for (uint32_t i = 0; rc == 0 && i < c->run->serving.push->n; i++) {
		rc = push_worker_check(push, &c->run->serving.push->stores[i], e);
		if (rc == 0)
			rc = push_worker_start(push, &c->run->serving.push->stores[i], e);
	}
	return rc;
}

static void tick(void *self, uint64_t now)
{
	struct push_component *c = self;

	if (now < c->next_ns)
		return;
	c->next_ns = now + LOOK_NS;
	for (uint32_t i = 0; i < c->run->serving.push->n; i++) {
		struct push_store *s = &c->run->serving.push->stores[i];

		if (!push_worker_ended(s, 0) || now - s->started_ns < AGAIN_NS)
			continue;
		err_warn("the process that pushes has ended; it is begun again");
		push_worker_start(c->run->serving.push->cfg, s, NULL);
	}
}

/* Another run follows: its workers wait until these are gone. */
static void closed(void *self)
{
	const struct push_component *c = self;

	for (uint32_t i = 0; c->run->serving.push && i < c->run->serving.push->n; i++)
		if (serve_goes_on(c->run))
			push_worker_stop(&c->run->serving.push->stores[i], 0);
}

static void fill_in(const struct push_store *store, struct summary_push_store *ret_row)
{
	const struct push_stats *s = store->stats;

	*ret_row = (struct summary_push_store){
		.store = store->shown,
		.spooled = (int64_t)s->spooled,
		.pushed = (int64_t)s->pushed,
		.pushed_bytes = (int64_t)s->pushed_bytes,
		.retries = (int64_t)s->retries,
		.waiting = (int64_t)s->waiting.entries,
		.waiting_bytes = (int64_t)s->waiting.bytes,
		.failing_since_ns = s->failing_since_ns,
		.cpu_ns = (int64_t)s->cpu_ns,
		.n_dropped = N_PUSH_DROPS,
	};
	for (int i = 0; i < N_PUSH_DROPS; i++)
		ret_row->dropped[i] =
			(struct summary_push_drop){ push_drop_names[i], (int64_t)s->dropped[i] };
}

static void report(void *self, struct run_summary *to)
{
	struct push_component *c = self;
	const struct push *push = c->run->serving.push;

	c->rows = calloc(push->n, sizeof(*c->rows));
	for (uint32_t i = 0; c->rows && i < push->n; i++)
		fill_in(&push->stores[i], &c->rows[i]);
	to->push.stores = c->rows;
	to->push.n = c->rows ? push->n : 0;
}

/* The last window is in the spools; the summary is written after it. */
static int write_last(void *self, struct run_output *to, struct err *e)
{
	const struct push_component *c = self;
	uint64_t until_ns = now_ns() + LAST_NS + LOOK_NS;

	(void)to, (void)e;
	/* Where the service goes on, this is a child, and the next run pushes. */
	for (uint32_t i = 0; i < c->run->serving.push->n && !serve_goes_on(c->run); i++)
		push_worker_stop(&c->run->serving.push->stores[i], LAST_NS);
	for (uint32_t i = 0; i < c->run->serving.push->n; i++) {
		if (!serve_goes_on(c->run))
			push_worker_ended(&c->run->serving.push->stores[i], until_ns);
		if (c->rows)
			fill_in(&c->run->serving.push->stores[i], &c->rows[i]);
	}
	return 0;
}

static void free_push(void *self)
{
	struct push_component *c = self;

	for (uint32_t i = 0; c->run->serving.push && i < c->run->serving.push->n; i++)
		push_worker_ended(&c->run->serving.push->stores[i], now_ns());
	push_close(TAKE_PTR(c->run->serving.push));
	free(c->rows);
}

const struct component push_component = {
	.name = "push",
	.size = sizeof(struct push_component),
	.wanted = wanted,
	.prepare = prepare,
	.tick = tick,
	.closed = closed,
	.report = report,
	.write = write_last,
	.free = free_push,
};
