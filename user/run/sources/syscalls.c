/*
 * System calls: the kernel's tables are read when processes have ended, and in the end, and how many calls are counted, and
 * how many of their stacks captured, is kept within a share of --max-overhead.
 */
#include "collect/stream/syscalls.h"
#include "analyse/syscalls.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/syscall_names.h"
#include "base/units.h"
#include "render/tables/syscalls_csv.h"
#include "run/component.h"
#include "run/output/files.h"

#include <errno.h>
#include <string.h>

#define SWEEP_NS  5000000000ULL
#define GOVERN_NS 500000000ULL
#define CALL_NS                                                                                    \
	400.0 /* what a call that is counted costs, about; and one whose stack is captured, besides */
#define STACK_NS   2500.0
#define SHIFT_MOST 14
#define ROWS_MAX   65536 /* of calls of processes: further ones are not counted */
#define ROWS_SHOWN 40

struct call_key {
	uint32_t pid, nr;
	uint64_t start_ns;
	uint32_t compat, pad;
};

struct call {
	struct call_key key;
	struct syscall_row row;
	char container[64], name[SYSCALL_NAME_MAX];
	UT_hash_handle hh;
};

struct calls {
	struct run *run;
	struct call *calls;
	uint64_t next_sweep_ns, next_govern_ns, last_ns, last_calls, last_stacks;
	uint32_t shift, stack_shift, most, stacks_most;
	struct syscall_row *rows, by_call[ROWS_SHOWN];
	uint32_t n_rows, n_by_call;
	struct syscall_sums sums;
	int64_t left_out;
	bool taken;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_SYSCALLS];
}

static struct syscall_row *row_of(struct calls *s, const struct proc_id *proc, uint32_t nr,
				  bool compat)
{
	struct call_key key;
	const char *container;
	struct call *c;

	memset(&key, 0, sizeof(key));
	key.pid = proc->pid;
	key.start_ns = proc->start_ns;
	key.nr = nr;
	key.compat = compat;
	HASH_FIND(hh, s->calls, &key, sizeof(key), c);
	if (c)
		return &c->row;
	if (HASH_COUNT(s->calls) >= ROWS_MAX)
		return NULL;
	c = hash_new(s->calls, key, &key);
	if (!c) {
		s->run->oom = true;
		return NULL;
	}
	container = ingest_container_name(s->run->ingest, proc);
	snprintf(c->container, sizeof(c->container), "%s", container ? container : "");
	snprintf(c->name, sizeof(c->name), "%s", syscall_name(nr, compat, c->name));
	c->row = (struct syscall_row){
		.pid = proc->pid, .comm = "", .container = c->container, .name = c->name
	};
	return &c->row;
}

static void on_total(void *ctx, const struct syscall_total *t)
{
	struct calls *s = ctx;
	struct syscall_row *row = row_of(s, &t->proc, t->nr, t->compat), more = {
		.calls = (int64_t)t->count,
		.errors = (int64_t)t->errors,
		.ns = (int64_t)t->ns,
		.no_return = (int64_t)t->no_return,
		.max_ns = (int64_t)t->max_ns,
		.variance = (double)t->variance,
	};

	if (!row) {
		s->left_out += more.calls;
		return;
	}
	for (int i = 0; i < SYSCALL_HISTOGRAM; i++)
		more.parts[i] = (int64_t)t->parts[i];
	syscall_row_add(row, &more);
	if (t->compat)
		s->sums.compat += more.calls;
}

static void on_error(void *ctx, const struct syscall_error *error)
{
	struct calls *s = ctx;
	struct syscall_row *row = row_of(s, &error->proc, error->nr, error->compat);

	if (row)
		syscall_error_add(row, error->error, (int64_t)error->count);
}

static void on_ended(void *ctx, const struct syscall_open *call)
{
	struct syscall_row *row = row_of(ctx, &call->proc, call->nr, call->compat);

	if (row)
		row->no_return += call->weight;
}

static void on_open(void *ctx, const struct syscall_open *call)
{
	struct syscall_row *row = row_of(ctx, &call->proc, call->nr, call->compat);

	if (row)
		row->open += call->weight;
}

static const struct syscall_fns fns = { on_total, on_error, on_ended, on_open };

/* So many bits that `rate` events a second cost at most `percent` of a CPU. */
static uint32_t shift_for(double rate, double each_ns, double percent)
{
	uint32_t shift = 0;

	while (shift < SHIFT_MOST && rate / (double)(1u << shift) * each_ns > percent * 1e7)
		shift++;
	return shift;
}

/* Half of the limit is for counting, and half for stacks. More calls are counted again when they have become rare. */
static void govern(struct calls *s, uint64_t now)
{
	double share = s->run->cfg->max_overhead / 2, seconds = (double)(now - s->last_ns) / 1e9,
	       rate;
	uint64_t stats[N_STATS], calls, stacks;
	uint32_t shift, stack_shift;

	drain_stats(s->run->drain, stats);
	calls = stats[STAT_SYSCALLS];
	stacks = stats[STAT_SYSCALL_STACKS];
	if (s->last_ns && seconds > 0) {
		rate = (double)(calls - s->last_calls) * (double)(1u << s->shift) / seconds;
		shift = shift_for(rate, CALL_NS, share);
		stack_shift = shift_for(rate / (double)(1u << shift), STACK_NS, share);
		if (shift + 1 == s->shift)
			shift++; /* not to and fro */
		if (shift != s->shift || stack_shift != s->stack_shift)
			session_syscalls(s->run->session, shift, stack_shift);
		s->shift = shift;
		s->stack_shift = stack_shift;
		s->most = shift > s->most ? shift : s->most;
		s->stacks_most = stack_shift > s->stacks_most ? stack_shift : s->stacks_most;
	}
	s->last_ns = now;
	s->last_calls = calls;
	s->last_stacks = stacks;
}

