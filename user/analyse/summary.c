#include "analyse/summary.h"

#include "analyse/causes.h"
#include "analyse/diagnosis.h"
#include "analyse/verdict_parts.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CPU shares: 1.0 is one CPU. */
#define BUSY_SHARE  0.50 /* it has load enough to be judged                                */
#define LEAST_SHARE 0.05 /* the same of one that is partly busy                           */
#define SAID_SHARE  0.20 /* of the run: a wait worth naming of an idle program             */

static const char *const names[N_VERDICT_KINDS] = {
	[VERDICT_NOTHING] = "nothing",     [VERDICT_IDLE] = "idle",
	[VERDICT_CPU] = "cpu-bound",       [VERDICT_STARVED] = "starved",
	[VERDICT_WAITING] = "waiting",     [VERDICT_MEMORY] = "memory-bound",
	[VERDICT_GROWING] = "growing",     [VERDICT_MIXED] = "mixed",
	[VERDICT_LEAK] = "leaking",        [VERDICT_GC] = "gc-bound",
	[VERDICT_CONTENDED] = "contended",
};

/* What to do about a wait, after "look at … ". */
static const char *const wait_advice[N_WAIT_KINDS] = {
	[WAIT_OTHER] = "it shows the kernel functions it waits in",
	[WAIT_TIMER] = "it sleeps by its own choice: look for the caller",
	[WAIT_EVENTS] = "its pace is set by whoever sends it work: profile that side",
	[WAIT_SOCKET] = "profile the process at the other end of the connection",
	[WAIT_PIPE] = "profile the process at the other end of the pipe",
	[WAIT_LOCK] =
		"it shows who waits for the lock; the on-CPU profile shows what runs meanwhile",
	[WAIT_GIL] =
		"the on-CPU profile shows which Python thread runs meanwhile; only processes run side by side",
	[WAIT_MONITOR] =
		"it shows who waits for the monitor; the on-CPU profile shows what runs meanwhile",
	[WAIT_GVL] =
		"the on-CPU profile shows which Ruby thread runs meanwhile; only processes and Ractors run side by side",
	[WAIT_FILE_LOCK] = "find who holds the file: /proc/locks names its pid",
	[WAIT_KERNEL_LOCK] =
		"often the address space's lock: fewer mmap, munmap and page faults help",
	[WAIT_DISK] =
		"fewer or larger reads and syncs help; iostat -x shows whether the device is full",
	[WAIT_MEMORY] = "the machine or its cgroup is short of memory: see free and memory.stat",
	[WAIT_CHILD] = "profile the child instead: its time is not its parent's",
	[WAIT_SIGNAL] = "find who is to send the signal",
	[WAIT_STOPPED] =
		"find who stopped it: kill -STOP, Ctrl-Z, or a debugger (TracerPid in /proc/PID/status)",
	[WAIT_TERMINAL] = "it waits for somebody to type",
};

const char *verdict_name(enum verdict_kind k)
{
	return names[k];
}

static bool source_ok(const struct run_summary *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_sources; i++)
		if (strcmp(s->sources[i].name, name) == 0)
			return s->sources[i].state == SOURCE_OK;
	return false;
}

double summary_cpu_share(const struct run_summary *s)
{
	double duration_s = (double)s->duration_ns / 1e9;

	if (s->duration_ns <= 0)
		return -1;
	if (s->time.known)
		return (double)s->time.oncpu_ns / 1e9 / duration_s;
	if (s->oncpu.cpu_ns > 0)
		return (double)s->oncpu.cpu_ns / 1e9 / duration_s;
	if (source_ok(s, "oncpu") && s->oncpu.hz > 0)
		return (double)s->oncpu.samples / s->oncpu.hz / duration_s;
	return -1;
}

bool summary_is_busy(const struct run_summary *s)
{
	double share = summary_cpu_share(s);

	if (s->target == RUN_HOST && s->n_cpus > 0)
		share /= s->n_cpus;
	return share >= BUSY_SHARE;
}

