/*
 * Allocations in slices of time: where every call would cost too much, or has come to.
 *
 * Totals of a slice carry its number. They are held until the slice is over and all of them have been
 * read; then analyse/slices.h is told, which weighs them.
 */
#include "analyse/slices.h"
#include "base/units.h"
#include "cmd/run_parts.h"
#include "collect/slicer.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define READY_MAX 256 /* slices that end between two drains */
/* A row takes some 350 bytes: this part of --mem may go into them. */
#define ROW_BYTES 350
#define ROWS_PART 4

/* A stack of a thread, and its number. */
struct slice_row {
	struct ms_total_key key; /* without bucket */
	uint32_t row;
	stack_id stack; /* known in the end */
	bool placed;
	UT_hash_handle hh;
};

/* A total that waits for its slice. */
struct slice_total {
	uint32_t bucket;
	struct slice_calls calls;
};

struct run_slices {
	struct slicer *slicer;
	struct slices *slices;
	struct slice_row *rows;
	uint32_t max_rows;
	bool full;
	struct slice_total *totals;
	uint32_t n_totals, cap_totals;
	struct slice ready[READY_MAX];
	uint32_t n_ready;
	uint64_t from_ns;
	bool after_exact; /* every call was traced before */
	struct slicer_stats stats;
};

bool run_slicing_allocs(const struct run *r)
{
	return r->slices && r->slices->slicer && r->tier == ALLOC_TIER_SLICES && !r->alloc_to_ns;
}

void run_slices_limit(struct run *r, double max_percent)
{
	if (run_slicing_allocs(r))
		slicer_limit(r->slices->slicer, max_percent);
}

double run_slices_percent(struct run *r, uint64_t now_ns)
{
	struct slicer_stats stats;

	if (!run_slicing_allocs(r) || now_ns <= r->slices->from_ns)
		return 0;
	slicer_stats(r->slices->slicer, &stats);
	return (stats.target_ns + stats.own_ns) * 100 / (double)(now_ns - r->slices->from_ns);
}

bool run_probing_allocs(const struct run *r)
{
	return run_tracing_allocs(r) || run_slicing_allocs(r);
}

/* NULL: out of memory. */
static struct slice_cpu *cpus_of(const struct slice_thread *threads, uint32_t n)
{
	struct slice_cpu *cpus = calloc(n + 1, sizeof(*cpus));

	for (uint32_t i = 0; cpus && i < n; i++)
		cpus[i] = (struct slice_cpu){ threads[i].tid, threads[i].open_ns,
					      threads[i].close_ns };
	return cpus;
}

