/*
 * Allocations in bursts: where every call would cost too much, or has come to.
 *
 * Totals of a burst carry its number. They are held until the burst is over and all of them have been
 * read; then analyse/bursts.h weighs them.
 */
#include "analyse/bursts.h"
#include "analyse/burst_match.h"
#include "base/grow.h"
#include "base/units.h"
#include "collect/overhead/burst_timer.h"
#include "model/about.h"
#include "run/alloc/alloc.h"
#include "run/alloc/burst_pieces.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define READY_MAX 256 /* bursts that end between two drains */
#define ABOUT     64
#define LEFT_LEAST                                                                                 \
	20 /* a program has at least one part in so many of its CPU time in bursts for itself */
/* A row takes some 540 bytes: this part of --mem may go into them. */
#define ROW_BYTES 540
#define ROWS_PART 4

/* A stack of a thread, and its number. */
struct burst_row {
	struct event_key key;
	uint32_t row;
	stack_id stack; /* once it is in the profiles       */
	bool placed;
	struct burst_estimate added; /* how much of it is in them */
	struct burst_pieces pieces;  /* when the rest came        */
	UT_hash_handle hh;
};

/* A total that waits for its burst. */
struct burst_total {
	uint32_t burst;
	struct burst_calls calls;
};

struct run_bursts {
	struct burst_timer *burst_timer;
	struct process_times *processes; /* NULL: CPU times of threads are known */
	struct bursts *bursts;
	struct burst_row *rows, **by_row; /* by_row: `cap_by_row` of them have room */
	uint32_t max_rows, cap_by_row;
	bool full;
	struct burst_total *totals;
	uint32_t n_totals, cap_totals;
	struct burst ready[READY_MAX];
	uint32_t n_ready;
	uint64_t from_ns;
	uint64_t guessed_ns; /* the end of the last burst of which guess() was called */
	double cpu_about,
		lost_about; /* means of the last ABOUT bursts, about: CPU time, and tracing's part of it */
	uint32_t n_about;
	/* Bursts whose returns are traced apart: from `apart_from` on, every second one. */
	struct burst_match *match;
	uint32_t apart_from; /* 0: none yet */
	uint32_t settled_to; /* the last that was settled, and */
	bool fresh;          /* … was since burst_match_settle() */
	double guessed;      /* calls since the last burst with returns */
	bool after_exact;    /* every call was traced before */
	struct burst_timer_stats stats;
};

static void add_process(void *ctx, const struct target *t)
{
	struct run_bursts *s = ctx;

	if (!t->ended_ns)
		process_times_add(s->processes, t->pid);
}

/* Without scheduler events it is not known how long each thread is on a CPU: on a busy machine its time in a
 * burst would count as work, though it waits. Of whole processes it is. */
static int time_processes(struct alloc *al, struct run_bursts *s)
{
	if (al->run->cfg->sources[SOURCE_OFFCPU] || al->run->cfg->tid)
		return 0;
	s->processes = process_times_new();
	if (!s->processes)
		return -ENOMEM;
	targets_each(al->run, add_process, s);
	return 0;
}

uint32_t bursts_timed(const struct alloc *al, pid_t pid, uint32_t tid)
{
	return al->bursts->processes ? (uint32_t)pid : tid;
}

/* NULL: out of memory. */
static struct burst_cpu *cpus_of(const struct burst_thread *threads, uint32_t n)
{
	struct burst_cpu *cpus = calloc(n + 1, sizeof(*cpus));

	for (uint32_t i = 0; cpus && i < n; i++)
		cpus[i] = (struct burst_cpu){ threads[i].tid, threads[i].open_ns,
					      threads[i].close_ns };
	return cpus;
}

