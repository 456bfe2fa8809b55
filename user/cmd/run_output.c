/*
 * What a run leaves: files, and the summary on the terminal and beside them.
 */
#include "base/units.h"
#include "base/version.h"
#include "cmd/cmd.h"
#include "cmd/run_parts.h"
#include "cmd/run_windows.h"
#include "cmd/stale.h"
#include "cmd/target.h"
#include "render/bands_csv.h"
#include "render/render.h"
#include "render/sites_csv.h"
#include "render/summary_json.h"
#include "render/summary_text.h"
#include "symbolize/debug_package.h"
#include "symbolize/symbolize.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#define TOP_ROWS  10
#define WAIT_ROWS 30 /* idle ones among them are shown apart */

struct output {
	struct run *r;
	struct run_summary s;
	struct summary_process *processes;
	struct summary_group groups[GROUPS_MAX];
	struct summary_source sources[MS_N_SOURCES + 1];
	struct summary_stacks stacks[MS_N_SOURCES];
	struct summary_drop drops[MS_N_STATS + 4];
	struct top_row by_self[TOP_ROWS], by_total[TOP_ROWS];
	struct process_row by_process[TOP_ROWS];
	struct site_row waits[WAIT_ROWS], sites[TOP_ROWS], live_sites[TOP_ROWS];
	struct site_row mapped[SUMMARY_FEW_SITES], live_mapped[SUMMARY_FEW_SITES];
	struct summary_sites more_sites;
	struct site_row grown[TOP_ROWS], returned[TOP_ROWS];
	const char *files[32];
	struct debug_package packages[8]; /* of symbols.worst */
	uint64_t stats[MS_N_STATS];
	struct ingest_stats in;
	struct strbuf missing; /* names of files that could not be written */
	char suffix[40];       /* of trend, bands and summary: "-STAMP", or "" */
};

static int open_module(void *ctx, module_id m, struct err *e)
{
	struct run *r = ctx;

	if (run_in_a_hurry())
		return err_set(e, -ECANCELED, "left out at a second signal");
	return proc_table_open_module(r->procs, m, e);
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	struct run *r = ctx;

	return proc_table_open_beside(r->procs, m, path, host);
}

static int open_jit(void *ctx, module_id m, enum jit_file what)
{
	struct run *r = ctx;

	return what == JIT_DUMP ? proc_table_open_jitdump(r->procs, m)
				: proc_table_open_perf_map(r->procs, m);
}

/* Memory without a file is a module of its own in each process: one row for all of the same
 * name. */
static void add_worst(struct output *o, const struct symbolize_miss *miss)
{
	const char *path = dict_str(o->r->dict, dict_module_get(o->r->dict, miss->module)->path);
	struct summary_module *worst = o->s.symbols.worst;
	uint32_t i = 0;

	while (i < o->s.symbols.n_worst &&
	       (strcmp(worst[i].module, path) != 0 || strcmp(worst[i].reason, miss->reason) != 0))
		i++;
	if (i < o->s.symbols.n_worst) {
		worst[i].locations += miss->locations;
	} else if (i < 8) {
		worst[i] = (struct summary_module){ path, miss->locations, miss->reason, NULL };
		if (proc_table_in_own_root(o->r->procs, miss->module))
			o->packages[i].path = path;
		o->s.symbols.n_worst++;
	}
}

int run_name(struct run *r, struct symbolize_stats *ret_stats, struct err *e)
{
	struct symbolize_opts opts = {
		.open_module = open_module,
		.open_debug = open_debug,
		.open_jit = open_jit,
		.ctx = r,
		.no_demangle = r->cfg->no_demangle,
	};
	struct symbolize_stats st = {};
	int rc = symbolize(r->dict, &opts, ret_stats ? ret_stats : &st);

	return rc < 0 ? err_set(e, rc, "out of memory while naming functions") : 0;
}

static int name_everything(struct output *o, struct err *e)
{
	struct symbolize_stats st = {};
	int rc = run_name(o->r, &st, e);

	if (rc < 0)
		return rc;
	o->s.symbols.locations = st.locations;
	o->s.symbols.named = st.named;
	o->s.symbols.ranges = st.ranges;
	o->s.symbols.offset_only = st.offset_only;
	o->s.symbols.no_module = st.no_module;
	for (uint32_t i = 0; i < 8; i++)
		o->packages[i].path = "";
	for (uint32_t i = 0; i < st.n_worst; i++)
		add_worst(o, &st.worst[i]);
	if (st.lines_problem)
		run_note(o->r, false, "inlined calls and lines may be missing, in %s first: %s",
			 dict_str(o->r->dict, dict_module_get(o->r->dict, st.lines_module)->path),
			 st.lines_problem);
	debug_packages_find(NULL, o->packages, 8);
	for (uint32_t i = 0; i < o->s.symbols.n_worst; i++)
		o->s.symbols.worst[i].package = o->packages[i].name;
	return 0;
}

