/*
 * For whom event loops wait: some times a second, whether requests wait in the targets, and whether requests of theirs to
 * others are outstanding (proc/requests.h). It costs no probe and nothing in the target; of memscope's time it takes
 * 0.5 % of a CPU at most: who has ten thousand connections is looked at less often. Only the first looks, which a short run
 * needs as well, may take 2 %: where connections come and go by the thousand, the kernel passes all those that are closed.
 */
#include "base/clock.h"
#include "proc/connections.h"
#include "proc/requests.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS                                                                                    \
	113000000ULL /* at least, between two looks: no round number, programs have those … */
#define LOOK_SHARE    200 /* … and so many times the CPU time that one takes                  */
#define FIRST_LOOKS   20  /* … of the first so many, less: causes are said of ten and more    */
#define FIRST_SHARE   50
#define PROCESSES_MAX 64 /* looked at                                                       */

struct peers {
	struct run *run;
	uint64_t next_ns;
	uint32_t processes; /* of this look */
	struct connections conns;
	struct requests requests;
	struct summary_peer rows[REQUEST_PEERS];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU] && !cfg->all;
}

static int open_peers(void *self, struct err *e)
{
	struct peers *p = self;

	return connections_init(&p->conns) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

static void add(void *ctx, const struct target *t)
{
	struct peers *p = ctx;

	if (!t->ended_ns && p->processes++ < PROCESSES_MAX)
		connections_add(&p->conns, t->pid);
}

static void tick(void *self, uint64_t now_ns)
{
	struct peers *p = self;
	uint64_t began, took;

	if (now_ns < p->next_ns)
		return;
	/* Of this thread: what else runs on a busy machine is no part of what a look takes. */
	began = thread_cpu_ns();
	p->processes = 0;
	connections_begin(&p->conns);
	targets_each(p->run, add, p);
	connections_read(&p->conns);
	requests_look(&p->requests, p->conns.conns, p->conns.n_conns, now_ns / 1000000);
	took = (thread_cpu_ns() - began) *
	       (p->requests.looks < FIRST_LOOKS ? FIRST_SHARE : LOOK_SHARE);
	p->next_ns = now_ns + (took > LOOK_NS ? took : LOOK_NS);
	p->run->oom = p->run->oom || p->conns.oom;
}

static int by_looks(const void *a, const void *b)
{
	const struct summary_peer *x = a, *y = b;

	if (x->for_inbound != y->for_inbound)
		return x->for_inbound < y->for_inbound ? 1 : -1;
	return (y->looks > x->looks) - (y->looks < x->looks);
}

static void report(void *self, struct run_summary *to)
{
	struct peers *p = self;
	const struct requests *r = &p->requests;

	for (uint32_t i = 0; i < r->n_peers; i++) {
		const struct request_peer *from = &r->peers[i];
		struct summary_peer *row = &p->rows[i];

		memcpy(row->name, from->name, sizeof(row->name));
		row->looks = from->looks;
		row->for_inbound = from->for_inbound;
		row->requests = from->requests;
		row->age_ms = from->requests ? (double)from->age_ms / (double)from->requests : 0;
		row->oldest_ms = from->oldest_ms;
		row->answers = from->answers;
	}
	qsort(p->rows, r->n_peers, sizeof(p->rows[0]), by_looks);
	to->peers.rows = p->rows;
	to->peers.n = r->n_peers;
	to->peers.looks = r->looks;
	to->peers.waiting = r->waiting;
	to->peers.held = r->held;
	to->peers.inbound = r->inbound;
	to->peers.port = r->port;
	to->peers.left_out = r->left_out;
	to->peers.failed = p->conns.failed;
}

static void free_peers(void *self)
{
	struct peers *p = self;

	connections_fini(&p->conns);
	requests_free(&p->requests);
}

const struct component peers_component = {
	.name = "peers",
	.size = sizeof(struct peers),
	.wanted = wanted,
	.open = open_peers,
	.tick = tick,
	.report = report,
	.free = free_peers,
};
