/*
 * On-CPU samples in a run: the programs and the profile are the services'; here is what the summary says of
 * them.
 */
#include "analyse/by_process.h"
#include "analyse/gc_time.h"
#include "analyse/sites.h"
#include "analyse/top.h"
#include "run/component.h"
#include "run/targets.h"

#define TOP_ROWS     10
#define SITE_ROWS    3
#define COMMAND_ROWS 3

struct oncpu {
	struct run *run;
	struct top_row by_self[TOP_ROWS], by_total[TOP_ROWS], interpreted[TOP_ROWS];
	struct site_row sites[SITE_ROWS], work;
	struct nameless_row nameless;
	struct top_row trunk;
	struct command_row commands[COMMAND_ROWS];
};

static void report(void *self, struct run_summary *to)
{
	struct oncpu *o = self;
	const struct run *r = o->run;
	const struct profile *p = r->profiles[PROFILE_ONCPU];
	int64_t in_allocator, in_kernel, in_probes, in_jit, in_gc[N_GC_RUNTIMES] = { 0 };
	struct process_names names = { run_process_name, r->procs };
	struct ingest_stats in;

	ingest_stats(r->ingest, &in);
	to->oncpu.hz = r->cfg->hz;
	to->oncpu.event = session_oncpu_event(r->session);
	to->oncpu.samples = in.oncpu_samples;
	/* The scheduler's account, where there is one; else what the samples stand for. */
	if (r->profiles[PROFILE_OFFCPU])
		to->oncpu.cpu_ns = (int64_t)in.times.oncpu_ns;
	else if (p)
		to->oncpu.cpu_ns = profile_total(p, 1);
	if (!p)
		return;
	to->oncpu.n_self = row_count(top_functions(p, 0, TOP_BY_SELF, o->by_self, TOP_ROWS));
	to->oncpu.n_total = row_count(top_functions(p, 0, TOP_BY_TOTAL, o->by_total, TOP_ROWS));
	to->oncpu.n_interpreted =
		row_count(top_functions(p, 0, TOP_INTERPRETED, o->interpreted, TOP_ROWS));
	to->oncpu.n_sites = row_count(sites_allocations(p, 0, -1, o->sites, SITE_ROWS));
	to->oncpu.sites = o->sites;
	if (sites_work(p, 0, &o->work, 1) == 1)
		to->oncpu.work = &o->work;
	if (nameless_find(p, 0, &o->nameless) == 1)
		to->oncpu.nameless = &o->nameless;
	if (top_trunk(p, 0, &o->trunk) == 1)
		to->oncpu.trunk = &o->trunk;
	to->oncpu.n_commands = row_count(by_command(p, &names, o->commands, COMMAND_ROWS));
	to->oncpu.commands = o->commands;
	to->oncpu.by_self = o->by_self;
	to->oncpu.interpreted = o->interpreted;
	to->oncpu.by_total = o->by_total;
	if (sites_allocator_value(p, 0, &in_allocator) == 0)
		to->oncpu.allocator_samples = (uint64_t)in_allocator;
	if (sites_probe_value(p, 0, r->alloc.tier == ALLOC_TIER_EXACT, &in_probes) == 0)
		to->oncpu.probe_samples = (uint64_t)in_probes;
	gc_time(p, 0, in_gc);
	for (int i = 0; i < N_GC_RUNTIMES; i++) {
		to->oncpu.gc_by_runtime[i] = (uint64_t)in_gc[i];
		to->oncpu.gc_samples += (uint64_t)in_gc[i];
	}
	if (jit_time(p, 0, &in_jit) == 0)
		to->oncpu.jit_samples = (uint64_t)in_jit;
	if (sites_kernel_value(p, 0, &in_kernel) == 0)
		to->oncpu.kernel_samples = (uint64_t)in_kernel;
}

const struct component oncpu_component = {
	.name = "on-CPU",
	.size = sizeof(struct oncpu),
	.report = report,
};
