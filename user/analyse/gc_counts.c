#include "analyse/gc_counts.h"

#include "base/saturate.h"

#include <math.h>
#include <string.h>

#define Z95 1.959964

void gc_counts_begin(struct gc_counts *g, bool newborn, uint64_t now_ns)
{
	*g = (struct gc_counts){
		.zero = newborn, .begin_ns = now_ns, .end_ns = now_ns, .longest_ns = GC_UNKNOWN
	};
}

/* A pause that ended since the last look, if that can be said: there was one collection, and how much time that has added. */
static void note_pause(struct gc_counts *g, const struct gc_counters *c)
{
	int64_t pause = GC_UNKNOWN;

	if (c->longest_ns > g->last.longest_ns) { /* longer than any before */
		g->longest_ns = c->longest_ns;
		g->longest_exact = true;
		return;
	}
	if (c->last_ns != GC_UNKNOWN)
		pause = c->last_at > g->paused_at ? c->last_ns : GC_UNKNOWN;
	else if (c->count == g->last.count + 1 && c->time_ns != GC_UNKNOWN &&
		 g->last.time_ns != GC_UNKNOWN)
		pause = c->time_ns - g->last.time_ns;
	if (c->last_at > g->paused_at)
		g->paused_at = c->last_at;
	if (pause > g->longest_ns) {
		g->longest_ns = pause;
		g->longest_exact = false;
	}
}

void gc_counts_look(struct gc_counts *g, const struct gc_counters *c, uint64_t now_ns)
{
	if (!g->known) {
		g->known = true;
		g->first = *c;
		/* Of one that began in the run, all that it has counted is of the run. */
		if (g->zero && c->longest_ns > 0) {
			g->longest_ns = c->longest_ns;
			g->longest_exact = true;
		}
		g->last = *c;
		g->paused_at = g->zero ? 0 : c->last_at;
	}
	note_pause(g, c);
	if (c->looks) {
		bool other = c->count != g->found_count;

		g->looks++;
		g->collecting += c->collecting;
		g->found += c->collecting && (!g->was_collecting || other);
		g->was_collecting = c->collecting;
		g->found_count = c->count;
	}
	/* While one is under way, what is alive is not known: then it is what it was. */
	if (c->live_bytes == GC_UNKNOWN) {
		int64_t live = g->last.live_bytes;

		g->last = *c;
		g->last.live_bytes = live;
	} else {
		g->last = *c;
	}
	g->end_ns = now_ns;
}

static uint64_t since(const struct gc_counts *g, uint64_t first, uint64_t last)
{
	if (g->zero)
		return last;
	return last > first ? last - first : 0;
}

uint32_t gc_totals_row(struct gc_totals *t, const char *runtime)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->rows[i].runtime, runtime) == 0)
			return i;
	if (t->n == GC_ROWS)
		return GC_ROWS - 1;
	t->rows[t->n] = (struct gc_row){ .runtime = runtime,
					 .time_ns = GC_UNKNOWN,
					 .longest_ns = GC_UNKNOWN,
					 .live_bytes = GC_UNKNOWN,
					 .heap_bytes = GC_UNKNOWN };
	return t->n++;
}

static void add_known(int64_t *sum, int64_t value)
{
	if (value != GC_UNKNOWN)
		*sum = add_saturating(*sum == GC_UNKNOWN ? 0 : *sum, value);
}

static void add_kind(struct gc_row *row, const char *name, uint64_t count)
{
	uint32_t i;

	for (i = 0; i < row->n_kinds; i++)
		if (strcmp(row->kinds[i].name, name) == 0)
			break;
	if (i == GC_KINDS)
		return;
	if (i == row->n_kinds)
		memcpy(row->kinds[row->n_kinds++].name, name, GC_KIND_NAME);
	row->kinds[i].count += count;
}

