#include "analyse/summary.h"

#include "analyse/diagnosis.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CPU shares: 1.0 is one CPU. */
#define CPU_BOUND_SHARE 0.70 /* from here on computing is the story                          */
#define BUSY_SHARE      0.50 /* it has load enough to be judged                                */
#define IDLE_SHARE      0.05 /* below this it hardly ran                                      */
#define STARVED_PART    0.25 /* of the time it wanted a CPU, it had to wait for one            */
#define STARVED_SHARE   0.05 /* and that cost at least this part of the run                    */
#define ALLOCATOR_PART  0.25 /* of the samples, inside malloc and its kin                      */
#define HELD_SHARE      0.20 /* one reason to wait filled this part of the run                 */
#define PARKED_PART     0.50 /* a mean wait this long is a thread without work, not a hold-up   */
#define LOCK_MEAN_NS    100e6 /* a mean futex wait this long is rather a thread without work         */
#define PROBES_PART     0.25  /* of the samples, in the traps of our own probes                  */
#define KERNEL_PART     0.50  /* of the samples: then it is said that they are in the kernel      */
#define STANDS_OUT      0.10  /* of the samples: a function worth naming                        */
#define GROWTH_PART     0.10  /* of what it had …                                            */
#define GROWTH_MIN_KB   16384 /* … and no less than 16 MiB                                     */
#define GROWTH_KEPT     0.75  /* of the way to the peak, still there at the end                 */

static const char *const names[N_VERDICT_KINDS] = {
	[VERDICT_NOTHING] = "nothing", [VERDICT_IDLE] = "idle",
	[VERDICT_CPU] = "cpu-bound",   [VERDICT_STARVED] = "starved",
	[VERDICT_WAITING] = "waiting", [VERDICT_MEMORY] = "memory-bound",
	[VERDICT_GROWING] = "growing", [VERDICT_MIXED] = "mixed",
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
	[WAIT_FILE_LOCK] = "find who holds the file: /proc/locks names its pid",
	[WAIT_KERNEL_LOCK] =
		"often the address space's lock: fewer mmap, munmap and page faults help",
	[WAIT_DISK] =
		"fewer or larger reads and syncs help; iostat -x shows whether the device is full",
	[WAIT_MEMORY] = "the machine or its cgroup is short of memory: see free and memory.stat",
	[WAIT_CHILD] = "profile the child instead: its time is not its parent's",
	[WAIT_SIGNAL] = "find who is to send the signal",
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

/* --- the facts a verdict is made of --- */

struct judged {
	const struct run_summary *s;
	double share;                /* of one CPU; -1 unknown                         */
	double starved;              /* part of the time it wanted a CPU, 0 … 1         */
	double allocator;            /* part of the samples                            */
	const struct site_row *wait; /* the largest that is no parked thread; or NULL   */
	double wait_share;           /* of the run                                     */
	int64_t grown_kb;            /* 0: not growing                                 */
};

static double mean_ns(const struct site_row *w)
{
	return (double)w->value / (double)(w->count > 0 ? w->count : 1);
}

/* The children are profiled, too: what they spend their time on is the answer. */
static bool waits_for_its_children(const struct run_summary *s, const struct site_row *w)
{
	return w->wait == WAIT_CHILD && s->seen_processes > 1;
}

/* A lock that somebody holds, however long. */
static bool is_contended(const struct site_row *w)
{
	return w->role == WAIT_ROLE_MUTEX || w->wait == WAIT_GIL;
}

/* Without work, or for what another thread of the program does: that one's waits are the answer. */
static bool is_of_no_effect(const struct run_summary *s, const struct site_row *w)
{
	return w->role == WAIT_ROLE_IDLE || w->role == WAIT_ROLE_JOIN ||
	       waits_for_its_children(s, w);
}

/*
 * The largest wait that may hold the program up. Where the stack does not say whether a futex is a contended lock
 * or a thread waiting to be given work, its length does: locks are held briefly, so long futex waits count only
 * when there is nothing else.
 */
static const struct site_row *find_wait(const struct run_summary *s)
{
	const struct site_row *long_lock = NULL;

	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (is_of_no_effect(s, w))
			continue;
		if (is_contended(w))
			return w;
		if (mean_ns(w) >= PARKED_PART * (double)s->duration_ns)
			continue;
		if ((double)w->value < IDLE_SHARE * (double)s->duration_ns && long_lock)
			break; /* sorted: the rest is smaller still */
		if (w->wait != WAIT_LOCK || mean_ns(w) < LOCK_MEAN_NS)
			return w;
		if (!long_lock)
			long_lock = w;
	}
	return long_lock;
}

