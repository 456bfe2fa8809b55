/*
 * /metrics: what Prometheus and its relatives scrape. The table `families` below has all there is.
 *
 * Counters are of this run: they begin again with the next one in this process (a reload, --own-memory), which is what
 * rate() and increase() expect of a restart, and _created says when; those of the kernel and of the process itself go on. A scrape drains nothing, names nothing and reads no control
 * group: it writes down what is known; groups are read with the rows of the memory series (metrics_groups.h).
 */
#include "analyse/ledger.h"
#include "base/clock.h"
#include "base/version.h"
#include "collect/session/stats.h"
#include "net/http_server.h"
#include "proc/proc_mem.h"
#include "render/formats/metrics.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/push.h"
#include "run/serve/metrics_groups.h"
#include "run/serve/own_cpu.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#define HEAP_NS                                                                                    \
	10000000000ULL /* the allocator's account goes through all that is free: not for each scrape */

struct metrics {
	struct run *run;
	struct metrics_groups groups;
	struct mallinfo2 heap;
	uint64_t heap_ns; /* when that was; 0: not yet */
};

struct scrape {
	struct metrics *m;
	const struct run *run;
	struct strbuf out;
	enum metrics_format format;
	const struct metric_family *family;
	double created_s;
	uint64_t stats[N_STATS];
};

static void add(struct scrape *s, const struct metric_label *labels, uint32_t n, double value)
{
	metrics_series(&s->out, s->format, s->family, labels, n, value, s->created_s);
}

static void add_plain(struct scrape *s, double value)
{
	add(s, NULL, 0, value);
}

static void add_one(struct scrape *s, const char *label, const char *value, double number)
{
	add(s, &(struct metric_label){ label, value }, 1, number);
}

static double known(int64_t value)
{
	return value == MEM_UNKNOWN ? NAN : (double)value;
}

/* --- the profiler itself --- */

static void build_info(struct scrape *s)
{
	add_one(s, "version", MEMSCOPE_VERSION, 1);
}

static void run_start(struct scrape *s)
{
	add_plain(s, s->created_s);
}

static void read_age(struct scrape *s)
{
	uint64_t now = now_ns(), read = s->run->drain ? pipeline_read_ns(s->run) : 0;

	add_plain(s, read && now > read ? (double)(now - read) / 1e9 : 0);
}

static void events(struct scrape *s)
{
	static const int shown[] = { STAT_ONCPU_SAMPLES, STAT_OFFCPU_SWITCHES, STAT_OFFCPU_WAITS,
				     STAT_WAKER_STACKS,  STAT_GROWTH_SAMPLES,  STAT_SAMPLE_ALLOCS,
				     STAT_SYSCALLS,      STAT_STACK_SENT };

	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		add_one(s, "event", stat_rows[shown[i]].name, (double)s->stats[shown[i]]);
}

static void losses_in(struct scrape *s, bool bytes)
{
	for (int i = 0; i < N_STATS; i++)
		if (stat_rows[i].loss && (strstr(stat_rows[i].name, "bytes") != NULL) == bytes)
			add_one(s, "cause", stat_rows[i].name, (double)s->stats[i]);
}

static void losses(struct scrape *s)
{
	struct ingest_stats in;

	losses_in(s, false);
	if (!s->run->ingest)
		return;
	ingest_stats(s->run->ingest, &in);
	add_one(s, "cause", "stacks_never_arrived", (double)in.lost_stacks);
	add_one(s, "cause", "unknown_process", (double)in.unknown_process);
}

static void lost_bytes(struct scrape *s)
{
	losses_in(s, true);
}

static bool any_of(const uint64_t ended[N_STACK_VERDICTS])
{
	uint64_t sum = 0;

	for (int v = 0; v < N_STACK_VERDICTS; v++)
		sum += ended[v];
	return sum != 0;
}

/* Of sources that have had any. */
static void stacks(struct scrape *s)
{
	uint64_t ended[N_SOURCES][N_STACK_VERDICTS];

	if (!s->run->drain)
		return;
	drain_verdicts(s->run->drain, ended);
	for (int i = 0; i < N_SOURCES; i++)
		for (int v = 0; v < N_STACK_VERDICTS && any_of(ended[i]); v++) {
			const struct metric_label labels[] = {
				{ "source", source_names[i] }, { "verdict", stack_verdict_names[v] }
			};

			add(s, labels, 2, (double)ended[i][v]);
		}
}

