#include "render/summary_json.h"

#include "analyse/diagnosis.h"
#include "base/strbuf.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

/*
 * cJSON_Add… return NULL when memory runs out and take NULL, so one missing value is noticed by
 * the flag and nothing else.
 */
struct doc {
	bool oom;
};

static void check(struct doc *d, const void *item)
{
	if (!item)
		d->oom = true;
}

static cJSON *object(struct doc *d, cJSON *in, const char *key)
{
	cJSON *o = cJSON_AddObjectToObject(in, key);

	check(d, o);
	return o;
}

static cJSON *array(struct doc *d, cJSON *in, const char *key)
{
	cJSON *a = cJSON_AddArrayToObject(in, key);

	check(d, a);
	return a;
}

static cJSON *element(struct doc *d, cJSON *array_item)
{
	cJSON *o = cJSON_CreateObject();

	check(d, o);
	if (o && !cJSON_AddItemToArray(array_item, o)) {
		cJSON_Delete(o);
		d->oom = true;
		return NULL;
	}
	return o;
}

static cJSON *clean_string(struct doc *d, const char *s)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	cJSON *item;

	strbuf_add_clean(&b, s, strlen(s));
	item = cJSON_CreateString(b.s ? b.s : "");
	check(d, item);
	if (strbuf_oom(&b))
		d->oom = true;
	return item;
}

/* NULL is null. */
static void text(struct doc *d, cJSON *in, const char *key, const char *s)
{
	cJSON *item = s ? clean_string(d, s) : cJSON_CreateNull();

	check(d, item);
	if (item && !cJSON_AddItemToObject(in, key, item)) {
		cJSON_Delete(item);
		d->oom = true;
	}
}

/* Integers are written as such: a double would round them beyond 2^53. */
static void number(struct doc *d, cJSON *in, const char *key, int64_t n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", (long long)n);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

static void count(struct doc *d, cJSON *in, const char *key, uint64_t n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

static void real(struct doc *d, cJSON *in, const char *key, double x)
{
	char digits[40];

	if (!isfinite(x)) {
		check(d, cJSON_AddNullToObject(in, key));
		return;
	}
	snprintf(digits, sizeof(digits), "%.6g", x);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

static void truth(struct doc *d, cJSON *in, const char *key, bool b)
{
	check(d, cJSON_AddBoolToObject(in, key, b));
}

static void null(struct doc *d, cJSON *in, const char *key)
{
	check(d, cJSON_AddNullToObject(in, key));
}

/* --- sections
 * -------------------------------------------------------------------------------------- */

static void add_run(struct doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const ends[] = {
		[RUN_END_UNKNOWN] = NULL,    [RUN_END_DURATION] = "duration",
		[RUN_END_SIGNAL] = "signal", [RUN_END_TARGET] = "target",
		[RUN_END_ERROR] = "error",
	};
	time_t sec = s->start_ns / 1000000000;
	char when[40] = "";
	struct tm tm;

	text(d, root, "version", s->version);
	localtime_r(&sec, &tm);
	/* strftime has the offset without the colon that RFC 3339 asks for. */
	if (strftime(when, sizeof(when) - 1, "%Y-%m-%dT%H:%M:%S%z", &tm) == 24) {
		memmove(when + 23, when + 22, 3);
		when[22] = ':';
	}
	text(d, root, "start", s->start_ns > 0 ? when : NULL);
	number(d, root, "duration_ns", s->duration_ns);
	text(d, root, "end", ends[s->end]);
	text(d, root, "end_detail", s->end_detail);
}

static void add_target(struct doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const kinds[] = {
		[RUN_PROCESSES] = "processes",
		[RUN_COMMAND] = "command",
		[RUN_HOST] = "host",
		[RUN_GROUPS] = "groups",
	};
	cJSON *target = object(d, root, "target");
	cJSON *list, *child;

	text(d, target, "kind", kinds[s->target]);
	list = array(d, target, "processes");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		cJSON *p = element(d, list);

		number(d, p, "pid", s->processes[i].pid);
		if (s->processes[i].ns_pid)
			number(d, p, "ns_pid", s->processes[i].ns_pid);
		text(d, p, "comm", s->processes[i].comm);
		text(d, p, "exe", s->processes[i].exe);
		text(d, p, "cmdline", s->processes[i].cmdline);
	}
	list = s->n_groups ? array(d, target, "groups") : NULL;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct summary_group *g = &s->groups[i];
		cJSON *o = element(d, list);

		text(d, o, "path", g->path);
		text(d, o, "container", g->name);
		text(d, o, "container_id", g->id);
		text(d, o, "engine", g->engine);
		text(d, o, "image", g->image);
		count(d, o, "restarts", g->restarts);
		truth(d, o, "was_gone", g->was_gone);
		number(d, o, "gone_ns", g->gone_ns);
	}
	if (s->n_groups)
		count(d, target, "members", s->n_members);
	count(d, target, "seen_processes", s->seen_processes);
	count(d, target, "seen_threads", s->seen_threads);

	if (!s->child.known) {
		null(d, root, "child");
		return;
	}
	child = object(d, root, "child");
	truth(d, child, "exited", s->child.exited);
	if (s->child.exited)
		number(d, child, "code", s->child.code);
	else
		null(d, child, "code");
	if (s->child.exited)
		null(d, child, "signal");
	else
		number(d, child, "signal", s->child.signal);
}

static void add_sources(struct doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const states[] = {
		[SOURCE_NOT_ASKED] = "off",
		[SOURCE_OK] = "ok",
		[SOURCE_UNAVAILABLE] = "unavailable",
	};
	cJSON *sources = object(d, root, "sources");

	for (uint32_t i = 0; i < s->n_sources; i++) {
		cJSON *o = object(d, sources, s->sources[i].name);

		text(d, o, "state", states[s->sources[i].state]);
		text(d, o, "why", s->sources[i].why);
	}
}

static void add_time(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->time.known) {
		null(d, root, "time");
		return;
	}
	o = object(d, root, "time");
	number(d, o, "oncpu_ns", s->time.oncpu_ns);
	number(d, o, "blocked_ns", s->time.blocked_ns);
	number(d, o, "runnable_ns", s->time.runnable_ns);
	number(d, o, "wall_ns", s->time.wall_ns);
	number(d, o, "held_ns", s->time.held_ns);
	number(d, o, "residual_ns",
	       s->time.wall_ns - s->time.oncpu_ns - s->time.blocked_ns - s->time.runnable_ns);
}

