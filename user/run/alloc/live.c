/*
 * What lives of allocations that are seen in bursts alone: blocks seen there are remembered, and now and
 * then the allocators of the processes are walked, which says whose addresses are in use
 * (analyse/live_heap.h).
 *
 *   a burst's results ──► live_heap (one for each process) ◄── a look: heap/in_use.h
 *                              │
 *       heap profile, sites with intervals, live_series.csv, stacks that grow
 *
 * Looks read the processes from outside and stop nothing; they are memscope's own CPU time, of which they may
 * take a part of --max-overhead.
 */
#include "analyse/leaks.h"
#include "analyse/live_heap.h"
#include "base/clock.h"
#include "base/units.h"
#include "heap/in_use.h"
#include "render/tables/live_series_csv.h"
#include "run/alloc/alloc.h"
#include "run/output/files.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
	PROCESSES_MAX = 16,
	LOOK_PART = 2,  /* of --max-overhead: CPU time of looks, which is memscope's own   */
	KEPT_PART = 32, /* of --mem: blocks that are remembered                            */
	KEPT_BYTES = 160,
	APART_PERCENT = 200, /* of a CPU, that exact tracing would cost                          */
	LAST_LOOKS = 3,      /* attempts, while what a process does makes it fail                */
	IN_VAIN_MAX = 5,     /* times that no allocator is found: it is not one that is walked   */
	UNKNOWN_PART = 20,   /* more of a heap that could not be walked: the look does not count */
};
#define LOOK_NS       2000000000LL /* the longest that one may take                             */
#define UNIT_NS       500000000ULL /* some intervals between bursts                             */
#define SERIES_UNIT   16.0         /* parts of a byte                                           */
#define KEPT_AGE_S    30.0         /* or half of what was traced, if that is less               */
#define RESULTS_LEAST 0.8          /* the share of calls whose blocks must be known             */

struct live_process {
	pid_t pid;
	struct live_heap *heap; /* NULL: it has ended, or cannot be walked */
	uint32_t image;         /* of the series                           */
	bool begun;             /* what it had before is known, or it had nothing */
	bool looked;
	struct heap_found found;
	uint64_t had_made_n;
	double *made, *bytes;  /* by row, as the series has them          */
	struct live_ages ages; /* at the end                              */
	uint64_t begun_ns;
};

struct run_live {
	struct live_process rows[PROCESSES_MAX];
	uint32_t n, images;
	bool full, whole;
	uint64_t calls, results; /* of bursts with returns                     */
	uint32_t in_vain;        /* times that no allocator was found anywhere */
	uint64_t next_ns, seed;
	struct live_series *series;
	struct summary_live facts;
	double leak_age_s;
};

static struct live_process *process_of(struct run_live *l, pid_t pid)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->rows[i].pid == pid)
			return &l->rows[i];
	return NULL;
}

static void forget(struct live_process *p)
{
	live_heap_free(TAKE_PTR(p->heap));
	free(TAKE_PTR(p->made));
	free(TAKE_PTR(p->bytes));
	live_ages_fini(&p->ages);
	p->had_made_n = 0;
	p->looked = false;
}

/* The list in the terms of analyse/, in the same memory: there may be half a million blocks. */
static const struct live_block *in_place(struct heap_blocks *list)
{
	_Static_assert(sizeof(struct live_block) == sizeof(struct heap_block),
		       "one is written over the other");

	for (uint64_t i = 0; i < list->n; i++) {
		struct live_block b = { list->rows[i].addr, 8 * (uint64_t)list->rows[i].words };

		memcpy(&list->rows[i], &b, sizeof(b));
	}
	return (const struct live_block *)list->rows;
}

static uint32_t kept_max(const struct alloc *al)
{
	return (uint32_t)(((uint64_t)al->run->cfg->mem_mb << 20) / KEPT_PART / KEPT_BYTES);
}

/* Are all calls of CPython's allocator of objects seen? If not, blocks of it would be taken for others'. */
static bool sees_objects(const struct alloc *al)
{
	struct alloc_probes_stats stats = { 0 };

	if (al->run->cfg->python_objects && al->probes)
		alloc_probes_stats(al->probes, &stats);
	return stats.objects && !*stats.objects_hidden;
}