static void probe_cpu(struct scrape *s)
{
	struct budget_use uses[N_COSTS];
	uint32_t n = budget_uses(s->run, uses);

	for (uint32_t i = 0; i < n; i++)
		add_one(s, "source", uses[i].name, uses[i].cpus);
}

static void windows(struct scrape *s)
{
	const struct run_windows *w = &s->run->windows;

	add_one(s, "result", "closed", (double)w->closed);
	add_one(s, "result", "failed", (double)w->failed);
	add_one(s, "result", "held_up", (double)w->skipped);
	add_one(s, "result", "without_lines", (double)w->no_lines);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* The kernel's part is the run's; the processes' is this process's life, which runs that follow each other share. */
static void own_cpu(struct scrape *s)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	add_one(s, "part", "process", seconds(self.ru_utime) + seconds(self.ru_stime));
	add_one(s, "part", "children",
		seconds(children.ru_utime) + seconds(children.ru_stime) +
			(double)push_cpu_ns(s->run->serving.push) / 1e9);
}

static void items(struct scrape *s)
{
	const struct dict *d = s->run->dict;
	uint64_t samples = 0;

	for (int kind = 0; kind < profile_kinds(); kind++)
		if (s->run->profiles[kind])
			samples += profile_n_samples(s->run->profiles[kind]);
	add_one(s, "kind", "samples", (double)samples);
	add_one(s, "kind", "label_sets", dict_labels_count(d));
	add_one(s, "kind", "stack_frames", dict_stack_count(d));
	add_one(s, "kind", "locations", dict_location_count(d));
	add_one(s, "kind", "modules", dict_module_count(d));
	add_one(s, "kind", "strings", dict_string_count(d));
}

static void own_memory(struct scrape *s)
{
	int64_t cpu_ns, rss_kb, peak_kb;

	proc_mem_self(&cpu_ns, &rss_kb, &peak_kb);
	add_one(s, "part", "process", (double)rss_kb * 1024);
	add_one(s, "part", "maps", (double)session_map_bytes(s->run->session));
}

static void own_allocator(struct scrape *s)
{
	struct metrics *m = s->m;
	uint64_t now = now_ns();

	if (!m->heap_ns || now - m->heap_ns >= HEAP_NS) {
		m->heap = mallinfo2();
		m->heap_ns = now;
	}
	add_one(s, "state", "used", (double)(m->heap.uordblks + m->heap.hblkhd));
	add_one(s, "state", "free", (double)m->heap.fordblks);
}

static void limit_cpu(struct scrape *s)
{
	add_plain(s, s->run->cfg->serve->own_limit / 100);
}

static void limit_memory(struct scrape *s)
{
	uint32_t mb = s->run->cfg->serve->own_memory_mb;

	add_plain(s, mb ? (double)mb * 1048576 : NAN);
}

static void own_minute(struct scrape *s)
{
	const struct own_cpu_state *own = s->run->serving.own_cpu;

	add_plain(s, own ? own->minute_sum / 100 : NAN);
}

static void gathered(struct scrape *s)
{
	const struct own_cpu_state *own = s->run->serving.own_cpu;

	for (int i = 0; own && i < N_OWN_DUTIES; i++)
		add_one(s, "source", own_duty_names[i], ldexp(1, -(int)own->shift[i]));
}

static void savings(struct scrape *s)
{
	for (int i = 0; i < N_OWN_SAVINGS; i++)
		add_one(s, "what", own_saving_names[i], own_saves(s->run, (enum own_saving)i));
}

static void left_out(struct scrape *s)
{
	add_plain(s, (double)s->run->cfg->serve->past.level);
}

static void memory_ends(struct scrape *s)
{
	add_plain(s, (double)s->run->cfg->serve->past.memory_ends);
}

static void add_route(void *ctx, const char *route, unsigned status, uint64_t n)
{
	struct scrape *s = ctx;
	char text[16];
	const struct metric_label labels[] = { { "route", route }, { "code", text } };

	snprintf(text, sizeof(text), "%u", status);
	add(s, labels, 2, (double)n);
}

