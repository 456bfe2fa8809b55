#include "screen/picker.h"
#include "base/clock.h"
#include "base/units.h"
#include "screen/processes_read.h"
#include "screen/runtimes.h"
#include "screen/screen.h"

#include <errno.h>
#include <string.h>

/* Reading takes at most this part of the time, however many processes there are. */
#define SHARE_MAX  0.015
#define FIRST_NS   500000000ULL /* until the second reading: CPU use needs two */
#define ANSWERS_NS 100000000ULL

enum {
	COL_PID,
	COL_CPU,
	COL_RSS,
	COL_GROWTH,
	COL_THREADS,
	COL_RUNTIME,
	COL_HEAP,
	COL_COMMAND,
	N_COLUMNS
};

static const struct column columns[N_COLUMNS] = {
	[COL_PID] = { "PID", 7, 0, "process", false },
	[COL_CPU] = { "CPU%", 6, 0, "of one CPU, since the last reading", false },
	[COL_RSS] = { "RSS", 10, 36, "resident memory", false },
	[COL_GROWTH] = { "RSS/MIN", 11, 56, "growth of RSS a minute, since the screen began",
			 false },
	[COL_THREADS] = { "THR", 5, 90, "threads", false },
	[COL_RUNTIME] = { "RUNTIME", 8, 66, "of the language, by the files that are mapped", true },
	[COL_HEAP] = { "HEAP", 8, 74, "whose structures memscope heap reads; - none", true },
	[COL_COMMAND] = { "COMMAND", 0, 0, "command line, or the container's name", true },
};

struct row {
	bool container;
	uint32_t at; /* index of rows or containers */
	int depth;
};

struct picker {
	struct view view; /* first */
	struct processes own, *procs;
	struct processes_reader *reader;
	struct runtimes *runtimes;
	struct row *rows;
	uint32_t cap;
	bool *closed; /* by container */
	uint32_t n_closed;
	bool wait;
	double delay_s;
	uint64_t due_ns;
	bool asking; /* for runtimes, of which the next answer may be there at … */
	uint64_t answers_ns;
};

static struct picker *of(const struct view *v)
{
	return (struct picker *)(uintptr_t)v;
}

/* --- rows --- */

static int compare_numbers(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0; /* the largest first */
}

struct figures {
	double cpu, rss, growth;
	uint32_t threads;
	int64_t pid;
	const char *runtime, *heap, *text;
};

static struct figures figures_of(const struct picker *pk, const struct row *row)
{
	struct process *p;
	double growth = 0;

	if (row->container) {
		const struct process_container *c = &pk->procs->containers[row->at];

		return (struct figures){
			c->cpu_percent, (double)c->rss_bytes, c->growth, c->threads, 0, "", "",
			c->name
		};
	}
	p = &pk->procs->rows[row->at];
	process_growth(pk->procs, p, &growth);
	return (struct figures){ p->cpu_percent,
				 (double)p->rss_bytes,
				 growth,
				 p->threads,
				 p->pid,
				 p->runtime ? p->runtime : "",
				 p->heap ? p->heap : "",
				 p->command ? p->command : p->comm };
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct picker *pk = ctx;
	struct figures x = figures_of(pk, a), y = figures_of(pk, b);
	int by = 0;

	switch (pk->view.sort) {
	case COL_CPU:
		by = compare_numbers(x.cpu, y.cpu);
		break;
	case COL_RSS:
		break;
	case COL_GROWTH:
		by = compare_numbers(x.growth, y.growth);
		break;
	case COL_THREADS:
		by = compare_numbers(x.threads, y.threads);
		break;
	case COL_PID:
		by = compare_numbers((double)y.pid, (double)x.pid);
		break;
	case COL_RUNTIME:
		by = -strcmp(x.runtime, y.runtime); /* what is known before what is not */
		break;
	case COL_HEAP:
		by = -strcmp(x.heap, y.heap);
		break;
	default:
		by = strcasecmp(x.text, y.text);
	}
	if (!by && pk->view.sort != COL_PID)
		by = compare_numbers(x.rss, y.rss);
	if (!by)
		by = x.pid < y.pid ? -1 : x.pid > y.pid;
	return pk->view.reverse ? -by : by;
}

static bool is_closed(const struct picker *pk, uint32_t container)
{
	return container < pk->n_closed && pk->closed[container];
}