bool summary_wait_is_idle(const struct run_summary *s, const struct site_row *w)
{
	if (is_contended(w))
		return false;
	return is_of_no_effect(s, w) || mean_ns(w) >= PARKED_PART * (double)s->duration_ns ||
	       w->wait == WAIT_EVENTS || w->wait == WAIT_SIGNAL || w->wait == WAIT_TERMINAL ||
	       (w->wait == WAIT_LOCK && mean_ns(w) >= LOCK_MEAN_NS);
}

static int64_t find_growth(const struct run_summary *s)
{
	int64_t grown_kb = s->memory.last - s->memory.base;

	if (!s->memory.known || grown_kb < GROWTH_MIN_KB)
		return 0;
	if ((double)grown_kb < GROWTH_PART * (double)s->memory.base)
		return 0;
	if ((double)grown_kb < GROWTH_KEPT * (double)(s->memory.peak - s->memory.base))
		return 0;
	return grown_kb;
}

static struct judged judge(const struct run_summary *s)
{
	struct judged j = { .s = s, .share = summary_cpu_share(s) };
	int64_t wanted_ns = s->time.oncpu_ns + s->time.runnable_ns;

	if (s->time.known && wanted_ns > 0 && s->duration_ns > 0 &&
	    (double)s->time.runnable_ns >= STARVED_SHARE * (double)s->duration_ns)
		j.starved = (double)s->time.runnable_ns / (double)wanted_ns;
	if (s->oncpu.samples >= 100)
		j.allocator = (double)s->oncpu.allocator_samples / (double)s->oncpu.samples;
	if (s->target != RUN_HOST && s->duration_ns > 0) {
		j.wait = find_wait(s);
		j.wait_share = j.wait ? (double)j.wait->value / (double)s->duration_ns : 0;
	}
	j.grown_kb = find_growth(s);
	if (s->target == RUN_HOST && s->n_cpus > 0 && j.share > 0)
		j.share /= s->n_cpus;
	return j;
}

/* Waiting for new work is what a program at rest does. */
static bool is_rest(enum wait_kind k)
{
	return k == WAIT_EVENTS || k == WAIT_TIMER || k == WAIT_SIGNAL || k == WAIT_TERMINAL;
}

static enum verdict_kind decide(const struct judged *j)
{
	bool held = j->wait && !is_rest(j->wait->wait) && j->wait_share >= HELD_SHARE;

	if (j->share < 0 && !j->wait && !j->grown_kb)
		return VERDICT_NOTHING;
	if (j->starved >= STARVED_PART)
		return VERDICT_STARVED;
	if (j->share >= CPU_BOUND_SHARE)
		return j->allocator >= ALLOCATOR_PART ? VERDICT_MEMORY : VERDICT_CPU;
	if (held)
		return VERDICT_WAITING;
	if (j->grown_kb)
		return VERDICT_GROWING;
	if (j->share < IDLE_SHARE)
		return VERDICT_IDLE;
	return VERDICT_MIXED;
}

/* --- sentences --- */

static void say(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

#define SAY(v, ...)  say((v)->sentence, sizeof((v)->sentence), __VA_ARGS__)
#define NEXT(v, ...) say((v)->next, sizeof((v)->next), __VA_ARGS__)

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
		SAY(v, "The %u control groups together", s->n_groups);
	else if (s->n_processes == 1 && s->processes[0].comm)
		SAY(v, "%.64s", s->processes[0].comm);
	else if (s->n_processes > 1)
		SAY(v, "The %u processes together", s->n_processes);
	else
		SAY(v, "The target");
}

/* "98% of one CPU", "3.2 CPUs", "40% of 8 CPUs" */
static struct unit_text cpu_text(const struct judged *j)
{
	struct unit_text t;

	if (j->s->target == RUN_HOST)
		snprintf(t.s, sizeof(t.s), "%.0f%% of its %u CPUs", 100 * j->share, j->s->n_cpus);
	else if (j->share < 0)
		snprintf(t.s, sizeof(t.s), "an unknown part of a CPU");
	else if (j->share >= 1.5)
		snprintf(t.s, sizeof(t.s), "%.1f CPUs", j->share);
	else if (j->share < 0.01)
		snprintf(t.s, sizeof(t.s), "less than 1%% of one CPU");
	else
		snprintf(t.s, sizeof(t.s), "%.0f%% of one CPU", 100 * j->share);
	return t;
}

