#include "render/summary_json.h"

#include "analyse/diagnosis.h"
#include "render/summary_json_memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

static void add_run(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const ends[] = {
		[RUN_END_UNKNOWN] = NULL,    [RUN_END_DURATION] = "duration",
		[RUN_END_SIGNAL] = "signal", [RUN_END_TARGET] = "target",
		[RUN_END_ERROR] = "error",
	};
	time_t sec = s->start_ns / 1000000000;
	char when[40] = "";
	struct tm tm;

	json_text(d, root, "version", s->version);
	localtime_r(&sec, &tm);
	/* strftime has the offset without the colon that RFC 3339 asks for. */
	if (strftime(when, sizeof(when) - 1, "%Y-%m-%dT%H:%M:%S%z", &tm) == 24) {
		memmove(when + 23, when + 22, 3);
		when[22] = ':';
	}
	json_text(d, root, "start", s->start_ns > 0 ? when : NULL);
	json_number(d, root, "duration_ns", s->duration_ns);
	json_text(d, root, "end", ends[s->end]);
	json_text(d, root, "end_detail", s->end_detail);
}

static void add_target(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const kinds[] = {
		[RUN_PROCESSES] = "processes",
		[RUN_COMMAND] = "command",
		[RUN_HOST] = "host",
		[RUN_GROUPS] = "groups",
	};
	cJSON *target = json_object(d, root, "target");
	cJSON *list, *child;

	json_text(d, target, "kind", kinds[s->target]);
	list = json_array(d, target, "processes");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		cJSON *p = json_element(d, list);

		json_number(d, p, "pid", s->processes[i].pid);
		if (s->processes[i].ns_pid)
			json_number(d, p, "ns_pid", s->processes[i].ns_pid);
		json_text(d, p, "comm", s->processes[i].comm);
		json_text(d, p, "exe", s->processes[i].exe);
		json_text(d, p, "cmdline", s->processes[i].cmdline);
	}
	list = s->n_groups ? json_array(d, target, "groups") : NULL;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct summary_group *g = &s->groups[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "path", g->path);
		json_text(d, o, "container", g->name);
		json_text(d, o, "container_id", g->id);
		json_text(d, o, "engine", g->engine);
		json_text(d, o, "image", g->image);
		json_count(d, o, "restarts", g->restarts);
		json_truth(d, o, "was_gone", g->was_gone);
		json_number(d, o, "gone_ns", g->gone_ns);
	}
	if (s->n_groups)
		json_count(d, target, "members", s->n_members);
	json_count(d, target, "seen_processes", s->seen_processes);
	json_count(d, target, "seen_threads", s->seen_threads);

	if (!s->child.known) {
		json_null(d, root, "child");
		return;
	}
	child = json_object(d, root, "child");
	json_truth(d, child, "exited", s->child.exited);
	if (s->child.exited)
		json_number(d, child, "code", s->child.code);
	else
		json_null(d, child, "code");
	if (s->child.exited)
		json_null(d, child, "signal");
	else
		json_number(d, child, "signal", s->child.signal);
}

static void add_sources(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const states[] = {
		[SOURCE_NOT_ASKED] = "off",
		[SOURCE_OK] = "ok",
		[SOURCE_UNAVAILABLE] = "unavailable",
	};
	cJSON *sources = json_object(d, root, "sources");

	for (uint32_t i = 0; i < s->n_sources; i++) {
		cJSON *o = json_object(d, sources, s->sources[i].name);

		json_text(d, o, "state", states[s->sources[i].state]);
		json_text(d, o, "why", s->sources[i].why);
	}
}

static void add_time(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->time.known) {
		json_null(d, root, "time");
		return;
	}
	o = json_object(d, root, "time");
	json_number(d, o, "oncpu_ns", s->time.oncpu_ns);
	json_number(d, o, "blocked_ns", s->time.blocked_ns);
	json_number(d, o, "runnable_ns", s->time.runnable_ns);
	json_number(d, o, "wall_ns", s->time.wall_ns);
	json_number(d, o, "held_ns", s->time.held_ns);
	json_number(d, o, "residual_ns",
		    s->time.wall_ns - s->time.oncpu_ns - s->time.blocked_ns - s->time.runnable_ns);
}

static void add_processes(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "by_process");

	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		cJSON *o = json_element(d, list);

		json_number(d, o, "pid", p->pid);
		json_text(d, o, "comm", p->comm);
		if (p->container && *p->container)
			json_text(d, o, "container", p->container);
		if (p->ns_pid)
			json_number(d, o, "ns_pid", p->ns_pid);
		json_number(d, o, "samples", p->samples);
		json_number(d, o, "cpu_ns", p->cpu_ns);
		json_number(d, o, "blocked_ns", p->blocked_ns);
		json_number(d, o, "runnable_ns", p->runnable_ns);
	}
}