/* What is in use of the blocks that are kept; to begin with, of all, or a sample of them. */
static int take(struct alloc *al, struct live_process *p, bool begin,
		struct heap_in_use *ret_in_use, struct err *e)
{
	struct heap_wanted wanted = { .max = kept_max(al) / 2,
				      .sample = begin,
				      .objects = sees_objects(al),
				      .class_of = live_class_of,
				      .found = &p->found };
	_cleanup_(freep) uint64_t *addrs = NULL;
	int rc;

	_Static_assert((int)LIVE_CLASSES <= (int)HEAP_CLASSES_MAX,
		       "classes are counted in blocks.h");
	if (!begin) {
		rc = live_heap_addrs(p->heap, &addrs, &wanted.n_addrs);
		if (rc < 0)
			return err_set(e, rc, "out of memory");
		wanted.addrs = addrs;
		wanted.max = wanted.n_addrs + 1;
	}
	rc = heap_in_use_take(p->pid, LOOK_NS, &wanted, ret_in_use, e);
	if (rc == 0)
		ret_in_use->blocks.sought = NULL;
	return rc;
}

/* What is in use in it now. `begin`: before the first burst. -EAGAIN: not all that could be known is;
 * -ENOENT: no allocator that is walked was found. */
static int look(struct alloc *al, struct live_process *p, bool begin, struct err *e)
{
	struct run_live *l = al->live;
	uint64_t cpu_ns = thread_cpu_ns();
	struct live_look look = { .at_ns = now_ns() };
	struct heap_in_use u;
	int rc = take(al, p, begin, &u, e);

	if (rc < 0)
		return rc;
	look.one_in = u.one_in;
	look.class_words = u.blocks.all.class_words;
	look.blocks = in_place(&u.blocks);
	look.n = u.blocks.n;
	look.unknown = (const struct live_range *)u.blocks.unknown;
	look.n_unknown = u.blocks.n_unknown;
	snprintf(l->facts.allocators, sizeof(l->facts.allocators), "%s", u.allocators);
	l->facts.cached |= u.cached;
	l->facts.objects_bytes = (int64_t)u.objects_bytes;
	if (!*u.allocators)
		rc = -ENOENT;
	else if (u.incomplete || u.unknown_bytes > u.live_bytes / UNKNOWN_PART + (1 << 20))
		rc = -EAGAIN;
	else
		rc = begin ? live_heap_begin(p->heap, &look) : live_heap_look(p->heap, &look);
	l->facts.failed_looks += !begin && (rc == -ENOENT || rc == -EAGAIN);
	l->facts.looks += !begin && rc == 0;
	p->looked |= !begin && rc == 0;
	p->begun |= begin && rc == 0;
	if (rc == 0 && !p->begun_ns)
		p->begun_ns = look.at_ns;
	heap_in_use_fini(&u);
	l->facts.look_ns += (int64_t)(thread_cpu_ns() - cpu_ns);
	return rc;
}

/* What it has in use now is not of the bursts. `fresh`: it is about to ask for its first block; of another
 * that could not be walked, that is what the first look finds. */
static void begin(struct alloc *al, pid_t pid, bool fresh)
{
	struct run_live *l = al->live;
	struct live_process *p = process_of(l, pid);
	struct err e = { 0 };
	int rc;

	for (uint32_t i = 0; !p && i < l->n; i++)
		if (!l->rows[i].heap && !target_of(al->run, l->rows[i].pid))
			p = &l->rows[i];
	if (!p && l->n < PROCESSES_MAX)
		p = &l->rows[l->n++];
	if (!p) {
		l->full = true;
		return;
	}
	forget(p);
	*p = (struct live_process){ .pid = pid, .image = ++l->images };
	p->heap = live_heap_new(kept_max(al), l->seed + l->images);
	if (!p->heap) {
		al->run->oom = true;
		return;
	}
	live_heap_unit(p->heap, UNIT_NS);
	rc = look(al, p, true, &e);
	p->begun |= fresh;
	if (rc < 0 && rc != -EAGAIN && rc != -ENOENT)
		forget(p);
	al->run->oom |= rc == -ENOMEM;
}