/*
 * Where a timer interrupt lands that was held back while interrupts were off: the cost is that of
 * the code before. With cpu-clock these functions lead many lists and explain nothing.
 */
static bool is_where_interrupts_come_on(const struct top_row *row)
{
	static const char *const names_of[] = { "_raw_spin_unlock_irqrestore",
						"_raw_spin_unlock_irq",
						"finish_task_switch",
						"local_irq_enable",
						"irqentry_exit_to_user_mode",
						"__local_bh_enable_ip",
						"handle_softirqs",
						"__do_softirq" };

	for (size_t i = 0; i < sizeof(names_of) / sizeof(names_of[0]); i++)
		if (strncmp(row->name, names_of[i], strlen(names_of[i])) == 0)
			return true;
	return false;
}

/* The function to name: the first by self that has a name and can be meant. */
static const struct top_row *find_first(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->oncpu.n_self && s->oncpu.samples > 0; i++) {
		const struct top_row *row = &s->oncpu.by_self[i];

		if (row->kind != FRAME_UNKNOWN && !is_where_interrupts_come_on(row))
			return row;
	}
	return NULL;
}

static const struct top_row *find_hot(const struct run_summary *s)
{
	const struct top_row *top = find_first(s);

	return top && (double)top->self >= STANDS_OUT * (double)s->oncpu.samples ? top : NULL;
}

/* So much tracing that the CPU profile is one of the tracing. */
static bool probes_lead(const struct run_summary *s)
{
	return s->oncpu.samples > 0 &&
	       (double)s->oncpu.probe_samples >= PROBES_PART * (double)s->oncpu.samples;
}

static void say_hot(struct verdict *v, const struct run_summary *s)
{
	const struct top_row *hot = find_hot(s), *first = find_first(s);
	int64_t samples = (int64_t)s->oncpu.samples, kernel = (int64_t)s->oncpu.kernel_samples;

	if (probes_lead(s)) {
		SAY(v, ", %s of it in the traps of memscope's own allocation probes",
		    unit_percent((int64_t)s->oncpu.probe_samples, samples).s);
		return;
	}
	if (samples > 0 && (double)kernel >= KERNEL_PART * (double)samples)
		SAY(v, ", %s of it in the kernel", unit_percent(kernel, samples).s);
	if (hot)
		SAY(v, ", %s of it in %.100s itself", unit_percent(hot->self, samples).s,
		    hot->name);
	else if (first)
		SAY(v, ", spread over many functions (the first, %.100s, has %s)", first->name,
		    unit_percent(first->self, samples).s);
}

static void say_wait(struct verdict *v, const struct judged *j)
{
	SAY(v, "waited %s for %s", unit_ns(j->wait->value).s, wait_kind_text(j->wait->wait));
	if (j->wait->function[0] && strcmp(j->wait->function, "[unknown]") != 0)
		SAY(v, ", most of it in %.100s", j->wait->function);
	else if (j->wait->leaf[0])
		SAY(v, ", in the kernel's %.64s", j->wait->leaf);
}

