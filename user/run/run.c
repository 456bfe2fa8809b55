#include "run/run.h"
#include "base/clock.h"
#include "base/rights.h"
#include "collect/overhead/realtime.h"
#include "model/sample_times.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/look_pause.h"
#include "run/own_names.h"
#include "run/pipeline.h"
#include "run/targets.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define SERVE_DITHER_NS 4000000000ULL /* hundreds of changes an hour */
#define FAST_TICK_NS    20000000ULL   /* while the call rate of an allocator is watched */
#define TICK_NS         100000000ULL
#define TIMES_PART      32 /* of --mem, for the times of each profile … */
#define FINE_PART       8  /* … and for those of --fine */

void run_ends(struct run *r, enum run_end why, const char *fmt, ...)
{
	va_list ap;

	loop_end(r->loop);
	if (r->end.why != RUN_END_UNKNOWN && (why != RUN_END_SIGNAL || !serve_goes_on(r)))
		return;
	r->end.why = why;
	va_start(ap, fmt);
	vsnprintf(r->end.detail, sizeof(r->end.detail), fmt, ap);
	va_end(ap);
}

/* --- begin --- */

static int make_components(struct run *r, struct err *e)
{
	uint32_t n = 0;

	while (components[n])
		n++;
	r->states = calloc(n, sizeof(*r->states));
	for (uint32_t i = 0; r->states && i < n; i++) {
		if (components[i]->wanted && !components[i]->wanted(r->cfg))
			continue;
		r->states[i] = calloc(1, components[i]->size);
		if (!r->states[i])
			return err_set(e, -ENOMEM, "out of memory");
		*(struct run **)r->states[i] = r;
	}
	return r->states ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static void session_opts_of(const struct run_config *cfg, struct session_opts *ret_opts)
{
	*ret_opts = (struct session_opts){
		.all = cfg->all,
		.children = cfg->children,
		.cgroups = cfg->n_groups > 0,
		.tid = cfg->tid,
		.oncpu = cfg->sources[SOURCE_ONCPU],
		.offcpu = cfg->sources[SOURCE_OFFCPU],
		.wakers = !cfg->no_wakers,
		.alloc = cfg->sources[SOURCE_ALLOC],
		.growth = cfg->sources[SOURCE_GROWTH],
		.syscalls = cfg->sources[SOURCE_SYSCALLS],
		.user_stacks = cfg->user_stacks,
		.kernel_stacks = cfg->kernel_stacks,
		.hz = cfg->hz,
		.dither_ns = cfg->serve ? SERVE_DITHER_NS : 0,
		.oncpu_slot_ns = run_oncpu_slot_ns(cfg),
		.cpus = cfg->cpus,
		.n_cpus = cfg->n_cpus,
		.mem_mb = cfg->mem_mb,
		.wait_min_ns = cfg->wait_min_ns,
		.wait_max_ns = cfg->wait_max_ns,
	};
	for (uint32_t i = 0; i < cfg->n_groups; i++)
		ret_opts->cgroups_v1 |= cfg->groups[i].at.hierarchy != 0;
}

uint64_t run_oncpu_slot_ns(const struct run_config *cfg)
{
	return cfg->fine ? SAMPLE_TIMES_FINE_NS : SAMPLE_TIMES_BIN_NS;
}

/* When values came: some of --mem for each profile that can have it. NULL: out of memory. */
static struct sample_times *make_times(const struct run *r, const struct profile_row *row)
{
	bool fine = r->cfg->fine && row->source == SOURCE_ONCPU;
	uint64_t bytes = ((uint64_t)r->cfg->mem_mb << 20) / (fine ? FINE_PART : TIMES_PART);
	uint64_t bin_ns =
		row->source == SOURCE_ONCPU ? run_oncpu_slot_ns(r->cfg) : SAMPLE_TIMES_BIN_NS;

	return sample_times_new(row->times, row->n_times, bin_ns,
				(uint32_t)(bytes / sizeof(struct sample_time)));
}

/* Of kinds that were named while the program runs, some may be an earlier run's. */
static bool is_asked(const struct run_config *cfg, int kind)
{
	bool found = kind < PROFILE_NAMED;

	for (uint32_t i = 0; i < cfg->n_events && !found; i++)
		found = strcmp(cfg->events[i].name, profile_rows[kind].name) == 0;
	return found;
}

static int make_profiles(struct run *r, struct ingest_profiles *ret_profiles, struct err *e)
{
	struct profile **by_kind[N_PROFILE_KINDS] = { &ret_profiles->oncpu,   &ret_profiles->offcpu,
						      &ret_profiles->alloc,   &ret_profiles->heap,
						      &ret_profiles->peak,    &ret_profiles->growth,
						      &ret_profiles->mappings };

	by_kind[PROFILE_SYSCALLS] = &ret_profiles->syscalls;

	for (int i = 0; i < profile_kinds(); i++) {
		const struct profile_row *row = &profile_rows[i];

		if (!r->cfg->sources[row->source] || !is_asked(r->cfg, i))
			continue;
		r->profiles[i] = profile_new(r->dict, row->types, row->n_types);
		if (!r->profiles[i])
			return err_set(e, -ENOMEM, "out of memory");
		if (row->n_times)
			profile_set_times(r->profiles[i], make_times(r, row));
		if (row->n_times && !profile_times(r->profiles[i]))
			return err_set(e, -ENOMEM, "out of memory");
		if (by_kind[i])
			*by_kind[i] = r->profiles[i];
	}
	ret_profiles->sites = r->alloc.sites;
	return 0;
}

/*
 * Where waits and wake-ups are; the code that interrupts lead to (on x86 exceptions, such as page faults, come first in its
 * section); and what is called between a change of a page count and our program.
 */
enum {
	SCHEDULE,
	WAKE_UP,
	COMMON_INTERRUPT,
	INTERRUPTS_START,
	INTERRUPTS_END,
	TRACERS,
	N_FUNCTIONS = TRACERS + INGEST_TRACERS
};
static const char *const function_names[N_FUNCTIONS] = {
	[SCHEDULE] = "__schedule",
	[WAKE_UP] = "try_to_wake_up",
	[COMMON_INTERRUPT] = "asm_common_interrupt",
	[INTERRUPTS_START] = "__irqentry_text_start",
	[INTERRUPTS_END] = "__irqentry_text_end",
	[TRACERS] = "mm_trace_rss_stat",
	"trace_rss_stat",
	"__traceiter_rss_stat",
	"bpf_trace_run2",
	"bpf_trace_run3",
};

static void set_interrupts(struct run *r, const struct kernel_function *functions)
{
	uint64_t start = functions[INTERRUPTS_START].addr, end = functions[INTERRUPTS_END].addr;
	uint64_t first = functions[COMMON_INTERRUPT].addr;

	if (start && end)
		session_interrupts(r->session, first >= start && first < end ? first : start, end);
}

/* `kernel`: where those are; NULL: not needed. */
static int make_ingest(struct run *r, struct kernel_functions *kernel, struct err *e)
{
	static const struct kernel_function none[N_FUNCTIONS];
	const struct kernel_function *functions = none;
	struct ingest_profiles profiles = { 0 };
	int rc = make_profiles(r, &profiles, e);

	if (rc < 0)
		return rc;
	if (kernel)
		functions = kernel_functions_found(kernel);
	r->ingest = ingest_new(r->dict, r->procs, &profiles, functions[SCHEDULE].addr);
	if (!r->ingest)
		return err_set(e, -ENOMEM, "out of memory");
	ingest_tracers(r->ingest, functions + TRACERS, INGEST_TRACERS);
	ingest_wakers(r->ingest, &functions[WAKE_UP]);
	set_interrupts(r, functions);
	ingest_waits(r->ingest, r->cfg->wait_min_ns, r->cfg->wait_max_ns);
	if (r->cfg->serve && r->cfg->all)
		ingest_few_processes(r->ingest, INGEST_SHOWN_PROCESSES);
	return 0;
}

/* Everything that needs no targets: the programs are loaded. */
static int open_all(struct run *r, struct err *e)
{
	_cleanup_(kernel_functions_freep) struct kernel_functions *kernel = NULL;
	struct session_opts opts;
	int rc;

	session_opts_of(r->cfg, &opts);
	if (r->cfg->sources[SOURCE_OFFCPU] || r->cfg->sources[SOURCE_GROWTH])
		kernel = kernel_functions_begin(function_names, N_FUNCTIONS);
	r->dict = dict_new();
	r->procs = r->dict ? proc_table_new(r->dict) : NULL;
	if (!r->procs)
		return err_set(e, -ENOMEM, "out of memory");
	rc = targets_listen(r, e);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->prepare)
		rc = c->prepare(self, &opts, e);
	if (rc == 0)
		rc = session_open(&opts, &r->session, e);
	if (rc == 0) {
		r->own_names = own_names_read(r->session);
		rc = drain_new(r->session, &r->drain, e);
	}
	if (rc == 0 && opts.offcpu && opts.wakers) {
		r->waits.wakers = wakers_new(r->drain);
		rc = r->waits.wakers ? 0 : err_set(e, -ENOMEM, "out of memory");
	}
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->open)
		rc = c->open(self, e);
	if (rc == 0)
		rc = make_ingest(r, kernel, e);
	return rc == 0 ? pipeline_open(r, e) : rc;
}

