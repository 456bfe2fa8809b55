/*
 * Garbage collections of the targets: how many, how long, what is alive after them. Columns of trend.csv, a section of the summary.
 *
 * Each runtime is read at each tick, which takes some microseconds: a pause is seen as such where one collection has been between two
 * looks, and where the runtime counts no time, that is estimated by how many looks found a collection under way.
 */
#include "heap/gc/gc.h"
#include "analyse/gc_counts.h"
#include "base/clock.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>

enum { PROCESSES_MAX = 256, TRIES = 12 };

#define FIRST_TRY_NS                                                                               \
	20000000ULL /* after a process began; then twice as long each time: 80 s in all */

struct process {
	pid_t pid;                /* 0: free                                                */
	bool newborn;             /* began in the run: all that it counted is of the run    */
	struct gc_reader *reader; /* NULL: none yet                                          */
	uint32_t tries;
	uint64_t next_ns; /* of the next try                                        */
	struct gc_counts counts;
	uint32_t row; /* of its runtime                                          */
};

struct collections {
	struct run *run;
	struct process *processes;
	uint32_t n;
	uint32_t left_out;       /* processes for which there was no room                  */
	struct gc_totals totals; /* by runtime; what has ended is in it                     */
};

static void end_process(struct collections *g, struct process *p)
{
	if (p->reader)
		gc_totals_add(&g->totals, p->row, &p->counts);
	gc_reader_close(p->reader);
	*p = g->processes[--g->n];
}

static struct process *process_of(struct collections *g, pid_t pid)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->processes[i].pid == pid)
			return &g->processes[i];
	return NULL;
}

/* -ENOENT may mean: not yet. */
static void try_open(struct collections *g, struct process *p, uint64_t now)
{
	int r = gc_reader_open(p->pid, &p->reader);

	p->tries++;
	p->next_ns = now + (FIRST_TRY_NS << p->tries);
	if (r == -ENOENT || r == -EAGAIN)
		return;
	if (r < 0) {
		p->tries = TRIES;
		return;
	}
	p->row = gc_totals_row(&g->totals, gc_reader_runtime(p->reader));
	g->totals.rows[p->row].untested |= gc_reader_untested(p->reader);
	gc_counts_begin(&p->counts, p->newborn, now);
}

/* false: it is gone. */
static bool look(struct collections *g, struct process *p, uint64_t now)
{
	struct gc_counters c;
	int r;

	if (!p->reader && p->tries < TRIES && now >= p->next_ns)
		try_open(g, p, now);
	if (!p->reader)
		return true;
	r = gc_reader_read(p->reader, &c);
	if (r == 0) {
		gc_counts_look(&p->counts, &c, now);
		g->totals.rows[p->row].missing = gc_reader_missing(p->reader);
	}
	return r != -ESRCH;
}

static void look_at_all(struct collections *g, uint64_t now)
{
	for (uint32_t i = 0; i < g->n;)
		if (look(g, &g->processes[i], now))
			i++;
		else
			end_process(g, &g->processes[i]);
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct collections *g = self;

	(void)opts;
	g->processes = calloc(PROCESSES_MAX, sizeof(*g->processes));
	return g->processes ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static void begin_process(struct collections *g, const struct process_event *event)
{
	struct process *p = process_of(g, event->pid);

	/* Another program: what was counted before was of the one before. */
	if (p && event->kind == PROCESS_EXEC)
		end_process(g, p);
	else if (p)
		return;
	if (g->n == PROCESSES_MAX) {
		g->left_out++;
		return;
	}
	g->processes[g->n++] =
		(struct process){ .pid = event->pid,
				  .newborn = event->newborn || event->kind == PROCESS_EXEC };
}

static void process(void *self, const struct process_event *event)
{
	struct collections *g = self;
	struct process *p;

	if (event->kind == PROCESS_ADDED || (event->kind == PROCESS_EXEC && event->target))
		begin_process(g, event);
	if (event->kind != PROCESS_ENDED)
		return;
	p = process_of(g, event->pid);
	if (p)
		end_process(g, p);
}

static void tick(void *self, uint64_t now)
{
	look_at_all(self, now);
}

/* For the trend's row, which comes next. */
static void row(void *self, uint64_t now)
{
	struct collections *g = self;
	struct gc_totals all = g->totals;

	(void)now;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->processes[i].reader)
			gc_totals_add(&all, g->processes[i].row, &g->processes[i].counts);
	gc_totals_sample(&all, &g->run->row.gc);
	for (uint32_t i = 0; i < g->n; i++)
		if (g->processes[i].reader)
			gc_sample_heap(&g->run->row.gc, &g->processes[i].counts);
}

static void closing(void *self)
{
	look_at_all(self, now_ns());
}

static void report(void *self, struct run_summary *to)
{
	struct collections *g = self;

	for (uint32_t i = 0; i < g->n; i++)
		if (g->processes[i].reader)
			gc_totals_live(&g->totals, g->processes[i].row, &g->processes[i].counts);
	while (g->n)
		end_process(g, &g->processes[g->n - 1]);
	to->gc = g->totals;
	if (g->left_out)
		run_note(
			g->run, true,
			"collections of garbage: %u processes are not in the counts, which have room for %d "
			"at a time",
			g->left_out, PROCESSES_MAX);
}

static void free_collections(void *self)
{
	struct collections *g = self;

	for (uint32_t i = 0; i < g->n; i++)
		gc_reader_close(g->processes[i].reader);
	free(g->processes);
}

static bool wanted(const struct run_config *cfg)
{
	return !cfg->all &&
	       !cfg->tid; /* one thread's run is not charged with what all of them collect */
}

const struct component gc_component = {
	.name = "garbage collections",
	.size = sizeof(struct collections),
	.wanted = wanted,
	.prepare = prepare,
	.process = process,
	.tick = tick,
	.row = row,
	.closing = closing,
	.report = report,
	.free = free_collections,
};