static void begin_target(void *ctx, const struct target *t)
{
	struct alloc *al = ctx;

	if (!t->ended_ns)
		begin(al, t->pid, al->run->cfg->command);
}

int live_begin(struct alloc *al, struct err *e)
{
	if (!live_wanted(al->run->cfg))
		return 0;
	al->live = calloc(1, sizeof(*al->live));
	if (!al->live)
		return err_set(e, -ENOMEM, "out of memory");
	al->live->seed = now_ns();
	al->live->series = live_series_new();
	if (!al->live->series)
		return err_set(e, -ENOMEM, "out of memory");
	live_series_by_age(al->live->series);
	targets_each(al->run, begin_target, al);
	return 0;
}

bool live_apart(const struct alloc *al)
{
	return al->live && al->cost_percent > APART_PERCENT;
}

bool live_wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ALLOC] && !cfg->all && !cfg->tid && !cfg->file_scope &&
	       (cfg->alloc == ALLOC_AUTO || cfg->alloc == ALLOC_BURSTS);
}

void live_result(struct alloc *al, uint32_t row, const struct drain_result *r)
{
	struct run_live *l = al->live;
	struct live_process *p = l ? process_of(l, r->pid) : NULL;
	struct heap_in_use like = { .glibc = l && strcmp(l->facts.allocators, "glibc") == 0 };
	struct live_seen seen = {
		.addr = r->addr,
		.size = r->size,
		.room = heap_in_use_room(&like, r->size),
		.born_ns = r->time_ns,
		.row = row + 1,
		.thread = bursts_timed(al, (pid_t)r->pid, r->tid),
		.burst = r->no,
	};

	if (l && !p)
		begin(al, r->pid, false);
	if (!p || !p->heap)
		return;
	if (r->old && r->old != r->addr)
		live_heap_freed(p->heap, r->old, r->time_ns);
	if (r->addr)
		al->run->oom |= live_heap_seen(p->heap, &seen) < 0;
}

void live_returns(struct alloc *al, uint64_t calls, uint64_t results)
{
	if (!al->live)
		return;
	al->live->calls += calls;
	al->live->results += results;
}

/* Calls whose block is not known are stood for by the others. */
static double for_lost(const struct run_live *l)
{
	return l->results && l->calls > l->results ? (double)l->calls / (double)l->results : 1;
}

void live_guess(struct alloc *al, double calls, double stand_for)
{
	struct run_live *l = al->live;

	for (uint32_t i = 0; l && i < l->n; i++)
		if (l->rows[i].heap)
			live_heap_guess(l->rows[i].heap, calls, stand_for);
}

void live_settled(struct alloc *al, uint32_t burst, uint32_t thread, pid_t pid, double weight)
{
	struct run_live *l = al->live;
	struct live_process *p = l ? process_of(l, pid) : NULL;

	if (p && p->heap)
		al->run->oom |= live_heap_weigh(p->heap, burst, thread, weight * for_lost(l)) < 0;
}

void live_process_event(struct alloc *al, const struct process_event *event)
{
	struct live_process *p = al->live ? process_of(al->live, event->pid) : NULL;

	if (!p || (event->kind != PROCESS_EXEC && event->kind != PROCESS_ENDED))
		return;
	live_series_drop(al->live->series, p->image);
	forget(p);
	if (event->kind == PROCESS_EXEC && event->listed)
		begin(al, event->pid, true);
}

/* --- the series ------------------------------------------------------------------------------- */

static int rows_for(struct live_process *p, uint32_t n)
{
	double *made, *bytes;

	if (n <= p->had_made_n)
		return 0;
	n = n < 256 ? 256 : 2 * n;
	made = reallocarray(p->made, n, sizeof(*made));
	if (made)
		p->made = made;
	bytes = reallocarray(p->bytes, n, sizeof(*bytes));
	if (bytes)
		p->bytes = bytes;
	if (!made || !bytes)
		return -ENOMEM;
	memset(made + p->had_made_n, 0, (n - p->had_made_n) * sizeof(*made));
	memset(bytes + p->had_made_n, 0, (n - p->had_made_n) * sizeof(*bytes));
	p->had_made_n = n;
	return 0;
}

