#include "cmd/run_parts.h"
#include "cmd/run_windows.h"
#include "cmd/sampler.h"
#include "cmd/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#define FAST_TICK_NS 20000000ULL  /* while the governor watches */
#define TICK_NS      100000000ULL /* progress, governor, full maps       */

uint64_t run_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int run_watch_fd(struct run *r, int fd, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void run_note(struct run *r, bool missing, const char *fmt, ...)
{
	va_list ap;

	if (missing)
		r->partial = true;
	if (r->n_notes == sizeof(r->notes) / sizeof(*r->notes))
		return;
	va_start(ap, fmt);
	if (vasprintf(&r->notes[r->n_notes], fmt, ap) >= 0)
		r->missing[r->n_notes++] = missing;
	va_end(ap);
}

void run_say(const struct run *r, const char *fmt, ...)
{
	va_list ap;

	if (!r->cfg->verbose)
		return;
	fputs("memscope: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* --- begin --- */

/* A target that has ended by then has no command line to print. Without memory, there is just none. */
static void note_cmdlines(struct run *r)
{
	char line[4096];

	if (r->cfg->n_groups || !r->cfg->n_pids)
		return;
	r->cmdlines = calloc(r->cfg->n_pids, sizeof(*r->cmdlines));
	for (uint32_t i = 0; r->cmdlines && i < r->cfg->n_pids; i++)
		if (target_cmdline(r->cfg->pids[i], line, sizeof(line)))
			r->cmdlines[i] = strdup(line);
}

static int open_rooms(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	struct session_opts opts = {
		.all = cfg->all,
		.children = cfg->children,
		.cgroups = cfg->n_groups > 0,
		.tid = cfg->tid,
		.oncpu = cfg->sources[MS_ONCPU],
		.offcpu = cfg->sources[MS_OFFCPU],
		.alloc = cfg->sources[MS_ALLOC],
		.calls = !r->samples_first,
		.sampled = r->may_sample,
		.growth = cfg->sources[MS_GROWTH],
		.user_stacks = cfg->user_stacks,
		.kernel_stacks = cfg->kernel_stacks,
		.hz = cfg->hz,
		.cpus = cfg->cpus,
		.n_cpus = cfg->n_cpus,
		.mem_mb = cfg->mem_mb,
		.busy = cfg->waits != WAITS_EXACT,
		.wait_min_ns = cfg->wait_min_ns,
		.wait_max_ns = cfg->wait_max_ns,
	};
	/* The first, and what is called between a change of a page count and our program. */
	static const char *const names[1 + INGEST_TRACERS] = {
		"__schedule",           "mm_trace_rss_stat", "trace_rss_stat",
		"__traceiter_rss_stat", "bpf_trace_run2",    "bpf_trace_run3"
	};
	struct kernel_function functions[1 + INGEST_TRACERS] = {};
	struct drain_fns fns = run_drain_fns(r);
	struct profile **by_kind[N_PROFILE_KINDS] = {
		&r->ingest_profiles.oncpu,   &r->ingest_profiles.offcpu, &r->ingest_profiles.alloc,
		&r->ingest_profiles.heap,    &r->ingest_profiles.peak,   &r->ingest_profiles.growth,
		&r->ingest_profiles.mappings
	};
	const char *recall = getenv("MEMSCOPE_RECALL"); /* for tests and benchmarks */
	int rc;

	if (recall)
		opts.recall = !strcmp(recall, "check") ? SESSION_RECALL_CHECK
			      : !strcmp(recall, "off") ? SESSION_RECALL_OFF
						       : SESSION_RECALL;
	for (uint32_t i = 0; i < cfg->n_groups; i++)
		opts.cgroups_v1 |= cfg->groups[i].at.hierarchy != 0;
	r->dict = dict_new();
	r->procs = r->dict ? proc_table_new(r->dict) : NULL;
	r->mem = proc_mem_new();
	if (!r->procs || !r->mem)
		return err_set(e, -ENOMEM, "out of memory");
	rc = run_containers_begin(r, e);
	if (rc == 0)
		rc = sideband_open(&r->sideband, e);
	if (rc == 0)
		rc = run_unwind_prepare(r, &opts.unwind_bytes, e);
	if (rc == 0)
		rc = session_open(&opts, &r->session, e);
	if (rc == 0)
		rc = run_unwind_open(r, e);
	if (rc == 0)
		rc = drain_new(r->session, &fns, &r->drain, e);
	if (rc == 0)
		rc = run_waits_begin(r, e);
	if (rc == 0 && opts.alloc && opts.calls)
		rc = run_open_sites(r, e);
	if (rc < 0)
		return rc;
	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		const struct profile_row *row = &profile_rows[i];

		if (!cfg->sources[row->source])
			continue;
		r->profiles[i] = profile_new(r->dict, row->types, row->n_types);
		if (!r->profiles[i])
			return err_set(e, -ENOMEM, "out of memory");
		*by_kind[i] = r->profiles[i];
	}
	if (cfg->sources[MS_OFFCPU] || cfg->sources[MS_GROWTH])
		kernel_functions_find(names, functions, sizeof(names) / sizeof(*names));
	r->ingest = ingest_new(r->dict, r->procs, &r->ingest_profiles, functions[0].addr);
	if (!r->ingest)
		return err_set(e, -ENOMEM, "out of memory");
	ingest_tracers(r->ingest, functions + 1, INGEST_TRACERS);
	ingest_waits(r->ingest, cfg->wait_min_ns, cfg->wait_max_ns);
	ingest_on_gap(r->ingest, run_on_gap, r);
	ingest_on_alloc(r->ingest, run_on_alloc, r);
	ingest_on_whose(r->ingest, run_whose, r);
	return 0;
}

static int open_loop(struct run *r, struct err *e)
{
	long tick =
		r->cfg->sources[MS_ALLOC] && r->cfg->alloc == ALLOC_AUTO ? FAST_TICK_NS : TICK_NS;
	struct itimerspec every = { .it_value.tv_nsec = tick, .it_interval.tv_nsec = tick };
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN) /* nohup means it */
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->signal_fd < 0 || r->timer_fd < 0 ||
	    timerfd_settime(r->timer_fd, 0, &every, NULL) < 0 ||
	    run_watch_fd(r, r->signal_fd, TAG_SIGNAL) < 0 ||
	    run_watch_fd(r, r->timer_fd, TAG_TIMER) < 0)
		return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
	return 0;
}