static void requests(struct scrape *s)
{
	http_server_each(s->run->serving.http, add_route, s);
}

static void pushed(struct scrape *s)
{
	const struct push *p = s->run->serving.push;

	for (uint32_t i = 0; p && i < p->n; i++)
		add_one(s, "store", p->stores[i].shown, (double)p->stores[i].stats->pushed);
}

static void push_drops(struct scrape *s)
{
	const struct push *p = s->run->serving.push;

	for (uint32_t i = 0; p && i < p->n; i++)
		for (int why = 0; why < N_PUSH_DROPS; why++) {
			const struct metric_label labels[] = { { "store", p->stores[i].shown },
							       { "cause", push_drop_names[why] } };

			add(s, labels, 2, (double)p->stores[i].stats->dropped[why]);
		}
}

static void push_failing(struct scrape *s)
{
	const struct push *p = s->run->serving.push;

	for (uint32_t i = 0; p && i < p->n; i++)
		add_one(s, "store", p->stores[i].shown,
			p->stores[i].stats->failing_since_ns ? 1 : 0);
}

/* --- containers --- */

static void groups_left_out(struct scrape *s)
{
	add_plain(s, s->m->groups.left_out);
}

static void left_out_processes(struct scrape *s)
{
	add_plain(s, s->m->groups.left_out_processes);
}

/* --- processes, of -p and -n --- */

static void target_processes(struct scrape *s)
{
	if (s->m->groups.memory.time_ns)
		add_plain(s, s->m->groups.target.processes);
}

static void target_cpu(struct scrape *s)
{
	if (s->m->groups.memory.time_ns)
		add_plain(s, (double)s->m->groups.target_cpu_ns / 1e9);
}

static void target_memory(struct scrape *s)
{
	const struct mem_sample *m = &s->m->groups.memory;
	const struct {
		const char *name;
		int64_t kb;
	} parts[] = { { "resident", m->rss_kb },
		      { "anonymous", m->anonymous_kb },
		      { "file", m->file_kb },
		      { "swap", m->swap_kb },
		      { "proportional", m->pss_kb } };

	for (size_t i = 0; m->time_ns && i < sizeof(parts) / sizeof(*parts); i++)
		add_one(s, "part", parts[i].name, known(parts[i].kb) * 1024);
}

static void target_growth(struct scrape *s)
{
	const struct growth_hour *g = &s->m->groups.target.growth;

	if (growth_hour_known(g))
		add_plain(s, growth_hour_slope(g));
}

static void target_shape(struct scrape *s)
{
	const struct growth_hour *g = &s->m->groups.target.growth;

	if (growth_hour_known(g))
		add_one(s, "shape", trend_shape_name(g->shape.kind), 1);
}

static void target_sum(struct scrape *s, enum group_sum sum, double unit)
{
	if (s->m->groups.has_target && s->m->groups.has[sum])
		add_plain(s, (double)s->m->groups.target.sums[sum] / unit);
}

#define OF_TARGET(name, sum, unit)                                                                 \
	static void name(struct scrape *s)                                                         \
	{                                                                                          \
		target_sum(s, sum, unit);                                                          \
	}

OF_TARGET(target_samples, GROUP_SAMPLES, 1)
OF_TARGET(target_sampled_cpu, GROUP_SAMPLED_CPU_NS, 1e9)
OF_TARGET(target_blocked, GROUP_BLOCKED_NS, 1e9)
OF_TARGET(target_runnable, GROUP_RUNNABLE_NS, 1e9)
OF_TARGET(target_touched, GROUP_TOUCHED_BYTES, 1)
OF_TARGET(target_released, GROUP_RETURNED_BYTES, 1)
OF_TARGET(target_allocated, GROUP_ALLOC_BYTES, 1)

static void target_waits(struct scrape *s)
{
	const struct metrics_groups *g = &s->m->groups;

	for (int k = 0; g->has_target && g->has_waits && k < N_WAIT_KINDS; k++)
		if (g->target.waits_ns[k])
			add_one(s, "kind", wait_kind_name((enum wait_kind)k),
				(double)g->target.waits_ns[k] / 1e9);
}

/* --- each container --- */

typedef double (*group_fn)(const struct metrics_group *g);