void gc_totals_add(struct gc_totals *t, uint32_t at, const struct gc_counts *g)
{
	struct gc_row *row = &t->rows[at];
	bool timed = g->last.time_ns != GC_UNKNOWN;
	int64_t first_ns = g->zero || g->first.time_ns == GC_UNKNOWN ? 0 : g->first.time_ns;

	row->processes++;
	if (!g->known)
		return;
	row->count += since(g, g->first.count, g->last.count);
	row->major += since(g, g->first.major, g->last.major);
	for (uint32_t i = 0; i < g->last.n_kinds; i++)
		add_kind(row, g->last.kinds[i].name,
			 since(g, g->first.kinds[i].count, g->last.kinds[i].count));
	row->seen_ns += (int64_t)(g->end_ns - g->begin_ns);
	if (timed && g->last.time_ns >= first_ns)
		add_known(&row->time_ns, g->last.time_ns - first_ns);
	if (!timed) {
		row->looks += g->looks;
		row->collecting += g->collecting;
		row->found += g->found;
		row->looked_ns += (int64_t)(g->end_ns - g->begin_ns);
	}
	if (g->longest_ns > row->longest_ns) {
		row->longest_ns = g->longest_ns;
		row->longest_exact = g->longest_exact;
	}
}

void gc_totals_live(struct gc_totals *t, uint32_t at, const struct gc_counts *g)
{
	if (!g->known)
		return;
	add_known(&t->rows[at].live_bytes, g->last.live_bytes);
	add_known(&t->rows[at].heap_bytes, g->last.heap_bytes);
}

static int64_t whole_ns(double ns)
{
	return ns < 0x1p63 ? llround(ns) : INT64_MAX;
}

/* Wilson's interval of a part, of as many looks as there were different collections to find. */
bool gc_row_time(const struct gc_row *row, struct gc_time_of *ret_time)
{
	double part, n, middle, off,
		counted = row->time_ns == GC_UNKNOWN ? 0 : (double)row->time_ns;
	double all = (double)row->looked_ns;

	if (!row->looks) {
		if (row->time_ns == GC_UNKNOWN)
			return false;
		*ret_time = (struct gc_time_of){ false, row->time_ns, row->time_ns, row->time_ns };
		return true;
	}
	part = (double)row->collecting / (double)row->looks;
	n = (double)row->looks;
	if (row->collecting)
		n *= (double)row->found / (double)row->collecting;
	middle = (part + Z95 * Z95 / (2 * n)) / (1 + Z95 * Z95 / n);
	off = Z95 * sqrt(part * (1 - part) / n + Z95 * Z95 / (4 * n * n)) / (1 + Z95 * Z95 / n);
	*ret_time = (struct gc_time_of){ true, whole_ns(counted + part * all),
					 whole_ns(counted + fmax(0, middle - off) * all),
					 whole_ns(counted + fmin(1, middle + off) * all) };
	return true;
}

static int64_t at_most(uint64_t count)
{
	return count < INT64_MAX ? (int64_t)count : INT64_MAX;
}

void gc_totals_sample(const struct gc_totals *t, struct gc_sample *ret_sample)
{
	struct gc_sample s = { .known = t->n > 0,
			       .time_ns = GC_UNKNOWN,
			       .live_bytes = GC_UNKNOWN,
			       .heap_bytes = GC_UNKNOWN };

	for (uint32_t i = 0; i < t->n; i++) {
		struct gc_time_of time;

		s.count = add_saturating(s.count, at_most(t->rows[i].count));
		s.major = add_saturating(s.major, at_most(t->rows[i].major));
		if (gc_row_time(&t->rows[i], &time))
			add_known(&s.time_ns, time.ns);
	}
	*ret_sample = s;
}

void gc_sample_heap(struct gc_sample *s, const struct gc_counts *g)
{
	add_known(&s->live_bytes, g->last.live_bytes);
	add_known(&s->heap_bytes, g->last.heap_bytes);
}