static void on_held(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	(void)pid;
	r->holding = true;
	run_read_sideband(r);
	r->holding = false;
	run_unwind_held(r);
}

/* Waits until it is time to begin; a signal ends the run before it began. */
static int delay(struct run *r, struct err *e)
{
	struct pollfd pfd = { .fd = r->signal_fd, .events = POLLIN };

	if (r->cfg->delay_s > 0 && poll(&pfd, 1, (int)(r->cfg->delay_s * 1000)) > 0)
		return err_set(e, -EINTR,
			       "stopped before the delay of %.3g s was over: nothing was gathered",
			       r->cfg->delay_s);
	return 0;
}

static void check_sources(struct run *r)
{
	const char *names[MS_N_SOURCES] = { "on-CPU samples", "off-CPU times", "allocations",
					    "changes of resident memory" };
	const char *why;

	for (int i = 0; i < MS_N_SOURCES; i++)
		if (r->cfg->sources[i] && !session_has(r->session, (enum ms_source)i, &why))
			run_note(r, true, "%s are not available: %s", names[i], why);
}

/* When the time asked for is over; 0 when none was. */
static uint64_t end_due_ns(const struct run *r)
{
	if (r->cfg->duration_s <= 0)
		return 0;
	return session_start_ns(r->session) + (uint64_t)(r->cfg->duration_s * 1e9);
}

/* What the time before the first sample went into. */
static void say_start(const struct run *r, const uint64_t ns[5])
{
	run_say(r,
		"begun after %.1f ms: %.1f to load the programs, %.1f for allocators, %.1f for "
		"unwind tables, %.1f to attach",
		(double)(ns[4] - ns[0]) / 1e6, (double)(ns[1] - ns[0]) / 1e6,
		(double)(ns[2] - ns[1]) / 1e6, (double)(ns[3] - ns[2]) / 1e6,
		(double)(ns[4] - ns[3]) / 1e6);
}

/*
 * Where every call would cost too much, a sampler may be listened to instead. Go's is listened to in
 * any case, if all that is watched is Go: what it allocates goes through no function of C.
 */
static void look_for_samplers(struct run *r)
{
	const struct run_config *cfg = r->cfg;
	uint32_t n = cfg->command ? 1 : cfg->n_pids, n_go = 0;

	r->may_sample = cfg->alloc == ALLOC_SAMPLED;
	if (!cfg->sources[MS_ALLOC] || cfg->alloc == ALLOC_OFF || cfg->alloc == ALLOC_EXACT)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct sampler_facts facts;

		if (cfg->command)
			sampler_look_command(cfg->command, &facts);
		else
			sampler_look(cfg->pids[i], &facts);
		r->may_sample |= facts.otel || facts.heard;
		n_go += facts.go && facts.heard;
		if (!*r->sampler_advice && !cfg->inject &&
		    (cfg->alloc == ALLOC_SAMPLED || facts.go))
			sampler_advise(&facts, r->sampler_advice, sizeof(r->sampler_advice));
	}
	r->samples_first = cfg->alloc == ALLOC_SAMPLED || (n_go && n_go == n);
}

