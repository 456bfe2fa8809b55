#include "render/summary_json_memory.h"

#include <math.h>

static void add_sites(struct json_doc *d, cJSON *in, const char *key, const struct site_row *rows,
		      uint32_t n)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].function);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, "bytes", rows[i].value);
		json_number(d, o, "objects", rows[i].count);
		if (rows[i].samples) {
			json_number(d, o, "low", rows[i].low);
			json_number(d, o, "high", rows[i].high);
			json_count(d, o, "samples", rows[i].samples);
		}
	}
}

static void add_interval(struct json_doc *d, cJSON *to, const char *key,
			 const struct summary_interval *i)
{
	cJSON *o = json_object(d, to, key);

	json_number(d, o, "low", i->low);
	json_number(d, o, "high", i->high);
	json_count(d, o, "samples", i->samples);
}

static void add_leaks(struct json_doc *d, cJSON *in, const struct summary_alloc *a)
{
	cJSON *list = json_array(d, in, "leaks");

	for (uint32_t i = 0; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", l->site.function);
		json_text(d, o, "module", l->site.module);
		json_number(d, o, "live_bytes", l->live);
		json_real(d, o, "bytes_s", l->slope);
		json_real(d, o, "low", l->slope_low);
		json_real(d, o, "high", l->slope_high);
		json_real(d, o, "r2", l->r2);
		json_real(d, o, "since_s", l->since_s);
		json_real(d, o, "kept", l->survived);
		json_real(d, o, "kept_age_s", l->age_s);
	}
}

/* `limit`: what the first class is below or at, each next one times `factor`; the last has none. */
static void add_classes(struct json_doc *d, cJSON *in, const char *key, const char *limit_key,
			uint64_t limit, uint64_t factor, const uint64_t *n, uint32_t n_classes)
{
	cJSON *list = json_array(d, in, key), *o;

	for (uint32_t i = 0; i < n_classes; i++, limit *= factor) {
		if (!n[i])
			continue;
		o = json_element(d, list);
		if (i + 1 < n_classes)
			json_count(d, o, limit_key, limit);
		else
			json_null(d, o, limit_key);
		json_count(d, o, "blocks", n[i]);
	}
}

static void add_counted_sites(struct json_doc *d, cJSON *in, const char *key,
			      const struct site_row *rows, uint32_t n, const char *value_key,
			      const char *count_key)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].function);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, value_key, rows[i].value);
		json_number(d, o, count_key, rows[i].count);
	}
}

/* Only of exact tracing. */
static void add_fates(struct json_doc *d, cJSON *o, const struct summary_alloc *a)
{
	const struct summary_sites *more = a->more;
	cJSON *peak, *list;

	if (!more)
		return;
	json_count(d, o, "temporary", a->temporary);
	json_count(d, o, "cross_thread_frees", a->cross_freed);
	json_count(d, o, "lifetime_ns", a->life_ns);
	peak = json_object(d, o, "peak");
	json_count(d, peak, "images", a->peak.images);
	json_number(d, peak, "bytes", a->peak.bytes);
	json_number(d, peak, "objects", a->peak.objects);
	json_number(d, peak, "on_stacks_bytes", a->peak.on_stacks);
	json_number(d, peak, "at_ns", a->peak.at_ns);
	add_classes(d, o, "lifetimes", "under_ns", 10000, 10, a->lives, ALLOC_LIVES);
	add_classes(d, o, "sizes", "up_to_bytes", 8, 2, a->sizes, ALLOC_SIZES);
	add_counted_sites(d, o, "peak_sites", more->peak, more->n_peak, "bytes", "blocks");
	add_counted_sites(d, o, "call_sites", more->calls, more->n_calls, "calls", "bytes");
	add_counted_sites(d, o, "temporary_sites", more->temporary, more->n_temporary, "temporary",
			  "calls");
	json_count(d, o, "n_threads", more->seen_threads);
	list = json_array(d, o, "threads");
	for (uint32_t i = 0; i < more->n_threads; i++) {
		cJSON *t = json_element(d, list);

		json_number(d, t, "pid", more->threads[i].pid);
		json_number(d, t, "tid", more->threads[i].tid);
		json_text(d, t, "name", more->threads[i].name);
		json_number(d, t, "objects", more->threads[i].objects);
		json_number(d, t, "bytes", more->threads[i].bytes);
	}
}