bool summary_few_samples(const struct run_summary *s)
{
	return source_ok(s, "oncpu") && s->oncpu.samples < SUMMARY_FEW_SAMPLES;
}

/* --- sentences --- */

void verdict_append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static const char *group_name(const struct summary_group *g)
{
	const char *slash = strrchr(g->path, '/');

	return g->name ? g->name : slash && slash[1] ? slash + 1 : g->path;
}

static void say_subject(struct verdict *v, const struct run_summary *s)
{
	if (s->target == RUN_HOST)
		SAY(v, "The host");
	else if (s->n_groups == 1)
		SAY(v, "%.64s", group_name(&s->groups[0]));
	else if (s->n_groups > 1)
		SAY(v, "The set of %u control groups", s->n_groups);
	else if (s->n_processes == 1 && s->processes[0].comm)
		SAY(v, "%.64s", s->processes[0].comm);
	else if (s->n_processes > 1)
		SAY(v, "The set of %u processes", s->n_processes);
	else
		SAY(v, "The target");
}

/* "98% of one CPU", "3.2 CPUs", "40% of 8 CPUs" */
static struct unit_text cpu_text(const struct causes *c)
{
	struct unit_text t;

	if (c->s->target == RUN_HOST)
		snprintf(t.s, sizeof(t.s), "%.0f%% of its %u CPUs", 100 * c->share, c->s->n_cpus);
	else if (c->share < 0)
		snprintf(t.s, sizeof(t.s), "an unknown part of a CPU");
	else if (c->share >= 1.5)
		snprintf(t.s, sizeof(t.s), "%.1f CPUs", c->share);
	else if (c->share < 0.01)
		snprintf(t.s, sizeof(t.s), "less than 1%% of one CPU");
	else
		snprintf(t.s, sizeof(t.s), "%.0f%% of one CPU", 100 * c->share);
	return t;
}

/* For whom garbage is collected, as far as the stacks say. */
static void say_work(struct verdict *v, const struct run_summary *s)
{
	if (s->oncpu.work)
		SAY(v, "; of its own functions %.100s has the largest part",
		    s->oncpu.work->function);
}

/* The file NAME.ENDING, or NAME-STAMP.ENDING, that was written; NULL: none. */
static const char *find_file(const struct run_summary *s, const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	for (uint32_t i = 0; i < s->n_files; i++) {
		const char *file = s->files[i];
		size_t all = strlen(file);

		if (all >= len + end && strncmp(file, name, len) == 0 &&
		    (file[len] == '.' || file[len] == '-') && strcmp(file + all - end, ending) == 0)
			return file;
	}
	return NULL;
}

/*
 * Where to look at a profile, by what was written. The page of the run is first: there a time can be chosen, and callers and
 * callees of one function. Then its picture, or what a picture is made of.
 */
static struct unit_text profile_file(const struct run_summary *s, const char *name,
				     const char *words)
{
	static const char *const endings[] = { ".svg", ".folded", ".pb.gz" };
	const char *page = find_file(s, "report", ".html"), *file = find_file(s, name, ".pb.gz");
	struct unit_text t;

	if (page && file)
		snprintf(t.s, sizeof(t.s), "%.36s (%s flame graph)", page, words);
	else
		snprintf(t.s, sizeof(t.s), "the %s profile", words);
	for (size_t k = 0; !(page && file) && k < sizeof(endings) / sizeof(*endings); k++) {
		file = find_file(s, name, endings[k]);
		if (file && strlen(file) < sizeof(t.s)) {
			strcpy(t.s, file);
			break;
		}
	}
	return t;
}

static struct unit_text oncpu_file(const struct run_summary *s)
{
	return profile_file(s, "oncpu", "on-CPU");
}

static struct unit_text offcpu_file(const struct run_summary *s)
{
	return profile_file(s, "offcpu", "off-CPU");
}

/* Of a wait: that of goroutines has a profile of its own. */
static struct unit_text wait_file(const struct run_summary *s, const struct site_row *w)
{
	return causes_goroutines(s, w) ? profile_file(s, "goroutine", "goroutine") : offcpu_file(s);
}