static bool preloads(const struct run_config *cfg)
{
	return cfg->command && cfg->sources[MS_ALLOC] && cfg->alloc == ALLOC_SAMPLED;
}

int run_begin(struct run *r, const struct run_config *cfg, struct err *e)
{
	uint64_t ns[5];
	char path[4096];
	int rc;

	r->cfg = cfg;
	r->for_allocs = cfg->max_overhead;
	note_cmdlines(r);
	look_for_samplers(r);
	r->epoll_fd = r->signal_fd = r->timer_fd = -1;
	r->drain_every_ns = DRAIN_NS;
	rc = open_loop(r, e);
	if (rc == 0 && preloads(cfg))
		rc = run_sampled_preload(r, e);
	if (rc == 0 && cfg->command && cfg->delay_s > 0)
		rc = launch_start(cfg->command, &r->launch, e);
	if (rc == 0 && r->launch)
		rc = launch_go(r->launch, NULL, NULL, 0, e);
	if (rc == 0)
		rc = delay(r, e);
	ns[0] = run_now_ns();
	if (rc == 0)
		rc = open_rooms(r, e);
	if (rc == 0)
		rc = run_add_targets(r, e);
	if (preloads(cfg))
		run_sampled_preloaded(r);
	if (rc < 0)
		return rc;
	ns[1] = run_now_ns();
	if (cfg->sources[MS_ALLOC] && cfg->alloc != ALLOC_OFF) {
		rc = r->samples_first ? run_sampled_begin(r, e) : run_alloc_begin(r, e);
		if (rc < 0)
			return rc;
	}
	ns[2] = run_now_ns();
	rc = run_unwind_begin(r, e);
	if (rc < 0)
		return rc;
	ns[3] = run_now_ns();
	sideband_watch(r->sideband, r->epoll_fd, TAG_SIDEBAND);
	run_watch_fd(r, drain_events_fd(r->drain), TAG_EVENTS);
	rc = session_attach(r->session, run_on_task, r, e);
	if (rc < 0)
		return rc;
	run_costs_begin(r);
	run_growth_begin(r);
	run_ledger_begin(r);
	rc = run_alloc_opened(r, e);
	if (rc == 0)
		rc = run_inject_hook(r, e);
	if (rc < 0)
		return rc;
	check_sources(r);
	ns[4] = run_now_ns();
	say_start(r, ns);
	run_say(r, "attached; on-CPU samples count %s",
		session_oncpu_event(r->session) ? session_oncpu_event(r->session) : "nothing");
	/* Of the moment in which the programs were let in; a busy machine is some time past it. */
	r->start_wall_ns = wall_ns();
	if (session_start_ns(r->session))
		r->start_wall_ns -= (int64_t)(run_now_ns() - session_start_ns(r->session));
	r->next_drain_ns = run_now_ns() + r->drain_every_ns;
	if (r->launch && cfg->delay_s <= 0)
		rc = launch_go(r->launch,
			       run_probing_allocs(r) || run_sampling_allocs(r) ? on_held : NULL, r,
			       end_due_ns(r), e);
	/* Last: it empties the trend of an earlier run in the same directory. */
	if (rc == 0 && !cfg->all && cfg->dir) {
		snprintf(path, sizeof(path), "%s/trend%s%s.csv", cfg->dir, cfg->stamp ? "-" : "",
			 cfg->stamp ? cfg->stamp : "");
		rc = trend_csv_open(AT_FDCWD, path, &r->trend, e);
		if (rc == 0)
			run_ledger_open(r);
	}
	return rc == 0 ? run_windows_begin(r, e) : rc;
}

/* --- loop --- */

static void trend_tick(struct run *r)
{
	struct mem_sample s;
	struct err e = {};
	int64_t live = MEM_UNKNOWN;

	if (!r->trend || proc_mem_sample(r->mem, &s) < 0)
		return;
	if (run_tracing_allocs(r))
		live = ingest_live_bytes(r->ingest);
	else if (run_sampling_allocs(r))
		live = samples_live_bytes(r->samples);
	if (trend_csv_row(r->trend, &s, live, NULL, &e) < 0) {
		run_note(r, true, "trend.csv is not whole: %s", e.msg);
		trend_csv_close(TAKE_PTR(r->trend));
	}
	run_ledger_tick(r, live);
	if (!r->mem_known)
		r->first_mem = s;
	r->mem_known = true;
	r->last_mem = s;
	trend_add(&r->own_memory, s.own_kb);
	if (s.rss_kb > r->peak_rss_kb)
		r->peak_rss_kb = s.rss_kb;
}

