/*
 * Who ran while threads of the targets waited for a CPU.
 */
#include "analyse/run_delays.h"
#include "base/hash.h"
#include "base/units.h"
#include "collect/stream/run_delays.h"
#include "run/component.h"

#include <errno.h>
#include <string.h>

#define PAIRS_MAX  16384 /* of processes: further ones are not counted by whom */
#define DELAY_ROWS 30

struct pair_key {
	struct proc_id proc, other; /* exec_id is 0 in both */
	char comm[16];              /* of a thread of the kernel; else it is none of the key */
};

struct pair {
	struct pair_key key;
	struct proc_id proc; /* the image of the first */
	bool of_kernel;
	char comm[16], container[RUN_DELAY_NAME], by_container[RUN_DELAY_NAME];
	uint64_t count, ns;
	UT_hash_handle hh;
};

struct delays {
	struct run *run;
	struct run_delays *events;
	struct pair *pairs;
	struct run_delay_sums sums;
	struct run_delay_row *rows;
	uint64_t left_out_ns;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	(void)self;
	(void)e;
	opts->run_delays = true;
	return 0;
}

static void set_container(const struct delays *d, const struct proc_id *proc, char *out, size_t cap)
{
	const char *name = ingest_container_name(d->run->ingest, proc);

	snprintf(out, cap, "%s", name ? name : "");
}

static void add_pair(struct delays *d, const struct run_delay_event *event)
{
	struct pair_key key;
	struct pair *p;

	memset(&key, 0, sizeof(key));
	key.proc.pid = event->proc.pid;
	key.proc.start_ns = event->proc.start_ns;
	key.other = event->other;
	if (event->by == RUN_DELAY_KERNEL)
		memcpy(key.comm, event->comm, sizeof(key.comm));
	HASH_FIND(hh, d->pairs, &key, sizeof(key), p);
	if (!p && HASH_COUNT(d->pairs) >= PAIRS_MAX) {
		d->left_out_ns += event->ns;
		return;
	}
	if (!p) {
		p = hash_new(d->pairs, key, &key);
		if (!p) {
			d->run->oom = true;
			return;
		}
		p->of_kernel = event->by == RUN_DELAY_KERNEL;
		p->proc = event->proc;
		/* Now, while both are there. */
		set_container(d, &event->proc, p->container, sizeof(p->container));
		if (!p->of_kernel)
			set_container(d, &event->other, p->by_container, sizeof(p->by_container));
	}
	memcpy(p->comm, event->comm, sizeof(p->comm));
	p->count += event->count;
	p->ns += event->ns;
}

static void on_event(void *ctx, const struct run_delay_event *event)
{
	struct delays *d = ctx;

	d->sums.total_ns += (int64_t)event->ns;
	switch (event->by) {
	case RUN_DELAY_IDLE:
		d->sums.idle_ns += (int64_t)event->ns;
		return;
	case RUN_DELAY_ELSEWHERE:
		d->sums.elsewhere_ns += (int64_t)event->ns;
		return;
	case RUN_DELAY_UNKNOWN:
		d->sums.unknown_ns += (int64_t)event->ns;
		return;
	case RUN_DELAY_PROCESS:
		if (event->other.pid == event->proc.pid)
			d->sums.own_ns += (int64_t)event->ns;
		break;
	case RUN_DELAY_KERNEL:
		break;
	}
	add_pair(d, event);
}

static int open_delays(void *self, struct err *e)
{
	struct delays *d = self;

	d->events = run_delays_new(d->run->drain, on_event, d);
	return d->events ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static void report(void *self, struct run_summary *to)
{
	struct delays *d = self;
	uint32_t n = 0;

	d->rows = calloc(HASH_COUNT(d->pairs) + 1ul, sizeof(*d->rows));
	for (struct pair *p = d->pairs; p && d->rows; p = p->hh.next) {
		struct proc *proc = proc_table_first(d->run->procs, (pid_t)p->key.proc.pid);

		/* Of one that had gone it is its other totals that say it. */
		if (!*p->container)
			set_container(d, &p->proc, p->container, sizeof(p->container));
		d->rows[n++] = (struct run_delay_row){
			.pid = p->key.proc.pid,
			.by_pid = p->key.other.pid,
			.comm = proc ? proc_comm(proc) : "",
			.container = p->container,
			.by_comm = p->comm,
			.by_container = p->by_container,
			.own = !p->of_kernel && p->key.other.pid == p->key.proc.pid,
			.ns = (int64_t)p->ns,
			.count = (int64_t)p->count,
		};
	}
	to->run_delays.known = true;
	to->run_delays.sums = d->sums;
	to->run_delays.rows = d->rows;
	to->run_delays.n = d->rows ? run_delays_rank(d->rows, n, DELAY_ROWS) : 0;
	if (d->left_out_ns)
		run_note(d->run, false,
			 "%s of run-queue delay are in no row: too many pairs of processes met",
			 unit_ns((int64_t)d->left_out_ns).s);
}

static void free_delays(void *self)
{
	struct delays *d = self;

	run_delays_free(d->events);
	hash_free(d->pairs);
	free(d->rows);
}

const struct component run_delays_component = {
	.name = "run_delays",
	.size = sizeof(struct delays),
	.wanted = wanted,
	.prepare = prepare,
	.open = open_delays,
	.report = report,
	.free = free_delays,
};