/* --- files
 * --------------------------------------------------------------------------------------- */

int run_write_profile(const struct run *r, const struct profile *p, const char *name,
		      const struct format *f, const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct render_opts opts = { .value_type = -1, .by = r->cfg->by };
	char title[128];
	int rc;

	snprintf(title, sizeof(title), "memscope: %s", name);
	opts.title = title;
	rc = sink_open_file(path, &sink, e);
	if (rc == 0 && f->gzip)
		rc = sink_gzip(sink, e);
	if (rc == 0)
		rc = f->write(p, &opts, sink, e);
	return rc == 0 ? sink_commit(sink, e) : rc;
}

static void file_written(struct output *o, const char *name, const char *ext)
{
	char *full;

	if (o->s.n_files < sizeof(o->files) / sizeof(*o->files) &&
	    asprintf(&full, "%s%s", name, ext) >= 0)
		o->files[o->s.n_files++] = full;
}

static void file_missing(struct output *o, const char *name, const char *ext)
{
	strbuf_printf(&o->missing, "%s%s%s", o->missing.len ? ", " : "", name, ext);
}

/* The first failure has its sentence; those after it are named. */
static void tell_missing(struct output *o)
{
	if (o->missing.len && !strbuf_oom(&o->missing))
		run_note(o->r, true, "not written: %s", o->missing.s);
	strbuf_reset(&o->missing);
}

struct profile_meta run_profile_meta(const struct run *r, const struct profile_row *row)
{
	return (struct profile_meta){
		.period_type = row->period,
		.period = row->source == MS_ONCPU    ? 1000000000 / r->cfg->hz
			  : row->source == MS_GROWTH ? MS_GROWTH_PAGES * sysconf(_SC_PAGESIZE)
						     : 1,
		.default_type = row->default_type,
	};
}

static void set_meta(const struct output *o, struct profile *p, const struct profile_row *row)
{
	bool sampled = row->source == MS_ALLOC && o->r->tier == ALLOC_TIER_SAMPLED;
	char tier[512];
	const char *comments[] = { tier, NULL };
	struct profile_meta meta = run_profile_meta(o->r, row);

	meta.time_ns = o->r->start_wall_ns;
	meta.duration_ns = o->s.duration_ns;
	if (sampled) {
		const struct summary_alloc *a = &o->s.alloc;

		snprintf(tier, sizeof(tier),
			 "sampled by %s: unbiased estimates from %llu samples, 95 %% intervals: "
			 "alloc_space %lld to %lld, inuse_space %lld to %lld",
			 a->sampler, (unsigned long long)a->bytes_interval.samples,
			 (long long)a->bytes_interval.low, (long long)a->bytes_interval.high,
			 (long long)a->live_interval.low, (long long)a->live_interval.high);
		meta.comments = comments;
		meta.period = a->rate > 0 ? a->rate : 1;
	}

	if (row->source == MS_ALLOC && o->r->tier == ALLOC_TIER_SLICES) {
		const struct summary_alloc *a = &o->s.alloc;

		snprintf(
			tier, sizeof(tier),
			"every call in %u slices of time, %.3g %% of it: estimates, from %llu calls; "
			"alloc_space 95 %% interval: %lld to %lld",
			a->slices.n,
			a->slices.span_ns
				? (double)a->slices.covered_ns * 100 / (double)a->slices.span_ns
				: 0,
			(unsigned long long)a->slices.seen_calls, (long long)a->bytes_interval.low,
			(long long)a->bytes_interval.high);
		meta.comments = comments;
	}
	if (row->source == MS_OFFCPU && o->s.offcpu.sampled) {
		run_waits_comment(&o->s, tier, sizeof(tier));
		meta.comments = comments;
	}
	profile_set_meta(p, &meta);
}