static void add_slices(struct json_doc *d, cJSON *to, const struct summary_alloc *a)
{
	cJSON *o = json_object(d, to, "slices");

	json_count(d, o, "slices", a->slices.n);
	json_number(d, o, "from_ns", a->slices.from_ns);
	json_number(d, o, "covered_ns", a->slices.covered_ns);
	json_number(d, o, "span_ns", a->slices.span_ns);
	json_count(d, o, "seen_calls", a->slices.seen_calls);
	json_count(d, o, "seen_bytes", a->slices.seen_bytes);
	json_real(d, o, "weight", a->slices.weight > 0 ? a->slices.weight : NAN);
	json_real(d, o, "weight_low", a->slices.weight > 0 ? a->slices.weight_low : NAN);
	json_real(d, o, "weight_high", a->slices.weight > 0 ? a->slices.weight_high : NAN);
	json_count(d, o, "hits", a->slices.hits);
	json_real(d, o, "trap_ns", a->slices.trap_ns);
	json_number(d, o, "target_ns", a->slices.target_ns);
	json_number(d, o, "own_ns", a->slices.own_ns);
	json_number(d, o, "worst_slice_ns", a->slices.worst_ns);
	json_number(d, o, "slice_ns", a->slices.slice_ns);
	json_real(d, o, "cost_percent", a->slices.cost_percent);
	json_real(d, o, "limit_percent", a->slices.limit_percent);
	add_interval(d, to, "bytes_interval", &a->bytes_interval);
}

static void add_mappings(struct json_doc *d, cJSON *in, const struct summary_mappings *m)
{
	static const char *const kinds[N_MAPPING_KINDS] = {
		[MAPPING_FILE] = "file",
		[MAPPING_ANON] = "anonymous",
		[MAPPING_SHARED] = "shared",
	};
	cJSON *o;

	if (!m->known) {
		json_null(d, in, "mappings");
		return;
	}
	o = json_object(d, in, "mappings");
	for (int i = 0; i < N_MAPPING_KINDS; i++) {
		cJSON *of = json_object(d, o, kinds[i]);

		json_count(d, of, "made", m->by[i].made);
		json_count(d, of, "made_bytes", m->by[i].made_bytes);
		json_count(d, of, "given_back_bytes", m->by[i].gone_bytes);
		json_count(d, of, "live", m->by[i].live);
		json_count(d, of, "live_bytes", m->by[i].live_bytes);
	}
	json_count(d, o, "ended_bytes", m->ended_bytes);
	json_count(d, o, "failed", m->failed);
	json_count(d, o, "untracked", m->full);
	add_sites(d, o, "sites", m->sites, m->n_sites);
	add_sites(d, o, "live_sites", m->live_sites, m->n_live_sites);
}

void summary_json_alloc(struct json_doc *d, cJSON *root, const struct summary_alloc *a)
{
	static const char *const tiers[] = {
		[ALLOC_TIER_OFF] = "off",           [ALLOC_TIER_EXACT] = "exact",
		[ALLOC_TIER_SAMPLED] = "sampled",   [ALLOC_TIER_SLICES] = "slices",
		[ALLOC_TIER_DECLINED] = "declined",
	};
	cJSON *o = json_object(d, root, "alloc");

	json_text(d, o, "tier", tiers[a->tier]);
	json_text(d, o, "reason", a->reason);
	json_real(d, o, "calls_per_s", a->calls_per_s > 0 ? a->calls_per_s : NAN);
	json_real(d, o, "cost_percent", a->cost_percent > 0 ? a->cost_percent : NAN);
	json_number(d, o, "covered_from_ns", a->covered_from_ns);
	json_number(d, o, "covered_to_ns", a->covered_to_ns);
	json_count(d, o, "objects", a->objects);
	json_count(d, o, "bytes", a->bytes);
	json_count(d, o, "freed_objects", a->freed_objects);
	json_count(d, o, "freed_bytes", a->freed_bytes);
	json_count(d, o, "live_objects", a->live_objects);
	json_count(d, o, "live_bytes", a->live_bytes);
	json_count(d, o, "failed", a->failed);
	json_count(d, o, "inherited_frees", a->inherited_frees);
	json_count(d, o, "earlier_frees", a->earlier_frees);
	json_count(d, o, "untracked", a->untracked);
	if (a->before_known) {
		json_count(d, o, "before_objects", a->before_objects);
		json_count(d, o, "before_bytes", a->before_bytes);
		json_count(d, o, "start_objects", a->start_objects);
		json_count(d, o, "start_bytes", a->start_bytes);
	}
	if (a->tier == ALLOC_TIER_SAMPLED) {
		json_text(d, o, "sampler", a->sampler);
		json_number(d, o, "rate", a->rate);
		add_interval(d, o, "bytes_interval", &a->bytes_interval);
		add_interval(d, o, "live_interval", &a->live_interval);
		json_count(d, o, "freed_samples", a->freed_samples);
		json_count(d, o, "untold", a->untold);
	}
	if (a->tier == ALLOC_TIER_SLICES)
		add_slices(d, o, a);
	add_sites(d, o, "sites", a->sites, a->n_sites);
	add_sites(d, o, "live_sites", a->live_sites, a->n_live_sites);
	add_leaks(d, o, a);
	add_fates(d, o, a);
	add_mappings(d, o, &a->mappings);
}

