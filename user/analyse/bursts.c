#include "analyse/bursts.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A block is settled only when as many bursts again have followed, so that the last block is never
 * a short one. */
#define BLOCK BURST_GROUPS
#define HELD  (2 * BLOCK)

/* The least time of an allocating call, with the program's work between two: the tightest loop of
 * malloc and free takes 9 to 13 ns a pair on machines of 2024. Programs that do other work, too,
 * take more: C++ containers, python3 and sqlite3 110 to 180. */
#define LEAST_CALL_NS 5.0
#define USUAL_CALL_NS 20.0

/* Bursts are pooled by the part of them that was lost, within these bounds; below the first bound
 * each is weighed alone. */
static const double bounds[] = { 0.5, 0.8, 0.9, 0.95 };
#define N_KINDS (sizeof(bounds) / sizeof(bounds[0]) + 1)

struct held {
	struct burst_span span;
	uint64_t from_ns, to_ns; /* the interval it represents; to_ns: known with the next one */
	struct burst_calls *calls;
	struct burst_cpu *cpus;
	uint32_t n, n_cpus;
};

struct bursts {
	/* The burst before the first held one, and the run's end: CPU times alone. */
	struct held held[HELD], before, after;
	bool has_before; /* `before` is a burst, not the run's beginning */
	uint32_t n_held;
	uint64_t from_ns; /* start of the next one's interval */
	struct burst_estimate *rows, total;
	uint32_t n_rows, cap_rows;
	struct burst_facts facts;
	bursts_settled_fn on_settled;
	void *settled_ctx;
};

/* The assumed cost of a call: as measured, larger, smaller; so bytes: middle, more, fewer. */
enum { MID, LOW, HIGH, N_CASES };

/* A thread in a burst, ns. */
struct share {
	uint32_t thread, burst, kind;
	double calls;
	double had;          /* CPU time in the burst                           */
	double around;       /* in the burst's interval, less what it lost       */
	double says;         /* the burst's estimate of that: D/L * had          */
	double own[N_CASES]; /* of `had`, its own work                           */
	double weight[N_CASES];
};

/* A row's calls, weighed. */
struct entry {
	uint32_t row, burst, thread;
	double calls, weight, bytes[N_CASES];
	uint64_t seen_calls, seen_bytes;
};

struct bursts *bursts_new(uint64_t from_ns)
{
	struct bursts *s = calloc(1, sizeof(*s));

	if (s)
		s->from_ns = from_ns;
	return s;
}

/* The last one dropped becomes `before`. */
static void drop_held(struct bursts *s, uint32_t n)
{
	if (n) {
		free(s->before.cpus);
		s->before = s->held[n - 1];
		s->before.calls = NULL;
		s->before.cpus = TAKE_PTR(s->held[n - 1].cpus);
		s->has_before = true;
	}
	for (uint32_t i = 0; i < n; i++) {
		free(s->held[i].calls);
		free(s->held[i].cpus);
	}
	memmove(s->held, s->held + n, (s->n_held - n) * sizeof(*s->held));
	s->n_held -= n;
}

void bursts_free(struct bursts *s)
{
	if (!s)
		return;
	drop_held(s, s->n_held);
	free(s->before.cpus);
	free(s->after.cpus);
	free(s->rows);
	free(s);
}