/* Are there figures for this profile? What lives cannot be told from slices. */
static bool is_told(const struct run *r, enum profile_kind kind)
{
	if (profile_rows[kind].source != MS_ALLOC)
		return true;
	return r->tier == ALLOC_TIER_EXACT ||
	       (r->tier == ALLOC_TIER_SAMPLED && kind != PROFILE_PEAK &&
		kind != PROFILE_MAPPINGS) ||
	       (r->tier == ALLOC_TIER_SLICES && kind == PROFILE_ALLOC);
}

/* Every profile in every format; one that fails does not keep the others from being written. */
static int write_profiles(struct output *o, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		const struct profile_row *row = &profile_rows[i];
		struct profile *p = o->r->profiles[i];

		if (!p || !is_told(o->r, (enum profile_kind)i))
			continue;
		set_meta(o, p, row);
		for (const struct format *f = formats; f->name; f++) {
			struct err one = {};
			char path[4096];
			int r;

			if (f->on_demand || (run_in_a_hurry() && f->picture))
				continue;
			snprintf(path, sizeof(path), "%s/%s%s", o->r->cfg->dir, row->name, f->ext);
			r = run_write_profile(o->r, p, row->name, f, path, &one);

			if (r == -ENODATA)
				continue; /* no picture of nothing: an idle target is no failure */
			if (r == 0) {
				file_written(o, row->name, f->ext);
				continue;
			}
			file_missing(o, row->name, f->ext);
			if (rc == 0) {
				rc = r;
				*e = one;
			}
		}
	}
	return rc;
}

static int write_bands(struct output *o, struct sink *sink, struct err *e)
{
	return bands_csv_write(o->r->bands, o->r->dict, o->r->start_wall_ns, sink, e);
}

static int write_sites(struct output *o, struct sink *sink, struct err *e)
{
	return sites_csv_write(o->r->sites, sink, e);
}

static int write_csv(struct output *o, const char *name,
		     int (*write)(struct output *o, struct sink *sink, struct err *e),
		     struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/%s%s.csv", o->r->cfg->dir, name, o->suffix);
	rc = sink_open_file(path, &sink, e);
	if (rc == 0)
		rc = write(o, sink, e);
	if (rc == 0)
		rc = sink_commit(sink, e);
	snprintf(path, sizeof(path), "%s.csv", o->suffix);
	if (rc == 0)
		file_written(o, name, path);
	else
		file_missing(o, name, path);
	return rc;
}

/* Tables of exact allocations. */
static int write_tables(struct output *o, struct err *e)
{
	int rc = o->r->bands ? write_csv(o, "bands", write_bands, e) : 0, rc2 = 0;

	if (o->r->sites && o->r->tier == ALLOC_TIER_EXACT)
		rc2 = write_csv(o, "sites", write_sites, rc == 0 ? e : NULL);
	return rc < 0 ? rc : rc2;
}

static int write_summary(struct output *o, const char *name, bool json, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	int rc = sink_open_file(name, &sink, e);

	if (rc < 0)
		return rc;
	if (json)
		rc = summary_json_write(&o->s, sink, e);
	else
		summary_text_write(&o->s, sink);
	return rc == 0 ? sink_commit(sink, e) : rc;
}

/* They name themselves as well; what is printed then names those that are there. */
static int write_summaries(struct output *o, struct err *e)
{
	static const char *const kinds[] = { "txt", "json" };
	uint32_t others = o->s.n_files;
	char path[4096], ending[64];
	bool there[2];
	int rc = 0;

	for (int i = 0; i < 2; i++) {
		snprintf(ending, sizeof(ending), "%s.%s", o->suffix, kinds[i]);
		file_written(o, "summary", ending);
	}
	for (int i = 0; i < 2; i++) {
		int r;

		snprintf(path, sizeof(path), "%s/summary%s.%s", o->s.dir, o->suffix, kinds[i]);
		r = write_summary(o, path, i == 1, rc == 0 ? e : NULL);
		there[i] = r == 0;
		rc = rc == 0 ? r : rc;
	}
	while (o->s.n_files > others)
		free((char *)o->files[--o->s.n_files]);
	for (int i = 0; i < 2; i++) {
		snprintf(ending, sizeof(ending), "%s.%s", o->suffix, kinds[i]);
		(there[i] ? file_written : file_missing)(o, "summary", ending);
	}
	return rc;
}

/* --- facts
 * --------------------------------------------------------------------------------------- */