static void progress(struct run *r, uint64_t now)
{
	uint64_t stats[MS_N_STATS], dropped = 0;

	if (r->cfg->quiet || !isatty(STDERR_FILENO))
		return;
	drain_stats(r->drain, stats);
	for (int i = 0; i < MS_N_STATS; i++)
		if (stat_rows[i].loss)
			dropped += stats[i];
	fprintf(stderr, "\r\033[Kmemscope: %5.1f s  %llu samples  %llu switches  %llu dropped",
		(double)(now - session_start_ns(r->session)) / 1e9,
		(unsigned long long)stats[STAT_ONCPU_SAMPLES],
		(unsigned long long)stats[STAT_OFFCPU_SWITCHES], (unsigned long long)dropped);
	if (r->mem_known && r->last_mem.rss_kb != MEM_UNKNOWN)
		fprintf(stderr, "  RSS %lld MiB", (long long)r->last_mem.rss_kb / 1024);
	fputs("  (Ctrl-C ends)", stderr);
	fflush(stderr);
}

static int tick(struct run *r, struct err *e)
{
	uint64_t now = run_now_ns(), expired;
	int rc = 0;

	(void)!read(r->timer_fd, &expired, sizeof(expired));
	run_read_sideband(r);
	rc = run_take_stacks(r, e); /* what came without waking us */
	if (rc < 0)
		return rc;
	run_groups_tick(r, now);
	run_unwind_tick(r);
	run_costs_tick(r, now);
	run_alloc_govern(r);
	run_sampled_govern(r, now);
	run_inject_tick(r);
	run_waits_govern(r, now);
	/* A row's live bytes are those of its moment, not of the last drain. */
	if (now >= r->next_drain_ns || (now >= r->next_trend_ns && run_tracing_allocs(r)))
		rc = run_drain(r, e);
	if (now >= r->next_trend_ns) {
		trend_tick(r);
		run_bands_tick(r);
		r->next_trend_ns = now + (uint64_t)(r->cfg->interval_s * 1e9);
		progress(r, now);
	}
	return rc;
}

/* How long to wait for events, ms: until the time asked for is over, -1 when none was. */
static int ms_left(const struct run *r)
{
	uint64_t end = end_due_ns(r), now = run_now_ns();
	uint64_t ms = now < end ? (end - now + 999999) / 1000000 : 0;

	if (r->cfg->duration_s <= 0)
		return -1;
	return ms < TICK_NS / 1000000 ? (int)ms : (int)(TICK_NS / 1000000);
}

#define SAME_PRESS_NS 500000000ULL /* a signal that several pass on comes several times */

static volatile sig_atomic_t signals_taken, hurry;
static uint64_t last_signal_ns;

static void on_signal(struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	r->ended = RUN_END_SIGNAL;
	signals_taken = 1;
	last_signal_ns = run_now_ns();
	snprintf(r->end_detail, sizeof(r->end_detail), "SIG%s", sigabbrev_np((int)info.ssi_signo));
}

static int ms_to_wait(const struct run *r)
{
	int left = ms_left(r), due[] = { run_unwind_due_ms(r), run_windows_due_ms(r) };

	for (int i = 0; i < 2; i++)
		if (due[i] >= 0 && (left < 0 || due[i] < left))
			left = due[i];
	return left;
}

int run_loop(struct run *r, struct err *e)
{
	int rc = 0;

	while (rc == 0 && r->ended == RUN_END_UNKNOWN) {
		struct epoll_event events[64];
		int n = epoll_wait(r->epoll_fd, events, 64, ms_to_wait(r));

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
		for (int i = 0; i < n && rc == 0; i++) {
			uint64_t tag = events[i].data.u64;

			if (tag == TAG_SIGNAL)
				on_signal(r);
			else if (tag == TAG_TIMER)
				rc = tick(r, e);
			else if (tag == TAG_SIDEBAND)
				run_read_sideband(r);
			else if (tag == TAG_TABLES)
				run_unwind_tables(r);
			else if (tag == TAG_EVENTS)
				rc = run_take_stacks(r, e);
			else if (tag >= TAG_PID)
				run_target_ended(r, (pid_t)(tag - TAG_PID));
		}
		run_groups_look(r);
		run_unwind_flush(r);
		if (rc == 0)
			rc = run_windows_tick(r, e);
		if (!ms_left(r) && r->ended == RUN_END_UNKNOWN)
			r->ended = RUN_END_DURATION;
	}
	return rc;
}