static void add_top(struct json_doc *d, cJSON *in, const char *key, const struct top_row *rows,
		    uint32_t n)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].name);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, "self", rows[i].self);
		json_number(d, o, "total", rows[i].total);
	}
}

static void add_oncpu(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "oncpu");
	double share = summary_cpu_share(s);

	json_count(d, o, "samples", s->oncpu.samples);
	json_real(d, o, "hz", s->oncpu.hz);
	json_text(d, o, "event", s->oncpu.event);
	json_number(d, o, "cpu_ns", s->oncpu.cpu_ns);
	json_real(d, o, "cpu_share", share < 0 ? NAN : share);
	json_truth(d, o, "few_samples", summary_few_samples(s));
	json_count(d, o, "kernel_samples", s->oncpu.kernel_samples);
	json_count(d, o, "probe_samples", s->oncpu.probe_samples);
	add_top(d, o, "top_self", s->oncpu.by_self, s->oncpu.n_self);
	add_top(d, o, "top_total", s->oncpu.by_total, s->oncpu.n_total);
}

static void add_offcpu(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *offcpu = json_object(d, root, "offcpu"), *list = json_array(d, offcpu, "waits");

	json_number(d, offcpu, "min_ns", s->offcpu.min_ns);
	json_number(d, offcpu, "max_ns", s->offcpu.max_ns);
	json_count(d, offcpu, "left_out", s->offcpu.left_out);
	json_count(d, offcpu, "left_out_ns", s->offcpu.left_out_ns);
	json_truth(d, offcpu, "sampled", s->offcpu.sampled);
	json_count(d, offcpu, "switches", s->offcpu.switches);
	json_count(d, offcpu, "busy_switches", s->offcpu.busy_switches);
	json_count(d, offcpu, "looks", s->offcpu.looks);
	json_count(d, offcpu, "moved", s->offcpu.moved);
	cJSON_AddNumberToObject(offcpu, "look_gap_s", s->offcpu.look_gap_s);
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", w->function);
		json_text(d, o, "module", w->module);
		json_text(d, o, "comm", w->comm);
		json_text(d, o, "kernel", w->leaf);
		json_text(d, o, "kind", wait_kind_name(w->wait));
		json_number(d, o, "blocked_ns", w->value);
		json_number(d, o, "count", w->count);
		cJSON_AddBoolToObject(o, "idle", summary_wait_is_idle(s, w));
		if (w->high > w->low) {
			json_number(d, o, "low_ns", w->low);
			json_number(d, o, "high_ns", w->high);
		}
	}
}

static void add_diagnoses(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	cJSON *list = json_array(d, root, "diagnoses");

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "kind", diagnosis_name(found[i].kind));
		json_text(d, o, "evidence", found[i].evidence);
	}
}

static void add_rss(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->rss.known) {
		json_null(d, root, "rss");
		return;
	}
	o = json_object(d, root, "rss");
	json_number(d, o, "first_kb", s->rss.first_kb);
	json_number(d, o, "last_kb", s->rss.last_kb);
	json_number(d, o, "peak_kb", s->rss.peak_kb);
}

static void add_truth(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "stacks"), *o;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		o = json_element(d, list);
		json_text(d, o, "source", s->stacks[i].source);
		json_count(d, o, "complete", s->stacks[i].complete);
		json_count(d, o, "truncated", s->stacks[i].truncated);
		json_count(d, o, "guessed", s->stacks[i].guessed);
		json_count(d, o, "no_table", s->stacks[i].no_table);
		json_count(d, o, "unreadable", s->stacks[i].unreadable);
		json_count(d, o, "lost", s->stacks[i].lost);
	}

	list = json_array(d, root, "gaps");
	for (uint32_t i = 0; i < s->n_gaps; i++) {
		o = json_element(d, list);
		json_text(d, o, "module", s->gaps[i].module);
		json_text(d, o, "verdict", s->gaps[i].verdict);
		json_count(d, o, "events", s->gaps[i].events);
	}

	o = json_object(d, root, "symbols");
	json_count(d, o, "locations", s->symbols.locations);
	json_count(d, o, "named", s->symbols.named);
	json_count(d, o, "ranges", s->symbols.ranges);
	json_count(d, o, "offset_only", s->symbols.offset_only);
	json_count(d, o, "no_module", s->symbols.no_module);
	list = json_array(d, o, "worst");
	for (uint32_t i = 0; i < s->symbols.n_worst; i++) {
		o = json_element(d, list);
		json_text(d, o, "module", s->symbols.worst[i].module);
		json_count(d, o, "locations", s->symbols.worst[i].locations);
		json_text(d, o, "reason", s->symbols.worst[i].reason);
		if (s->symbols.worst[i].package && s->symbols.worst[i].package[0])
			json_text(d, o, "debug_package", s->symbols.worst[i].package);
	}

	list = json_array(d, root, "drops");
	for (uint32_t i = 0; i < s->n_drops; i++) {
		o = json_element(d, list);
		json_text(d, o, "name", s->drops[i].name);
		json_count(d, o, "count", s->drops[i].count);
		json_text(d, o, "help", s->drops[i].help);
	}
	json_count(d, root, "sideband_lost", s->sideband_lost);

	o = json_object(d, root, "own");
	json_number(d, o, "cpu_ns", s->own.cpu_ns);
	json_number(d, o, "rss_kb", s->own.rss_kb);
	json_number(d, o, "peak_kb", s->own.peak_kb);
	json_number(d, o, "map_bytes", s->own.map_bytes);
}