/* The command line of the `i`th target, as it is, or was when the run began; NULL when not known. */
static char *target_line(const struct run *r, uint32_t i)
{
	char line[4096];

	if (target_cmdline(r->cfg->pids[i], line, sizeof(line)))
		return strdup(line);
	return r->cmdlines && r->cmdlines[i] ? strdup(r->cmdlines[i]) : NULL;
}

static char *join_command(char **argv)
{
	size_t len = 1;
	char *s;

	for (char **a = argv; *a; a++)
		len += strlen(*a) + 1;
	s = calloc(1, len);
	for (char **a = argv; s && *a; a++) {
		strcat(s, *a);
		if (a[1])
			strcat(s, " ");
	}
	return s;
}

static const char *command_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void facts_groups(struct output *o)
{
	const struct run_config *cfg = o->r->cfg;

	for (uint32_t i = 0; i < cfg->n_groups; i++) {
		const struct group *g = &cfg->groups[i];

		o->groups[i] = (struct summary_group){
			.path = g->at.path,
			.name = g->name,
			.id = g->id,
			.engine = g->engine,
			.image = g->image,
			.restarts = g->restarts,
			.was_gone = g->was_gone,
			.gone_ns = g->gone_ns ? (int64_t)(o->r->end_ns - g->gone_ns) : 0,
		};
	}
	o->s.groups = o->groups;
	o->s.n_groups = cfg->n_groups;
	o->s.n_members = o->r->n_members;
}

static int facts_target(struct output *o)
{
	const struct run_config *cfg = o->r->cfg;
	uint32_t n = cfg->command ? 1 : cfg->n_pids;

	o->s.target = cfg->all        ? RUN_HOST
		      : cfg->n_groups ? RUN_GROUPS
		      : cfg->command  ? RUN_COMMAND
				      : RUN_PROCESSES;
	o->processes = calloc(n ? n : 1, sizeof(*o->processes));
	if (!o->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct summary_process *sp = &o->processes[o->s.n_processes];
		struct proc *p;

		sp->pid = cfg->command ? launch_pid(o->r->launch) : cfg->pids[i];
		p = proc_table_live(o->r->procs, sp->pid);
		if (cfg->n_groups && !p)
			continue; /* of its members, those that are still there */
		if (!p)
			p = proc_table_first(o->r->procs, sp->pid);
		o->s.n_processes++;
		sp->ns_pid = run_ns_pid(o->r, sp->pid);
		sp->comm = p ? proc_comm(p) : cfg->command ? command_name(cfg->command[0]) : NULL;
		sp->exe = p ? proc_exe(p) : NULL;
		sp->cmdline = cfg->command ? join_command(cfg->command) : target_line(o->r, i);
	}
	o->s.processes = o->processes;
	facts_groups(o);
	if (o->r->child_ended) {
		o->s.child.known = true;
		o->s.child.exited = WIFEXITED(o->r->child_status);
		o->s.child.code = o->s.child.exited ? WEXITSTATUS(o->r->child_status) : 0;
		o->s.child.signal = o->s.child.exited ? 0 : WTERMSIG(o->r->child_status);
	}
	return 0;
}

static void facts_sources(struct output *o)
{
	const char *names[MS_N_SOURCES] = { "oncpu", "offcpu", "alloc", "growth" };

	for (int i = 0; i < MS_N_SOURCES; i++) {
		const char *why = NULL;
		bool ok = session_has(o->r->session, (enum ms_source)i, &why);

		o->sources[i] = (struct summary_source){ names[i],
							 ok    ? SOURCE_OK
							 : why ? SOURCE_UNAVAILABLE
							       : SOURCE_NOT_ASKED,
							 why };
	}
	o->sources[MS_N_SOURCES] =
		(struct summary_source){ "trend", o->r->mem_known ? SOURCE_OK : SOURCE_NOT_ASKED,
					 NULL };
	o->s.sources = o->sources;
	o->s.n_sources = MS_N_SOURCES + 1;
}

static uint32_t rows(int n)
{
	return n < 0 ? 0 : (uint32_t)n;
}