static void on_settled(void *ctx, const struct burst_settled *settled)
{
	struct alloc *al = ctx;
	struct run_bursts *s = al->bursts;
	uint32_t row = settled->row;
	stack_id stack;
	labels_id labels;
	bool has_key = row < HASH_COUNT(s->rows);
	bool known =
		has_key && ingest_place(al->run->ingest, &s->by_row[row]->key, &stack, &labels);

	alloc_tell(al, known ? &stack : NULL, settled->bytes, settled->from_ns, settled->to_ns);
	if (has_key)
		al->run->oom |=
			burst_pieces_add(&s->by_row[row]->pieces,
					 &(struct burst_piece){ settled->from_ns, settled->to_ns,
								settled->calls, settled->bytes }) <
			0;
	if (s->apart_from && settled->no >= s->apart_from) {
		al->run->oom |=
			burst_match_estimated(s->match, settled->thread, settled->calls) < 0;
		s->settled_to = settled->no > s->settled_to ? settled->no : s->settled_to;
		s->fresh = true;
	} else if (has_key) {
		live_settled(al, settled->no, settled->thread,
			     (pid_t)event_proc(&s->by_row[row]->key).pid, settled->weight);
	}
}

static void on_matched(void *ctx, uint32_t no, uint32_t thread, pid_t pid, double weight)
{
	live_settled(ctx, no, thread, pid, weight);
}

/* A block of bursts has been settled: what those with returns between them stand for is known, too. */
static int match(struct alloc *al, bool last)
{
	struct run_bursts *s = al->bursts;

	if (!s->fresh)
		return 0;
	s->fresh = false;
	return burst_match_settle(s->match, last ? UINT32_MAX : s->settled_to + 1, on_matched, al);
}