static void add_processes(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = array(d, root, "by_process");

	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		cJSON *o = element(d, list);

		number(d, o, "pid", p->pid);
		text(d, o, "comm", p->comm);
		if (p->container && *p->container)
			text(d, o, "container", p->container);
		if (p->ns_pid)
			number(d, o, "ns_pid", p->ns_pid);
		number(d, o, "samples", p->samples);
		number(d, o, "cpu_ns", p->cpu_ns);
		number(d, o, "blocked_ns", p->blocked_ns);
		number(d, o, "runnable_ns", p->runnable_ns);
	}
}

static void add_top(struct doc *d, cJSON *in, const char *key, const struct top_row *rows,
		    uint32_t n)
{
	cJSON *list = array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = element(d, list);

		text(d, o, "function", rows[i].name);
		text(d, o, "module", rows[i].module);
		number(d, o, "self", rows[i].self);
		number(d, o, "total", rows[i].total);
	}
}

static void add_oncpu(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = object(d, root, "oncpu");
	double share = summary_cpu_share(s);

	count(d, o, "samples", s->oncpu.samples);
	real(d, o, "hz", s->oncpu.hz);
	text(d, o, "event", s->oncpu.event);
	number(d, o, "cpu_ns", s->oncpu.cpu_ns);
	real(d, o, "cpu_share", share < 0 ? NAN : share);
	truth(d, o, "few_samples", summary_few_samples(s));
	count(d, o, "kernel_samples", s->oncpu.kernel_samples);
	count(d, o, "probe_samples", s->oncpu.probe_samples);
	add_top(d, o, "top_self", s->oncpu.by_self, s->oncpu.n_self);
	add_top(d, o, "top_total", s->oncpu.by_total, s->oncpu.n_total);
}

