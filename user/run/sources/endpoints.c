/*
 * Which file or peer the threads of the targets wait for: a few times a second, a few of them are asked for the system
 * call in which they are blocked. It costs no trap and no probe; what is seen seldom is not seen.
 */
#include "proc/blocked_call.h"
#include "run/component.h"
#include "run/targets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS_MAX = 32,      /* asked at one time                             */
	ROWS_MAX = 64,         /* files and peers                               */
	PERIOD_NS = 230000000, /* no round number: programs have those           */
	LATER_PERIOD_NS = 1130000000,
	LATER = 200, /* times, then it is asked less often             */
};

struct endpoints {
	struct run *run;
	uint64_t next_ns;
	uint32_t looks, asked; /* times; threads of this time                    */
	uint32_t n, polls, polls_of_a_peer;
	struct summary_endpoint rows[ROWS_MAX];
	char *tcp; /* of the process that is being looked at         */
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU] && !cfg->all;
}

static void count(struct endpoints *e, const char *name, bool peer)
{
	uint32_t i = 0;

	while (i < e->n && (e->rows[i].peer != peer || strcmp(e->rows[i].name, name) != 0))
		i++;
	if (i == ROWS_MAX)
		return;
	if (i == e->n) {
		e->rows[e->n++].peer = peer;
		snprintf(e->rows[i].name, sizeof(e->rows[i].name), "%s", name);
	}
	e->rows[i].seen++;
}

static void ask(struct endpoints *e, pid_t pid, pid_t tid)
{
	char name[ENDPOINT_NAME_MAX];
	struct blocked_call call;
	enum endpoint_kind kind = ENDPOINT_NONE;
	bool poll;
	int fd;

	if (!blocked_call_read(pid, tid, &call))
		return;
	poll = blocked_call_is_poll(&call);
	fd = blocked_call_fd(pid, &call);
	if (fd >= 0 && !e->tcp)
		e->tcp = endpoint_tcp_read(pid);
	if (fd >= 0)
		kind = endpoint_of(pid, fd, e->tcp, name, sizeof(name));
	if (kind == ENDPOINT_PEER || kind == ENDPOINT_FILE)
		count(e, name, kind == ENDPOINT_PEER);
	/* Who polls a pipe of its own alone is asleep until another thread wakes it: Ruby's main thread. */
	e->polls += poll && (fd < 0 || kind != ENDPOINT_NONE);
	e->polls_of_a_peer += poll && kind == ENDPOINT_PEER;
}

static void look_at(void *ctx, const struct target *t)
{
	struct endpoints *e = ctx;
	struct dirent *d;
	char path[32];
	DIR *dir;

	if (t->ended_ns || e->asked >= THREADS_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)) && e->asked < THREADS_MAX) {
		if (d->d_name[0] == '.')
			continue;
		e->asked++;
		ask(e, t->pid, (pid_t)atoi(d->d_name));
	}
	if (dir)
		closedir(dir);
	free(e->tcp);
	e->tcp = NULL;
}

static void tick(void *self, uint64_t now_ns)
{
	struct endpoints *e = self;

	if (now_ns < e->next_ns)
		return;
	e->next_ns = now_ns + (++e->looks < LATER ? PERIOD_NS : LATER_PERIOD_NS);
	e->asked = 0;
	targets_each(e->run, look_at, e);
}

static int by_seen(const void *a, const void *b)
{
	const struct summary_endpoint *x = a, *y = b;

	return x->seen != y->seen ? (y->seen > x->seen) - (y->seen < x->seen)
				  : strcmp(x->name, y->name);
}

static void report(void *self, struct run_summary *to)
{
	struct endpoints *e = self;

	qsort(e->rows, e->n, sizeof(e->rows[0]), by_seen);
	to->endpoints.rows = e->rows;
	to->endpoints.n = e->n;
	to->endpoints.polls = e->polls;
	to->endpoints.polls_of_a_peer = e->polls_of_a_peer;
}

const struct component endpoints_component = {
	.name = "endpoints",
	.size = sizeof(struct endpoints),
	.wanted = wanted,
	.tick = tick,
	.report = report,
};