static void facts_oncpu(struct output *o)
{
	const struct profile *p = o->r->profiles[PROFILE_ONCPU];
	int64_t in_allocator, in_kernel, in_probes;

	o->s.oncpu.hz = o->r->cfg->hz;
	o->s.oncpu.event = session_oncpu_event(o->r->session);
	o->s.oncpu.samples = o->in.oncpu_samples;
	if (o->s.time.known)
		o->s.oncpu.cpu_ns = o->s.time.oncpu_ns;
	else if (p)
		o->s.oncpu.cpu_ns = profile_total(p, 1);
	if (!p)
		return;
	o->s.oncpu.n_self = rows(top_functions(p, 0, TOP_BY_SELF, o->by_self, TOP_ROWS));
	o->s.oncpu.n_total = rows(top_functions(p, 0, TOP_BY_TOTAL, o->by_total, TOP_ROWS));
	o->s.oncpu.by_self = o->by_self;
	o->s.oncpu.by_total = o->by_total;
	if (sites_allocator_value(p, 0, &in_allocator) == 0)
		o->s.oncpu.allocator_samples = (uint64_t)in_allocator;
	if (sites_probe_value(p, 0, o->r->tier == ALLOC_TIER_EXACT, &in_probes) == 0)
		o->s.oncpu.probe_samples = (uint64_t)in_probes;
	if (sites_kernel_value(p, 0, &in_kernel) == 0)
		o->s.oncpu.kernel_samples = (uint64_t)in_kernel;
}

static void facts_offcpu(struct output *o)
{
	const struct profile *p = o->r->profiles[PROFILE_OFFCPU];

	if (!p)
		return;
	o->s.time.known = true;
	o->s.time.oncpu_ns = (int64_t)o->in.times.oncpu_ns;
	o->s.time.blocked_ns = (int64_t)o->in.times.blocked_ns;
	o->s.time.runnable_ns = (int64_t)o->in.times.runnable_ns;
	o->s.time.held_ns = (int64_t)o->in.times.held_ns;
	o->s.time.wall_ns = (int64_t)o->in.times.wall_ns;
	o->s.seen_threads = o->in.times.threads;
	o->s.offcpu.n_waits = rows(sites_waits(p, 1, 0, o->waits, WAIT_ROWS));
	o->s.offcpu.min_ns = (int64_t)o->r->cfg->wait_min_ns;
	o->s.offcpu.max_ns = (int64_t)o->r->cfg->wait_max_ns;
	o->s.offcpu.left_out = o->stats[STAT_WAITS_LEFT_OUT] + o->in.times.left_out;
	o->s.offcpu.left_out_ns = o->stats[STAT_WAITS_LEFT_OUT_NS] + o->in.times.left_out_ns;
	o->s.offcpu.waits = o->waits;
	run_waits_facts(o->r, o->stats, &o->s, o->waits);
}

static void facts_processes(struct output *o)
{
	uint32_t seen = 0;

	o->s.n_by_process =
		rows(by_process(o->r->profiles[PROFILE_ONCPU], o->r->profiles[PROFILE_OFFCPU],
				o->by_process, TOP_ROWS, &seen));
	o->s.by_process = o->by_process;
	o->s.seen_processes = seen;
}

static void facts_alloc(struct output *o)
{
	struct run *r = o->r;
	struct summary_alloc *a = &o->s.alloc;
	uint64_t start = session_start_ns(r->session);

	a->tier = r->tier;
	a->reason = *r->alloc_reason ? r->alloc_reason : NULL;
	a->calls_per_s = r->calls_per_s;
	a->cost_percent = r->cost_percent;
	if (!is_told(r, PROFILE_ALLOC))
		return;
	a->covered_from_ns = r->alloc_from_ns > start ? (int64_t)(r->alloc_from_ns - start) : 0;
	a->covered_to_ns = (int64_t)(r->alloc_to_ns - start);
	a->objects = o->in.allocated;
	a->bytes = o->in.allocated_bytes;
	a->freed_objects = o->in.freed;
	a->freed_bytes = o->in.freed_bytes;
	a->live_objects = o->in.live;
	a->live_bytes = o->in.live_bytes;
	a->failed = o->stats[STAT_ALLOC_FAILED];
	a->inherited_frees = o->stats[STAT_FREE_INHERITED];
	a->earlier_frees = o->stats[STAT_FREE_UNKNOWN];
	a->untracked = o->in.untracked;
	a->n_sites = rows(sites_allocations(r->profiles[PROFILE_ALLOC], 1, 0, o->sites, TOP_ROWS));
	a->n_live_sites =
		rows(sites_allocations(r->profiles[PROFILE_HEAP], 3, 2, o->live_sites, TOP_ROWS));
	a->sites = o->sites;
	a->live_sites = o->live_sites;
	if (r->tier == ALLOC_TIER_SLICES) {
		a->freed_objects = a->freed_bytes = 0;
		a->live_objects = a->live_bytes = 0;
		a->n_live_sites = 0;
		run_slices_facts(r, a, o->sites);
		return;
	}
	run_leak_facts(r, a);
	run_mappings_facts(r, o->stats, o->mapped, o->live_mapped, SUMMARY_FEW_SITES, &a->mappings);
	if (r->tier != ALLOC_TIER_SAMPLED) {
		run_site_facts(r, &o->more_sites, a);
		return;
	}
	run_sampled_facts(r, a);
	sample_sites(&r->spread, false, o->sites, a->n_sites);
	sample_sites(&r->spread, true, o->live_sites, a->n_live_sites);
}