static int try_start(struct alloc *al, uint64_t from_ns, struct err *e)
{
	_cleanup_(freep) struct burst_cpu *cpus = NULL;
	struct run_bursts *s = calloc(1, sizeof(*s));
	struct burst_times first, last;
	int rc;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	al->bursts = s;
	s->from_ns = from_ns;
	if (s->from_ns < session_start_ns(al->run->session))
		s->from_ns = session_start_ns(al->run->session);
	s->guessed_ns = s->from_ns;
	s->after_exact = al->run->alloc.tier == ALLOC_TIER_EXACT;
	s->max_rows = (uint32_t)(((uint64_t)al->run->cfg->mem_mb << 20) / ROWS_PART / ROW_BYTES);
	s->bursts = bursts_new(s->from_ns);
	s->match = burst_match_new();
	if (!s->bursts || !s->match || time_processes(al, s) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	bursts_on_settled(s->bursts, on_settled, al);
	rc = live_begin(al, e);
	if (rc < 0)
		return rc;
	alloc_set_tier(al, ALLOC_TIER_BURSTS);
	alloc_probes_burst(al->probes);
	rc = burst_timer_start(al->run->session, al->probes, al->run->waits.sampler, s->processes,
			       al->limit_percent, live_apart(al), &s->burst_timer, e);
	if (rc < 0)
		return rc;
	burst_timer_ends(s->burst_timer, &first, &last);
	cpus = cpus_of(first.threads, first.n);
	if (!cpus || bursts_begin(s->bursts, cpus, first.n) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

int bursts_start(struct alloc *al, uint64_t from_ns, struct err *e)
{
	enum alloc_tier before = al->run->alloc.tier;
	int rc = try_start(al, from_ns, e);

	if (rc < 0) {
		bursts_close(al);
		alloc_set_tier(al, before);
	}
	return rc;
}

/* The number of a stack of a thread; the last one of all is for those that there is no room for. */
static int row_of(struct alloc *al, const struct event_key *of, uint32_t *ret_row)
{
	struct event_key event = ingest_event(al->run->ingest, of), *key = &event;
	struct run_bursts *s = al->bursts;
	struct burst_row *row;

	HASH_FIND(hh, s->rows, key, sizeof(*key), row);
	if (!row && HASH_COUNT(s->rows) >= s->max_rows) {
		s->full = true;
		*ret_row = s->max_rows;
		return 0;
	}
	if (!row) {
		if (!GROW(s->by_row, HASH_COUNT(s->rows), s->cap_by_row))
			return -ENOMEM;
		row = hash_new(s->rows, key, key);
		if (!row)
			return -ENOMEM;
		row->row = HASH_COUNT(s->rows) - 1;
		s->by_row[row->row] = row;
	}
	*ret_row = row->row;
	return 0;
}

enum drain_says bursts_on_calls(void *ctx, const void *record, const void *more)
{
	const struct drain_burst *calls = record;
	struct alloc *al = ctx;
	struct run_bursts *s = al->bursts;
	struct burst_total *t;
	uint32_t row;

	(void)more;
	if (!s)
		return DRAIN_TAKEN;
	if (!GROW(s->totals, s->n_totals, s->cap_totals) || row_of(al, &calls->key, &row) < 0) {
		al->run->oom = true;
		return DRAIN_TAKEN;
	}
	t = &s->totals[s->n_totals++];
	t->burst = calls->no;
	t->calls = (struct burst_calls){
		row, bursts_timed(al, (pid_t)event_proc(&calls->key).pid, calls->tid), calls->calls,
		calls->bytes
	};
	return DRAIN_TAKEN;
}

enum drain_says bursts_on_result(void *ctx, const void *record, const void *more)
{
	const struct drain_result *result = record;
	struct alloc *al = ctx;
	uint32_t row;

	(void)more;
	if (!al->bursts)
		return DRAIN_TAKEN;
	if (row_of(al, &result->key, &row) < 0)
		al->run->oom = true;
	else if (row < al->bursts->max_rows)
		live_result(al, row, result);
	return DRAIN_TAKEN;
}

void bursts_each_row(struct alloc *al, bursts_row_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < HASH_COUNT(al->bursts->rows); i++) {
		const struct event_key *key = &al->bursts->by_row[i]->key;

		fn(ctx, i, (pid_t)event_proc(key).pid, key);
	}
}

void bursts_weight_range(const struct alloc *al, double *ret_low, double *ret_high)
{
	const struct burst_estimate *total = bursts_total(al->bursts->bursts);

	*ret_low = total->bytes > 0 ? fmin(1, total->low_bytes / total->bytes) : 1;
	*ret_high = total->bytes > 0 ? fmax(1, total->high_bytes / total->bytes) : 1;
}

void bursts_flip(struct alloc *al)
{
	struct run_bursts *s = al->bursts;

	if (s && s->burst_timer)
		s->n_ready += burst_timer_take(s->burst_timer, s->ready + s->n_ready,
					       READY_MAX - s->n_ready);
}

/* What a call of the burst stands for, about: analyse/bursts.h says it later, and better. */
static double weight_about(struct run_bursts *s, const struct burst *burst)
{
	double length = fmax((double)(burst->close_ns - burst->open_ns), 1), cpu = 0;
	double lost = (double)burst->calls * burst->call_ns;
	double since = fmax((double)(burst->close_ns - s->guessed_ns), length);

	s->guessed_ns = burst->close_ns;
	for (uint32_t i = 0; burst->threads && i < burst->n_threads; i++)
		cpu += (double)(burst->threads[i].close_ns - burst->threads[i].open_ns);
	/* Of one burst alone what is left of it is a small difference of large numbers. */
	s->n_about = s->n_about < ABOUT ? s->n_about + 1 : ABOUT;
	s->cpu_about += ((cpu > 0 ? cpu : length) - s->cpu_about) / s->n_about;
	s->lost_about += (lost - s->lost_about) / s->n_about;
	return since / length * s->cpu_about /
	       fmax(s->cpu_about - s->lost_about, s->cpu_about / LEFT_LEAST);
}

static void guess(struct alloc *al, const struct burst *burst)
{
	struct run_bursts *s = al->bursts;
	double stand_for;

	if (burst->apart) {
		live_guess(al, (double)burst->calls, s->guessed);
		s->guessed = 0;
		return;
	}
	stand_for = weight_about(s, burst) * (double)burst->calls;
	s->guessed += stand_for;
	if (!s->apart_from)
		live_guess(al, (double)burst->calls, stand_for);
}

/* One with returns apart: only which of its calls there were counts, not how many. */
static int settle_apart(struct alloc *al, const struct burst *burst,
			const struct burst_calls *calls, uint32_t n)
{
	struct run_bursts *s = al->bursts;
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		uint32_t row = calls[i].row;

		if (row < HASH_COUNT(s->rows))
			rc = burst_match_seen(s->match, burst->no, calls[i].thread,
					      (pid_t)event_proc(&s->by_row[row]->key).pid,
					      calls[i].calls);
	}
	return rc;
}

/* Hands over the totals of one burst: they leave `totals`. */
static int settle(struct alloc *al, struct burst *burst)
{
	struct run_bursts *s = al->bursts;
	_cleanup_(freep) struct burst_thread *threads = burst->threads;
	_cleanup_(freep) struct burst_cpu *cpus = cpus_of(threads, threads ? burst->n_threads : 0);
	struct burst_span span = { burst->open_ns, burst->close_ns, burst->call_ns,
				   burst->call_sure_ns, burst->no };
	_cleanup_(freep) struct burst_calls *calls = calloc(s->n_totals + 1, sizeof(*calls));
	uint32_t n = 0, left = 0;
	int rc;

	if (!calls || !cpus) {
		burst->threads = NULL;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->n_totals; i++)
		if (s->totals[i].burst == burst->no)
			calls[n++] = s->totals[i].calls;
		else
			s->totals[left++] = s->totals[i];
	s->n_totals = left;
	if (burst->alternates && !s->apart_from)
		s->apart_from = burst->no;
	guess(al, burst);
	if (burst->results)
		live_returns(al, burst->calls, burst->results);
	burst->threads = NULL;
	if (burst->apart)
		return settle_apart(al, burst, calls, n);
	rc = bursts_add(s->bursts, &span, calls, n, cpus, threads ? burst->n_threads : 0);
	return rc < 0 ? rc : match(al, false);
}

void bursts_read(struct alloc *al)
{
	struct run_bursts *s = al->bursts;

	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_ready; i++)
		al->run->oom |= settle(al, &s->ready[i]) < 0;
	s->n_ready = 0;
}