int run_slices_begin(struct run *r, uint64_t from_ns, struct err *e)
{
	_cleanup_(freep) struct slice_cpu *cpus = NULL;
	struct run_slices *s = calloc(1, sizeof(*s));
	struct slice_times first, last;
	int rc;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	r->slices = s;
	s->from_ns = from_ns;
	if (s->from_ns < session_start_ns(r->session))
		s->from_ns = session_start_ns(r->session);
	s->after_exact = r->tier == ALLOC_TIER_EXACT;
	s->max_rows = (uint32_t)(((uint64_t)r->cfg->mem_mb << 20) / ROWS_PART / ROW_BYTES);
	s->slices = slices_new(s->from_ns);
	if (!s->slices)
		return err_set(e, -ENOMEM, "out of memory");
	r->tier = ALLOC_TIER_SLICES;
	alloc_probes_slice(r->probes);
	rc = slicer_start(r->session, r->probes, run_waits_busy(r), r->for_allocs, &s->slicer, e);
	if (rc < 0)
		return rc;
	slicer_ends(s->slicer, &first, &last);
	cpus = cpus_of(first.threads, first.n);
	if (!cpus || slices_begin(s->slices, cpus, first.n) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* The number of a stack of a thread; the last one of all is for those that there is no room for. */
static int row_of(struct run_slices *s, const struct ms_total_key *key, uint32_t *ret_row)
{
	struct ms_total_key k = *key;
	struct slice_row *row;

	k.bucket = 0;
	HASH_FIND(hh, s->rows, &k, sizeof(k), row);
	if (!row && HASH_COUNT(s->rows) >= s->max_rows) {
		s->full = true;
		*ret_row = s->max_rows;
		return 0;
	}
	if (!row) {
		row = hash_new(s->rows, key, &k);
		if (!row)
			return -ENOMEM;
		row->row = HASH_COUNT(s->rows) - 1;
	}
	*ret_row = row->row;
	return 0;
}

int run_slices_total(struct run *r, const struct ms_total_key *key, const struct ms_total *total)
{
	struct run_slices *s = r->slices;
	struct slice_total *t;
	uint32_t row;
	int rc;

	if (!s)
		return 0;
	if (s->n_totals == s->cap_totals) {
		uint32_t cap = s->cap_totals ? s->cap_totals * 2 : 256;
		struct slice_total *more = realloc(s->totals, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->totals = more;
		s->cap_totals = cap;
	}
	rc = row_of(s, key, &row);
	if (rc < 0)
		return rc;
	t = &s->totals[s->n_totals++];
	t->bucket = key->bucket;
	t->calls = (struct slice_calls){ row, key->tid, total->count, total->value };
	return 0;
}

void run_slices_flip(struct run *r)
{
	struct run_slices *s = r->slices;

	if (s && s->slicer)
		s->n_ready += slicer_take(s->slicer, s->ready + s->n_ready, READY_MAX - s->n_ready);
}

/* Hands over the totals of one slice: they leave `totals`. */
static int settle(struct run_slices *s, struct slice *slice)
{
	_cleanup_(freep) struct slice_thread *threads = TAKE_PTR(slice->threads);
	_cleanup_(freep) struct slice_cpu *cpus = cpus_of(threads, threads ? slice->n_threads : 0);
	struct slice_span span = { slice->open_ns, slice->close_ns, slice->call_ns,
				   slice->call_sure_ns };
	_cleanup_(freep) struct slice_calls *calls = calloc(s->n_totals + 1, sizeof(*calls));
	uint32_t n = 0, left = 0;

	if (!calls || !cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_totals; i++)
		if (s->totals[i].bucket == slice->no)
			calls[n++] = s->totals[i].calls;
		else
			s->totals[left++] = s->totals[i];
	s->n_totals = left;
	return slices_add(s->slices, &span, calls, n, cpus, threads ? slice->n_threads : 0);
}

void run_slices_read(struct run *r)
{
	struct run_slices *s = r->slices;

	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_ready; i++)
		r->oom |= settle(s, &s->ready[i]) < 0;
	s->n_ready = 0;
}

void run_slices_stop(struct run *r)
{
	struct run_slices *s = r->slices;

	if (!run_slicing_allocs(r))
		return;
	slicer_stop(s->slicer);
	r->alloc_to_ns = run_now_ns();
	slicer_stats(s->slicer, &s->stats);
	run_say(r,
		"%u slices: %llu calls, %llu hits before and after; a trap costs %.0f ns; attaching took "
		"%.2f ms on average, %.1f at most, until taken away %.1f at most; the dearest cost %.2f ms "
		"of %.2f; target lost %.1f ms, own %.1f ms",
		s->stats.slices, (unsigned long long)s->stats.hits,
		(unsigned long long)s->stats.late_hits, s->stats.trap_ns,
		s->stats.slices ? (double)s->stats.attach_ns / 1e6 / s->stats.slices : 0,
		(double)s->stats.attach_worst_ns / 1e6, (double)s->stats.detach_worst_ns / 1e6,
		s->stats.worst_ns / 1e6, s->stats.slice_ns / 1e6, s->stats.target_ns / 1e6,
		s->stats.own_ns / 1e6);
}

/* --- in the end ------------------------------------------------------------------------------- */

static int place(struct run *r, struct slice_row *row)
{
	const struct slice_estimate *est = slices_row(r->slices->slices, row->row);
	int64_t values[4] = { llround(est->calls), llround(est->bytes), 0, 0 };
	labels_id labels;
	int rc;

	if (!est->seen_calls)
		return 0;
	rc = ingest_estimate(r->ingest, &row->key, values, est->seen_calls, &row->stack, &labels);
	row->placed = rc == 0;
	return rc;
}

int run_slices_finish(struct run *r, struct err *e)
{
	struct run_slices *s = r->slices;
	struct slice_row *row, *next;
	_cleanup_(freep) struct slice_cpu *cpus = NULL;
	struct slice_times first, last;
	int rc = -ENOMEM;

	slicer_ends(s->slicer, &first, &last);
	cpus = cpus_of(last.threads, last.n);
	if (cpus)
		rc = slices_finish(s->slices, r->alloc_to_ns, cpus, last.n);
	HASH_ITER (hh, s->rows, row, next)
		if (rc == 0)
			rc = place(r, row);
	return rc < 0 ? err_set(e, rc, "out of memory: the profiles are not complete") : 0;
}

/* What a site's stacks came to, in slices. */
static struct slice_estimate estimate_of_site(struct run *r, const struct site_row *site)
{
	struct run_slices *s = r->slices;
	struct slice_estimate sum = { 0 };
	struct slice_row *row, *next;

	HASH_ITER (hh, s->rows, row, next) {
		struct site_row of = { 0 };

		if (row->placed && site_of_stack(r->dict, row->stack, &of) == 0 &&
		    strcmp(of.function, site->function) == 0 &&
		    strcmp(of.module, site->module) == 0)
			slice_estimate_merge(&sum, slices_row(s->slices, row->row));
	}
	return sum;
}

void run_slices_facts(struct run *r, struct summary_alloc *a, struct site_row *sites)
{
	struct run_slices *s = r->slices;
	const struct slice_estimate *total = slices_total(s->slices);
	struct interval bytes;
	struct slice_facts facts;
	double span_ns = (double)(r->alloc_to_ns - s->from_ns);

	slices_facts(s->slices, &facts);
	bytes = slice_interval(total, facts.slices);
	a->bytes_interval = (struct summary_interval){ (int64_t)a->bytes + (int64_t)bytes.low,
						       (int64_t)a->bytes + (int64_t)bytes.high,
						       total->seen_calls };
	a->bytes += (uint64_t)llround(total->bytes);
	a->objects += (uint64_t)llround(total->calls);
	a->slices.n = facts.slices;
	if (s->after_exact)
		a->slices.from_ns = (int64_t)(s->from_ns - session_start_ns(r->session));
	a->slices.covered_ns = (int64_t)facts.covered_ns;
	a->slices.span_ns = (int64_t)span_ns;
	a->slices.seen_calls = total->seen_calls;
	a->slices.seen_bytes = total->seen_bytes;
	if (total->seen_bytes) {
		a->slices.weight = total->bytes / (double)total->seen_bytes;
		a->slices.weight_low = bytes.low / (double)total->seen_bytes;
		a->slices.weight_high = bytes.high / (double)total->seen_bytes;
	}
	a->slices.hits = s->stats.hits + s->stats.late_hits;
	a->slices.trap_ns = s->stats.trap_ns;
	a->slices.target_ns = (int64_t)s->stats.target_ns;
	a->slices.own_ns = (int64_t)s->stats.own_ns;
	a->slices.worst_ns = (int64_t)s->stats.worst_ns;
	a->slices.slice_ns = (int64_t)s->stats.slice_ns;
	a->slices.limit_percent = r->cfg->max_overhead;
	if (span_ns > 0)
		a->slices.cost_percent = (s->stats.target_ns + s->stats.own_ns) / span_ns * 100;
	for (uint32_t i = 0; i < a->n_sites; i++) {
		struct slice_estimate est = estimate_of_site(r, &sites[i]);
		struct interval site = slice_interval(&est, facts.slices);
		int64_t exact = sites[i].value - llround(est.bytes);

		sites[i].samples = est.seen_calls;
		sites[i].low = exact + (int64_t)site.low;
		sites[i].high = exact + (int64_t)site.high;
	}
	if (s->full)
		run_note(
			r, true,
			"more than %u stacks of threads allocated: those that came later are in the sum "
			"of what was allocated, but not in alloc; raise --mem (now %u MiB)",
			s->max_rows, r->cfg->mem_mb);
}

void run_slices_free(struct run *r)
{
	struct run_slices *s = r->slices;

	if (!s)
		return;
	slicer_free(s->slicer);
	slices_free(s->slices);
	hash_free(s->rows);
	free(s->totals);
	free(TAKE_PTR(r->slices));
}
