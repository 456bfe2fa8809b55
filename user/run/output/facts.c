#include "run/output/facts.h"
#include "base/units.h"
#include "base/version.h"
#include "collect/session/stats.h"
#include "proc/proc_mem.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/output/files.h"
#include "run/own_names.h"
#include "run/target.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

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
static void add_worst(struct facts *f, const struct symbolize_miss *miss)
{
	const char *path = dict_str(f->r->dict, dict_module_get(f->r->dict, miss->module)->path);
	struct summary_module *worst = f->s.symbols.worst;
	uint32_t i = 0;

	while (i < f->s.symbols.n_worst &&
	       (strcmp(worst[i].module, path) != 0 || strcmp(worst[i].reason, miss->reason) != 0))
		i++;
	if (i < f->s.symbols.n_worst) {
		worst[i].locations += miss->locations;
	} else if (i < 8) {
		worst[i] = (struct summary_module){ path, miss->locations, miss->reason, NULL };
		if (proc_table_in_own_root(f->r->procs, miss->module))
			f->packages[i].path = path;
		f->s.symbols.n_worst++;
	}
}

struct symbolize_opts output_files(struct run *r)
{
	return (struct symbolize_opts){
		.open_module = open_module,
		.open_debug = open_debug,
		.open_jit = open_jit,
		.ctx = r,
		.no_demangle = r->cfg->no_demangle,
	};
}

int output_call_types(struct run *r, const location_id *calls, uint32_t n, call_type_fn fn,
		      void *ctx)
{
	struct symbolize_opts opts = output_files(r);

	return call_types_find(r->dict, &opts, calls, n, fn, ctx);
}

static int name_all(struct run *r, const struct symbolize_opts *opts,
		    struct symbolize_stats *ret_stats, struct err *e)
{
	struct symbolize_stats st = {};
	int rc;

	own_names(r->own_names, r->dict);
	rc = symbolize(r->dict, opts, ret_stats ? ret_stats : &st);
	return rc < 0 ? err_set(e, rc, "out of memory while naming functions") : 0;
}

int output_name(struct run *r, bool lines, struct symbolize_stats *ret_stats, struct err *e)
{
	struct symbolize_opts opts = output_files(r);

	opts.no_lines = !lines;
	return name_all(r, &opts, ret_stats, e);
}

int output_name_within(struct run *r, struct dwarf_budget *budget, struct err *e)
{
	struct symbolize_opts opts = output_files(r);

	opts.lines_within = budget;
	return name_all(r, &opts, NULL, e);
}