static void limit(struct alloc *al, double percent)
{
	burst_timer_limit(al->bursts->burst_timer, percent);
}

static double percent(struct alloc *al, const struct cost_window *w)
{
	struct burst_timer_stats stats;

	if (w->now_ns <= al->bursts->from_ns)
		return 0;
	burst_timer_stats(al->bursts->burst_timer, &stats);
	return (stats.target_ns + stats.own_ns) * 100 / (double)(w->now_ns - al->bursts->from_ns);
}

/* Of all bursts but the last few, and of what was traced before them. */
static double total(struct alloc *al)
{
	struct ingest_stats stats;

	ingest_stats(al->run->ingest, &stats);
	return (double)stats.allocated_bytes +
	       (al->bursts ? bursts_total(al->bursts->bursts)->bytes : 0);
}

static void closing(struct alloc *al)
{
	struct run_bursts *s = al->bursts;

	burst_timer_stop(s->burst_timer);
	alloc_ended(al, now_ns());
	live_closing(al);
	burst_timer_stats(s->burst_timer, &s->stats);
	run_say(al->run,
		"%u bursts: %llu calls, %llu hits before and after; a trap costs %.0f ns; attaching took "
		"%.2f ms on average, %.1f at most, until taken away %.1f at most; the costliest cost %.2f ms "
		"of %.2f; target lost %.1f ms, own %.1f ms",
		s->stats.bursts, (unsigned long long)s->stats.hits,
		(unsigned long long)s->stats.late_hits, s->stats.trap_ns,
		s->stats.bursts ? (double)s->stats.attach_ns / 1e6 / s->stats.bursts : 0,
		(double)s->stats.attach_worst_ns / 1e6, (double)s->stats.detach_worst_ns / 1e6,
		s->stats.worst_ns / 1e6, s->stats.burst_ns / 1e6, s->stats.target_ns / 1e6,
		s->stats.own_ns / 1e6);
}

/* --- into the profiles ------------------------------------------------------------------------ */

/* What is settled of a row and not in them yet. */
static int place(struct alloc *al, struct burst_row *row)
{
	const struct burst_estimate *est = bursts_row(al->bursts->bursts, row->row);
	const struct burst_estimate *had = &row->added;
	const int64_t more[2] = { llround(est->calls) - llround(had->calls),
				  llround(est->bytes) - llround(had->bytes) };
	struct burst_estimate since = *est;
	struct value_error errors[2];
	labels_id labels;
	int rc;

	if (est->seen_calls == had->seen_calls)
		return 0;
	rc = burst_pieces_place(&row->pieces, al->run->ingest, &row->key, more,
				est->seen_calls - had->seen_calls, &row->stack, &labels);
	if (rc < 0)
		return rc;
	row->placed = true;
	burst_estimate_less(&since, had);
	row->added = *est;
	burst_errors(&since, &errors[0], &errors[1]);
	return alloc_add_errors(al, row->stack, labels, errors, NULL);
}