static struct unit_text growth_file(const struct run_summary *s)
{
	return profile_file(s, "growth", "growth");
}

static struct unit_text kb_text(int64_t kb)
{
	return unit_bytes(kb * 1024);
}

/* Clauses that any verdict may carry. */
static void say_growth(struct verdict *v, const struct causes *c)
{
	const struct run_summary *s = c->s;

	if (c->grown_kb && v->kind != VERDICT_GROWING && v->kind != VERDICT_LEAK)
		SAY(v, "; its memory grew by %s", kb_text(c->grown_kb).s);
	if (c->grown_kb && s->shape.kind == TREND_SHAPE_SETTLED)
		SAY(v, " and has been level since second %.0f", s->shape.since_s);
}

/* With the debug symbols of an image; "": not known. */
static const char *package_of(const struct run_summary *s, const char *module)
{
	for (uint32_t i = 0; i < s->symbols.n_worst; i++)
		if (s->symbols.worst[i].module && strcmp(s->symbols.worst[i].module, module) == 0 &&
		    s->symbols.worst[i].package)
			return s->symbols.worst[i].package;
	return "";
}

static void next_cpu(struct verdict *v, const struct run_summary *s)
{
	const struct nameless_row *nameless = verdict_nameless(s);
	const char *package = nameless ? package_of(s, nameless->module) : "";
	const struct top_row *hot = verdict_hot(s);

	if (verdict_probes_lead(s))
		NEXT(v, "Record again with --only oncpu for a CPU profile without them.");
	else if (summary_few_samples(s))
		NEXT(v, "%s samples are few: record 60-120 s or use -F 999, then read %s.",
		     unit_count((int64_t)s->oncpu.samples).s, oncpu_file(s).s);
	else if (*package)
		NEXT(v, "Install %.100s for the names in %.100s, and record again.", package,
		     nameless->module);
	else if (nameless && *nameless->caller)
		NEXT(v, "Search %s for %.100s: time is saved in what calls it.", oncpu_file(s).s,
		     nameless->caller);
	else if (hot)
		NEXT(v, "Search %s for %.100s: time is saved in what calls it.", oncpu_file(s).s,
		     hot->name);
	else
		NEXT(v, "Read %s from the root: the widest branch costs most.", oncpu_file(s).s);
}

static void next_memory(struct verdict *v, const struct run_summary *s, bool live)
{
	const struct site_row *site = live ? s->alloc.live_sites : s->alloc.sites;
	uint32_t n = live ? s->alloc.n_live_sites : s->alloc.n_sites;

	if ((s->alloc.tier == ALLOC_TIER_EXACT || s->alloc.tier == ALLOC_TIER_SAMPLED ||
	     s->alloc.tier == ALLOC_TIER_BURSTS) &&
	    n > 0)
		NEXT(v, "Open %s: %.100s %s %s%s.",
		     (live ? profile_file(s, "heap", "heap")
			   : profile_file(s, "alloc", "allocation"))
			     .s,
		     site->function, live ? "holds" : "allocated", unit_bytes(site->value).s,
		     live ? " that nothing has freed" : "");
	else if (live && s->growth.n_sites > 0)
		NEXT(v,
		     "Open %s: %.100s first touched %s. --alloc=exact shows what is never freed.",
		     growth_file(s).s,
		     s->growth.sites[0].function[0] ? s->growth.sites[0].function : "the kernel",
		     unit_bytes(s->growth.sites[0].value).s);
	else
		NEXT(v, "Record again with --alloc=exact to see who allocates%s.",
		     live ? " and what is never freed" : "");
}

/* "-p 4711", as memscope heap takes a target; "-p PID" of several processes, and of one that has ended. */
static struct unit_text heap_target(const struct run_summary *s)
{
	struct unit_text t;