/* What a row has come to since the last look, into the series. */
static int tell_series(struct alloc *al, struct live_process *p, uint32_t row, stack_id stack)
{
	const struct live_estimate *est = live_heap_row(p->heap, row + 1);
	double made = live_heap_made(p->heap, row + 1);
	int64_t blocks, bytes;

	if (rows_for(p, row + 1) < 0)
		return -ENOMEM;
	blocks = llround(made) - llround(p->made[row]);
	/* Not by weights, which become known later, and would be steps: by what a call stood for at
	 * first. live_series_settle() makes bytes of it. */
	bytes = llround(est->plain * SERIES_UNIT) - llround(p->bytes[row] * SERIES_UNIT);
	p->made[row] = made;
	p->bytes[row] = est->plain;
	return blocks || bytes ? live_series_add(al->live->series, p->image, stack, blocks, bytes)
			       : 0;
}

static void tell_row(void *ctx, uint32_t row, pid_t pid, const struct event_key *key)
{
	struct alloc *al = ctx;
	struct live_process *p = process_of(al->live, pid);
	stack_id stack;
	labels_id labels;

	if (p && p->heap && p->looked && ingest_place(al->run->ingest, key, &stack, &labels))
		al->run->oom |= tell_series(al, p, row, stack) < 0;
}

/* Every process, one after the other. false: none could be walked. */
static bool look_at_all(struct alloc *al)
{
	struct run_live *l = al->live;
	bool any = false, all = true, walked = false;

	for (uint32_t i = 0; i < l->n; i++) {
		struct live_process *p = &l->rows[i];
		struct err e = { 0 };
		int rc = p->heap ? look(al, p, !p->begun, &e) : -ENOENT;

		walked |= p->heap && rc != -ENOENT;
		al->run->oom |= rc == -ENOMEM;
		any |= rc == 0 && p->looked;
		all &= rc == 0 || !target_of(al->run, p->pid) ||
		       target_of(al->run, p->pid)->ended_ns;
	}
	l->whole = any && all;
	l->in_vain += !walked && !l->facts.looks;
	/* Nothing more will be known: the returns of calls need not be traced any more. */
	if (l->in_vain == IN_VAIN_MAX)
		session_results_end(al->run->session);
	if (any)
		bursts_each_row(al, tell_row, al);
	return any;
}

/* A moment of the series. */
static void tick(struct alloc *al, uint64_t now)
{
	struct run_live *l = al->live;
	double held = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		struct live_facts f;

		if (!l->rows[i].heap)
			continue;
		live_heap_facts(l->rows[i].heap, &f);
		held += (double)f.in_use;
	}
	live_series_held(l->series, held);
	live_series_tick(l->series, (double)(now - session_start_ns(al->run->session)) / 1e9);
}

void live_row(struct alloc *al, uint64_t now)
{
	struct run_live *l = al->live;
	uint64_t from = now_ns();
	int64_t before;
	double part = al->run->cfg->max_overhead / 100 / LOOK_PART;
	bool any;

	if (!l || from < l->next_ns)
		return;
	before = l->facts.look_ns;
	any = look_at_all(al);
	l->next_ns = from + (uint64_t)((double)(l->facts.look_ns - before) / fmax(part, 1e-3));
	if (any)
		tick(al, now);
}

void live_closing(struct alloc *al)
{
	struct run_live *l = al->live;
	bool any = false;
	double traced;

	if (!l)
		return;
	l->whole = false;
	drain_events(al->run->drain);
	traced = (double)(now_ns() - al->run->alloc.from_ns) / 1e9;
	l->leak_age_s = traced / 2 < KEPT_AGE_S ? traced / 2 : KEPT_AGE_S;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->rows[i].heap)
			live_heap_age(l->rows[i].heap, (uint64_t)(l->leak_age_s * 1e9));
	for (int tries = 0; tries < LAST_LOOKS && !l->whole; tries++)
		any |= look_at_all(al);
	if (any)
		tick(al, now_ns());
}