static int place_all(struct alloc *al)
{
	struct burst_row *row, *next;
	int rc = 0;

	HASH_ITER (hh, al->bursts->rows, row, next)
		if (rc == 0 || rc == -EAGAIN)
			rc = place(al, row);
	return rc == -EAGAIN ? 0 : rc; /* with the next, once its stack is there */
}

static int cut(struct run_bursts *s)
{
	_cleanup_(freep) struct burst_thread *threads = NULL;
	_cleanup_(freep) struct burst_cpu *cpus = NULL;
	uint64_t ns = now_ns();
	struct burst_times now;

	burst_timer_times(s->burst_timer, &now);
	threads = now.threads;
	cpus = threads ? cpus_of(threads, now.n) : NULL;
	return cpus ? bursts_cut(s->bursts, ns, cpus, now.n) : -ENOMEM;
}

static int add(struct alloc *al, bool boundary)
{
	int rc = 0;

	if (!al->bursts)
		return 0;
	if (boundary && !al->run->alloc.to_ns)
		rc = cut(al->bursts);
	if (rc == 0)
		rc = match(al, false);
	return rc == 0 ? place_all(al) : rc;
}

static int snapshot(struct alloc *al, struct profile_since *since, struct profile_now *now)
{
	struct burst_timer_stats stats;
	struct burst_estimate est;
	struct burst_facts facts;
	struct interval bytes;
	char *comment = now->comment[PROFILE_ALLOC];
	uint64_t from_ns, span_ns;
	uint32_t n;

	if (!al->bursts)
		return 0;
	bursts_facts(al->bursts->bursts, &facts);
	est = *bursts_total(al->bursts->bursts);
	burst_estimate_less(&est, &since->begin.bursts);
	n = facts.settled - since->begin.burst_facts.settled;
	bytes = burst_interval(&est, n);
	from_ns = since->begin.burst_facts.settled ? since->begin.burst_facts.settled_to_ns
						   : al->bursts->from_ns;
	span_ns = facts.settled_to_ns > from_ns ? facts.settled_to_ns - from_ns : 0;
	if (n == 0)
		snprintf(
			comment, sizeof(now->comment[0]),
			"%severy call in bursts: too few of them since the last window to estimate "
			"from; they are in the next",
			about_prefix(ABOUT_ESTIMATE));
	else
		snprintf(
			comment, sizeof(now->comment[0]),
			"%severy call in %u bursts, %.3g %% of %s, %llu calls seen; alloc_space 95 %% "
			"interval: %lld to %lld",
			about_prefix(ABOUT_ESTIMATE), n,
			span_ns ? (double)(facts.settled_covered_ns -
					   since->begin.burst_facts.settled_covered_ns) *
					  100 / (double)span_ns
				: 0,
			unit_ns((int64_t)span_ns).s, (unsigned long long)est.seen_calls,
			(long long)bytes.low, (long long)bytes.high);
	burst_timer_stats(al->bursts->burst_timer, &stats);
	if (now->duration_ns > 0)
		now->cost_percent[PROFILE_ALLOC] =
			(stats.target_ns + stats.own_ns - since->begin.burst_cost_ns) * 100 /
			(double)now->duration_ns;
	since->begin.burst_cost_ns = stats.target_ns + stats.own_ns;
	since->begin.bursts = *bursts_total(al->bursts->bursts);
	since->begin.burst_facts = facts;
	return 0;
}

/* --- in the end ------------------------------------------------------------------------------- */

static int finish(struct alloc *al, struct err *e)
{
	struct run_bursts *s = al->bursts;
	_cleanup_(freep) struct burst_cpu *cpus = NULL;
	struct burst_times first, last;
	int rc = -ENOMEM;

	if (!s) /* they did not begin */
		return 0;
	burst_timer_ends(s->burst_timer, &first, &last);
	cpus = cpus_of(last.threads, last.n);
	if (cpus)
		rc = bursts_finish(s->bursts, al->run->alloc.to_ns, cpus, last.n);
	if (rc == 0)
		rc = match(al, true);
	if (rc == 0)
		rc = place_all(al);
	if (rc == 0)
		live_finish(al);
	return rc < 0 ? err_set(e, rc, "out of memory: the profiles are not complete") : 0;
}

