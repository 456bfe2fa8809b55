#include "analyse/diagnosis.h"

#include "analyse/beta.h"
#include "analyse/leaks.h"
#include "base/units.h"
#include "model/alloc_site.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEAST_BYTES      (16 << 20)
#define LEAST_IDLE_BYTES (2 << 20) /* grown without work: no cache does that */
#define TEMPORARY_PART   0.25
#define SHORT_PART       0.75 /* of allocations, freed within a millisecond */
#define SHORT_CLASSES    3    /* 10 us, 100 us, 1 ms                        */
#define CHURN_CPU        0.10
#define CHURN_CPU_ALONE  0.25
#define TAIL_P           0.025 /* probability of as many samples from a smaller part */
#define SPIKE            2.0
#define OVERHEAD_PART    0.33
#define FREE_PART        0.25
#define RUBY_OLD_BYTES   (128 << 20)
#define RUBY_MARGIN      1.25 /* what becomes old while the collection goes on */
#define LEVEL_TIMES                                                                                \
	2.0 /* of what the process rose by, and of what matters at all (trend_shape.h) */
#define COLLECTED_PART 0.5 /* of the memory that is new: the collector touched it first */
#define LATE_PART      0.5 /* of the run: growth began no sooner */
#define SITES_PART                                                                                 \
	0.1 /* of the growth of private memory, that sites explain: else they are not what it is of */

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

/*
 * A command that began and ended in the run, such as a compiler: what it fills its memory with is its work, and has ended with
 * it. Sites whose blocks stay are another matter.
 */
static bool was_a_job(const struct run_summary *s)
{
	return s->target == RUN_COMMAND && s->end == RUN_END_TARGET;
}

bool diagnosis_collector_made_room(const struct run_summary *s)
{
	const struct summary_growth *g = &s->growth;

	return g->known && g->on_stacks > 0 &&
	       (double)g->collector_bytes >= COLLECTED_PART * (double)g->on_stacks &&
	       s->shape.since_s > LATE_PART * s->shape.span_s;
}

/*
 * Ruby frees what has become old in major collections alone, and makes one when up to so much of malloc's memory has become old
 * since the last (GC_OLDMALLOC_LIMIT_MAX of its gc.c, 2.1 to 3.4): less may be garbage.
 */
static bool may_be_garbage(const struct run_summary *s)
{
	const struct summary_leak *l = &s->alloc.leaks[0];
	int64_t kept = s->alloc.n_leaks ? l->live : (s->memory.last - s->memory.base) * 1024;

	return s->langs.name && strncmp(s->langs.name, "Ruby", 4) == 0 &&
	       (double)kept < RUBY_OLD_BYTES * RUBY_MARGIN;
}

/* The process's private memory, where no site is known to leak. */
static bool private_leaks(const struct run_summary *s)
{
	const struct summary_leak *l = &s->private;
	int64_t grown = (s->memory.last - s->memory.base) * 1024;
	bool idle = l->says == GROWTH_LEAK_IDLE && !l->work->own;

	return !is_traced(s) && s->memory.known && !was_a_job(s) &&
	       !diagnosis_collector_made_room(s) && !may_be_garbage(s) &&
	       (s->shape.kind == TREND_SHAPE_GROWING || l->says == GROWTH_LEAK_WORK) &&
	       growth_is_leak(l->says) && grown >= (idle ? LEAST_IDLE_BYTES : LEAST_BYTES);
}

/* What the kernel's events of memory add: how much stays, and who touches it. */
static void add_growth(const struct run_summary *s, char *buf, size_t size)
{
	const struct summary_growth *g = &s->growth;
	double came = (double)g->resident_bytes[MEMORY_ANON];
	size_t len = strlen(buf);

	if (!g->known || came <= 0)
		return;
	len += (size_t)snprintf(
		buf + len, size - len, "; %d%% of the pages touched in the run are still there",
		percent(fmax(0, 1 - (double)g->returned_bytes[MEMORY_ANON] / came)));
	if (g->n_growing && *g->growing[0].site.function && len < size)
		snprintf(buf + len, size - len, "; most were first touched in %.80s (%s a minute)",
			 g->growing[0].site.function,
			 unit_bytes((int64_t)(g->growing[0].slope * 60)).s);
}

/* What a site's memory has grown by in the last `span_s` seconds; by its slope where its series is not known. */
static double grown_lately(const struct summary_leak *l, double span_s)
{
	const struct point *p = l->points;
	uint32_t i = l->n_points;
	double from, width;

	if (i < 2)
		return l->slope * span_s;
	from = p[i - 1].t - span_s;
	while (--i > 0 && p[i - 1].t > from)
		;
	width = i ? p[i].t - p[i - 1].t : 0;
	if (width <= 0)
		return p[l->n_points - 1].y - p[0].y;
	return p[l->n_points - 1].y - p[i].y + (p[i].y - p[i - 1].y) * (p[i].t - from) / width;
}

/*
 * Has the process stayed as large as it was while the sites grew by what would have shown? Then they replace what others free. Not
 * where growth is known to go with work: that pauses at other moments for each of them.
 */
static bool is_level_meanwhile(const struct run_summary *s)
{
	double lasts_s = s->shape.span_s - s->shape.since_s, grown = 0;
	double shown_kb = s->shape.matters + fmax(0, s->shape.tail.slope) * lasts_s;

	for (uint32_t i = 0; i < s->alloc.n_leaks; i++)
		if (s->alloc.leaks[i].says != GROWTH_LEAK_WORK)
			grown += grown_lately(&s->alloc.leaks[i], lasts_s);
	return s->shape.kind == TREND_SHAPE_SETTLED && grown / 1024 > LEVEL_TIMES * shown_kb;
}