static void facts_growth(struct output *o)
{
	const struct run *r = o->r;
	const struct profile *p = r->profiles[PROFILE_GROWTH];
	struct summary_growth *g = &o->s.growth;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const char *why;

	if (!p || !session_has(r->session, MS_GROWTH, &why))
		return;
	g->known = true;
	for (int i = 0; i < N_GROWTH_KINDS; i++) {
		g->resident_bytes[i] = o->stats[STAT_RESIDENT_FILE + i] * page;
		g->returned_bytes[i] = o->stats[STAT_RETURNED_FILE + i] * page;
	}
	g->made_bytes = o->stats[STAT_MEMORY_MADE] * page;
	g->ended_bytes = (int64_t)(o->stats[STAT_MEMORY_ENDED] * page);
	g->on_stacks = o->in.resident_bytes;
	g->returned_on_stacks = o->in.returned_bytes;
	g->samples = o->stats[STAT_GROWTH_SAMPLES];
	g->check.processes = r->growth.processes;
	g->check.told_bytes = r->growth.told_bytes;
	g->check.rss_bytes = r->growth.rss_bytes;
	g->n_sites = rows(sites_allocations(p, 0, -1, o->grown, TOP_ROWS));
	g->n_returned_sites = rows(sites_allocations(p, 1, -1, o->returned, TOP_ROWS));
	g->sites = o->grown;
	g->returned_sites = o->returned;
}

static void facts_stacks(struct output *o)
{
	const char *names[MS_N_SOURCES] = { "oncpu", "offcpu", "alloc", "growth" };
	uint64_t v[MS_N_SOURCES][MS_N_VERDICTS];

	drain_verdicts(o->r->drain, v);
	for (int i = 0; i < MS_N_SOURCES; i++) {
		for (int j = 0; j < MS_N_VERDICTS; j++)
			v[i][j] += o->r->finished[i][j];
		if (!o->r->cfg->sources[i])
			continue;
		o->stacks[o->s.n_stacks++] = (struct summary_stacks){
			.source = names[i],
			.complete = v[i][MS_COMPLETE],
			.truncated = v[i][MS_TRUNCATED],
			.guessed = v[i][MS_GUESSED],
			.no_table = v[i][MS_NO_TABLE],
			.unreadable = v[i][MS_UNREADABLE],
			.lost = v[i][MS_LOST],
		};
	}
	o->s.stacks = o->stacks;
}

static void facts_drops(struct output *o)
{
	struct proc_table_stats procs = proc_table_stats(o->r->procs);

	for (int i = 0; i < MS_N_STATS; i++)
		if (stat_rows[i].loss)
			o->drops[o->s.n_drops++] =
				(struct summary_drop){ stat_rows[i].name, stat_rows[i].help,
						       o->stats[i] };
	o->drops[o->s.n_drops++] =
		(struct summary_drop){ "stacks_never_arrived",
				       "events whose stack never reached user space",
				       o->in.lost_stacks };
	o->drops[o->s.n_drops++] = (struct summary_drop){
		"unknown_process",
		"events of processes whose mappings were not known: their frames have no names",
		o->in.unknown_process
	};
	o->drops[o->s.n_drops++] = (struct summary_drop){
		"maps_not_recorded",
		"mappings of processes that found no room: their code has no names", procs.lost_maps
	};
	o->drops[o->s.n_drops++] =
		(struct summary_drop){ "processes_not_recorded",
				       "processes that found no room: their code has no names",
				       procs.lost_procs };
	o->s.drops = o->drops;
	o->s.sideband_lost = sideband_lost(o->r->sideband);
}