/* --- in the end ------------------------------------------------------------------------------- */

/* Why nothing is known of what lives; NULL: it is. */
static const char *why_not(const struct alloc *al)
{
	const struct run_live *l = al->live;

	if (!l->facts.looks || !l->whole)
		return "the allocators of the processes could not be walked";
	if (for_lost(l) * RESULTS_LEAST > 1)
		return "of too many calls it is not known which block they made";
	return NULL;
}

/* The one place where estimates of what lives, and their errors, go into a profile. */
static int add_estimate(struct alloc *al, const struct live_estimate *est, stack_id stack,
			labels_id labels)
{
	int64_t values[4] = { 0, 0, llround(est->blocks), llround(est->bytes) };
	struct profile *heap = al->run->profiles[PROFILE_HEAP];
	struct value_error errors[2];
	int rc;

	if (!heap || values[3] <= 0)
		return 0;
	rc = profile_add(heap, stack, labels, values);
	if (rc < 0)
		return rc;
	live_errors(est, &errors[0], &errors[1]);
	live_weight_error(est, &errors[1].below, &errors[1].above);
	if (est->bytes > 0) {
		errors[0].below = errors[1].below * est->blocks / est->bytes;
		errors[0].above = errors[1].above * est->blocks / est->bytes;
	}
	return alloc_add_errors(al, stack, labels, NULL, errors);
}

static void add_series_error(struct alloc *al, const struct live_process *p, uint32_t row,
			     stack_id stack)
{
	const struct live_estimate *est = live_heap_row(p->heap, row + 1);
	struct live_series_error error = { 0 };

	live_walk_error(est, &error.low2, &error.high2);
	live_weight_error(est, &error.below, &error.above);
	live_series_error(al->live->series, p->image, stack, &error);
}

/* When blocks were born of those that are in use, and of those that ended late. */
static void add_ages(struct alloc *al, const struct live_process *p, uint32_t row, stack_id stack)
{
	const struct survival *of = live_ages_of(&p->ages, row + 1);
	struct survival ages = of ? *of : (struct survival){ 0 };

	ages.from_s = ((double)p->begun_ns - (double)session_start_ns(al->run->session)) / 1e9;
	if (of)
		al->run->oom |= live_series_survival(al->live->series, p->image, stack, &ages) < 0;
}

static void add_to_heap(void *ctx, uint32_t row, pid_t pid, const struct event_key *key)
{
	struct alloc *al = ctx;
	struct live_process *p = process_of(al->live, pid);
	const struct live_estimate *est;
	stack_id stack;
	labels_id labels;

	if (!p || !p->heap || !ingest_place(al->run->ingest, key, &stack, &labels))
		return;
	est = live_heap_row(p->heap, row + 1);
	al->run->oom |= add_estimate(al, est, stack, labels) < 0;
	live_series_old(al->live->series, p->image, stack, (uint64_t)llround(est->old_blocks));
	live_series_final(al->live->series, p->image, stack, est->bytes);
	add_series_error(al, p, row, stack);
	add_ages(al, p, row, stack);
}

static int estimate(struct live_process *p, double low, double high)
{
	int rc = live_heap_estimate(p->heap, true);

	rc = rc < 0 ? rc : live_heap_survival(p->heap, &p->ages);
	return rc < 0 ? rc : live_heap_weights_may_be(p->heap, low, high);
}

void live_finish(struct alloc *al)
{
	struct run_live *l = al->live;
	double low, high;

	if (!l)
		return;
	l->facts.why_not = why_not(al);
	al->run->alloc.live_known = !l->facts.why_not;
	if (l->facts.why_not)
		return;
	bursts_weight_range(al, &low, &high);
	for (uint32_t i = 0; i < l->n; i++)
		if (l->rows[i].heap)
			al->run->oom |= estimate(&l->rows[i], low, high) < 0;
	bursts_each_row(al, add_to_heap, al);
	live_series_settle(l->series);
}