static bool passes(const struct picker *pk, struct process *p)
{
	char pid[16];

	if (!*pk->view.filter)
		return true;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	return view_passes(&pk->view, pk->reader ? process_command(p) : p->comm) ||
	       view_passes(&pk->view, p->comm) || view_passes(&pk->view, pid) ||
	       (p->runtime && view_passes(&pk->view, p->runtime)) ||
	       (p->container < pk->procs->n_containers &&
		view_passes(&pk->view, pk->procs->containers[p->container].name));
}

static int room_for(struct picker *pk, uint32_t n)
{
	struct row *rows;

	if (n <= pk->cap)
		return 0;
	rows = reallocarray(pk->rows, n, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	pk->rows = rows;
	pk->cap = n;
	return 0;
}

/* Members behind their container, in its place. */
static uint32_t put_members(struct picker *pk, uint32_t container, uint32_t n)
{
	uint32_t first = n;

	for (uint32_t i = 0; i < pk->procs->n; i++)
		if (pk->procs->rows[i].container == container && passes(pk, &pk->procs->rows[i]))
			pk->rows[n++] = (struct row){ false, i, 1 };
	qsort_r(pk->rows + first, n - first, sizeof(*pk->rows), compare_rows, pk);
	return n;
}

static bool any_passes(const struct picker *pk, uint32_t container)
{
	for (uint32_t i = 0; i < pk->procs->n; i++)
		if (pk->procs->rows[i].container == container && passes(pk, &pk->procs->rows[i]))
			return true;
	return false;
}

static int arrange(struct view *v)
{
	struct picker *pk = of(v);
	const struct processes *p = pk->procs;
	_cleanup_(freep) struct row *tops = calloc(p->n + p->n_containers + 1, sizeof(*tops));
	uint32_t n_tops = 0, n = 0;

	if (!tops || room_for(pk, p->n + p->n_containers + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_containers; i++)
		if (any_passes(pk, i))
			tops[n_tops++] = (struct row){ true, i, 0 };
	for (uint32_t i = 0; i < p->n; i++)
		if (p->rows[i].container >= p->n_containers && passes(pk, &p->rows[i]))
			tops[n_tops++] = (struct row){ false, i, 0 };
	qsort_r(tops, n_tops, sizeof(*tops), compare_rows, pk);
	for (uint32_t i = 0; i < n_tops; i++) {
		pk->rows[n++] = tops[i];
		if (tops[i].container && !is_closed(pk, tops[i].at))
			n = put_members(pk, tops[i].at, n);
	}
	v->n_rows = n;
	return 0;
}

static struct view_row row(const struct view *v, uint32_t i)
{
	const struct picker *pk = of(v);
	const struct row *r = &pk->rows[i];
	const struct process *p = &pk->procs->rows[r->at];

	if (r->container)
		return (struct view_row){ 1ULL << 63 | r->at, 0,
					  is_closed(pk, r->at) ? FOLD_CLOSED : FOLD_OPEN, false };
	return (struct view_row){ p->start_ticks << 22 | (uint64_t)p->pid, r->depth, FOLD_LEAF,
				  false };
}

static void container_cell(const struct process_container *c, uint32_t column, struct strbuf *to)
{
	switch (column) {
	case COL_CPU:
		strbuf_printf(to, "%.1f", c->cpu_percent);
		break;
	case COL_RSS:
		view_bytes((double)c->rss_bytes, false, to);
		break;
	case COL_GROWTH:
		if (c->grows)
			view_bytes(c->growth, true, to);
		break;
	case COL_THREADS:
		strbuf_printf(to, "%u", c->threads);
		break;
	case COL_COMMAND:
		strbuf_add_clean(to, c->name, strlen(c->name));
		strbuf_printf(to, ": %u process%s (%s)", c->processes,
			      c->processes == 1 ? "" : "es", *c->engine ? c->engine : "container");
		break;
	default:
		break;
	}
}

/* What is shown of a process is found when it is first shown. */
static void look(const struct picker *pk, struct process *p)
{
	struct runtime_of is;

	if (p->runtime || !pk->runtimes || p->asked)
		return;
	if (!pk->wait) {
		p->asked = runtimes_ask(pk->runtimes, p->pid, p->start_ticks);
		((struct picker *)(uintptr_t)pk)->asking = true;
		return;
	}
	is = runtimes_look(pk->runtimes, p->pid);
	p->runtime = is.runtime;
	p->heap = is.heap;
}

static void cell(const struct view *v, uint32_t i, uint32_t column, struct strbuf *to)
{
	const struct picker *pk = of(v);
	const struct row *r = &pk->rows[i];
	struct process *p = &pk->procs->rows[r->at];
	double growth;

	if (r->container) {
		container_cell(&pk->procs->containers[r->at], column, to);
		return;
	}
	switch (column) {
	case COL_PID:
		strbuf_printf(to, "%d", (int)p->pid);
		break;
	case COL_CPU:
		if (p->cpu_percent >= 0)
			strbuf_printf(to, "%.1f", p->cpu_percent);
		break;
	case COL_RSS:
		view_bytes((double)p->rss_bytes, false, to);
		break;
	case COL_GROWTH:
		if (process_growth(pk->procs, p, &growth))
			view_bytes(growth, true, to);
		break;
	case COL_THREADS:
		strbuf_printf(to, "%u", p->threads);
		break;
	case COL_RUNTIME:
		look(pk, p);
		strbuf_puts(to, p->runtime ? p->runtime : "");
		break;
	case COL_HEAP:
		strbuf_puts(to, !p->heap ? "" : *p->heap ? p->heap : "-");
		break;
	default:
		strbuf_puts(to, pk->reader ? process_command(p) : p->comm);
	}
}

static void title(const struct view *v, struct strbuf *to)
{
	const struct picker *pk = of(v);

	strbuf_printf(to, "%u processes", pk->procs->n);
	if (pk->procs->n_containers)
		strbuf_printf(to, ", %u container%s", pk->procs->n_containers,
			      pk->procs->n_containers == 1 ? "" : "s");
}

static void status(const struct view *v, struct strbuf *to)
{
	const struct picker *pk = of(v);
	double loads[3] = { 0 };
	uint64_t rss = 0;

	for (uint32_t i = 0; i < pk->procs->n; i++)
		rss += pk->procs->rows[i].rss_bytes;
	getloadavg(loads, 3);
	strbuf_printf(to, "CPU %.1f%% of %ld00%%, RSS of all %s, load %.2f %.2f %.2f",
		      pk->procs->cpu_percent, sysconf(_SC_NPROCESSORS_ONLN),
		      unit_bytes((int64_t)rss).s, loads[0], loads[1], loads[2]);
	if (pk->procs->lost)
		strbuf_printf(to, ", %llu processes could not be read",
			      (unsigned long long)pk->procs->lost);
}

/* --- what is done --- */

static bool set_closed(struct picker *pk, uint32_t container, bool closed)
{
	if (container >= pk->n_closed) {
		bool *more = reallocarray(pk->closed, container + 1, sizeof(*more));

		if (!more)
			return false;
		memset(more + pk->n_closed, 0, (container + 1 - pk->n_closed) * sizeof(*more));
		pk->closed = more;
		pk->n_closed = container + 1;
	}
	pk->closed[container] = closed;
	pk->view.stale = true;
	return true;
}

/* Folds where the cursor is: of a member, its container. */
static bool fold(struct picker *pk, bool closed)
{
	const struct row *r = &pk->rows[pk->view.cursor];

	if (pk->view.cursor >= pk->view.n_rows)
		return false;
	if (!r->container && (!closed || !r->depth))
		return false;
	if (r->container)
		return set_closed(pk, r->at, closed);
	while (!r->container)
		r--;
	pk->view.at_key = 1ULL << 63 | r->at;
	return set_closed(pk, r->at, true);
}

static void choose(const struct picker *pk, struct screen *s,
		   void (*to)(struct screen *s, const struct screen_target *t))
{
	const struct row *r = &pk->rows[pk->view.cursor];
	struct screen_target t = { 0 };

	if (pk->view.cursor >= pk->view.n_rows || !to)
		return;
	if (r->container) {
		t.container = pk->procs->containers[r->at].id;
		t.title = pk->procs->containers[r->at].name;
	} else {
		t.pid = pk->procs->rows[r->at].pid;
		t.title = pk->procs->rows[r->at].comm;
	}
	to(s, &t);
}

static bool act(struct view *v, struct screen *s, enum action action)
{
	struct picker *pk = of(v);

	switch (action) {
	case ACT_OPEN:
		fold(pk, false);
		return true;
	case ACT_CLOSE:
		fold(pk, true);
		return true;
	case ACT_ENTER:
		choose(pk, s, s->sources ? s->sources->profile : NULL);
		return true;
	case ACT_HEAP:
		choose(pk, s, s->sources ? s->sources->heap : NULL);
		return true;
	default:
		return false;
	}
}

static uint64_t due_ns(const struct view *v)
{
	const struct picker *pk = of(v);

	if (!pk->reader)
		return UINT64_MAX;
	return pk->asking && pk->answers_ns < pk->due_ns ? pk->answers_ns : pk->due_ns;
}

static void take_answers(struct picker *pk)
{
	struct runtime_of is;
	uint64_t start;
	pid_t pid;

	pk->asking = false;
	for (uint32_t i = 0; i < pk->procs->n; i++)
		pk->asking |= pk->procs->rows[i].asked;
	pk->answers_ns = now_ns() + ANSWERS_NS;

	while (runtimes_answer(pk->runtimes, &pid, &start, &is)) {
		struct process *p = processes_find(pk->procs, pid);

		if (!p || p->start_ticks != start)
			continue;
		p->asked = false;
		p->runtime = is.runtime;
		p->heap = is.heap;
	}
}

static void read_processes(struct picker *pk, struct screen *s)
{
	uint64_t began = thread_cpu_ns(), delay = (uint64_t)(pk->delay_s * 1e9), cost;
	bool first = !pk->procs->reading;
	struct err e = { 0 };

	if (processes_read(pk->reader, pk->procs, &e) < 0 && s)
		screen_say(s, "%s", e.msg);
	pk->view.stale = true;
	cost = thread_cpu_ns() - began;
	if (first && delay > FIRST_NS)
		delay = FIRST_NS;
	if (delay < (uint64_t)((double)cost / SHARE_MAX))
		delay = (uint64_t)((double)cost / SHARE_MAX);
	pk->due_ns = now_ns() + delay;
}

static void tick(struct view *v, struct screen *s)
{
	struct picker *pk = of(v);

	if (!pk->reader)
		return;
	if (!pk->wait)
		take_answers(pk);
	if (now_ns() < pk->due_ns)
		return;
	if (s && s->paused)
		pk->due_ns = now_ns() + (uint64_t)(pk->delay_s * 1e9);
	else
		read_processes(pk, s);
}

static void picker_free(struct view *v)
{
	struct picker *pk = of(v);

	runtimes_free(pk->runtimes);
	processes_reader_free(pk->reader);
	processes_fini(&pk->own);
	free(pk->rows);
	free(pk->closed);
	free(pk);
}

static const struct view_ops ops = {
	.kind = IN_PICKER,
	.name = "Processes and containers",
	.columns = columns,
	.n_columns = N_COLUMNS,
	.sort = COL_CPU,
	.arrange = arrange,
	.row = row,
	.cell = cell,
	.title = title,
	.status = status,
	.act = act,
	.due_ns = due_ns,
	.tick = tick,
	.free = picker_free,
};

struct view *picker_of(struct processes *p)
{
	struct picker *pk = calloc(1, sizeof(*pk));

	if (!pk)
		return NULL;
	view_init(&pk->view, &ops);
	pk->procs = p;
	return &pk->view;
}

int picker_new(double delay_s, bool wait, struct view **ret_view, struct err *e)
{
	struct view *v = picker_of(NULL);
	struct picker *pk;
	int r;

	if (!v)
		return err_set(e, -ENOMEM, "out of memory");
	pk = of(v);
	pk->procs = &pk->own;
	pk->delay_s = delay_s;
	pk->wait = wait;
	processes_init(&pk->own, (uint32_t)sysconf(_SC_CLK_TCK), (uint32_t)sysconf(_SC_PAGESIZE));
	r = processes_reader_new(&pk->reader, e);
	pk->runtimes = r == 0 ? runtimes_new() : NULL;
	if (r == 0 && (!pk->runtimes || (!wait && !runtimes_start(pk->runtimes))))
		r = err_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		picker_free(v);
		return r;
	}
	*ret_view = v;
	return 0;
}