static void add_offcpu(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *offcpu = object(d, root, "offcpu"), *list = array(d, offcpu, "waits");

	number(d, offcpu, "min_ns", s->offcpu.min_ns);
	number(d, offcpu, "max_ns", s->offcpu.max_ns);
	count(d, offcpu, "left_out", s->offcpu.left_out);
	count(d, offcpu, "left_out_ns", s->offcpu.left_out_ns);
	truth(d, offcpu, "sampled", s->offcpu.sampled);
	count(d, offcpu, "switches", s->offcpu.switches);
	count(d, offcpu, "busy_switches", s->offcpu.busy_switches);
	count(d, offcpu, "looks", s->offcpu.looks);
	count(d, offcpu, "moved", s->offcpu.moved);
	cJSON_AddNumberToObject(offcpu, "look_gap_s", s->offcpu.look_gap_s);
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];
		cJSON *o = element(d, list);

		text(d, o, "function", w->function);
		text(d, o, "module", w->module);
		text(d, o, "comm", w->comm);
		text(d, o, "kernel", w->leaf);
		text(d, o, "kind", wait_kind_name(w->wait));
		number(d, o, "blocked_ns", w->value);
		number(d, o, "count", w->count);
		cJSON_AddBoolToObject(o, "idle", summary_wait_is_idle(s, w));
		if (w->high > w->low) {
			number(d, o, "low_ns", w->low);
			number(d, o, "high_ns", w->high);
		}
	}
}

static void add_sites(struct doc *d, cJSON *in, const char *key, const struct site_row *rows,
		      uint32_t n)
{
	cJSON *list = array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = element(d, list);

		text(d, o, "function", rows[i].function);
		text(d, o, "module", rows[i].module);
		number(d, o, "bytes", rows[i].value);
		number(d, o, "objects", rows[i].count);
		if (rows[i].samples) {
			number(d, o, "low", rows[i].low);
			number(d, o, "high", rows[i].high);
			count(d, o, "samples", rows[i].samples);
		}
	}
}

static void add_interval(struct doc *d, cJSON *to, const char *key,
			 const struct summary_interval *i)
{
	cJSON *o = object(d, to, key);

	number(d, o, "low", i->low);
	number(d, o, "high", i->high);
	count(d, o, "samples", i->samples);
}

static void add_leaks(struct doc *d, cJSON *in, const struct summary_alloc *a)
{
	cJSON *list = array(d, in, "leaks");

	for (uint32_t i = 0; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];
		cJSON *o = element(d, list);

		text(d, o, "function", l->site.function);
		text(d, o, "module", l->site.module);
		number(d, o, "live_bytes", l->live);
		real(d, o, "bytes_s", l->slope);
		real(d, o, "low", l->slope_low);
		real(d, o, "high", l->slope_high);
		real(d, o, "r2", l->r2);
		real(d, o, "since_s", l->since_s);
		real(d, o, "kept", l->survived);
		real(d, o, "kept_age_s", l->age_s);
	}
}

/* `limit`: what the first class is below or at, each next one times `factor`; the last has none. */
static void add_classes(struct doc *d, cJSON *in, const char *key, const char *limit_key,
			uint64_t limit, uint64_t factor, const uint64_t *n, uint32_t n_classes)
{
	cJSON *list = array(d, in, key), *o;

	for (uint32_t i = 0; i < n_classes; i++, limit *= factor) {
		if (!n[i])
			continue;
		o = element(d, list);
		if (i + 1 < n_classes)
			count(d, o, limit_key, limit);
		else
			null(d, o, limit_key);
		count(d, o, "blocks", n[i]);
	}
}

static void add_counted_sites(struct doc *d, cJSON *in, const char *key,
			      const struct site_row *rows, uint32_t n, const char *value_key,
			      const char *count_key)
{
	cJSON *list = array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = element(d, list);

		text(d, o, "function", rows[i].function);
		text(d, o, "module", rows[i].module);
		number(d, o, value_key, rows[i].value);
		number(d, o, count_key, rows[i].count);
	}
}