static void check_sources(struct run *r)
{
	const char *names[N_SOURCES] = { "on-CPU samples", "off-CPU times",
					 "allocations",    "changes of resident memory",
					 "system calls",   "events" };
	const char *why;

	for (int i = 0; i < N_SOURCES; i++)
		if (r->cfg->sources[i] && !session_has(r->session, (enum source)i, &why))
			run_note(r, true, "%s are not available: %s", names[i], why);
}

/* When the duration is over; LOOP_NEVER when none was asked for. */
static uint64_t end_due_ns(void *ctx)
{
	const struct run *r = ctx;

	if (r->cfg->duration_s <= 0)
		return LOOP_NEVER;
	return session_start_ns(r->session) + (uint64_t)(r->cfg->duration_s * 1e9);
}

static int on_end(void *ctx, struct err *e)
{
	(void)e;
	run_ends(ctx, RUN_END_DURATION, "%s", "");
	return 0;
}

/* What the time before the first sample went into. */
static void say_start(const struct run *r, const uint64_t ns[4])
{
	run_say(r,
		"begun after %.1f ms: %.1f to load the programs, %.1f for allocators and unwind "
		"tables, %.1f to attach",
		(double)(ns[3] - ns[0]) / 1e6, (double)(ns[1] - ns[0]) / 1e6,
		(double)(ns[2] - ns[1]) / 1e6, (double)(ns[3] - ns[2]) / 1e6);
	run_say(r, "attached; on-CPU samples count %s",
		session_oncpu_event(r->session) ? session_oncpu_event(r->session) : "nothing");
}