static int by_thread(const void *a, const void *b)
{
	const struct burst_calls *x = a, *y = b;

	return (x->thread > y->thread) - (x->thread < y->thread);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_row(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->row != y->row)
		return x->row > y->row ? 1 : -1;
	return (x->burst > y->burst) - (x->burst < y->burst);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static uint32_t kind_of(double lost, double length)
{
	uint32_t kind = 0;

	while (kind < N_KINDS - 1 && lost >= bounds[kind] * length)
		kind++;
	return kind;
}

static const struct burst_cpu *cpu_of(const struct held *h, uint32_t thread)
{
	uint32_t low = 0, high = h->n_cpus;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (h->cpus[mid].thread == thread)
			return &h->cpus[mid];
		if (h->cpus[mid].thread < thread)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static double length_of(const struct held *h)
{
	return larger((double)(h->span.close_ns - h->span.open_ns), 1);
}

static double span_of(const struct held *h)
{
	/* One that was open at a boundary begins before its interval does. */
	return h->to_ns > h->from_ns ? larger((double)(h->to_ns - h->from_ns), length_of(h))
				     : length_of(h);
}

/* CPU time of a thread between two consecutive bursts; a new thread had none before. */
static double between(const struct held *a, const struct held *b, uint32_t thread)
{
	const struct burst_cpu *in_a = cpu_of(a, thread), *in_b = cpu_of(b, thread);

	if (!in_b || !b->n_cpus)
		return 0;
	if (!in_a)
		return (double)in_b->open_ns;
	return in_b->open_ns > in_a->close_ns ? (double)(in_b->open_ns - in_a->close_ns) : 0;
}

/* A thread's share of burst `i`, CPU times filled in; `calls` 0: it made none. */
static struct share share_of(const struct bursts *s, uint32_t i, uint32_t thread, uint64_t calls)
{
	const struct held *h = &s->held[i];
	const struct burst_cpu *cpu = cpu_of(h, thread);
	double length = length_of(h), n = (double)calls;
	double cost[N_CASES] = {
		[MID] = h->span.call_ns,
		[LOW] = larger(h->span.call_ns - h->span.call_sure, 0),
		[HIGH] = h->span.call_ns + h->span.call_sure,
	};
	struct share share = { .thread = thread, .burst = i, .calls = n };

	share.had =
		cpu ? larger((double)(cpu->close_ns - cpu->open_ns), n * LEAST_CALL_NS) : length;
	if (cpu) {
		share.around = share.had - n * cost[MID];
		if (i > 0 || s->has_before)
			share.around += between(i > 0 ? h - 1 : &s->before, h, thread) / 2;
		else
			share.around += between(&s->before, h, thread);
		if (i + 1 < s->n_held)
			share.around += between(h, h + 1, thread) / 2;
		else
			share.around += between(h, &s->after, thread);
	} else {
		share.around = span_of(h) - n * cost[MID];
	}
	share.says = span_of(h) / length * share.had;
	share.kind = kind_of(n * cost[MID], share.had);
	for (int k = 0; k < N_CASES; k++)
		share.own[k] = share.had - n * cost[k];
	return share;
}

/* s of the header: the ratio of threads' true CPU time to the estimate from bursts; shares are
 * sorted by thread. */
static void add_up(struct share *shares, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		double around = 0, says = 0;
		uint32_t from = i;

		for (; i < n && shares[i].thread == shares[from].thread; i++) {
			around += shares[i].around;
			says += shares[i].says;
		}
		for (uint32_t j = from; j < i && says > 0; j++)
			shares[j].says *= larger(around, 0) / says;
	}
}

/* The rest of a thread's time when calls cost as much as case `which` says, ns. */
static double left_of(const double *own, double calls, int which, double least_ns)
{
	return larger(own[which], calls * least_ns);
}

/*
 * At the measured cost of a call: the geometric mean of the other two cases. Where the error of the
 * cost is small beside what is left, that is nearly what is left at that cost; where it is not,
 * nothing may be left at that cost, and a quotient by it would be arbitrary.
 */
static double own_work(const double *own, double calls, int which)
{
	if (which != MID)
		return left_of(own, calls, which, LEAST_CALL_NS);
	return sqrt(left_of(own, calls, LOW, USUAL_CALL_NS) *
		    left_of(own, calls, HIGH, USUAL_CALL_NS));
}

/* Weights of all threads in all bursts of a block. */
static void weigh(struct share *shares, uint32_t n)
{
	double calls[N_KINDS] = { 0 }, says[N_KINDS] = { 0 }, own[N_KINDS][N_CASES] = { { 0 } };

	add_up(shares, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct share *share = &shares[i];

		calls[share->kind] += share->calls;
		says[share->kind] += share->says;
		for (int j = 0; j < N_CASES; j++)
			own[share->kind][j] += share->own[j];
	}
	for (uint32_t i = 0; i < n; i++) {
		struct share *share = &shares[i];
		uint32_t kind = share->kind;

		for (int j = 0; j < N_CASES; j++) {
			double weight = kind ? says[kind] / own_work(own[kind], calls[kind], j)
					     : share->says / own_work(share->own, share->calls, j);

			share->weight[j] = larger(weight, 1); /* never below what was seen */
		}
	}
}

static uint64_t calls_of(const struct held *h, uint32_t thread, uint32_t *at)
{
	uint64_t calls = 0;

	while (*at < h->n && h->calls[*at].thread < thread)
		++*at;
	for (; *at < h->n && h->calls[*at].thread == thread; ++*at)
		calls += h->calls[*at].calls;
	return calls;
}

/* The threads that made calls in the block, by number. */
static uint32_t callers(const struct bursts *s, uint32_t m, uint32_t *threads)
{
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < s->held[i].n; j++)
			threads[n++] = s->held[i].calls[j].thread;
	qsort(threads, n, sizeof(*threads), by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!kept || threads[kept - 1] != threads[i])
			threads[kept++] = threads[i];
	return kept;
}