/* Only of exact tracing. */
static void add_fates(struct doc *d, cJSON *o, const struct summary_alloc *a)
{
	const struct summary_sites *more = a->more;
	cJSON *peak, *list;

	if (!more)
		return;
	count(d, o, "temporary", a->temporary);
	count(d, o, "cross_thread_frees", a->cross_freed);
	count(d, o, "lifetime_ns", a->life_ns);
	peak = object(d, o, "peak");
	count(d, peak, "images", a->peak.images);
	number(d, peak, "bytes", a->peak.bytes);
	number(d, peak, "objects", a->peak.objects);
	number(d, peak, "on_stacks_bytes", a->peak.on_stacks);
	number(d, peak, "at_ns", a->peak.at_ns);
	add_classes(d, o, "lifetimes", "under_ns", 10000, 10, a->lives, ALLOC_LIVES);
	add_classes(d, o, "sizes", "up_to_bytes", 8, 2, a->sizes, ALLOC_SIZES);
	add_counted_sites(d, o, "peak_sites", more->peak, more->n_peak, "bytes", "blocks");
	add_counted_sites(d, o, "call_sites", more->calls, more->n_calls, "calls", "bytes");
	add_counted_sites(d, o, "temporary_sites", more->temporary, more->n_temporary, "temporary",
			  "calls");
	count(d, o, "n_threads", more->seen_threads);
	list = array(d, o, "threads");
	for (uint32_t i = 0; i < more->n_threads; i++) {
		cJSON *t = element(d, list);

		number(d, t, "pid", more->threads[i].pid);
		number(d, t, "tid", more->threads[i].tid);
		text(d, t, "name", more->threads[i].name);
		number(d, t, "objects", more->threads[i].objects);
		number(d, t, "bytes", more->threads[i].bytes);
	}
}

static void add_slices(struct doc *d, cJSON *to, const struct summary_alloc *a)
{
	cJSON *o = object(d, to, "slices");

	count(d, o, "slices", a->slices.n);
	number(d, o, "from_ns", a->slices.from_ns);
	number(d, o, "covered_ns", a->slices.covered_ns);
	number(d, o, "span_ns", a->slices.span_ns);
	count(d, o, "seen_calls", a->slices.seen_calls);
	count(d, o, "seen_bytes", a->slices.seen_bytes);
	real(d, o, "weight", a->slices.weight > 0 ? a->slices.weight : NAN);
	real(d, o, "weight_low", a->slices.weight > 0 ? a->slices.weight_low : NAN);
	real(d, o, "weight_high", a->slices.weight > 0 ? a->slices.weight_high : NAN);
	count(d, o, "hits", a->slices.hits);
	real(d, o, "trap_ns", a->slices.trap_ns);
	number(d, o, "target_ns", a->slices.target_ns);
	number(d, o, "own_ns", a->slices.own_ns);
	number(d, o, "worst_slice_ns", a->slices.worst_ns);
	number(d, o, "slice_ns", a->slices.slice_ns);
	real(d, o, "cost_percent", a->slices.cost_percent);
	real(d, o, "limit_percent", a->slices.limit_percent);
	add_interval(d, to, "bytes_interval", &a->bytes_interval);
}

static void add_mappings(struct doc *d, cJSON *in, const struct summary_mappings *m)
{
	static const char *const kinds[N_MAPPING_KINDS] = {
		[MAPPING_FILE] = "file",
		[MAPPING_ANON] = "anonymous",
		[MAPPING_SHARED] = "shared",
	};
	cJSON *o;

	if (!m->known) {
		null(d, in, "mappings");
		return;
	}
	o = object(d, in, "mappings");
	for (int i = 0; i < N_MAPPING_KINDS; i++) {
		cJSON *of = object(d, o, kinds[i]);

		count(d, of, "made", m->by[i].made);
		count(d, of, "made_bytes", m->by[i].made_bytes);
		count(d, of, "given_back_bytes", m->by[i].gone_bytes);
		count(d, of, "live", m->by[i].live);
		count(d, of, "live_bytes", m->by[i].live_bytes);
	}
	count(d, o, "ended_bytes", m->ended_bytes);
	count(d, o, "failed", m->failed);
	count(d, o, "untracked", m->full);
	add_sites(d, o, "sites", m->sites, m->n_sites);
	add_sites(d, o, "live_sites", m->live_sites, m->n_live_sites);
}