/* Sites that leak. Not those that explain hardly any of what the process grows by: another allocator does, such as V8's. */
static bool sites_leak(const struct run_summary *s)
{
	double slope = 0;

	for (uint32_t i = 0; i < s->alloc.n_leaks; i++)
		slope += s->alloc.leaks[i].slope;
	return s->alloc.n_leaks > 0 && !may_be_garbage(s) && !is_level_meanwhile(s) &&
	       !(private_leaks(s) && slope < SITES_PART * s->private.slope);
}

static bool is_same_function(const struct summary_leak *a, const struct summary_leak *b)
{
	const char *function = a->site.function, *module = a->site.module;

	if (!function || !*function || !b->site.function || !module != !b->site.module)
		return false;
	return strcmp(function, b->site.function) == 0 &&
	       (!module || strcmp(module, b->site.module) == 0) && a->says == b->says &&
	       a->work == b->work;
}

/*
 * The function that leaks fastest by one stack, with all its stacks: a leak is mended in a function, however many lines call it.
 * The limits of the intervals are added: they hold together if each does, and are wider than needed. Returns how many stacks.
 */
static uint32_t leaking_function(const struct run_summary *s, struct summary_leak *ret)
{
	const struct summary_alloc *a = &s->alloc;
	double kept;
	uint32_t n = 1;

	*ret = a->leaks[0];
	kept = ret->survived * (double)ret->live;
	for (uint32_t i = 1; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];

		if (!is_same_function(ret, l))
			continue;
		n++;
		kept += l->survived * (double)l->live;
		ret->live += l->live;
		ret->slope += l->slope;
		ret->slope_low += l->slope_low;
		ret->slope_high += l->slope_high;
		ret->fit.per_unit += l->fit.per_unit;
		ret->fit.unit_low += l->fit.unit_low;
		ret->fit.unit_high += l->fit.unit_high;
	}
	if (n > 1 && ret->live > 0)
		ret->survived = kept / (double)ret->live;
	return n;
}

static bool leak_clause(const struct run_summary *s, char *buf, size_t size)
{
	struct summary_leak function;

	if (sites_leak(s)) {
		leaking_function(s, &function);
		leak_sentence(s, &function, buf, size);
	} else if (private_leaks(s)) {
		leak_sentence(s, &s->private, buf, size);
	} else {
		return false;
	}
	return true;
}

/* "[anon]", "[libjvm.so+0x1234]": no name. */
static bool is_named(const struct site_row *row)
{
	return *row->function && *row->function != '[';
}

/* "[Java]", "[Python]" */
static bool is_of_language(const struct site_row *row)
{
	return row->module && *row->module == '[';
}

const char *diagnosis_toucher(const struct run_summary *s)
{
	const struct summary_growth *g = &s->growth;

	if (!g->known)
		return NULL;
	for (uint32_t i = 0; i < g->n_growing; i++)
		if (is_named(&g->growing[i].site))
			return g->growing[i].site.function;
	for (int any = 0; any < 2; any++)
		for (uint32_t i = 0; i < g->n_sites; i++)
			if (is_named(&g->sites[i]) && (any || is_of_language(&g->sites[i])))
				return g->sites[i].function;
	return NULL;
}

bool diagnosis_leak_sentence(const struct run_summary *s, char *buf, size_t size)
{
	const char *toucher = diagnosis_toucher(s);
	size_t len;

	if (!leak_clause(s, buf, size))
		return false;
	len = strlen(buf);
	if (!sites_leak(s) && toucher)
		snprintf(buf + len, size - len, "; new memory is first touched in %.80s", toucher);
	return true;
}

static void find_leak(const struct run_summary *s, struct found *f)
{
	struct summary_leak l = { 0 };
	char text[400], others[64] = "", stacks[64] = "";
	uint32_t n, rest = s->alloc.n_leaks;

	if (!leak_clause(s, text, sizeof(text)))
		return;
	if (sites_leak(s)) {
		n = leaking_function(s, &l);
		rest -= n;
		if (n > 1)
			snprintf(stacks, sizeof(stacks), ", called on %u paths", n);
	} else if (rest > 0) {
		rest--;
	}
	if (rest > 0)
		snprintf(others, sizeof(others), "; %u other allocation %s", rest,
			 rest == 1 ? "site keeps growing" : "sites keep growing");
	if (sites_leak(s)) {
		add(f, DIAGNOSIS_LEAK,
		    "%s%s; %d%% of its blocks older than %.0f s are still live%s", text, stacks,
		    percent(l.survived), l.age_s, others);
		return;
	}
	add_growth(s, text, sizeof(text));
	add(f, DIAGNOSIS_LEAK, "%s; it grew by %s; its allocation sites are unknown%s", text,
	    unit_bytes((s->memory.last - s->memory.base) * 1024).s,
	    s->alloc.unnamed
		    ? ": the functions of its allocator have no names and were not found; growth "
		      "shows which code first touches new memory"
	    : s->alloc.live.known ? ""
				  : " (--alloc=exact finds them)");
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

/* Are so many samples improbable (TAIL_P) from a smaller true part? By the tail of the binomial
 * distribution. */
static bool is_surely(struct allocator_time t, double part)
{
	return t.samples > 0 && beta_inc(t.samples, t.of - t.samples + 1, part) <= TAIL_P;
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