/* Each of `threads` in each burst of the block, by thread. */
static void make_shares(struct bursts *s, uint32_t m, const uint32_t *threads, uint32_t n,
			struct share *shares)
{
	for (uint32_t i = 0; i < m; i++) {
		struct held *h = &s->held[i];
		uint32_t at = 0;

		qsort(h->calls, h->n, sizeof(*h->calls), by_thread);
		for (uint32_t j = 0; j < n; j++)
			shares[j * m + i] =
				share_of(s, i, threads[j], calls_of(h, threads[j], &at));
	}
}

static uint32_t make_entries(const struct bursts *s, uint32_t m, const uint32_t *threads,
			     const struct share *shares, struct entry *entries)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m; i++) {
		uint32_t thread = 0;

		for (uint32_t j = 0; j < s->held[i].n; j++) {
			const struct burst_calls *c = &s->held[i].calls[j];
			const struct share *share;
			struct entry *e = &entries[n++];

			while (threads[thread] != c->thread) /* both are sorted */
				thread++;
			share = &shares[thread * m + i];
			e->row = c->row;
			e->burst = i;
			e->thread = c->thread;
			e->weight = share->weight[MID];
			e->calls = share->weight[MID] * (double)c->calls;
			for (int k = 0; k < N_CASES; k++)
				e->bytes[k] = share->weight[k] * (double)c->bytes;
			e->seen_calls = c->calls;
			e->seen_bytes = c->bytes;
		}
	}
	qsort(entries, n, sizeof(*entries), by_row);
	return n;
}

/*
 * The part of the block that each burst represents: of CPU time or, where bursts are pooled, of
 * their own work, by which their calls are divided there.
 */
static void make_parts(uint32_t m, const struct share *shares, uint32_t n, double *parts)
{
	double says[N_KINDS] = { 0 }, own[N_KINDS] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < n * m; i++) {
		says[shares[i].kind] += shares[i].says;
		own[shares[i].kind] += shares[i].own[MID];
	}
	for (uint32_t i = 0; i < m; i++) {
		parts[i] = 0;
		for (uint32_t j = 0; j < n; j++) {
			const struct share *share = &shares[j * m + i];

			parts[i] += share->kind && own[share->kind] > 0
					    ? share->own[MID] / own[share->kind] * says[share->kind]
					    : share->says;
		}
		sum += parts[i];
	}
	for (uint32_t i = 0; i < m && sum > 0; i++)
		parts[i] /= sum;
}

static struct burst_estimate *row_get(struct bursts *s, uint32_t row)
{
	if (row >= s->cap_rows) {
		uint32_t cap = row < 512 ? 1024 : row * 2;
		struct burst_estimate *more = realloc(s->rows, cap * sizeof(*more));

		if (!more)
			return NULL;
		memset(more + s->cap_rows, 0, (cap - s->cap_rows) * sizeof(*more));
		s->rows = more;
		s->cap_rows = cap;
	}
	if (row >= s->n_rows)
		s->n_rows = row + 1;
	return &s->rows[row];
}

static void tell_settled(const struct bursts *s, const struct entry *e)
{
	const struct held *h = &s->held[e->burst];
	struct burst_settled settled = { e->row,        e->thread, h->span.no, e->calls,
					 e->bytes[MID], e->weight, h->from_ns, h->to_ns };

	s->on_settled(s->settled_ctx, &settled);
}

/* One row's entries of a block of `m` bursts into its estimate. */
static void settle_row(const struct bursts *s, uint32_t m, const double *parts,
		       const struct entry *entries, uint32_t n, struct burst_estimate *est)
{
	double said[HELD] = { 0 }, sum = 0, span = 0, covered = 0, scale;

	for (uint32_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];

		est->seen_calls += e->seen_calls;
		est->seen_bytes += e->seen_bytes;
		est->calls += e->calls;
		est->bytes += e->bytes[MID];
		est->low_bytes += e->bytes[LOW];
		est->high_bytes += e->bytes[HIGH];
		if (s->on_settled && est != &s->total)
			tell_settled(s, e);
		said[e->burst] += e->bytes[MID];
		sum += e->bytes[MID];
	}
	for (uint32_t i = 0; i < m; i++) {
		span += span_of(&s->held[i]);
		covered += length_of(&s->held[i]);
	}
	scale = m > 1 ? sqrt((double)m / (m - 1) * larger(1 - covered / span, 0)) : 1;
	for (uint32_t i = 0; i < m; i++)
		est->group[i % BURST_GROUPS] += scale * (said[i] - (m > 1 ? sum * parts[i] : 0));
}