static void add_alloc(struct doc *d, cJSON *root, const struct summary_alloc *a)
{
	static const char *const tiers[] = {
		[ALLOC_TIER_OFF] = "off",           [ALLOC_TIER_EXACT] = "exact",
		[ALLOC_TIER_SAMPLED] = "sampled",   [ALLOC_TIER_SLICES] = "slices",
		[ALLOC_TIER_DECLINED] = "declined",
	};
	cJSON *o = object(d, root, "alloc");

	text(d, o, "tier", tiers[a->tier]);
	text(d, o, "reason", a->reason);
	real(d, o, "calls_per_s", a->calls_per_s > 0 ? a->calls_per_s : NAN);
	real(d, o, "cost_percent", a->cost_percent > 0 ? a->cost_percent : NAN);
	number(d, o, "covered_from_ns", a->covered_from_ns);
	number(d, o, "covered_to_ns", a->covered_to_ns);
	count(d, o, "objects", a->objects);
	count(d, o, "bytes", a->bytes);
	count(d, o, "freed_objects", a->freed_objects);
	count(d, o, "freed_bytes", a->freed_bytes);
	count(d, o, "live_objects", a->live_objects);
	count(d, o, "live_bytes", a->live_bytes);
	count(d, o, "failed", a->failed);
	count(d, o, "inherited_frees", a->inherited_frees);
	count(d, o, "earlier_frees", a->earlier_frees);
	count(d, o, "untracked", a->untracked);
	if (a->before_known) {
		count(d, o, "before_objects", a->before_objects);
		count(d, o, "before_bytes", a->before_bytes);
		count(d, o, "start_objects", a->start_objects);
		count(d, o, "start_bytes", a->start_bytes);
	}
	if (a->tier == ALLOC_TIER_SAMPLED) {
		text(d, o, "sampler", a->sampler);
		number(d, o, "rate", a->rate);
		add_interval(d, o, "bytes_interval", &a->bytes_interval);
		add_interval(d, o, "live_interval", &a->live_interval);
		count(d, o, "freed_samples", a->freed_samples);
		count(d, o, "untold", a->untold);
	}
	if (a->tier == ALLOC_TIER_SLICES)
		add_slices(d, o, a);
	add_sites(d, o, "sites", a->sites, a->n_sites);
	add_sites(d, o, "live_sites", a->live_sites, a->n_live_sites);
	add_leaks(d, o, a);
	add_fates(d, o, a);
	add_mappings(d, o, &a->mappings);
}

static void add_diagnoses(struct doc *d, cJSON *root, const struct run_summary *s)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	cJSON *list = array(d, root, "diagnoses");

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = element(d, list);

		text(d, o, "kind", diagnosis_name(found[i].kind));
		text(d, o, "evidence", found[i].evidence);
	}
}

static void add_growth_kinds(struct doc *d, cJSON *in, const char *key,
			     const uint64_t bytes[N_GROWTH_KINDS])
{
	cJSON *o = object(d, in, key);

	count(d, o, "file_bytes", bytes[GROWTH_FILE]);
	count(d, o, "anonymous_bytes", bytes[GROWTH_ANON]);
	count(d, o, "shared_bytes", bytes[GROWTH_SHARED]);
}

static void add_growth(struct doc *d, cJSON *root, const struct summary_growth *g)
{
	cJSON *o, *check;

	if (!g->known) {
		null(d, root, "growth");
		return;
	}
	o = object(d, root, "growth");
	add_growth_kinds(d, o, "resident", g->resident_bytes);
	add_growth_kinds(d, o, "returned", g->returned_bytes);
	count(d, o, "made_bytes", g->made_bytes);
	number(d, o, "ended_bytes", g->ended_bytes);
	count(d, o, "on_stacks_bytes", g->on_stacks);
	count(d, o, "returned_on_stacks_bytes", g->returned_on_stacks);
	count(d, o, "samples", g->samples);
	if (g->check.processes) {
		check = object(d, o, "check");
		count(d, check, "processes", g->check.processes);
		number(d, check, "told_bytes", g->check.told_bytes);
		number(d, check, "rss_bytes", g->check.rss_bytes);
	} else {
		null(d, o, "check");
	}
	add_sites(d, o, "sites", g->sites, g->n_sites);
	add_sites(d, o, "returned_sites", g->returned_sites, g->n_returned_sites);
}

static void add_rss(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->rss.known) {
		null(d, root, "rss");
		return;
	}
	o = object(d, root, "rss");
	number(d, o, "first_kb", s->rss.first_kb);
	number(d, o, "last_kb", s->rss.last_kb);
	number(d, o, "peak_kb", s->rss.peak_kb);
}

static cJSON *add_ledger_row(struct doc *d, cJSON *rows, enum ledger_part part,
			     const struct ledger_row *from)
{
	cJSON *row = object(d, rows, ledger_name(part));

	number(d, row, "resident_bytes", from->resident);
	if (ledger_of_heap(part)) {
		number(d, row, "bytes", from->bytes);
		number(d, row, "blocks", from->blocks);
	}
	return row;
}