static int name_everything(struct facts *f, struct err *e)
{
	struct symbolize_stats st = {};
	int rc = output_name(f->r, true, &st, e);

	if (rc < 0)
		return rc;
	f->s.symbols.locations = st.locations + f->r->counts.named_early;
	f->s.symbols.named = st.named + f->r->counts.named_early - f->r->counts.ranges_early;
	f->s.symbols.ranges = st.ranges + f->r->counts.ranges_early;
	f->s.symbols.offset_only = st.offset_only;
	f->s.symbols.no_module = st.no_module;
	for (uint32_t i = 0; i < 8; i++)
		f->packages[i].path = "";
	for (uint32_t i = 0; i < st.n_worst; i++)
		add_worst(f, &st.worst[i]);
	if (st.lines_problem)
		run_note(f->r, false, "inlined calls and lines may be missing, in %s first: %s",
			 dict_str(f->r->dict, dict_module_get(f->r->dict, st.lines_module)->path),
			 st.lines_problem);
	debug_packages_find(NULL, f->packages, 8);
	for (uint32_t i = 0; i < f->s.symbols.n_worst; i++)
		f->s.symbols.worst[i].package = f->packages[i].name;
	return 0;
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

static void facts_groups(struct facts *f)
{
	const struct run_config *cfg = f->r->cfg;

	for (uint32_t i = 0; i < cfg->n_groups; i++) {
		const struct group *g = &cfg->groups[i];

		f->groups[i] = (struct summary_group){
			.path = g->at.path,
			.name = g->name,
			.id = g->id,
			.engine = g->engine,
			.image = g->image,
			.pod = g->pod,
			.namespace = g->namespace,
			.restarts = g->restarts,
			.was_gone = g->was_gone,
			.gone_ns = g->gone_ns ? (int64_t)(f->r->clock.end_ns - g->gone_ns) : 0,
		};
	}
	f->s.groups = f->groups;
	f->s.n_groups = cfg->n_groups;
	f->s.n_members = targets_count(f->r).members;
}

static int facts_target(struct facts *f)
{
	const struct run_config *cfg = f->r->cfg;
	uint32_t n = cfg->command ? 1 : cfg->n_pids;

	f->s.target = cfg->all        ? RUN_HOST
		      : cfg->n_groups ? RUN_GROUPS
		      : cfg->command  ? RUN_COMMAND
				      : RUN_PROCESSES;
	f->processes = calloc(n ? n : 1, sizeof(*f->processes));
	if (!f->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct summary_process *sp = &f->processes[f->s.n_processes];
		struct proc *p;

		sp->pid = cfg->command ? targets_command(f->r) : cfg->pids[i];
		p = proc_table_live(f->r->procs, sp->pid);
		if (cfg->n_groups && !p)
			continue; /* of its members, those that are still there */
		if (!p)
			p = proc_table_first(f->r->procs, sp->pid);
		f->s.n_processes++;
		sp->ns_pid = target_ns_pid(f->r, sp->pid);
		sp->comm = p ? proc_comm(p) : cfg->command ? command_name(cfg->command[0]) : NULL;
		sp->exe = p ? proc_exe(p) : NULL;
		sp->cmdline = cfg->command ? join_command(cfg->command) : targets_cmdline(f->r, i);
	}
	f->s.processes = f->processes;
	facts_groups(f);
	if (f->r->end.child_ended) {
		f->s.child.known = true;
		f->s.child.exited = WIFEXITED(f->r->end.child_status);
		f->s.child.code = f->s.child.exited ? WEXITSTATUS(f->r->end.child_status) : 0;
		f->s.child.signal = f->s.child.exited ? 0 : WTERMSIG(f->r->end.child_status);
	}
	return 0;
}

static void facts_sources(struct facts *f)
{
	for (int i = 0; i < N_SOURCES; i++) {
		const char *why = NULL;
		bool ok = session_has(f->r->session, (enum source)i, &why);

		f->sources[i] = (struct summary_source){
			source_names[i],
			ok    ? SOURCE_OK
			: why ? SOURCE_UNAVAILABLE
			      : SOURCE_NOT_ASKED,
			why,
		};
	}
	f->sources[N_SOURCES] =
		(struct summary_source){ "trend", f->s.rss.known ? SOURCE_OK : SOURCE_NOT_ASKED,
					 NULL };
	f->s.sources = f->sources;
	f->s.n_sources = N_SOURCES + 1;
}

static void facts_processes(struct facts *f)
{
	struct process_names names = { run_process_name, f->r->procs };
	uint32_t seen = 0;

	f->s.n_by_process =
		row_count(by_process(f->r->profiles[PROFILE_ONCPU], f->r->profiles[PROFILE_OFFCPU],
				     &names, f->by_process, FACTS_TOP, &seen));
	f->s.by_process = f->by_process;
	f->s.seen_processes = seen;
}

static void facts_drops(struct facts *f)
{
	struct proc_table_stats procs = proc_table_stats(f->r->procs);

	for (int i = 0; i < N_STATS; i++)
		if (stat_rows[i].loss)
			f->drops[f->s.n_drops++] =
				(struct summary_drop){ stat_rows[i].name, stat_rows[i].help,
						       f->stats[i] };
	f->drops[f->s.n_drops++] =
		(struct summary_drop){ "stacks_never_arrived",
				       "events whose stack never reached user space",
				       f->in.lost_stacks };
	f->drops[f->s.n_drops++] = (struct summary_drop){
		"unknown_process",
		"events of processes whose mappings were not known: their frames have no names",
		f->in.unknown_process
	};
	f->drops[f->s.n_drops++] = (struct summary_drop){
		"maps_not_recorded",
		"mappings of processes that found no room: their code has no names", procs.lost_maps
	};
	f->drops[f->s.n_drops++] =
		(struct summary_drop){ "processes_not_recorded",
				       "processes that found no room: their code has no names",
				       procs.lost_procs };
	f->drops[f->s.n_drops++] = (struct summary_drop){
		"process_records_lost",
		"records of new mappings, threads and processes: their code may have no names",
		targets_lost(f->r)
	};
	f->s.drops = f->drops;
}

/* What memscope promises to take at most, resident and in the kernel, with the default --mem. */
#define OWN_ONE_BYTES  64000000
#define OWN_HOST_BYTES 150000000
#define MEM_DEFAULT_MB 64

static void note_own_memory(const struct facts *f)
{
	struct run *r = f->r;
	int64_t limit = r->cfg->all ? OWN_HOST_BYTES : OWN_ONE_BYTES;
	int64_t took = f->s.own.peak_kb * 1024 + f->s.own.map_bytes;

	if (r->cfg->mem_mb > MEM_DEFAULT_MB)
		limit += (int64_t)(r->cfg->mem_mb - MEM_DEFAULT_MB) << 20;
	if (took > limit)
		run_note(
			r, false,
			"memscope itself used up to %s; at most %s are meant: a --mem below %u takes less",
			unit_bytes(took).s, unit_bytes(limit).s, r->cfg->mem_mb);
}

int facts_gather(struct facts *f, struct run *r, struct err *e)
{
	int rc;

	f->r = r;
	ingest_stats(r->ingest, &f->in);
	drain_stats(r->drain, f->stats);
	f->s.version = MEMSCOPE_VERSION;
	f->s.command_line = f->r->cfg->command_line;
	f->s.title = f->r->cfg->title;
	f->s.labels = f->r->cfg->labels;
	f->s.n_labels = f->r->cfg->n_labels;
	f->s.start_ns = r->clock.start_wall_ns;
	f->s.duration_ns = (int64_t)(r->clock.end_ns - session_start_ns(r->session));
	f->s.asked_ns = (int64_t)(r->cfg->duration_s * 1e9);
	if (r->clock.closing_ns && r->clock.end_ns > r->clock.closing_ns)
		f->s.closing_ns = (int64_t)(r->clock.end_ns - r->clock.closing_ns);
	f->s.end = r->end.why;
	f->s.end_detail = *r->end.detail ? r->end.detail : NULL;
	f->s.n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (facts_target(f) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	rc = name_everything(f, e);
	if (rc < 0)
		return rc;
	EACH_COMPONENT(r, c, self)
	if (c->report)
		c->report(self, &f->s);
	budget_report(r, &f->s);
	facts_sources(f);
	facts_processes(f);
	facts_drops(f);
	proc_mem_self(&f->s.own.cpu_ns, &f->s.own.rss_kb, &f->s.own.peak_kb);
	for (uint32_t i = 0; i < f->s.push.n; i++)
		f->s.own.cpu_ns += f->s.push.stores[i].cpu_ns;
	f->s.own.map_bytes = (int64_t)session_map_bytes(r->session);
	note_own_memory(f);
	f->s.notes = (const char *const *)r->notes.text;
	f->s.n_notes = r->notes.n;
	return 0;
}

void facts_fini(struct facts *f)
{
	for (uint32_t i = 0; i < f->s.n_processes; i++)
		free((char *)f->processes[i].cmdline);
	free(f->processes);
}

int run_facts(struct run *r, void (*fn)(void *ctx, const struct run_summary *s), void *ctx,
	      struct err *e)
{
	struct facts *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_set(e, -ENOMEM, "out of memory");
	rc = facts_gather(f, r, e);
	if (rc == 0)
		fn(ctx, &f->s);
	facts_fini(f);
	free(f);
	return rc;
}