/* --- end --- */

bool run_in_a_hurry(void)
{
	return hurry;
}

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
	uint64_t now = run_now_ns();

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
	sigset_t set;

	sigfillset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	sigfillset(&set);
	if (r->signal_fd >= 0)
		close(TAKE_FD(r->signal_fd));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int run_end(struct run *r, struct err *e)
{
	bool exact, sampled;
	int rc = 0, status;

	take_late_signals(r);
	if (!r->session)
		return 0;
	run_alloc_govern(r);
	exact_watch_free(TAKE_PTR(r->exact_watch));
	exact = run_tracing_allocs(r);
	sampled = run_sampling_allocs(r);
	run_slices_stop(r);
	if ((exact || sampled) && session_start_ns(r->session))
		run_take_totals(r, NULL); /* for the last row; an error shows again below */
	if (r->mem)
		proc_mem_last(r->mem);
	trend_tick(r);
	run_bands_tick(r);
	if (session_start_ns(r->session))
		run_ledger_end(r, exact);
	run_costs_stop(r);
	session_gate(r->session, false);
	r->end_ns = run_now_ns();
	run_inject_end(r);
	if (!session_start_ns(r->session))
		return 0;
	run_growth_end(r);
	if (exact)
		r->alloc_to_ns = r->end_ns;
	if (sampled)
		r->alloc_to_ns = r->end_ns;
	session_detach(r->session);
	run_sampled_stop(r);
	run_unwind_say(r);
	run_alloc_say_failed(r);
	alloc_probes_free(TAKE_PTR(r->probes));
	rc = run_take_totals(r, e);
	if (rc == 0) {
		run_finish_pending(r, false);
		run_unwind_settle(r);
		run_finish_pending(r, true);
	}
	run_finish_say(r);
	if (rc == 0 && r->cfg->sources[MS_OFFCPU])
		rc = drain_threads(r->drain, true, e);
	if (rc == 0)
		r->oom |= ingest_finish(r->ingest) < 0 || run_waits_finish(r) < 0;
	if (rc == 0)
		rc = run_finish_sites(r, e);
	if (rc == 0)
		rc = run_mappings_finish(r, e);
	run_ledger_finish(r);
	if (rc == 0 && r->oom)
		rc = err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	if (rc == 0 && r->tier == ALLOC_TIER_SAMPLED)
		rc = run_sampled_finish(r, e);
	if (rc == 0 && r->tier == ALLOC_TIER_SLICES)
		rc = run_slices_finish(r, e);
	if (r->launch && launch_ended(r->launch, &status)) {
		r->child_ended = status != LAUNCH_STATUS_UNKNOWN;
		r->child_status = status;
		if (!r->child_ended)
			run_note(r, false, "the command has ended; its exit status is not known");
	} else if (r->launch) {
		run_note(r, false, "the command is still running, as process %d",
			 (int)launch_pid(r->launch));
	}
	if (!r->cfg->quiet && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return rc;
}

void run_free(struct run *r)
{
	struct watched *t, *next;

	for (uint32_t i = 0; r->cmdlines && i < r->cfg->n_pids; i++)
		free(r->cmdlines[i]);
	free(r->cmdlines);
	run_slices_free(r);
	run_costs_free(r);
	exact_watch_free(r->exact_watch);
	alloc_probes_free(r->probes);
	run_waits_free(r);
	run_sampled_free(r);
	run_bands_free(r);
	mappings_free(r->mappings);
	launch_free(r->launch);
	ingest_free(r->ingest);
	drain_free(r->drain);
	alloc_table_close(r->alloc_table);
	profile_free(r->sites);
	run_unwind_close(r);
	run_free_pending(r);
	run_free_gaps(r);
	run_windows_free(r);
	run_growth_free(r);
	run_ledger_free(r);
	session_free(r->session);
	sideband_close(r->sideband);
	trend_csv_close(r->trend);
	run_containers_free(r);
	proc_mem_free(r->mem);
	for (int i = 0; i < N_PROFILE_KINDS; i++)
		profile_free(r->profiles[i]);
	proc_table_free(r->procs);
	dict_free(r->dict);
	HASH_ITER (hh, r->targets, t, next) {
		HASH_DEL(r->targets, t);
		closep(&t->pid_fd);
		free(t);
	}
	closep(&r->epoll_fd);
	closep(&r->signal_fd);
	closep(&r->timer_fd);
	for (uint32_t i = 0; i < r->n_notes; i++)
		free(r->notes[i]);
}