static void add_ledger_objects(struct doc *d, cJSON *ledger, const struct ledger *l)
{
	cJSON *o, *rows;

	if (!l->objects_by) {
		null(d, ledger, "objects");
		return;
	}
	o = object(d, ledger, "objects");
	text(d, o, "allocator", l->objects_by);
	number(d, o, "arenas", l->object_arenas);
	rows = object(d, o, "parts");
	for (int i = LEDGER_LIVE; i < N_LEDGER_HEAP_PARTS; i++)
		add_ledger_row(d, rows, (enum ledger_part)i, &l->objects[i]);
}

static void add_ledger(struct doc *d, cJSON *memory, const struct run_summary *s)
{
	const struct ledger *l = &s->ledger.now;
	cJSON *o, *rows, *row;

	if (!l->processes)
		return;
	o = object(d, memory, "ledger");
	number(d, o, "at_ns", s->ledger.at_ns);
	number(d, o, "processes", l->processes);
	number(d, o, "rss_bytes", l->rss);
	number(d, o, "not_explained_bytes", ledger_unexplained(l));
	text(d, o, "walked", l->allocators);
	text(d, o, "not_walked", l->stranger);
	text(d, o, "doubt", l->doubt);
	number(d, o, "took_ns", l->took_ns);
	rows = object(d, o, "parts");
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		enum ledger_part part = (enum ledger_part)i;

		row = add_ledger_row(d, rows, part, &l->parts[i]);
		text(d, row, "how", ledger_how(part));
	}
	add_ledger_objects(d, o, l);
}

static void add_memory(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->memory.known && !s->ledger.now.processes) {
		null(d, root, "memory");
		return;
	}
	o = object(d, root, "memory");
	add_ledger(d, o, s);
	if (!s->memory.known)
		return;
	number(d, o, "base_kb", s->memory.base);
	number(d, o, "last_kb", s->memory.last);
	number(d, o, "peak_kb", s->memory.peak);
	text(d, o, "course", course_name(s->course.kind));
	real(d, o, "slope_kb_s", s->course.all.slope);
	text(d, o, "plain", plain_name(s->plain.kind));
	real(d, o, "plain_percent", s->plain.percent);
}

static void add_truth(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = array(d, root, "stacks"), *o;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		o = element(d, list);
		text(d, o, "source", s->stacks[i].source);
		count(d, o, "complete", s->stacks[i].complete);
		count(d, o, "truncated", s->stacks[i].truncated);
		count(d, o, "guessed", s->stacks[i].guessed);
		count(d, o, "no_table", s->stacks[i].no_table);
		count(d, o, "unreadable", s->stacks[i].unreadable);
		count(d, o, "lost", s->stacks[i].lost);
	}

	list = array(d, root, "gaps");
	for (uint32_t i = 0; i < s->n_gaps; i++) {
		o = element(d, list);
		text(d, o, "module", s->gaps[i].module);
		text(d, o, "verdict", s->gaps[i].verdict);
		count(d, o, "events", s->gaps[i].events);
	}

	o = object(d, root, "symbols");
	count(d, o, "locations", s->symbols.locations);
	count(d, o, "named", s->symbols.named);
	count(d, o, "ranges", s->symbols.ranges);
	count(d, o, "offset_only", s->symbols.offset_only);
	count(d, o, "no_module", s->symbols.no_module);
	list = array(d, o, "worst");
	for (uint32_t i = 0; i < s->symbols.n_worst; i++) {
		o = element(d, list);
		text(d, o, "module", s->symbols.worst[i].module);
		count(d, o, "locations", s->symbols.worst[i].locations);
		text(d, o, "reason", s->symbols.worst[i].reason);
		if (s->symbols.worst[i].package && s->symbols.worst[i].package[0])
			text(d, o, "debug_package", s->symbols.worst[i].package);
	}

	list = array(d, root, "drops");
	for (uint32_t i = 0; i < s->n_drops; i++) {
		o = element(d, list);
		text(d, o, "name", s->drops[i].name);
		count(d, o, "count", s->drops[i].count);
		text(d, o, "help", s->drops[i].help);
	}
	count(d, root, "sideband_lost", s->sideband_lost);

	o = object(d, root, "own");
	number(d, o, "cpu_ns", s->own.cpu_ns);
	number(d, o, "rss_kb", s->own.rss_kb);
	number(d, o, "peak_kb", s->own.peak_kb);
	number(d, o, "map_bytes", s->own.map_bytes);
}