static void add_growth_kinds(struct json_doc *d, cJSON *in, const char *key,
			     const uint64_t bytes[N_GROWTH_KINDS])
{
	cJSON *o = json_object(d, in, key);

	json_count(d, o, "file_bytes", bytes[GROWTH_FILE]);
	json_count(d, o, "anonymous_bytes", bytes[GROWTH_ANON]);
	json_count(d, o, "shared_bytes", bytes[GROWTH_SHARED]);
}

void summary_json_growth(struct json_doc *d, cJSON *root, const struct summary_growth *g)
{
	cJSON *o, *check;

	if (!g->known) {
		json_null(d, root, "growth");
		return;
	}
	o = json_object(d, root, "growth");
	add_growth_kinds(d, o, "resident", g->resident_bytes);
	add_growth_kinds(d, o, "returned", g->returned_bytes);
	json_count(d, o, "made_bytes", g->made_bytes);
	json_number(d, o, "ended_bytes", g->ended_bytes);
	json_count(d, o, "on_stacks_bytes", g->on_stacks);
	json_count(d, o, "returned_on_stacks_bytes", g->returned_on_stacks);
	json_count(d, o, "samples", g->samples);
	if (g->check.processes) {
		check = json_object(d, o, "check");
		json_count(d, check, "processes", g->check.processes);
		json_number(d, check, "told_bytes", g->check.told_bytes);
		json_number(d, check, "rss_bytes", g->check.rss_bytes);
	} else {
		json_null(d, o, "check");
	}
	add_sites(d, o, "sites", g->sites, g->n_sites);
	add_sites(d, o, "returned_sites", g->returned_sites, g->n_returned_sites);
}

static cJSON *add_ledger_row(struct json_doc *d, cJSON *rows, enum ledger_part part,
			     const struct ledger_row *from)
{
	cJSON *row = json_object(d, rows, ledger_name(part));

	json_number(d, row, "resident_bytes", from->resident);
	if (ledger_of_heap(part)) {
		json_number(d, row, "bytes", from->bytes);
		json_number(d, row, "blocks", from->blocks);
	}
	return row;
}

static void add_ledger_objects(struct json_doc *d, cJSON *ledger, const struct ledger *l)
{
	cJSON *o, *rows;

	if (!l->objects_by) {
		json_null(d, ledger, "objects");
		return;
	}
	o = json_object(d, ledger, "objects");
	json_text(d, o, "allocator", l->objects_by);
	json_number(d, o, "arenas", l->object_arenas);
	rows = json_object(d, o, "parts");
	for (int i = LEDGER_LIVE; i < N_LEDGER_HEAP_PARTS; i++)
		add_ledger_row(d, rows, (enum ledger_part)i, &l->objects[i]);
}

static void add_ledger(struct json_doc *d, cJSON *memory, const struct run_summary *s)
{
	const struct ledger *l = &s->ledger.now;
	cJSON *o, *rows, *row;

	if (!l->processes)
		return;
	o = json_object(d, memory, "ledger");
	json_number(d, o, "at_ns", s->ledger.at_ns);
	json_number(d, o, "processes", l->processes);
	json_number(d, o, "rss_bytes", l->rss);
	json_number(d, o, "not_explained_bytes", ledger_unexplained(l));
	json_text(d, o, "walked", l->allocators);
	json_text(d, o, "not_walked", l->stranger);
	json_text(d, o, "doubt", l->doubt);
	json_number(d, o, "took_ns", l->took_ns);
	rows = json_object(d, o, "parts");
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		enum ledger_part part = (enum ledger_part)i;

		row = add_ledger_row(d, rows, part, &l->parts[i]);
		json_text(d, row, "how", ledger_how(part));
	}
	add_ledger_objects(d, o, l);
}

void summary_json_memory(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->memory.known && !s->ledger.now.processes) {
		json_null(d, root, "memory");
		return;
	}
	o = json_object(d, root, "memory");
	add_ledger(d, o, s);
	if (!s->memory.known)
		return;
	json_number(d, o, "base_kb", s->memory.base);
	json_number(d, o, "last_kb", s->memory.last);
	json_number(d, o, "peak_kb", s->memory.peak);
	json_text(d, o, "course", course_name(s->course.kind));
	json_real(d, o, "slope_kb_s", s->course.all.slope);
	json_text(d, o, "plain", plain_name(s->plain.kind));
	json_real(d, o, "plain_percent", s->plain.percent);
}