/* MiB for a table that has room for what this one had not: its share grows at least as --mem does. */
static uint32_t mem_for(const struct run *r, const uint64_t *stats)
{
	double has = session_map_max(r->session, SESSION_BLOCKS);

	return (uint32_t)ceil(r->cfg->mem_mb * (1 + (double)stats[STAT_BLOCKS_FULL] / has));
}

/* What memscope promises to take at most, resident and in the kernel, with the default --mem. */
#define OWN_ONE_BYTES  64000000
#define OWN_HOST_BYTES 150000000
#define MEM_DEFAULT_MB 64

static void note_own_memory(const struct output *o)
{
	struct run *r = o->r;
	int64_t limit = r->cfg->all ? OWN_HOST_BYTES : OWN_ONE_BYTES;
	int64_t took = o->s.own.peak_kb * 1024 + o->s.own.map_bytes;

	if (r->cfg->mem_mb > MEM_DEFAULT_MB)
		limit += (int64_t)(r->cfg->mem_mb - MEM_DEFAULT_MB) << 20;
	if (took > limit)
		run_note(
			r, false,
			"memscope itself took up to %s, %s more than it should: a lower --mem (now %u "
			"MiB) takes less",
			unit_bytes(took).s, unit_bytes(took - limit).s, r->cfg->mem_mb);
}

static void notes(struct output *o)
{
	struct run *r = o->r;

	note_own_memory(o);
	if (r->gap_children || r->gap_ended)
		run_note(
			r, false,
			"of %u forked children, %u ran %s in all before their allocation probes were in place, and "
			"%u ended before: what they allocated then is not in alloc and heap (--alloc-scope=file "
			"leaves no gap)",
			r->children, r->gap_children, unit_ns((int64_t)r->gap_ns).s, r->gap_ended);
	if (r->late_files)
		run_note(
			r, false,
			"an allocator's file was mapped in the run %u time%s, %s in all before its probes were in "
			"place: what it allocated then is not in alloc and heap",
			r->late_files, r->late_files == 1 ? "" : "s",
			unit_ns((int64_t)r->late_ns).s);
	if (r->tier == ALLOC_TIER_EXACT && r->children)
		run_note(
			r, false,
			"a fork copies no live blocks: what a child inherits is counted once, as its parent's, "
			"whatever the child does with it");
	if (o->stats[STAT_PROBE_OTHER] && r->cfg->file_scope)
		run_note(
			r, false,
			"--alloc-scope=file: %s probe hits in processes that are not watched; each cost them 0.5 to 9 µs",
			unit_count((int64_t)o->stats[STAT_PROBE_OTHER]).s);
	if (o->in.ended)
		run_note(
			r, false,
			"%s blocks (%s) went with a child that ended or an image that an exec replaced: they are not in heap",
			unit_count((int64_t)o->in.ended).s,
			unit_bytes((int64_t)o->in.ended_bytes).s);
	if (o->stats[STAT_SITES_FULL] || o->stats[STAT_SITES_NONE])
		run_note(
			r, true,
			"the table of allocation sites was full: %s allocations are counted without their stack, "
			"%s (%s) are in no figure; raise --mem (now %u)",
			unit_count((int64_t)o->stats[STAT_SITES_FULL]).s,
			unit_count((int64_t)o->stats[STAT_SITES_NONE]).s,
			unit_bytes((int64_t)o->stats[STAT_SITES_NONE_BYTES]).s, r->cfg->mem_mb);
	if (o->stats[STAT_BLOCKS_FULL])
		run_note(
			r, true,
			"the table of live blocks was full: %s allocations (%s) are in alloc but not in heap; "
			"--mem=%u would hold as many more (now %u)",
			unit_count((int64_t)o->stats[STAT_BLOCKS_FULL]).s,
			unit_bytes((int64_t)o->stats[STAT_BLOCKS_FULL_BYTES]).s,
			mem_for(r, o->stats), r->cfg->mem_mb);
}

static void facts_memory(struct output *o)
{
	const struct run *r = o->r;
	struct point points[TREND_POINTS];

	o->s.memory = trend_rise(&r->own_memory, r->cfg->command && r->cfg->delay_s <= 0);
	course_of(points, trend_points(&r->own_memory, r->cfg->interval_s, points), &o->s.course);
	o->s.plain = plain_verdict((double)r->first_mem.rss_kb, (double)r->last_mem.rss_kb);
}