static int on_tick(void *ctx, struct err *e);
static int on_round(void *ctx, struct err *e);

static volatile sig_atomic_t signals_taken, hurry;
static uint64_t last_signal_ns;

void run_ask(struct run *r, const char *why)
{
	EACH_COMPONENT(r, c, self)
	if (c->asked)
		c->asked(self, why);
}

static void on_asked(void *ctx, int number)
{
	(void)number;
	run_ask(ctx, NULL);
}

static void on_signal(void *ctx, int number)
{
	signals_taken = 1;
	last_signal_ns = now_ns();
	run_ends(ctx, RUN_END_SIGNAL, "SIG%s", sigabbrev_np(number));
}

static int open_loop(struct run *r, struct err *e)
{
	struct sigaction hup;
	sigset_t set;
	int rc = loop_new(&r->loop, e);

	if (rc < 0)
		return rc;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN && !r->cfg->serve) /* nohup means it */
		sigaddset(&set, SIGHUP);
	rc = loop_signals(r->loop, &set, on_signal, r);
	if (rc == 0)
		rc = loop_signal(r->loop, SIGUSR1, on_asked, r);
	return rc < 0 ? err_set(e, rc, "cannot wait for signals: %s", strerror(-rc)) : 0;
}

static int start_loop(struct run *r, struct err *e)
{
	bool fast = r->cfg->sources[SOURCE_ALLOC] && r->cfg->alloc == ALLOC_AUTO;
	uint64_t tick_ns = fast ? FAST_TICK_NS : look_pause(r->cfg, TICK_NS, 5);
	int rc = loop_every(r->loop, tick_ns, on_tick, r);

	if (rc == 0)
		rc = loop_each(r->loop, on_round, r);
	if (rc == 0)
		rc = loop_at(r->loop, end_due_ns, on_end, r);
	return rc < 0 ? err_set(e, rc, "out of memory") : 0;
}