struct merge {
	struct alloc *al;
	const struct site_row *site; /* NULL: all */
	struct live_estimate sum;
};

static void merge_row(void *ctx, uint32_t row, pid_t pid, const struct event_key *key)
{
	struct merge *m = ctx;
	struct live_process *p = process_of(m->al->live, pid);
	struct site_row of = { 0 };
	stack_id stack;
	labels_id labels;

	if (!p || !p->heap)
		return;
	if (m->site && (!ingest_place(m->al->run->ingest, key, &stack, &labels) ||
			site_of_stack(m->al->run->dict, stack, &of) < 0 ||
			strcmp(of.function, m->site->function) != 0 ||
			strcmp(of.module, m->site->module) != 0))
		return;
	live_estimate_merge(&m->sum, live_heap_row(p->heap, row + 1));
}

/* That of which blocks were seen, and that of what a call is slowed by, which all weights have in common. */
static struct interval interval_of(const struct merge *m)
{
	struct interval i = live_interval(&m->sum);
	double bytes = m->sum.bytes, below, above;

	live_weight_error(&m->sum, &below, &above);
	i.low = fmax(0, bytes - hypot(bytes - i.low, below));
	i.high = fmin(bytes + hypot(i.high - bytes, above), fmax(m->sum.most, bytes));
	return i;
}

void live_report(struct alloc *al, struct summary_alloc *a)
{
	struct run_live *l = al->live;
	struct merge all = { .al = al };
	struct interval i;

	if (!l)
		return;
	a->live = l->facts;
	a->live.known = !l->facts.why_not;
	if (l->full)
		run_note(al->run, false,
			 "live memory is estimated of %d processes: there were more at one time",
			 PROCESSES_MAX);
	if (!a->live.known)
		return;
	for (uint32_t k = 0; k < l->n; k++) {
		struct live_facts f;

		if (!l->rows[k].heap)
			continue;
		live_heap_facts(l->rows[k].heap, &f);
		a->live.kept += f.blocks;
		a->live.unknown += f.unknown;
		a->live.reused += f.reused;
		a->live.before_bytes += llround(live_heap_row(l->rows[k].heap, LIVE_BEFORE)->bytes);
	}
	bursts_each_row(al, merge_row, &all);
	i = interval_of(&all);
	a->live_objects = (uint64_t)llround(fmax(all.sum.blocks, 0));
	a->live_bytes = (uint64_t)llround(fmax(all.sum.bytes, 0));
	a->live_interval =
		(struct summary_interval){ (int64_t)i.low, (int64_t)i.high, all.sum.seen };
	a->n_live_sites = row_count(sites_allocations(al->run->profiles[PROFILE_HEAP], 3, 2,
						      al->live_sites, ALLOC_ROWS));
	a->live_sites = al->live_sites;
	for (uint32_t k = 0; k < a->n_live_sites; k++) {
		struct merge one = { .al = al, .site = &al->live_sites[k] };

		bursts_each_row(al, merge_row, &one);
		i = interval_of(&one);
		al->live_sites[k].low = (int64_t)i.low;
		al->live_sites[k].high = (int64_t)i.high;
		al->live_sites[k].samples = one.sum.seen;
	}
	leaks_of(l->series, al->run->dict, l->leak_age_s, a);
	leaks_peak(l->series, a);
}

static int write_series(void *ctx, struct sink *sink, struct err *e)
{
	struct alloc *al = ctx;

	return live_series_csv_write(al->live->series, al->run->dict, al->run->clock.start_wall_ns,
				     sink, e);
}

int live_write(struct alloc *al, struct run_output *to, struct err *e)
{
	return al->live && al->run->alloc.live_known
		       ? output_csv(to, "live_series", write_series, al, e)
		       : 0;
}

void live_free(struct alloc *al)
{
	struct run_live *l = al->live;

	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++)
		forget(&l->rows[i]);
	live_series_free(l->series);
	free(TAKE_PTR(al->live));
}