/* The file of a profile to open, by what was written: its picture at best, else words for it. */
static struct unit_text profile_file(const struct run_summary *s, const char *name,
				     const char *words)
{
	static const char *const endings[] = { ".svg", ".folded", ".pb.gz" };
	size_t len = strlen(name);
	struct unit_text t;

	snprintf(t.s, sizeof(t.s), "the %s profile", words);
	for (size_t k = 0; k < sizeof(endings) / sizeof(*endings); k++) {
		for (uint32_t i = 0; i < s->n_files; i++) {
			const char *file = s->files[i];
			size_t all = strlen(file), end = strlen(endings[k]);

			/* NAME.svg, or NAME-STAMP.svg */
			if (all >= len + end && all < sizeof(t.s) &&
			    strncmp(file, name, len) == 0 &&
			    (file[len] == '.' || file[len] == '-') &&
			    strcmp(file + all - end, endings[k]) == 0) {
				memcpy(t.s, file, all + 1);
				return t;
			}
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

static struct unit_text growth_file(const struct run_summary *s)
{
	return profile_file(s, "growth", "growth");
}

static struct unit_text kb_text(int64_t kb)
{
	return unit_bytes(kb * 1024);
}

/* The clause that any verdict may carry. */
static void say_growth(struct verdict *v, const struct judged *j)
{
	const struct run_summary *s = j->s;
	char leak[280];

	if (j->grown_kb && v->kind != VERDICT_GROWING)
		SAY(v, "; its memory grew by %s", kb_text(j->grown_kb).s);
	if (j->grown_kb && s->shape.kind == TREND_SHAPE_SETTLED)
		SAY(v, " and has been level since second %.0f", s->shape.since_s);
	if (diagnosis_leak_sentence(s, leak, sizeof(leak)))
		SAY(v, "; leak: %s", leak);
}

static void next_cpu(struct verdict *v, const struct run_summary *s)
{
	const struct top_row *hot = find_hot(s);

	if (probes_lead(s))
		NEXT(v, "Record again with --only oncpu for a CPU profile without them.");
	else if (summary_few_samples(s))
		NEXT(v, "%s samples are few: record 60-120 s or use -F 999, then read %s.",
		     unit_count((int64_t)s->oncpu.samples).s, oncpu_file(s).s);
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

static void next_host(struct verdict *v, const struct run_summary *s)
{
	if (s->n_by_process > 0 && s->by_process[0].cpu_ns > 0)
		NEXT(v, "%.64s (pid %d) has the most CPU time: profile it with -p %d.",
		     s->by_process[0].comm, s->by_process[0].pid, s->by_process[0].pid);
	else
		NEXT(v, "Read %s: its first boxes are the processes.", oncpu_file(s).s);
}

static void conclude(struct verdict *v, const struct judged *j)
{
	const struct run_summary *s = j->s;

	switch (v->kind) {
	case VERDICT_CPU:
		SAY(v, " is CPU-bound: it used %s", cpu_text(j).s);
		say_hot(v, s);
		next_cpu(v, s);
		break;
	case VERDICT_MEMORY:
		SAY(v, " is bound by its allocator: it used %s, %.0f%% of it inside the allocator",
		    cpu_text(j).s, 100 * j->allocator);
		next_memory(v, s, false);
		break;
	case VERDICT_STARVED:
		SAY(v,
		    " is short of CPU: it used %s and waited for a CPU during %.0f%% of the time it could have run",
		    cpu_text(j).s, 100 * j->starved);
		if (s->target == RUN_HOST)
			next_host(v, s);
		else
			NEXT(v,
			     "See who has the CPUs with memscope -a, and whether a limit holds it back "
			     "(cpu.stat of its cgroup: nr_throttled).");
		break;
	case VERDICT_WAITING:
		SAY(v, " is waiting: it used %s and ", cpu_text(j).s);
		say_wait(v, j);
		NEXT(v, "Open %s; %s.", offcpu_file(s).s, wait_advice[j->wait->wait]);
		break;
	case VERDICT_GROWING:
		SAY(v, " is growing: its memory rose by %s to %s in %s", kb_text(j->grown_kb).s,
		    kb_text(s->memory.last).s, unit_ns(s->duration_ns).s);
		next_memory(v, s, true);
		break;
	case VERDICT_IDLE:
		SAY(v, " is idle: it used %s", cpu_text(j).s);
		if (j->wait) {
			SAY(v, " and ");
			say_wait(v, j);
		}
		NEXT(v, "Put load on it and record 60-120 s; a program at rest shows little.");
		break;
	case VERDICT_MIXED:
		SAY(v, " is partly busy: it used %s", cpu_text(j).s);
		say_hot(v, s);
		if (j->wait) {
			SAY(v, ", and ");
			say_wait(v, j);
		}
		NEXT(v,
		     "Read %s for what the work costs and %s for the waits; under full load the picture "
		     "may change.",
		     oncpu_file(s).s, offcpu_file(s).s);
		break;
	case VERDICT_NOTHING:
	case N_VERDICT_KINDS:
		break;
	}
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
	struct judged j = judge(s);
	struct verdict v = { .kind = decide(&j) };

	if (v.kind == VERDICT_NOTHING) {
		conclude_nothing(&v, s);
	} else {
		say_subject(&v, s);
		conclude(&v, &j);
		say_growth(&v, &j);
		SAY(&v, ".");
	}
	*ret_verdict = v;
}