	if (s->target == RUN_PROCESSES && s->n_processes == 1 && s->processes[0].pid > 0)
		snprintf(t.s, sizeof(t.s), "-p %d", (int)s->processes[0].pid);
	else if (s->target == RUN_GROUPS && s->n_groups == 1 && s->groups[0].name &&
		 strlen(s->groups[0].name) < sizeof(t.s) - 3)
		snprintf(t.s, sizeof(t.s), "-c %s", s->groups[0].name);
	else
		snprintf(t.s, sizeof(t.s), "-p PID");
	return t;
}

/* Of other languages than these, memscope heap sees the native memory alone. */
static bool heap_is_explained(const struct run_summary *s)
{
	const char *lang = s->langs.processes ? s->langs.name : NULL;

	return !s->goroutines.processes &&
	       (!lang || strncmp(lang, "CPython", 7) == 0 || strncmp(lang, "GHC", 3) == 0);
}

/* memscope heap says what no profile can: which objects there are, and what keeps them. */
static void next_heap(struct verdict *v, const struct run_summary *s)
{
	const char *when = s->target == RUN_COMMAND ? "While it runs, " : "";

	if (!heap_is_explained(s))
		return;
	NEXT(v, " %smemscope heap %s %s shows %s; memscope heap retainers, what keeps them.", when,
	     v->kind == VERDICT_LEAK ? "leaks" : "census", heap_target(s).s,
	     v->kind == VERDICT_LEAK ? "objects that nothing refers to (census: all)"
				     : "which objects fill it");
}

static void next_host(struct verdict *v, const struct run_summary *s)
{
	if (s->n_by_process > 0 && s->by_process[0].cpu_ns > 0)
		NEXT(v, "%.64s (pid %d) has the most CPU time: profile it with -p %d.",
		     s->by_process[0].comm, s->by_process[0].pid, s->by_process[0].pid);
	else
		NEXT(v, "Read %s: its first boxes are the processes.", oncpu_file(s).s);
}

static void say_starved(struct verdict *v, const struct causes *c)
{
	SAY(v, "waited %s for a CPU, %.0f%% of the time it could have run",
	    unit_ns(c->starved_ns).s, 100 * c->starved);
	if (c->throttled)
		SAY(v, ", held back by the CPU quota of its control group");
}

/* What is true, after the program's name. */
static void say_cause(struct verdict *v, const struct causes *c, enum verdict_kind kind)
{
	const struct run_summary *s = c->s;

	switch (kind) {
	case VERDICT_LEAK:
		SAY(v, " is leaking: %s", c->leak);
		break;
	case VERDICT_GC:
		SAY(v, " is busy collecting garbage: it used %s, ", cpu_text(c).s);
		/* By its functions, else by what its runtime counts. */
		if (c->gc >= c->gc_stopped)
			SAY(v, "%.0f%% of it in the garbage collector", 100 * c->gc);
		else
			SAY(v,
			    "and stood still for its garbage collector %.0f%% of the time or more",
			    100 * c->gc_stopped);
		say_work(v, s);
		break;
	case VERDICT_CONTENDED:
		SAY(v, " is held up by a lock: it used %s and ", cpu_text(c).s);
		verdict_say_lock(v, c);
		break;
	case VERDICT_CPU:
		SAY(v, " is CPU-bound: %s used %s", verdict_whose(s), cpu_text(c).s);
		verdict_say_commands(v, s);
		verdict_say_hot(v, s);
		break;
	case VERDICT_MEMORY:
		SAY(v, " is bound by its allocator: it used %s, %.0f%% of it inside the allocator",
		    cpu_text(c).s, 100 * c->allocator);
		break;
	case VERDICT_STARVED:
		SAY(v, " is short of CPU: it ");
		say_starved(v, c);
		SAY(v, ", and used %s", cpu_text(c).s);
		verdict_say_hot(v, s);
		break;
	case VERDICT_WAITING:
		SAY(v, " is waiting: it used %s and ", cpu_text(c).s);
		verdict_say_wait(v, c);
		break;
	case VERDICT_GROWING:
		SAY(v, " is growing: its memory rose by %s to %s in %s", kb_text(c->grown_kb).s,
		    kb_text(s->memory.last).s, unit_ns(s->duration_ns).s);
		if (diagnosis_toucher(s))
			SAY(v, "; new memory is first touched in %.80s", diagnosis_toucher(s));
		break;
	case VERDICT_IDLE:
		SAY(v, " is idle: it used %s", cpu_text(c).s);
		if (c->wait && c->wait_share >= SAID_SHARE) {
			SAY(v, " and ");
			verdict_say_wait(v, c);
		}
		break;
	case VERDICT_MIXED:
		SAY(v, " is partly busy: %s used %s", verdict_whose(s), cpu_text(c).s);
		verdict_say_commands(v, s);
		verdict_say_hot(v, s);
		if (c->wait && c->wait_share >= LEAST_SHARE) {
			SAY(v, ", and ");
			verdict_say_wait(v, c);
		}
		break;
	case VERDICT_NOTHING:
	case N_VERDICT_KINDS:
		break;
	}
}