static int gather(struct output *o, struct err *e)
{
	struct run *r = o->r;
	int rc;

	ingest_stats(r->ingest, &o->in);
	drain_stats(r->drain, o->stats);
	o->s.version = MEMSCOPE_VERSION;
	o->s.start_ns = r->start_wall_ns;
	o->s.duration_ns = (int64_t)(r->end_ns - session_start_ns(r->session));
	o->s.end = r->ended;
	o->s.end_detail = *r->end_detail ? r->end_detail : NULL;
	o->s.n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (facts_target(o) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	rc = name_everything(o, e);
	if (rc < 0)
		return rc;
	facts_sources(o);
	facts_offcpu(o);
	facts_oncpu(o);
	facts_processes(o);
	facts_alloc(o);
	facts_growth(o);
	run_cost_facts(r, &o->s);
	run_ledger_facts(r, &o->s);
	facts_stacks(o);
	run_gap_facts(r, &o->s);
	facts_drops(o);
	if (r->mem_known) {
		o->s.rss.known = true;
		o->s.rss.first_kb = r->first_mem.rss_kb;
		o->s.rss.last_kb = r->last_mem.rss_kb;
		o->s.rss.peak_kb = r->peak_rss_kb;
		o->s.rss.shared = r->last_mem.processes > 1;
		facts_memory(o);
	}
	run_unwind_facts(r, &o->s);
	proc_mem_self(&o->s.own.cpu_ns, &o->s.own.rss_kb, &o->s.own.peak_kb);
	o->s.own.map_bytes = (int64_t)session_map_bytes(r->session);
	notes(o);
	o->s.notes = (const char *const *)r->notes;
	o->s.n_notes = r->n_notes;
	return 0;
}

/* With all files of this run in place; one that could not be written leaves those before it. */
static void clear_earlier_run(struct output *o)
{
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };

	stale_remove(o->s.dir, o->s.files, o->s.n_files, &removed);
	if (removed.len)
		run_note(o->r, false, "files of an earlier run in this directory were removed: %s",
			 removed.s);
}

static void output_free(struct output *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->s.n_files; i++)
		free((char *)o->files[i]);
	for (uint32_t i = 0; i < o->s.n_processes; i++)
		free((char *)o->processes[i].cmdline);
	free(o->processes);
	strbuf_free(&o->missing);
	free(o);
}

int run_facts(struct run *r, void (*fn)(void *ctx, const struct run_summary *s), void *ctx,
	      struct err *e)
{
	struct output *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return err_set(e, -ENOMEM, "out of memory");
	o->r = r;
	rc = gather(o, e);
	if (rc == 0)
		fn(ctx, &o->s);
	output_free(o);
	return rc;
}

int run_write(struct run *r, struct err *e)
{
	struct output *o = calloc(1, sizeof(*o));
	struct err one = {};
	char ending[64];
	int rc, rc2;

	if (!o)
		return err_set(e, -ENOMEM, "out of memory");
	o->r = r;
	if (r->cfg->stamp)
		snprintf(o->suffix, sizeof(o->suffix), "-%s", r->cfg->stamp);
	rc = gather(o, e);
	if (rc == 0) {
		rc = r->windows ? run_windows_end(r, e) : write_profiles(o, e);
		rc2 = write_tables(o, &one);
		if (rc2 < 0 && rc == 0) {
			rc = rc2;
			*e = one;
		}
		if (run_in_a_hurry())
			run_note(r, true,
				 "a second signal came while files were written: names and "
				 "pictures that were not there yet are left out");
		snprintf(ending, sizeof(ending), "%s.csv", o->suffix);
		if (r->trend || r->mem_known)
			file_written(o, "trend", ending);
		if (r->holders)
			file_written(o, "ledger", ending);
		o->s.dir = r->cfg->dir;
		o->s.files = o->files;
		if (rc == 0 && !r->cfg->stamp)
			clear_earlier_run(o);
		tell_missing(o);
		o->s.n_notes = r->n_notes;
		rc2 = write_summaries(o, &one);
		if (rc2 < 0 && rc == 0) {
			rc = rc2;
			*e = one;
		}
		tell_missing(o);
		o->s.n_notes = r->n_notes;
		if ((r->cfg->json || !r->cfg->quiet) &&
		    write_summary(o, "-", r->cfg->json, &one) < 0) {
			command_say(one.msg);
			r->partial = true;
		}
	}
	output_free(o);
	return rc;
}