static int start(void *self, struct err *e)
{
	struct calls *s = self;
	double share = s->run->cfg->max_overhead / 2;

	(void)e;
	/* Until the first look: of as many calls as one thread can make. */
	s->stack_shift = s->stacks_most = shift_for(1e6, STACK_NS, share);
	session_syscalls(s->run->session, 0, s->stack_shift);
	return 0;
}

static void tick(void *self, uint64_t now)
{
	struct calls *s = self;

	if (now < s->next_govern_ns)
		return;
	s->next_govern_ns = now + GOVERN_NS;
	govern(s, now);
}

static void drained(void *self, uint64_t now)
{
	struct calls *s = self;

	if (s->taken || now < s->next_sweep_ns)
		return;
	s->next_sweep_ns = now + SWEEP_NS;
	if (syscalls_take(s->run->session, false, &fns, s) < 0)
		s->run->oom = true;
}

static void closed(void *self)
{
	struct calls *s = self;
	int r = syscalls_take(s->run->session, true, &fns, s);

	s->taken = true;
	if (r < 0)
		run_note(s->run, true, "system calls cannot be read: %s", strerror(-r));
}

static void add_up(struct calls *s, const struct syscall_row *row)
{
	s->sums.calls += row->calls;
	s->sums.errors += row->errors;
	s->sums.ns += row->ns;
	s->sums.no_return += row->no_return;
	s->sums.open += row->open;
	s->sums.variance += row->variance;
}

/* Of all processes; `rows` has room for all. */
static uint32_t join_calls(const struct calls *s, struct syscall_row *rows)
{
	uint32_t n = 0, k;

	for (uint32_t i = 0; i < s->n_rows; i++) {
		for (k = 0; k < n && strcmp(rows[k].name, s->rows[i].name) != 0; k++)
			;
		if (k == n)
			rows[n++] = (struct syscall_row){ .comm = "",
							  .container = "",
							  .name = s->rows[i].name };
		syscall_row_add(&rows[k], &s->rows[i]);
	}
	return n;
}

static void report(void *self, struct run_summary *to)
{
	struct calls *s = self;
	_cleanup_(freep) struct syscall_row *joined = NULL;
	uint64_t stats[N_STATS];
	const char *why;

	if (!session_has(s->run->session, SOURCE_SYSCALLS, &why))
		return;
	drain_stats(s->run->drain, stats);
	s->rows = calloc(HASH_COUNT(s->calls) + 1ul, sizeof(*s->rows));
	joined = calloc(HASH_COUNT(s->calls) + 1ul, sizeof(*joined));
	if (!s->rows || !joined) {
		s->run->oom = true;
		return;
	}
	for (const struct call *c = s->calls; c; c = c->hh.next) {
		struct proc *proc = proc_table_first(s->run->procs, (pid_t)c->key.pid);

		s->rows[s->n_rows] = c->row;
		s->rows[s->n_rows].comm = proc ? proc_comm(proc) : "";
		add_up(s, &s->rows[s->n_rows++]);
	}
	s->n_rows = syscalls_rank(s->rows, s->n_rows, s->n_rows);
	s->n_by_call = syscalls_rank(joined, join_calls(s, joined), ROWS_SHOWN);
	memcpy(s->by_call, joined, s->n_by_call * sizeof(*joined));
	s->sums.begun_before = (int64_t)stats[STAT_SYSCALLS_BEFORE];
	s->sums.one_in = 1u << s->most;
	s->sums.stacks_one_in = 1u << s->stacks_most;
	to->syscalls.known = true;
	to->syscalls.sums = s->sums;
	to->syscalls.by_call = s->by_call;
	to->syscalls.n_by_call = s->n_by_call;
	to->syscalls.rows = s->rows;
	to->syscalls.n = s->n_rows < ROWS_SHOWN ? s->n_rows : ROWS_SHOWN;
	if (s->left_out)
		run_note(s->run, false,
			 "%s system calls are in no row: there were too many processes",
			 unit_count(s->left_out).s);
}

static int write_rows(void *ctx, struct sink *sink, struct err *e)
{
	const struct calls *s = ctx;

	(void)e;
	syscalls_csv_write(s->rows, s->n_rows, sink);
	return 0;
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct calls *s = self;

	return s->n_rows ? output_csv(to, "syscalls", write_rows, s, e) : 0;
}

static void free_calls(void *self)
{
	struct calls *s = self;

	hash_free(s->calls);
	free(s->rows);
}

const struct component syscalls_component = {
	.name = "syscalls",
	.size = sizeof(struct calls),
	.wanted = wanted,
	.start = start,
	.tick = tick,
	.drained = drained,
	.closed = closed,
	.report = report,
	.write = write_files,
	.free = free_calls,
};