/* Waits until it is time to begin; a signal ends the run before it began. */
static int delay(struct run *r, struct err *e)
{
	if (r->cfg->delay_s > 0 && loop_signal_waits(r->loop, (int)(r->cfg->delay_s * 1000)))
		return err_set(e, -EINTR,
			       "stopped before the delay of %.3g s was over: nothing was gathered",
			       r->cfg->delay_s);
	return 0;
}

static int start_all(struct run *r, struct err *e)
{
	uint64_t until = end_due_ns(r);
	int rc = 0;

	budget_start(r);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->start)
		rc = c->start(self, e);
	if (rc < 0)
		return rc;
	check_sources(r);
	/* Of the moment in which the programs were let in; a busy machine is some time past it. */
	r->clock.start_wall_ns = wall_ns();
	if (session_start_ns(r->session))
		r->clock.start_wall_ns -= (int64_t)(now_ns() - session_start_ns(r->session));
	rc = start_loop(r, e);
	if (rc == 0)
		rc = targets_go(r, until == LOOP_NEVER ? 0 : until, e);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->ready)
		rc = c->ready(self, e);
	return rc;
}

int run_begin(struct run *r, const struct run_config *cfg, struct err *e)
{
	uint64_t ns[4];
	int rc;

	r->cfg = cfg;
	rc = open_loop(r, e);
	if (rc == 0)
		rc = targets_open(r, e);
	if (rc == 0)
		rc = make_components(r, e);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->command)
		rc = c->command(self, e);
	if (rc == 0)
		rc = targets_start_early(r, e);
	/* Behind the command's process, which has all that memscope was given. */
	if (rc == 0)
		rights_enter(RIGHTS_RECORD);
	if (rc == 0)
		rc = delay(r, e);
	ns[0] = now_ns();
	if (rc == 0) {
		run_progress(r, "loading the programs, reading the target's files");
		rc = open_all(r, e);
	}
	if (rc == 0)
		rc = targets_add(r, e);
	ns[1] = now_ns();
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->attach)
		rc = c->attach(self, e);
	ns[2] = now_ns();
	if (rc == 0)
		rc = targets_attach(r, e);
	ns[3] = now_ns();
	run_progress(r, NULL);
	if (rc < 0)
		return rc;
	say_start(r, ns);
	return start_all(r, e);
}

/* --- loop --- */

static int on_tick(void *ctx, struct err *e)
{
	struct run *r = ctx;
	uint64_t now = now_ns();
	bool row = now >= r->clock.next_row_ns;
	int rc;

	pipeline_processes(r);
	rc = pipeline_stacks(r, e); /* what came without waking us */
	if (rc < 0)
		return rc;
	targets_tick(r, now);
	budget_tick(r, now);
	EACH_COMPONENT(r, c, self)
	if (c->tick)
		c->tick(self, now);
	/* A row's live bytes are those of its moment, not of the last drain. */
	rc = pipeline_tick(r, now, row && r->alloc.tracing, e);
	if (!row)
		return rc;
	EACH_COMPONENT(r, c, self)
	if (c->row)
		c->row(self, now);
	r->clock.next_row_ns = now + (uint64_t)(r->cfg->interval_s * 1e9);
	return rc;
}

static int on_round(void *ctx, struct err *e)
{
	struct run *r = ctx;

	(void)e;
	targets_look(r);
	return 0;
}