/* Settles the first `m` bursts. */
static int settle(struct bursts *s, uint32_t m)
{
	_cleanup_(freep) struct share *shares = NULL;
	_cleanup_(freep) struct entry *entries = NULL;
	_cleanup_(freep) uint32_t *threads = NULL;
	double parts[HELD] = { 0 };
	uint32_t n = 0, n_threads, n_entries;

	for (uint32_t i = 0; i < m; i++)
		n += s->held[i].n;
	threads = calloc(n + 1, sizeof(*threads));
	entries = calloc(n + 1, sizeof(*entries));
	if (!threads || !entries)
		return -ENOMEM;
	n_threads = callers(s, m, threads);
	shares = calloc((size_t)n_threads * m + 1, sizeof(*shares));
	if (!shares)
		return -ENOMEM;
	make_shares(s, m, threads, n_threads, shares);
	weigh(shares, n_threads * m);
	make_parts(m, shares, n_threads, parts);
	n_entries = make_entries(s, m, threads, shares, entries);
	for (uint32_t i = 0; i < n_entries;) {
		struct burst_estimate *est = row_get(s, entries[i].row);
		uint32_t from = i;

		if (!est)
			return -ENOMEM;
		while (i < n_entries && entries[i].row == entries[from].row)
			i++;
		settle_row(s, m, parts, entries + from, i - from, est);
	}
	settle_row(s, m, parts, entries, n_entries, &s->total);
	for (uint32_t i = 0; i < m; i++)
		s->facts.settled_covered_ns += (uint64_t)length_of(&s->held[i]);
	s->facts.settled += m;
	s->facts.settled_to_ns = s->held[m - 1].to_ns;
	drop_held(s, m);
	return 0;
}

static int by_cpu_thread(const void *a, const void *b)
{
	const struct burst_cpu *x = a, *y = b;

	return (x->thread > y->thread) - (x->thread < y->thread);
}

static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n + 1, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

int bursts_add(struct bursts *s, const struct burst_span *span, const struct burst_calls *calls,
	       uint32_t n, const struct burst_cpu *cpus, uint32_t n_cpus)
{
	struct held *h;
	int r = 0;

	if (s->n_held) {
		h = &s->held[s->n_held - 1];
		s->from_ns = h->to_ns = h->span.close_ns + (span->open_ns - h->span.close_ns) / 2;
	}
	if (s->n_held == HELD)
		r = settle(s, BLOCK);
	if (r < 0)
		return r;
	h = &s->held[s->n_held];
	memset(h, 0, sizeof(*h));
	h->calls = copy(calls, n, sizeof(*calls));
	h->cpus = copy(cpus, n_cpus, sizeof(*cpus));
	if (!h->calls || !h->cpus) {
		free(h->calls);
		free(h->cpus);
		return -ENOMEM;
	}
	qsort(h->cpus, n_cpus, sizeof(*h->cpus), by_cpu_thread);
	h->n = n;
	h->n_cpus = n_cpus;
	h->span = *span;
	h->from_ns = s->from_ns;
	s->n_held++;
	s->facts.bursts++;
	s->facts.covered_ns += span->close_ns - span->open_ns;
	return 0;
}

int bursts_begin(struct bursts *s, const struct burst_cpu *cpus, uint32_t n_cpus)
{
	s->before.cpus = copy(cpus, n_cpus, sizeof(*cpus));
	if (!s->before.cpus)
		return -ENOMEM;
	qsort(s->before.cpus, n_cpus, sizeof(*cpus), by_cpu_thread);
	s->before.n_cpus = n_cpus;
	return 0;
}

/* All that are held; CPU times at `to_ns` are known. */
static int settle_to(struct bursts *s, uint64_t to_ns, const struct burst_cpu *cpus,
		     uint32_t n_cpus)
{
	struct held *last = &s->held[s->n_held - 1];

	free(s->after.cpus);
	s->after.cpus = copy(cpus, n_cpus, sizeof(*cpus));
	if (!s->after.cpus)
		return -ENOMEM;
	qsort(s->after.cpus, n_cpus, sizeof(*cpus), by_cpu_thread);
	s->after.n_cpus = n_cpus;
	last->to_ns = to_ns > last->span.close_ns ? to_ns : last->span.close_ns;
	return settle(s, s->n_held);
}