/* What is true as well, in a clause. */
static void say_also(struct verdict *v, const struct causes *c, enum verdict_kind kind)
{
	switch (kind) {
	case VERDICT_GC:
		if (c->gc >= c->gc_stopped)
			SAY(v, "; %.0f%% of its CPU time collects garbage", 100 * c->gc);
		else
			SAY(v,
			    "; it stood still for its garbage collector %.0f%% of the time or more",
			    100 * c->gc_stopped);
		break;
	case VERDICT_CONTENDED:
		if (c->under_lock) {
			verdict_say_handed_on(v, c);
			break;
		}
		SAY(v, "; also, ");
		verdict_say_lock(v, c);
		break;
	case VERDICT_STARVED:
		SAY(v, "; it is also short of CPU: it ");
		say_starved(v, c);
		break;
	case VERDICT_WAITING:
		SAY(v, "%s", causes_goroutines(c->s, c->wait) ? "; also, " : "; it also ");
		verdict_say_wait(v, c);
		break;
	case VERDICT_CPU:
	case VERDICT_MEMORY:
		if (v->kind == VERDICT_STARVED || v->kind == VERDICT_GC)
			break; /* what it used its CPU for has been said */
		SAY(v, "; it is also CPU-bound");
		verdict_say_hot(v, c->s);
		break;
	default:
		break;
	}
}

static void next_step(struct verdict *v, const struct causes *c)
{
	const struct run_summary *s = c->s;

	switch (v->kind) {
	case VERDICT_LEAK:
	case VERDICT_GROWING:
		next_memory(v, s, true);
		next_heap(v, s);
		break;
	case VERDICT_MEMORY:
		next_memory(v, s, false);
		break;
	case VERDICT_GC:
		NEXT(v, "Allocate less, or give it a larger heap: open %s for who allocates.",
		     s->alloc.n_sites ? profile_file(s, "alloc", "allocation").s : oncpu_file(s).s);
		break;
	case VERDICT_CONTENDED:
		if (c->lock)
			NEXT(v, "Open %s; %s.", wait_file(s, c->lock).s,
			     wait_advice[c->lock->wait]);
		else
			NEXT(v, "See what is awaited while it is held: Tasks in summary.txt.");
		break;
	case VERDICT_CPU:
		next_cpu(v, s);
		break;
	case VERDICT_STARVED:
		if (s->target == RUN_HOST)
			next_host(v, s);
		else if (c->throttled)
			NEXT(v,
			     "Raise the quota (cpu.max, cpu.cfs_quota_us), or save CPU time: read %s.",
			     oncpu_file(s).s);
		else
			NEXT(v,
			     "See who has the CPUs with memscope -a, and whether a limit holds it back "
			     "(cpu.stat of its cgroup: nr_throttled).");
		break;
	case VERDICT_WAITING:
		if (c->peer)
			NEXT(v,
			     "Profile the process at %.63s; no profile of this one shows that wait.",
			     c->peer->name);
		else
			NEXT(v, "Open %s; %s.", wait_file(s, c->wait).s, wait_advice[c->wait_kind]);
		break;
	case VERDICT_IDLE:
		NEXT(v, "Put load on it and record 60-120 s; a program at rest shows little.");
		break;
	case VERDICT_MIXED:
		if (s->target == RUN_COMMAND && s->end == RUN_END_TARGET &&
		    s->oncpu.samples < SUMMARY_FEW_SAMPLES)
			NEXT(v,
			     "%s samples are few: give the command more to do, or sample more often with "
			     "-F 999; then read",
			     unit_count((int64_t)s->oncpu.samples).s);
		else
			NEXT(v, "Read");
		NEXT(v,
		     " %s for what the work costs and %s for the waits; under full load the picture "
		     "may change.",
		     oncpu_file(s).s, offcpu_file(s).s);
		break;
	case VERDICT_NOTHING:
	case N_VERDICT_KINDS:
		break;
	}
	if (c->grown_kb && s->shape.kind != TREND_SHAPE_SETTLED && v->kind != VERDICT_GROWING &&
	    v->kind != VERDICT_LEAK)
		next_heap(v, s);
}