static void each_group(struct scrape *s, group_fn value)
{
	for (uint32_t i = 0; i < s->m->groups.n; i++)
		if (s->m->groups.list[i].here)
			add_one(s, "container", s->m->groups.list[i].name,
				value(&s->m->groups.list[i]));
}

#define OF_CHARGE(name, field, unit)                                                               \
	static double name##_of(const struct metrics_group *g)                                     \
	{                                                                                          \
		return g->has_charge ? known(g->charge.field) / (unit) : NAN;                      \
	}                                                                                          \
	static void name(struct scrape *s)                                                         \
	{                                                                                          \
		each_group(s, name##_of);                                                          \
	}

OF_CHARGE(group_cpu, cpu_ns, 1e9)
OF_CHARGE(group_throttled, throttled_ns, 1e9)
OF_CHARGE(group_periods, periods, 1.0)
OF_CHARGE(group_periods_throttled, periods_throttled, 1.0)
OF_CHARGE(group_charged, all, 1.0)
OF_CHARGE(group_limit, limit, 1.0)
OF_CHARGE(group_oom, oom_kills, 1.0)

/* For a join with what others know: who has no engine has none. */
static void group_info(struct scrape *s)
{
	for (uint32_t i = 0; i < s->m->groups.n; i++) {
		const struct metrics_group *g = &s->m->groups.list[i];
		const struct metric_label known[] = { { "container", g->name },
						      { "id", g->id },
						      { "image", g->image },
						      { "pod", g->pod },
						      { "namespace", g->namespace } };
		struct metric_label labels[sizeof(known) / sizeof(*known)];
		uint32_t n = 0;

		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (*known[k].value)
				labels[n++] = known[k];
		if (g->here && *g->id)
			add(s, labels, n, 1);
	}
}

static double group_processes_of(const struct metrics_group *g)
{
	return g->processes;
}

static void group_processes(struct scrape *s)
{
	each_group(s, group_processes_of);
}

static void group_parts(struct scrape *s)
{
	for (uint32_t i = 0; i < s->m->groups.n; i++) {
		const struct metrics_group *g = &s->m->groups.list[i];
		const struct {
			const char *name;
			int64_t bytes;
		} parts[] = { { "anonymous", g->charge.anon }, { "page_cache", g->charge.file },
			      { "shmem", g->charge.shmem },    { "slab", g->charge.slab },
			      { "sockets", g->charge.sock },   { "kernel", g->charge.kernel } };

		for (size_t k = 0; g->here && g->has_charge && k < sizeof(parts) / sizeof(*parts);
		     k++) {
			const struct metric_label labels[] = { { "container", g->name },
							       { "part", parts[k].name } };

			add(s, labels, 2, known(parts[k].bytes));
		}
	}
}

static void group_stalls(struct scrape *s)
{
	for (uint32_t i = 0; i < s->m->groups.n; i++) {
		const struct metrics_group *g = &s->m->groups.list[i];
		const struct {
			const char *name;
			int64_t us;
		} parts[] = { { "memory", g->charge.stalled_memory_us },
			      { "cpu", g->charge.stalled_cpu_us },
			      { "io", g->charge.stalled_io_us } };

		for (size_t k = 0; g->here && g->has_charge && k < sizeof(parts) / sizeof(*parts);
		     k++) {
			const struct metric_label labels[] = { { "container", g->name },
							       { "resource", parts[k].name } };

			add(s, labels, 2, known(parts[k].us) / 1e6);
		}
	}
}

static void group_sum(struct scrape *s, enum group_sum sum, double unit)
{
	for (uint32_t i = 0; i < s->m->groups.n && s->m->groups.has[sum]; i++)
		if (s->m->groups.list[i].here)
			add_one(s, "container", s->m->groups.list[i].name,
				(double)s->m->groups.list[i].sums[sum] / unit);
	if (s->m->groups.other.here && s->m->groups.has[sum])
		add_one(s, "container", METRICS_OTHER, (double)s->m->groups.other.sums[sum] / unit);
}

static void group_samples(struct scrape *s)
{
	group_sum(s, GROUP_SAMPLES, 1);
}

static void group_sampled_cpu(struct scrape *s)
{
	group_sum(s, GROUP_SAMPLED_CPU_NS, 1e9);
}

static void group_blocked(struct scrape *s)
{
	group_sum(s, GROUP_BLOCKED_NS, 1e9);
}

static void group_runnable(struct scrape *s)
{
	group_sum(s, GROUP_RUNNABLE_NS, 1e9);
}

static void group_touched(struct scrape *s)
{
	group_sum(s, GROUP_TOUCHED_BYTES, 1);
}

static void group_returned(struct scrape *s)
{
	group_sum(s, GROUP_RETURNED_BYTES, 1);
}

static void group_allocated(struct scrape *s)
{
	group_sum(s, GROUP_ALLOC_BYTES, 1);
}

static void add_waits(struct scrape *s, const struct metrics_group *g)
{
	for (int k = 0; g->here && k < N_WAIT_KINDS; k++) {
		const struct metric_label labels[] = {
			{ "container", g->name }, { "kind", wait_kind_name((enum wait_kind)k) }
		};

		if (g->waits_ns[k])
			add(s, labels, 2, (double)g->waits_ns[k] / 1e9);
	}
}

static void group_waits(struct scrape *s)
{
	const struct metrics_groups *g = &s->m->groups;

	for (uint32_t i = 0; i < g->n && g->has_waits; i++)
		add_waits(s, &g->list[i]);
	if (g->has_waits)
		add_waits(s, &g->other);
}

static void add_breakdown(struct scrape *s, const char *container, const char *part, int64_t bytes)
{
	const struct metric_label labels[] = { { "container", container }, { "part", part } };

	add(s, labels, 2, (double)bytes);
}

/* The parts that a look tells apart while the run is at work, and what none of them explains. */
static void group_breakdown(struct scrape *s)
{
	const struct run_serving *of = &s->run->serving;

	for (uint32_t i = 0; i < s->m->groups.n && of->breakdown; i++) {
		const struct metrics_group *g = &s->m->groups.list[i];
		const struct ledger *l;
		char folder[FOLDER_NAME];

		folder_name(s->run->cfg, strcmp(g->name, METRICS_HOST) == 0 ? NULL : g->name,
			    folder);
		l = g->here ? of->breakdown(of->breakdown_ctx, folder) : NULL;
		for (int k = 0; l && k < N_LEDGER_PARTS; k++)
			if (k != LEDGER_TRACED && k != LEDGER_BEFORE)
				add_breakdown(s, g->name, ledger_name((enum ledger_part)k),
					      ledger_part_bytes(l, &l->parts[k]));
		if (!l)
			continue;
		add_breakdown(s, g->name, "unexplained", ledger_unexplained(l));
		add_breakdown(s, g->name, "not_read", l->not_read_rss);
	}
}

static double group_growth_of(const struct metrics_group *g)
{
	return growth_hour_known(&g->growth) ? growth_hour_slope(&g->growth) : NAN;
}

static void group_growth(struct scrape *s)
{
	each_group(s, group_growth_of);
}

static void group_shape(struct scrape *s)
{
	for (uint32_t i = 0; i < s->m->groups.n; i++) {
		const struct metrics_group *g = &s->m->groups.list[i];
		const struct metric_label labels[] = { { "container", g->name },
						       { "shape",
							 trend_shape_name(g->growth.shape.kind) } };

		if (g->here && growth_hour_known(&g->growth))
			add(s, labels, 2, 1);
	}
}

/* --- all of it, in the order in which it is written --- */

/* clang-format off */
static const struct {
	struct metric_family family;
	void (*write)(struct scrape *s);
	bool lasting; /* since when it counts is not this run's begin */
} families[] = {
	{ { "memscope_build_info", "The version of memscope; its value is 1." }, build_info },
	{ { "memscope_run_start_time_seconds", "When the run began, since the Epoch: counters count from then." }, run_start },
	{ { "memscope_read_age_seconds", "Time since the kernel's tables were last read." }, read_age },
	{ { "memscope_events", "What the kernel's programs counted, by event.", true }, events },
	{ { "memscope_stacks", "User stacks by how the walk in the kernel ended; those that it did not complete may be walked again outside.", true }, stacks },
	{ { "memscope_lost", "Events that no profile has, by cause.", true }, losses },
	{ { "memscope_lost_bytes", "Bytes that no profile has, by cause.", true }, lost_bytes },
	{ { "memscope_windows", "Windows of profiles: handed to a writer, of those not or not wholly written, times one was kept open longer as all writers had work, and those named without debug info.", true }, windows },
	{ { "memscope_own_cpu_seconds", "CPU time of memscope: its process, its children that have ended, and those that push; not what its programs take in the kernel.", true }, own_cpu, true },
	{ { "memscope_own_cpu_ratio", "CPUs that memscope took in the last minute, all parts together." }, own_minute },
	{ { "memscope_probe_cpu_ratio", "CPUs that its programs in the kernel take, by source, on average since the run began; an estimate." }, probe_cpu },
	{ { "memscope_own_memory_bytes", "Resident memory of memscope's process, and memory of its BPF maps." }, own_memory },
	{ { "memscope_own_allocator_bytes", "Of the process: blocks in use, and what the C library holds free, released pages among it." }, own_allocator },
	{ { "memscope_run_items", "What the run knows, by kind: its memory grows with these." }, items },
	{ { "memscope_limit_cpu_ratio", "CPUs that memscope may take, all parts together (--max-overhead)." }, limit_cpu },
	{ { "memscope_limit_memory_bytes", "Memory past which it begins again with empty tables (--own-memory)." }, limit_memory },
	{ { "memscope_gathered_ratio", "Part of the time in which a source is gathered; what is gathered stands for the rest." }, gathered },
	{ { "memscope_saving", "1 while something is left out as the process and its children pass memscope_limit_cpu_ratio, by what that is." }, savings },
	{ { "memscope_left_out_level", "What is left out for memory: 0 nothing, 1 frames of languages, 2 all but on-CPU samples." }, left_out },
	{ { "memscope_memory_restarts", "Runs that ended because --own-memory was passed, since the service began." }, memory_ends },
	{ { "memscope_http_requests", "HTTP requests by route and status.", true }, requests },
	{ { "memscope_pushed_profiles", "Profiles that a store has taken.", true }, pushed },
	{ { "memscope_push_dropped_profiles", "Profiles that never came to a store, by cause.", true }, push_drops },
	{ { "memscope_push_failing", "1 while a store does not answer as it should." }, push_failing },
	{ { "memscope_containers_left_out", "Containers without series of their own: there are too many." }, groups_left_out },
	{ { "memscope_containers_left_out_processes", "Processes in containers without series of their own." }, left_out_processes },
	{ { "memscope_target_processes", "Processes of -p and -n." }, target_processes },
	{ { "memscope_target_cpu_seconds", "CPU time of these, of those that have not ended, by their own account.", true }, target_cpu },
	{ { "memscope_target_memory_bytes", "Their memory by part; proportional: shared pages divided by how many share them." }, target_memory },
	{ { "memscope_target_growth_bytes_per_second", "Slope of their anonymous memory in the last hour, as of containers." }, target_growth },
	{ { "memscope_target_memory_shape", "1 by the shape of that hour." }, target_shape },
	{ { "memscope_target_oncpu_samples", "On-CPU samples of these.", true }, target_samples },
	{ { "memscope_target_sampled_cpu_seconds", "CPU time that its samples stand for; an estimate.", true }, target_sampled_cpu },
	{ { "memscope_target_blocked_seconds", "Time that their threads were blocked, idle waits too, of waits that have ended.", true }, target_blocked },
	{ { "memscope_target_waited_seconds", "The same by what was waited for, by functions of the kernel.", true }, target_waits },
	{ { "memscope_target_runnable_seconds", "Time that their threads waited for a CPU.", true }, target_runnable },
	{ { "memscope_target_touched_bytes", "Their memory that became resident; an estimate.", true }, target_touched },
	{ { "memscope_target_released_bytes", "Their resident memory that was released; an estimate.", true }, target_released },
	{ { "memscope_target_allocated_bytes", "Allocated by samplers that they have; an estimate.", true }, target_allocated },
	{ { "memscope_container_info", "What its engine says of it, in labels; its value is 1." }, group_info },
	{ { "memscope_container_processes", "Processes in it; of \"host\", in no container." }, group_processes },
	{ { "memscope_container_cpu_seconds", "CPU time, by its control group's own account.", true }, group_cpu, true },
	{ { "memscope_container_throttled_seconds", "Time for which its CPU quota held it back.", true }, group_throttled, true },
	{ { "memscope_container_quota_periods", "Periods of its CPU quota in which it ran.", true }, group_periods, true },
	{ { "memscope_container_quota_periods_throttled", "Periods in which it used its CPU quota up.", true }, group_periods_throttled, true },
	{ { "memscope_container_charged_bytes", "All memory that its control group is charged: what counts when memory runs out." }, group_charged },
	{ { "memscope_container_memory_bytes", "The same by part; kernel has slab, page tables and stacks." }, group_parts },
	{ { "memscope_container_memory_limit_bytes", "Its control group's limit of memory; absent where there is none." }, group_limit },
	{ { "memscope_container_growth_bytes_per_second", "Slope of its anonymous memory in the last hour: of what rises or falls to the end, else of all of it." }, group_growth },
	{ { "memscope_container_memory_shape", "1 by the shape of that hour: growing is a leak, as far as numbers show." }, group_shape },
	{ { "memscope_container_rss_breakdown_bytes", "Where the resident memory of its processes is, as a PSS; as of the last look. not_read: RSS of those that there was no time for." }, group_breakdown },
	{ { "memscope_container_oom_kills", "Processes of it that were killed because memory ran out.", true }, group_oom, true },
	{ { "memscope_container_stalled_seconds", "Time in which some of its tasks waited for a resource (PSI).", true }, group_stalls, true },
	{ { "memscope_container_oncpu_samples", "On-CPU samples.", true }, group_samples },
	{ { "memscope_container_sampled_cpu_seconds", "CPU time that its samples stand for; an estimate.", true }, group_sampled_cpu },
	{ { "memscope_container_blocked_seconds", "Time that its threads were blocked, idle waits too, of waits that have ended.", true }, group_blocked },
	{ { "memscope_container_waited_seconds", "The same by what was waited for, by functions of the kernel: locks of languages are among those of futexes.", true }, group_waits },
	{ { "memscope_container_runnable_seconds", "Time that its threads waited for a CPU.", true }, group_runnable },
	{ { "memscope_container_touched_bytes", "Memory that became resident; an estimate.", true }, group_touched },
	{ { "memscope_container_released_bytes", "Resident memory that was released; an estimate.", true }, group_returned },
	{ { "memscope_container_allocated_bytes", "Allocated by samplers that its programs have; an estimate.", true }, group_allocated },
};
/* clang-format on */

static void metrics(void *ctx, struct http_request *q)
{
	struct metrics *m = ctx;
	const struct run *r = m->run;
	struct scrape s = { .m = m,
			    .run = r,
			    .format = metrics_accepted(http_request_header(q, "Accept")) };

	if (r->drain)
		drain_stats(r->drain, s.stats);
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		size_t before = s.out.len, head;

		s.family = &families[i].family;
		s.created_s = families[i].lasting ? NAN : (double)r->clock.start_wall_ns / 1e9;
		metrics_family(&s.out, s.format, s.family);
		head = s.out.len;
		families[i].write(&s);
		if (s.out.len == head && s.out.s) { /* nothing of it is known */
			s.out.len = before;
			s.out.s[before] = '\0';
		}
	}
	metrics_end(&s.out, s.format);
	if (strbuf_oom(&s.out))
		http_error(q, 500, "out of memory");
	else
		http_answer(q, 200, metrics_content_type(s.format), s.out.s, s.out.len);
	strbuf_free(&s.out);
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->serve->http.n_listen;
}

static void row(void *self, uint64_t now)
{
	struct metrics *m = self;

	(void)now;
	if (m->run->serving.http && metrics_groups_take(&m->groups, m->run) < 0)
		m->run->oom = true;
}

static int ready(void *self, struct err *e)
{
	struct metrics *m = self;

	if (!m->run->serving.http)
		return 0;
	row(m, 0);
	return http_route(m->run->serving.http, "GET", "/metrics", HTTP_ALWAYS, metrics, m) < 0
		       ? err_set(e, -ENOMEM, "out of memory")
		       : 0;
}

static void free_metrics(void *self)
{
	metrics_groups_fini(&((struct metrics *)self)->groups);
}

const struct component http_metrics_component = {
	.name = "HTTP metrics",
	.size = sizeof(struct metrics),
	.wanted = wanted,
	.ready = ready,
	.row = row,
	.free = free_metrics,
};