static void add_cost(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->cost.known)
		return;
	o = object(d, root, "cost");
	number(d, o, "window_ns", s->cost.window_ns);
	number(d, o, "ns", s->cost.ns);
	real(d, o, "percent", (double)s->cost.ns * 100 / (double)s->duration_ns);
	real(d, o, "target_percent",
	     s->oncpu.cpu_ns > 0 ? (double)s->cost.ns * 100 / (double)s->oncpu.cpu_ns : NAN);
	number(d, o, "profiled_ns", s->cost.target_ns);
	real(d, o, "profiled_percent", (double)s->cost.target_ns * 100 / (double)s->duration_ns);
	real(d, o, "limit_percent", s->cost.limit_percent > 0 ? s->cost.limit_percent : NAN);
	list = array(d, o, "sources");
	for (uint32_t i = 0; i < s->cost.n; i++) {
		const struct summary_cost *c = &s->cost.sources[i];

		o = element(d, list);
		text(d, o, "name", c->name);
		count(d, o, "events", c->events);
		real(d, o, "program_ns", c->program_ns);
		real(d, o, "trap_ns", c->trap_ns);
		number(d, o, "ns", c->ns);
		real(d, o, "percent", (double)c->ns * 100 / (double)s->duration_ns);
	}
}

static void add_unwind(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->unwind.known)
		return;
	o = object(d, root, "unwind");
	count(d, o, "files", s->unwind.files);
	count(d, o, "resident", s->unwind.resident);
	count(d, o, "bytes", s->unwind.bytes);
	count(d, o, "budget_bytes", s->unwind.budget_bytes);
	count(d, o, "rows", s->unwind.rows);
	count(d, o, "rules", s->unwind.rules);
	count(d, o, "spans", s->unwind.spans);
	count(d, o, "processes", s->unwind.processes);
	count(d, o, "made", s->unwind.made);
	count(d, o, "made_ns", s->unwind.made_ns);
	count(d, o, "evicted", s->unwind.evicted);
	count(d, o, "evicted_in_use", s->unwind.evicted_in_use);
	count(d, o, "refused", s->unwind.refused);
	count(d, o, "left_out", s->unwind.left_out);
	count(d, o, "unreadable", s->unwind.unreadable);
	count(d, o, "without_rows", s->unwind.without_rows);
	if (s->unwind.trouble && s->unwind.trouble[0])
		text(d, o, "trouble", s->unwind.trouble);
}

static void add_strings(struct doc *d, cJSON *root, const char *key, const char *const *strings,
			uint32_t n)
{
	cJSON *list = array(d, root, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *item = clean_string(d, strings[i]);

		if (item && !cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			d->oom = true;
		}
	}
}

static void add_verdict(struct doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = object(d, root, "verdict");
	struct verdict v;

	summary_verdict(s, &v);
	text(d, o, "kind", verdict_name(v.kind));
	text(d, o, "sentence", v.sentence);
	text(d, o, "next", v.next);
}

DEFINE_CLEANUP(cJSON *, json_freep, cJSON_Delete)
DEFINE_CLEANUP(char *, json_text_freep, cJSON_free)

int summary_json_write(const struct run_summary *s, struct sink *out, struct err *e)
{
	_cleanup_(json_freep) cJSON *root = cJSON_CreateObject();
	_cleanup_(json_text_freep) char *written = NULL;
	struct doc d = { .oom = !root };

	add_run(&d, root, s);
	add_target(&d, root, s);
	add_sources(&d, root, s);
	add_time(&d, root, s);
	add_processes(&d, root, s);
	add_oncpu(&d, root, s);
	add_offcpu(&d, root, s);
	add_alloc(&d, root, &s->alloc);
	add_diagnoses(&d, root, s);
	add_growth(&d, root, &s->growth);
	add_rss(&d, root, s);
	add_memory(&d, root, s);
	add_truth(&d, root, s);
	add_unwind(&d, root, s);
	add_cost(&d, root, s);
	text(&d, root, "dir", s->dir);
	add_strings(&d, root, "files", s->files, s->n_files);
	add_strings(&d, root, "notes", s->notes, s->n_notes);
	add_verdict(&d, root, s);

	if (!d.oom)
		written = cJSON_Print(root);
	if (!written)
		return err_set(e, -ENOMEM, "out of memory for the summary");
	sink_puts(out, written);
	sink_puts(out, "\n");
	return 0;
}