/* The item that came most often. */
static bool conclude_events(struct verdict *v, const struct run_summary *s)
{
	const struct event_row *most = NULL;

	for (uint32_t i = 0; i < s->events.n; i++) {
		const struct event_row *row = &s->events.rows[i];

		if (!*row->part && !row->why && row->count && (!most || row->count > most->count))
			most = row;
	}
	if (!most) {
		if (s->events.known)
			SAY(v, "None of the events came.");
		return s->events.known;
	}
	SAY(v, "Only events were measured: %.100s most, %s", most->event,
	    strcmp(most->unit, "nanoseconds") == 0 ? unit_ns(most->count).s
						   : unit_count(most->count).s);
	if (*most->function)
		SAY(v, ", %.0f %% of it in %.100s",
		    (double)most->function_value * 100 / (double)most->on_stacks, most->function);
	SAY(v, ".");
	if (most->samples)
		NEXT(v, "Open %.64s.svg: the widest branch has most of them.", most->profile);
	return true;
}

static void conclude_nothing(struct verdict *v, const struct run_summary *s)
{
	if (s->growth.known && s->growth.n_sites > 0) {
		SAY(v, "Only memory was measured: %.100s first touched the most (%s).",
		    s->growth.sites[0].function[0] ? s->growth.sites[0].function : "the kernel",
		    unit_bytes(s->growth.sites[0].value).s);
		NEXT(v, "Open %s: the widest branch touched the most memory.", growth_file(s).s);
		return;
	}
	if (s->alloc.n_sites > 0) {
		SAY(v, "Only allocations were measured: of %s, %.100s allocated most (%s).",
		    unit_bytes((int64_t)s->alloc.bytes).s, s->alloc.sites[0].function,
		    unit_bytes(s->alloc.sites[0].value).s);
		next_memory(v, s, s->alloc.n_live_sites > 0);
		return;
	}
	if (conclude_events(v, s))
		return;
	SAY(v, "Nothing was measured");
	for (uint32_t i = 0; i < s->n_sources; i++) {
		if (s->sources[i].state == SOURCE_UNAVAILABLE && s->sources[i].why) {
			SAY(v, ": %.300s", s->sources[i].why);
			break;
		}
	}
	/* The reason may bring its own full stop. */
	if (v->sentence[strlen(v->sentence) - 1] != '.')
		SAY(v, ".");
	NEXT(v, "memscope doctor says what works here, what does not, and why.");
}

void summary_verdict(const struct run_summary *s, struct verdict *ret_verdict)
{
	struct verdict v = { 0 };
	struct causes c;

	causes_find(s, &c);
	v.kind = c.kinds[0];
	if (v.kind == VERDICT_NOTHING) {
		conclude_nothing(&v, s);
	} else {
		say_subject(&v, s);
		say_cause(&v, &c, v.kind);
		for (uint32_t i = 1; i < c.n; i++)
			say_also(&v, &c, c.kinds[i]);
		say_growth(&v, &c);
		SAY(&v, ".");
		next_step(&v, &c);
	}
	*ret_verdict = v;
}