static void report(struct alloc *al, struct summary_alloc *a)
{
	struct run_bursts *s = al->bursts;
	const struct burst_estimate *total;
	struct interval bytes;
	struct burst_facts facts;
	double span_ns;

	if (!s) /* they did not begin */
		return;
	total = bursts_total(s->bursts);
	span_ns = (double)(al->run->alloc.to_ns - s->from_ns);
	a->freed_objects = a->freed_bytes = 0;
	a->live_objects = a->live_bytes = 0;
	a->n_live_sites = 0;
	bursts_facts(s->bursts, &facts);
	bytes = burst_interval(total, facts.bursts);
	a->bytes_interval = (struct summary_interval){ (int64_t)a->bytes + (int64_t)bytes.low,
						       (int64_t)a->bytes + (int64_t)bytes.high,
						       total->seen_calls };
	a->bytes += (uint64_t)llround(total->bytes);
	a->objects += (uint64_t)llround(total->calls);
	a->bursts.n = facts.bursts;
	if (s->after_exact)
		a->bursts.from_ns = (int64_t)(s->from_ns - session_start_ns(al->run->session));
	a->bursts.covered_ns = (int64_t)facts.covered_ns;
	a->bursts.span_ns = (int64_t)span_ns;
	a->bursts.seen_calls = total->seen_calls;
	a->bursts.seen_bytes = total->seen_bytes;
	if (total->seen_bytes) {
		a->bursts.weight = total->bytes / (double)total->seen_bytes;
		a->bursts.weight_low = bytes.low / (double)total->seen_bytes;
		a->bursts.weight_high = bytes.high / (double)total->seen_bytes;
	}
	a->bursts.hits = s->stats.hits + s->stats.late_hits;
	a->bursts.trap_ns = s->stats.trap_ns;
	a->bursts.target_ns = (int64_t)s->stats.target_ns;
	a->bursts.own_ns = (int64_t)s->stats.own_ns;
	a->bursts.worst_ns = (int64_t)s->stats.worst_ns;
	a->bursts.burst_ns = (int64_t)s->stats.burst_ns;
	a->bursts.limit_percent = al->run->cfg->max_overhead;
	if (span_ns > 0)
		a->bursts.cost_percent = (s->stats.target_ns + s->stats.own_ns) / span_ns * 100;
	alloc_site_intervals(al, false, a);
	live_report(al, a);
	if (s->full)
		run_note(
			al->run, true,
			"more than %u stacks of threads allocated: later ones count in the total of "
			"allocated bytes, but not in alloc; raise --mem (now %u MiB)",
			s->max_rows, al->run->cfg->mem_mb);
}

void bursts_close(struct alloc *al)
{
	struct run_bursts *s = al->bursts;

	live_free(al);
	if (!s)
		return;
	burst_timer_free(s->burst_timer);
	process_times_free(s->processes);
	bursts_free(s->bursts);
	burst_match_free(s->match);
	for (uint32_t i = 0; i < HASH_COUNT(s->rows); i++)
		burst_pieces_clear(&s->by_row[i]->pieces);
	hash_free(s->rows);
	free(s->by_row);
	free(s->totals);
	free(TAKE_PTR(al->bursts));
}

static void process(struct alloc *al, const struct process_event *event)
{
	bool begins = event->kind == PROCESS_ADDED || event->kind == PROCESS_MEMBER ||
		      event->kind == PROCESS_FORKED;

	if (al->bursts && al->bursts->processes && event->target) {
		if (begins)
			process_times_add(al->bursts->processes, event->pid);
		if (event->kind == PROCESS_ENDED)
			process_times_end(al->bursts->processes, event->pid);
	}
	probes_process(al, event);
	live_process_event(al, event);
}

const struct alloc_tier_ops bursts_ops = {
	.process = process,
	.limit = limit,
	.percent = percent,
	.total_bytes = total,
	.add = add,
	.snapshot = snapshot,
	.closing = closing,
	.finish = finish,
	.report = report,
};