int run_loop(struct run *r, struct err *e)
{
	struct prompt was = prompt_begin();
	int rc = loop_run(r->loop, e);

	prompt_end(&was);
	return rc;
}

/* --- end --- */

bool run_in_a_hurry(void)
{
	return hurry;
}

#define SAME_PRESS_NS 500000000ULL /* a signal that several pass on comes several times */

/*
 * A signal while the run is being written down. The first of all is heeded by that already; the
 * second leaves out what takes long; the third leaves at once. Files in the making are under
 * temporary names, so that all that are there are whole.
 */
static void on_late_signal(int number)
{
	static const char second[] =
		"\nmemscope: writing what there is; once more leaves at once\n";
	static const char third[] = "\nmemscope: stopped; files that were finished are whole\n";
	uint64_t now = now_ns();

	(void)number;
	if (signals_taken++ == 0) {
		last_signal_ns = now;
		return;
	}
	if (now - last_signal_ns < SAME_PRESS_NS)
		return;
	last_signal_ns = now;
	if (!hurry) {
		hurry = 1;
		(void)!write(STDERR_FILENO, second, sizeof(second) - 1);
		return;
	}
	(void)!write(STDERR_FILENO, third, sizeof(third) - 1);
	_exit(EXIT_FAILURE);
}

static void take_late_signals(struct run *r)
{
	struct sigaction sa = { .sa_handler = on_late_signal, .sa_flags = SA_RESTART }, hup;

	sigfillset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGUSR1, SIG_IGN); /* all there is is written now */
	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	if (r->loop) /* where another run follows, they are for that */
		loop_signals_end(r->loop, !serve_goes_on(r));
}

static int finish_all(struct run *r, struct err *e)
{
	int rc = pipeline_end(r, e);
	bool whole = rc == 0;

	/* One that fails does not keep the others from being completed; the first error stays. */
	EACH_COMPONENT(r, c, self)
	{
		struct err one = { 0 };
		int r2 = whole && c->finish ? c->finish(self, &one) : 0;

		if (r2 < 0 && rc == 0) {
			rc = r2;
			if (e)
				*e = one;
		}
	}
	if (rc == 0 && r->oom)
		rc = err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	/* Of windows each one is by itself. */
	for (int i = 0; i < profile_kinds() && rc == 0 && r->cfg->every_s <= 0; i++)
		if (r->profiles[i] && profile_fit_times(r->profiles[i]) < 0)
			rc = err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	targets_end(r);
	run_progress(r, NULL);
	return rc;
}

int run_end(struct run *r, struct err *e)
{
	bool begun;

	take_late_signals(r);
	if (!r->session)
		return 0;
	begun = session_start_ns(r->session) != 0;
	r->clock.closing_ns = now_ns();
	run_progress(r, "ending: reading what is in use");
	EACH_COMPONENT(r, c, self)
	if (begun && c->closing)
		c->closing(self);
	budget_closing(r);
	session_gate(r->session, false);
	r->clock.end_ns = now_ns();
	EACH_COMPONENT(r, c, self)
	if (c->closed)
		c->closed(self);
	if (!begun)
		return 0;
	run_progress(r, "ending: taking the programs out, reading the rest of the data");
	session_detach(r->session);
	EACH_COMPONENT(r, c, self)
	if (c->stop)
		c->stop(self);
	return finish_all(r, e);
}

void run_free(struct run *r)
{
	uint32_t n = 0;

	while (r->states && components[n])
		n++;
	budget_free(r);
	while (n-- > 0) {
		if (r->states[n] && components[n]->free)
			components[n]->free(r->states[n]);
		free(r->states[n]);
	}
	free(r->states);
	ingest_free(r->ingest);
	wakers_free(r->waits.wakers);
	pipeline_free(r);
	drain_free(r->drain);
	targets_free(r);
	own_names_free(r->own_names);
	session_free(r->session);
	for (int i = 0; i < profile_kinds(); i++)
		profile_free(r->profiles[i]);
	proc_table_free(r->procs);
	dict_free(r->dict);
	loop_free(r->loop);
	notes_fini(&r->notes);
}