int bursts_cut(struct bursts *s, uint64_t ns, const struct burst_cpu *cpus, uint32_t n_cpus)
{
	int r = s->n_held < BLOCK ? 0 : settle_to(s, ns, cpus, n_cpus);

	if (r < 0 || s->n_held || !s->after.cpus)
		return r;
	free(s->before.cpus);
	s->before = s->after;
	s->after.cpus = NULL;
	s->has_before = false;
	s->from_ns = s->facts.settled_to_ns;
	return 0;
}

int bursts_finish(struct bursts *s, uint64_t to_ns, const struct burst_cpu *cpus, uint32_t n_cpus)
{
	return s->n_held ? settle_to(s, to_ns, cpus, n_cpus) : 0;
}

void bursts_on_settled(struct bursts *s, bursts_settled_fn fn, void *ctx)
{
	s->on_settled = fn;
	s->settled_ctx = ctx;
}

const struct burst_estimate *bursts_row(const struct bursts *s, uint32_t row)
{
	static const struct burst_estimate none;

	return row < s->n_rows ? &s->rows[row] : &none;
}

const struct burst_estimate *bursts_total(const struct bursts *s)
{
	return &s->total;
}

void bursts_facts(const struct bursts *s, struct burst_facts *ret_facts)
{
	*ret_facts = s->facts;
}

void burst_estimate_merge(struct burst_estimate *to, const struct burst_estimate *from)
{
	to->seen_calls += from->seen_calls;
	to->seen_bytes += from->seen_bytes;
	to->calls += from->calls;
	to->bytes += from->bytes;
	to->low_bytes += from->low_bytes;
	to->high_bytes += from->high_bytes;
	for (int i = 0; i < BURST_GROUPS; i++)
		to->group[i] += from->group[i];
}

void burst_estimate_less(struct burst_estimate *from, const struct burst_estimate *part)
{
	from->seen_calls -= part->seen_calls;
	from->seen_bytes -= part->seen_bytes;
	from->calls -= part->calls;
	from->bytes -= part->bytes;
	from->low_bytes -= part->low_bytes;
	from->high_bytes -= part->high_bytes;
	for (int i = 0; i < BURST_GROUPS; i++)
		from->group[i] -= part->group[i];
}

void burst_errors(const struct burst_estimate *est, struct value_error *ret_calls,
		  struct value_error *ret_bytes)
{
	double each = est->bytes > 0 ? est->calls / est->bytes : 0;
	struct value_error bytes = {
		.samples = (double)est->seen_calls,
		.unseen = larger(est->bytes - (double)est->seen_bytes, 0),
		.below = fabs(est->bytes - est->low_bytes),
		.above = fabs(est->high_bytes - est->bytes),
	};
	struct value_error calls = {
		.samples = (double)est->seen_calls,
		.unseen = larger(est->calls - (double)est->seen_calls, 0),
		.below = each * bytes.below,
		.above = each * bytes.above,
	};

	for (int g = 0; g < BURST_GROUPS; g++) {
		bytes.group[g] = est->group[g];
		calls.group[g] = each * est->group[g];
	}
	*ret_calls = calls;
	*ret_bytes = bytes;
}

/* The 97.5 % quantile of Student's distribution. */
static double student(uint32_t freedom)
{
	static const double t[BURST_GROUPS] = { 12.706, 12.706, 4.303, 3.182, 2.776, 2.571,
						2.447,  2.365,  2.306, 2.262, 2.228, 2.201,
						2.179,  2.160,  2.145, 2.131 };

	return t[freedom < BURST_GROUPS ? freedom : BURST_GROUPS - 1];
}

struct interval burst_interval(const struct burst_estimate *est, uint32_t bursts)
{
	double t = student(bursts ? bursts - 1 : 0), squares = 0, below, above;
	struct interval i;

	for (int g = 0; g < BURST_GROUPS; g++)
		squares += est->group[g] * est->group[g];
	below = est->bytes - est->low_bytes;
	above = est->high_bytes - est->bytes;
	i.low = est->bytes - sqrt(t * t * squares + below * below);
	i.high = est->bytes + sqrt(t * t * squares + above * above);
	if (i.low < (double)est->seen_bytes)
		i.low = (double)est->seen_bytes;
	if (i.high < i.low)
		i.high = i.low;
	return i;
}
