#include "analyse/diagnosis.h"

#include "analyse/beta.h"
#include "base/units.h"
#include "model/alloc_site.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEAST_BYTES     (16 << 20)
#define TEMPORARY_PART  0.25
#define SHORT_PART      0.75 /* of allocations, freed within a millisecond */
#define SHORT_CLASSES   3    /* 10 us, 100 us, 1 ms                        */
#define CHURN_CPU       0.10
#define CHURN_CPU_ALONE 0.25
#define DOUBT           0.025 /* probability of as many samples from a smaller part */
#define SPIKE           2.0
#define OVERHEAD_PART   0.33
#define FREE_PART       0.25

static const char *const names[N_DIAGNOSES] = {
	[DIAGNOSIS_LEAK] = "leak",
	[DIAGNOSIS_CHURN] = "churn",
	[DIAGNOSIS_BLOAT] = "bloat",
	[DIAGNOSIS_FRAGMENTATION] = "fragmentation",
};

const char *diagnosis_name(enum diagnosis_kind kind)
{
	return names[kind];
}

struct found {
	struct diagnosis *all;
	uint32_t n;
};

static void add(struct found *f, enum diagnosis_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void add(struct found *f, enum diagnosis_kind kind, const char *fmt, ...)
{
	struct diagnosis *d = &f->all[f->n++];
	va_list ap;

	d->kind = kind;
	va_start(ap, fmt);
	vsnprintf(d->evidence, sizeof(d->evidence), fmt, ap);
	va_end(ap);
}

static int percent(double part)
{
	return (int)lround(part * 100);
}

static bool is_traced(const struct run_summary *s)
{
	return s->alloc.tier == ALLOC_TIER_EXACT && s->alloc.objects > 0;
}

/* "in NAME", or nothing. */
static const char *in_site(const struct site_row *row, char *buf, size_t size)
{
	buf[0] = '\0';
	if (row && *row->function)
		snprintf(buf, size, ", most of it in %.80s", row->function);
	return buf;
}

static void find_leak(const struct run_summary *s, struct found *f)
{
	const struct summary_leak *l = &s->alloc.leaks[0];
	double per = s->duration_ns < 7200000000000 ? 60 : 3600;

	if (s->alloc.n_leaks > 0)
		add(f, DIAGNOSIS_LEAK,
		    "%u %s; the fastest (%.80s) by %s %s (95 %% interval %s); %d%% of its blocks older "
		    "than %.0f s are still live",
		    s->alloc.n_leaks,
		    s->alloc.n_leaks == 1 ? "allocation site keeps growing"
					  : "allocation sites keep growing",
		    *l->site.function ? l->site.function : "[unknown]",
		    unit_bytes((int64_t)(l->slope * per)).s, per > 60 ? "an hour" : "a minute",
		    unit_bytes_range((int64_t)(l->slope_low * per), (int64_t)(l->slope_high * per),
				     false)
			    .s,
		    percent(l->survived), l->age_s);
	else if (!is_traced(s) && s->shape.kind == TREND_SHAPE_GROWING && s->memory.known &&
		 (s->memory.last - s->memory.base) * 1024 >= LEAST_BYTES)
		add(f, DIAGNOSIS_LEAK,
		    "private memory grew by %s and is still growing; calls were not traced, so its allocation "
		    "sites are unknown (--alloc=exact finds them)",
		    unit_bytes((s->memory.last - s->memory.base) * 1024).s);
}

/* The samples' estimate of the allocator's part of the CPU time, without our own probes. */
struct allocator_time {
	double samples, of;
};

static struct allocator_time allocator_time(const struct run_summary *s)
{
	struct allocator_time t = { .samples = (double)s->oncpu.allocator_samples };

	if (s->oncpu.probe_samples < s->oncpu.samples)
		t.of = (double)(s->oncpu.samples - s->oncpu.probe_samples);
	if (t.samples > t.of)
		t.samples = t.of;
	return t;
}

/* Are so many samples improbable (DOUBT) from a smaller true part? By the tail of the binomial
 * distribution. */
static bool is_surely(struct allocator_time t, double part)
{
	return t.samples > 0 && beta_inc(t.samples, t.of - t.samples + 1, part) <= DOUBT;
}

static void find_churn(const struct run_summary *s, struct found *f)
{
	const struct summary_alloc *a = &s->alloc;
	struct allocator_time cpu = allocator_time(s);
	double all = (double)a->objects, temporary, brief = 0;
	char site[128];

	if (!is_traced(s)) {
		if (is_surely(cpu, CHURN_CPU_ALONE))
			add(f, DIAGNOSIS_CHURN,
			    "%d%% of its CPU time is spent in the allocator; --alloc=exact shows which "
			    "allocations are short-lived",
			    percent(cpu.samples / cpu.of));
		return;
	}
	temporary = (double)a->temporary / all;
	for (int i = 0; i < SHORT_CLASSES; i++)
		brief += (double)a->lives[i] / all;
	if ((temporary < TEMPORARY_PART && brief < SHORT_PART) || !is_surely(cpu, CHURN_CPU))
		return;
	add(f, DIAGNOSIS_CHURN,
	    "%d%% of %s allocations are temporary and %d%% live less than a millisecond%s; %d%% of its "
	    "CPU time is spent in the allocator",
	    percent(temporary), unit_count((int64_t)a->objects).s, percent(brief),
	    in_site(a->more && a->more->n_temporary ? &a->more->temporary[0] : NULL, site,
		    sizeof(site)),
	    percent(cpu.samples / cpu.of));
}

static int64_t heap_resident(const struct ledger *l)
{
	int64_t sum = 0;

	for (int i = 0; i < N_LEDGER_PARTS; i++)
		if (ledger_of_heap((enum ledger_part)i))
			sum += ledger_part_bytes(l, &l->parts[i]);
	return sum;
}

/* Of several containers, or of a host, nobody knows whose heap it is. */
static bool is_of_one(const struct run_summary *s)
{
	return s->ledger.now.processes && !s->ledger.n_containers;
}

static void find_bloat(const struct run_summary *s, struct found *f)
{
	const struct summary_alloc *a = &s->alloc;
	const struct ledger *l = &s->ledger.now;
	int64_t keeps = (int64_t)a->live_bytes, heap = heap_resident(l);
	int64_t metadata = ledger_part_bytes(l, &l->parts[LEDGER_METADATA]);
	char site[128];

	if (is_traced(s) && a->peak.images == 1 && a->peak.bytes - keeps >= LEAST_BYTES &&
	    (double)a->peak.bytes >= SPIKE * (double)keeps)
		add(f, DIAGNOSIS_BLOAT,
		    "at its peak, %.1f s into the run, %s allocated in the run were live%s; at the end, %s. "
		    "Size its memory limit for the peak",
		    (double)a->peak.at_ns / 1e9, unit_bytes(a->peak.bytes).s,
		    in_site(a->more && a->more->n_peak ? &a->more->peak[0] : NULL, site,
			    sizeof(site)),
		    unit_bytes(keeps).s);
	else if (is_of_one(s) && metadata >= LEAST_BYTES &&
		 (double)metadata >= OVERHEAD_PART * (double)heap)
		add(f, DIAGNOSIS_BLOAT,
		    "%s, %d%% of the heap, are block headers and rounding: its blocks are small and many",
		    unit_bytes(metadata).s, percent((double)metadata / (double)heap));
}

static void find_fragmentation(const struct run_summary *s, struct found *f)
{
	const struct ledger *l = &s->ledger.now;
	int64_t unused = ledger_part_bytes(l, &l->parts[LEDGER_FREE]), heap = heap_resident(l);

	if (!is_of_one(s) || unused < LEAST_BYTES || (double)unused < FREE_PART * (double)heap)
		return;
	add(f, DIAGNOSIS_FRAGMENTATION,
	    "%s, %d%% of the heap's resident memory, is free but retained by the allocator: live blocks "
	    "lie in between",
	    unit_bytes(unused).s, percent((double)unused / (double)heap));
}

uint32_t diagnose(const struct run_summary *s, struct diagnosis ret_found[N_DIAGNOSES])
{
	struct found f = { .all = ret_found };

	find_leak(s, &f);
	find_churn(s, &f);
	find_bloat(s, &f);
	find_fragmentation(s, &f);
	return f.n;
}