static void add_cost(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->cost.known)
		return;
	o = json_object(d, root, "cost");
	json_number(d, o, "window_ns", s->cost.window_ns);
	json_number(d, o, "ns", s->cost.ns);
	json_real(d, o, "percent", (double)s->cost.ns * 100 / (double)s->duration_ns);
	json_real(d, o, "target_percent",
		  s->oncpu.cpu_ns > 0 ? (double)s->cost.ns * 100 / (double)s->oncpu.cpu_ns : NAN);
	json_number(d, o, "profiled_ns", s->cost.target_ns);
	json_real(d, o, "profiled_percent",
		  (double)s->cost.target_ns * 100 / (double)s->duration_ns);
	json_real(d, o, "limit_percent", s->cost.limit_percent > 0 ? s->cost.limit_percent : NAN);
	list = json_array(d, o, "sources");
	for (uint32_t i = 0; i < s->cost.n; i++) {
		const struct summary_cost *c = &s->cost.sources[i];

		o = json_element(d, list);
		json_text(d, o, "name", c->name);
		json_count(d, o, "events", c->events);
		json_real(d, o, "program_ns", c->program_ns);
		json_real(d, o, "trap_ns", c->trap_ns);
		json_number(d, o, "ns", c->ns);
		json_real(d, o, "percent", (double)c->ns * 100 / (double)s->duration_ns);
	}
}

static void add_unwind(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->unwind.known)
		return;
	o = json_object(d, root, "unwind");
	json_count(d, o, "files", s->unwind.files);
	json_count(d, o, "resident", s->unwind.resident);
	json_count(d, o, "bytes", s->unwind.bytes);
	json_count(d, o, "budget_bytes", s->unwind.budget_bytes);
	json_count(d, o, "rows", s->unwind.rows);
	json_count(d, o, "rules", s->unwind.rules);
	json_count(d, o, "spans", s->unwind.spans);
	json_count(d, o, "processes", s->unwind.processes);
	json_count(d, o, "made", s->unwind.made);
	json_count(d, o, "made_ns", s->unwind.made_ns);
	json_count(d, o, "evicted", s->unwind.evicted);
	json_count(d, o, "evicted_in_use", s->unwind.evicted_in_use);
	json_count(d, o, "refused", s->unwind.refused);
	json_count(d, o, "left_out", s->unwind.left_out);
	json_count(d, o, "unreadable", s->unwind.unreadable);
	json_count(d, o, "without_rows", s->unwind.without_rows);
	if (s->unwind.trouble && s->unwind.trouble[0])
		json_text(d, o, "trouble", s->unwind.trouble);
}

static void add_verdict(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "verdict");
	struct verdict v;

	summary_verdict(s, &v);
	json_text(d, o, "kind", verdict_name(v.kind));
	json_text(d, o, "sentence", v.sentence);
	json_text(d, o, "next", v.next);
}

DEFINE_CLEANUP(cJSON *, json_freep, cJSON_Delete)
DEFINE_CLEANUP(char *, json_text_freep, cJSON_free)

int summary_json_write(const struct run_summary *s, struct sink *out, struct err *e)
{
	_cleanup_(json_freep) cJSON *root = cJSON_CreateObject();
	_cleanup_(json_text_freep) char *written = NULL;
	struct json_doc d = { .oom = !root };

	add_run(&d, root, s);
	add_target(&d, root, s);
	add_sources(&d, root, s);
	add_time(&d, root, s);
	add_processes(&d, root, s);
	add_oncpu(&d, root, s);
	add_offcpu(&d, root, s);
	summary_json_alloc(&d, root, &s->alloc);
	add_diagnoses(&d, root, s);
	summary_json_growth(&d, root, &s->growth);
	add_rss(&d, root, s);
	summary_json_memory(&d, root, s);
	add_truth(&d, root, s);
	add_unwind(&d, root, s);
	add_cost(&d, root, s);
	json_text(&d, root, "dir", s->dir);
	json_strings(&d, root, "files", s->files, s->n_files);
	json_strings(&d, root, "notes", s->notes, s->n_notes);
	add_verdict(&d, root, s);

	if (!d.oom)
		written = cJSON_Print(root);
	if (!written)
		return err_set(e, -ENOMEM, "out of memory for the summary");
	sink_puts(out, written);
	sink_puts(out, "\n");
	return 0;
}
