#include "cmd/run.h"

#include "base/hash.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#define FAST_TICK_NS     20000000ULL   /* while the governor watches */
#define TICK_NS          100000000ULL  /* progress, governor, full maps       */
#define DRAIN_NS         1000000000ULL /* while the totals map stays half empty */
#define DRAIN_FASTEST_NS 50000000ULL
#define RATE_SLICE_MS    20
#define FORGET_NS        30000000000ULL
#define SWEEP_NS         5000000000ULL
#define LAST_SWITCH_NS   1000000000ULL

enum { TAG_SIGNAL, TAG_TIMER, TAG_SIDEBAND, TAG_EVENTS, TAG_PID = 1000 };

struct watched {
	pid_t pid;
	bool asked;
	bool leader_gone;  /* other threads live on                      */
	uint64_t ended_ns; /* when it ended; its last switches may follow */
	int pid_fd;
	UT_hash_handle hh;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
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

/* --- targets
 * ------------------------------------------------------------------------------------- */

static struct watched *target_find(struct run *r, pid_t pid)
{
	struct watched *t;

	HASH_FIND_INT(r->targets, &pid, t);
	return t;
}

static int watch_fd(struct run *r, int fd, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* `newborn`: a child of a target, or the command. In the kernel it is watched already, if it is
 * a child. */
static int target_add(struct run *r, pid_t pid, bool asked, bool newborn, struct err *e)
{
	struct watched *t = target_find(r, pid);

	if (t) {
		t->ended_ns = 0; /* a new process with an old pid */
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->pid = pid;
	t->asked = asked;
	t->pid_fd = -1;
	HASH_ADD_INT(r->targets, pid, t);
	if (!hash_added(t)) {
		free(t);
		return err_set(e, -ENOMEM, "out of memory");
	}
	if (asked) {
		t->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (t->pid_fd < 0)
			return err_set(e, -errno, "there is no process %d", (int)pid);
		watch_fd(r, t->pid_fd, TAG_PID + (uint64_t)pid);
		r->live_targets++;
		ingest_keep(r->ingest, pid);
	}
	if (r->mem)
		proc_mem_add(r->mem, pid, newborn, NULL);
	return 0;
}

static void target_ended(struct run *r, pid_t pid)
{
	struct watched *t = target_find(r, pid);

	if (!t || t->pid_fd < 0)
		return;
	close(TAKE_FD(t->pid_fd));
	if (--r->live_targets > 0)
		return;
	r->ended = RUN_END_TARGET;
	snprintf(r->end_detail, sizeof(r->end_detail), "process %d ended", (int)pid);
}

static void add_children(struct run *r, pid_t pid, int depth);

/* A child's parent is the thread that forked it. */
static void add_children_of_thread(struct run *r, pid_t pid, const char *tid, int depth)
{
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1) {
		if (target_find(r, child) || session_target(r->session, child, NULL) < 0 ||
		    target_add(r, child, false, false, NULL) < 0)
			continue;
		proc_table_scan(r->procs, child, 0, now_ns(), NULL);
		if (depth < 64)
			add_children(r, child, depth + 1);
	}
}

/* Descendants that are there already. */
static void add_children(struct run *r, pid_t pid, int depth)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (d->d_name[0] != '.')
			add_children_of_thread(r, pid, d->d_name, depth);
	if (dir)
		closedir(dir);
}

/* --- records about processes
 * --------------------------------------------------------------------- */

static bool tracing_allocs(const struct run *r)
{
	return r->probes && r->tier == ALLOC_TIER_EXACT && !r->alloc_to_ns;
}

/* Gone, or a zombie: short-lived children often are before their record is read. */
static bool is_over(pid_t pid)
{
	char path[64], line[512], *paren;
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	return !f || !fgets(line, sizeof(line), f) || !(paren = strrchr(line, ')')) ||
	       strchr("ZX", paren[2]);
}

/* A thread of a target has ended; with the last one, the process. */
static void thread_ended(struct run *r, const struct sideband_record *rec)
{
	struct watched *t = target_find(r, rec->pid);

	if (!t)
		return;
	if (proc_table_live(r->procs, rec->pid)) {
		t->leader_gone |= rec->pid == rec->tid;
		return;
	}
	t->ended_ns = rec->ns;
	r->ended_since_sweep = true;
	if (r->probes && !r->cfg->file_scope)
		alloc_probes_drop(r->probes, rec->pid);
}

/* An exec begins a new address space. Probes follow it, but for those that hang on a leader who
 * has gone. */
static void image_replaced(struct run *r, pid_t pid)
{
	struct watched *t = target_find(r, pid);

	if (!t)
		return;
	session_set_gen(r->session, pid, 0);
	r->ended_since_sweep = true;
	if (t->leader_gone && tracing_allocs(r) && !r->cfg->file_scope) {
		alloc_probes_drop(r->probes, pid);
		alloc_probes_add(r->probes, pid, NULL);
	}
	t->leader_gone = false;
}

/* A child of a target: in the kernel it is watched since its fork; its probes come now. */
static void child_forked(struct run *r, const struct sideband_record *rec)
{
	if (!r->cfg->children || rec->pid == rec->ppid || !target_find(r, rec->ppid) ||
	    target_add(r, rec->pid, false, true, NULL) < 0)
		return;
	if (!tracing_allocs(r) || r->cfg->file_scope || is_over(rec->pid))
		return;
	if (alloc_probes_add(r->probes, rec->pid, NULL) > 0) {
		r->gap_ns += now_ns() - rec->ns;
		r->gap_children++;
	}
}

static void on_sideband(void *ctx, const struct sideband_record *rec)
{
	struct run *r = ctx;
	uint32_t gen;

	switch (rec->kind) {
	case SIDEBAND_MMAP:
		gen = proc_table_mmap(r->procs, rec->ns, rec->pid,
				      &(struct proc_mmap){ .addr = rec->addr,
							   .len = rec->len,
							   .file_off = rec->off,
							   .dev = rec->dev,
							   .ino = rec->ino,
							   .path = rec->name });
		if (gen && (r->cfg->all || target_find(r, rec->pid)))
			session_set_gen(r->session, rec->pid, gen);
		if (tracing_allocs(r) && (r->cfg->all || target_find(r, rec->pid)))
			alloc_probes_add(r->probes, rec->pid, NULL);
		break;
	case SIDEBAND_COMM:
		proc_table_comm(r->procs, rec->ns, rec->pid, rec->tid, rec->name, rec->exec);
		if (rec->exec)
			image_replaced(r, rec->pid);
		break;
	case SIDEBAND_FORK:
		proc_table_fork(r->procs, rec->ns, rec->pid, rec->ppid, rec->tid);
		child_forked(r, rec);
		break;
	case SIDEBAND_EXIT:
		proc_table_exit(r->procs, rec->ns, rec->pid, rec->tid);
		thread_ended(r, rec);
		break;
	}
}

/* --- what the drain hands over
 * ------------------------------------------------------------------- */

static void on_stack(void *ctx, const struct ms_stack_rec *rec, const uint64_t *frames)
{
	struct run *r = ctx;

	ingest_stack(r->ingest, rec, frames);
}

static void on_total(void *ctx, const struct ms_total_key *key, const struct ms_total *total)
{
	struct run *r = ctx;

	ingest_total(r->ingest, key, total);
}

static void on_thread(void *ctx, uint32_t tid, const struct ms_thread *thread)
{
	struct run *r = ctx;

	ingest_thread(r->ingest, tid, thread, r->end_ns ? r->end_ns : now_ns());
}

static bool on_block(void *ctx, const struct ms_block_key *key, const struct ms_block *block)
{
	struct run *r = ctx;

	if (r->sweeping)
		return ingest_sweep(r->ingest, key, block);
	ingest_block(r->ingest, key, block);
	return false;
}

/* What the totals speak of must be known when they are read: records after the flip, before the
 * totals. */
static int take_totals(struct run *r, struct err *e)
{
	int rc = drain_flip(r->drain, e);

	if (rc < 0)
		return rc;
	sideband_read(r->sideband, on_sideband, r);
	return drain_totals(r->drain, e);
}

/*
 * Processes that ended a while ago: on a host where compilers come and go they would fill memory.
 * Live blocks name their process until the end, so not while allocations are traced.
 */
static void forget_the_dead(struct run *r)
{
	uint64_t now = now_ns();

	if (now < r->next_forget_ns || r->tier == ALLOC_TIER_EXACT)
		return;
	if (r->next_forget_ns) {
		ingest_forget(r->ingest);
		proc_table_retire(r->procs, now - FORGET_NS);
	}
	r->next_forget_ns = now + FORGET_NS;
}

/* Blocks of processes that ended leave the table, or a server that forks would fill it with its
 * dead. */
static void sweep_blocks(struct run *r)
{
	uint64_t now = now_ns();

	if (!tracing_allocs(r) || !r->ended_since_sweep || now < r->next_sweep_ns)
		return;
	r->sweeping = true;
	drain_blocks(r->drain, NULL);
	r->sweeping = r->ended_since_sweep = false;
	r->next_sweep_ns = now + SWEEP_NS;
}

/* A pid is free for others when its process has ended, and its last switch has been seen. */
static void untarget_the_dead(struct run *r)
{
	uint64_t now = now_ns();
	struct watched *t, *next;

	HASH_ITER (hh, r->targets, t, next) {
		if (!t->ended_ns || t->asked || now < t->ended_ns + LAST_SWITCH_NS)
			continue;
		session_untarget(r->session, t->pid);
		HASH_DEL(r->targets, t);
		free(t);
	}
}

static int drain_now(struct run *r, struct err *e)
{
	uint32_t max = session_map_max(r->session, SESSION_TOTALS_A);
	int rc;

	rc = take_totals(r, e);
	if (rc == 0 && r->cfg->sources[MS_OFFCPU])
		rc = drain_threads(r->drain, false, e);
	if (drain_last_totals(r->drain) > max / 4 && r->drain_every_ns > DRAIN_FASTEST_NS)
		r->drain_every_ns /= 2;
	else if (drain_last_totals(r->drain) < max / 16 && r->drain_every_ns < DRAIN_NS)
		r->drain_every_ns *= 2;
	r->next_drain_ns = now_ns() + r->drain_every_ns;
	if (rc == 0) {
		sweep_blocks(r);
		untarget_the_dead(r);
		forget_the_dead(r);
	}
	return rc;
}

/* --- allocations
 * --------------------------------------------------------------------------------- */

static void alloc_decline(struct run *r)
{
	r->tier = ALLOC_TIER_DECLINED;
	snprintf(
		r->alloc_reason, sizeof(r->alloc_reason),
		"exact allocation tracing is off: %s allocations a second would cost about %.0f %% of a CPU "
		"(limit %.3g %%); --alloc=exact forces it, --max-overhead raises the limit",
		unit_count((int64_t)r->calls_per_s).s, r->cost_percent, r->cfg->max_overhead);
}

/*
 * Looks before it leaps: what would exact tracing cost these processes? Over the limit it stays
 * off, unless the user insists: then what to expect is said first.
 */
static int alloc_look(struct run *r, struct err *e)
{
	uint64_t enough = governor_enough(alloc_probes_pair_ns(r->probes), r->cfg->max_overhead,
					  RATE_SLICE_MS);
	int rc = alloc_probes_rate(r->probes, r->cfg->pids, r->cfg->n_pids, RATE_SLICE_MS, enough,
				   &r->calls_per_s, e);

	if (rc < 0)
		return rc;
	r->governor.pair_ns = alloc_probes_pair_ns(r->probes);
	r->cost_percent = governor_percent(r->calls_per_s, r->governor.pair_ns);
	if (r->cost_percent <= r->cfg->max_overhead)
		return 0;
	if (r->cfg->alloc == ALLOC_AUTO) {
		alloc_decline(r);
		r->partial |= r->cfg->alloc_asked;
	} else {
		snprintf(
			r->alloc_reason, sizeof(r->alloc_reason),
			"--alloc=exact: %s allocations a second cost about %.0f %% of a CPU while they are traced; "
			"expect the target to run up to %.1f times slower",
			unit_count((int64_t)r->calls_per_s).s, r->cost_percent,
			1 + r->cost_percent / 100);
	}
	return 0;
}

static int alloc_begin(struct run *r, struct err *e)
{
	struct alloc_probes_stats stats;
	struct watched *t, *next;
	int rc;

	rc = alloc_probes_new(r->session, r->dict, r->procs, r->cfg->file_scope, &r->probes, e);
	if (rc < 0)
		return rc;
	r->governor.max_percent = r->cfg->max_overhead;
	if (r->cfg->n_pids) {
		rc = alloc_look(r, e);
		if (rc < 0 || r->tier == ALLOC_TIER_DECLINED)
			return rc;
	}
	HASH_ITER (hh, r->targets, t, next) {
		rc = alloc_probes_add(r->probes, t->pid, e);
		if (rc < 0)
			return rc;
	}
	alloc_probes_stats(r->probes, &stats);
	r->governor.pair_ns = alloc_probes_pair_ns(r->probes);
	if (!stats.functions && r->live_targets && !r->cfg->command && !r->cfg->all)
		run_note(
			r, r->cfg->alloc_asked,
			"no allocator function was found in the files this process maps: a stripped static "
			"binary, or an allocator that memscope does not know");
	run_say(r, "%u allocator functions in %u files, %u links", stats.functions, stats.files,
		stats.attached);
	r->tier = ALLOC_TIER_EXACT;
	r->alloc_from_ns = now_ns();
	session_gate_alloc(r->session, true);
	return 0;
}

static void say_failed_probes(struct run *r)
{
	struct alloc_probes_stats stats;

	if (!r->probes)
		return;
	alloc_probes_stats(r->probes, &stats);
	if (stats.failed)
		run_note(r, true, "%u times an allocator function could not be probed: %s",
			 stats.failed, stats.failed_why);
	if (!stats.functions && r->cfg->all && r->tier == ALLOC_TIER_EXACT)
		run_note(r, true, "no allocator function was found on this host");
}

/* Auto mode promised a limit; the rate has grown past it. */
static void alloc_stop(struct run *r)
{
	r->alloc_to_ns = now_ns();
	snprintf(
		r->alloc_reason, sizeof(r->alloc_reason),
		"exact allocation tracing stopped after %.1f s: it began to cost more than %.3g %% of a CPU; "
		"--alloc=exact forces it, --max-overhead raises the limit",
		(double)(r->alloc_to_ns - session_start_ns(r->session)) / 1e9,
		r->cfg->max_overhead);
	session_gate_alloc(r->session, false);
	drain_now(r, NULL);
	drain_inflight(r->drain, NULL);
	drain_blocks(r->drain, NULL);
	say_failed_probes(r);
	alloc_probes_free(TAKE_PTR(r->probes));
}

static void alloc_govern(struct run *r, uint64_t now)
{
	uint64_t stats[MS_N_STATS];

	if (r->cfg->alloc != ALLOC_AUTO || !tracing_allocs(r))
		return;
	drain_stats(r->drain, stats);
	if (governor_exceeded(&r->governor, now, stats[STAT_PROBE_HITS]))
		alloc_stop(r);
}

/* --- begin
 * --------------------------------------------------------------------------------------- */

static int open_rooms(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	struct session_opts opts = {
		.all = cfg->all,
		.children = cfg->children,
		.tid = cfg->tid,
		.oncpu = cfg->sources[MS_ONCPU],
		.offcpu = cfg->sources[MS_OFFCPU],
		.alloc = cfg->sources[MS_ALLOC],
		.user_stacks = cfg->user_stacks,
		.kernel_stacks = cfg->kernel_stacks,
		.hz = cfg->hz,
		.cpus = cfg->cpus,
		.n_cpus = cfg->n_cpus,
		.mem_mb = cfg->mem_mb,
	};
	struct drain_fns fns = { on_stack, on_total, on_thread, on_block, r };
	struct profile **by_kind[N_PROFILE_KINDS] = { &r->ingest_profiles.oncpu,
						      &r->ingest_profiles.offcpu,
						      &r->ingest_profiles.alloc,
						      &r->ingest_profiles.heap };
	int rc;

	r->dict = dict_new();
	r->procs = r->dict ? proc_table_new(r->dict) : NULL;
	r->mem = proc_mem_new();
	if (!r->procs || !r->mem)
		return err_set(e, -ENOMEM, "out of memory");
	rc = sideband_open(&r->sideband, e);
	if (rc == 0)
		rc = session_open(&opts, &r->session, e);
	if (rc == 0)
		rc = drain_new(r->session, &fns, &r->drain, e);
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
	r->ingest = ingest_new(r->dict, r->procs, &r->ingest_profiles,
			       cfg->sources[MS_OFFCPU] ? session_kernel_symbol("__schedule") : 0);
	return r->ingest ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int open_loop(struct run *r, struct err *e)
{
	long tick =
		r->cfg->sources[MS_ALLOC] && r->cfg->alloc == ALLOC_AUTO ? FAST_TICK_NS : TICK_NS;
	struct itimerspec every = { .it_value.tv_nsec = tick, .it_interval.tv_nsec = tick };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->signal_fd < 0 || r->timer_fd < 0 ||
	    timerfd_settime(r->timer_fd, 0, &every, NULL) < 0 ||
	    watch_fd(r, r->signal_fd, TAG_SIGNAL) < 0 || watch_fd(r, r->timer_fd, TAG_TIMER) < 0)
		return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
	return 0;
}

static void on_task(void *ctx, const struct ms_task *task)
{
	struct run *r = ctx;

	/* One that is known already still learns its exec id: guessed from the first total, it
	 * would be wrong for a process that has gone through an exec by then. */
	if (task->tid == task->proc.tgid)
		proc_table_scan(r->procs, (pid_t)task->proc.tgid, task->proc.exec_id, now_ns(),
				NULL);
	if (task->tid == task->proc.tgid && r->cfg->all && tracing_allocs(r))
		alloc_probes_add(r->probes, (pid_t)task->proc.tgid, NULL);
}

static void on_held(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	(void)pid;
	sideband_read(r->sideband, on_sideband, r);
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

static int add_targets(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	int rc;

	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		rc = target_add(r, cfg->pids[i], true, false, e);
		if (rc == 0)
			rc = session_target(r->session, cfg->pids[i], e);
		if (rc == 0)
			rc = proc_table_scan(r->procs, cfg->pids[i], 0, now_ns(), e);
		if (rc < 0)
			return rc;
		if (cfg->children && !cfg->tid)
			add_children(r, cfg->pids[i], 0);
	}
	if (!cfg->command)
		return 0;
	rc = r->launch ? 0 : launch_start(cfg->command, &r->launch, e);
	if (rc == 0)
		rc = target_add(r, launch_pid(r->launch), true, cfg->delay_s <= 0, e);
	if (rc == 0)
		rc = session_target(r->session, launch_pid(r->launch), e);
	if (rc < 0 || cfg->delay_s <= 0)
		return rc;
	rc = proc_table_scan(r->procs, launch_pid(r->launch), 0, now_ns(), e);
	if (rc == 0 && cfg->children)
		add_children(r, launch_pid(r->launch), 0);
	return rc;
}

static void check_sources(struct run *r)
{
	const char *names[MS_N_SOURCES] = { "on-CPU samples", "off-CPU times", "allocations" };
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

int run_begin(struct run *r, const struct run_config *cfg, struct err *e)
{
	char path[4096];
	int rc;

	r->cfg = cfg;
	r->epoll_fd = r->signal_fd = r->timer_fd = -1;
	r->drain_every_ns = DRAIN_NS;
	rc = open_loop(r, e);
	if (rc == 0 && cfg->command && cfg->delay_s > 0)
		rc = launch_start(cfg->command, &r->launch, e);
	if (rc == 0 && r->launch)
		rc = launch_go(r->launch, NULL, NULL, 0, e);
	if (rc == 0)
		rc = delay(r, e);
	if (rc == 0)
		rc = open_rooms(r, e);
	if (rc == 0)
		rc = add_targets(r, e);
	if (rc < 0)
		return rc;
	if (!cfg->all) {
		snprintf(path, sizeof(path), "%s/trend.csv", cfg->dir);
		rc = trend_csv_open(AT_FDCWD, path, &r->trend, e);
		if (rc < 0)
			return rc;
	}
	if (cfg->sources[MS_ALLOC] && cfg->alloc != ALLOC_OFF) {
		rc = alloc_begin(r, e);
		if (rc < 0)
			return rc;
	}
	sideband_watch(r->sideband, r->epoll_fd, TAG_SIDEBAND);
	watch_fd(r, drain_events_fd(r->drain), TAG_EVENTS);
	rc = session_attach(r->session, on_task, r, e);
	if (rc < 0)
		return rc;
	if (tracing_allocs(r))
		governor_exceeded(&r->governor, session_start_ns(r->session), 0);
	check_sources(r);
	run_say(r, "attached; on-CPU samples count %s",
		session_oncpu_event(r->session) ? session_oncpu_event(r->session) : "nothing");
	r->start_wall_ns = wall_ns();
	r->next_drain_ns = now_ns() + r->drain_every_ns;
	if (r->launch && cfg->delay_s <= 0)
		rc = launch_go(r->launch, tracing_allocs(r) ? on_held : NULL, r, end_due_ns(r), e);
	return rc;
}

/* --- loop
 * ---------------------------------------------------------------------------------------- */

static void trend_tick(struct run *r)
{
	struct mem_sample s;
	struct err e = {};
	int64_t live = MEM_UNKNOWN;

	if (!r->trend || proc_mem_sample(r->mem, &s) < 0)
		return;
	if (tracing_allocs(r))
		live = ingest_live_bytes(r->ingest);
	if (trend_csv_row(r->trend, &s, live, &e) < 0) {
		run_note(r, true, "trend.csv is not whole: %s", e.msg);
		trend_csv_close(TAKE_PTR(r->trend));
	}
	if (!r->mem_known)
		r->first_mem = s;
	r->mem_known = true;
	r->last_mem = s;
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
	uint64_t now = now_ns(), expired;
	int rc = 0;

	(void)!read(r->timer_fd, &expired, sizeof(expired));
	sideband_read(r->sideband, on_sideband, r);
	alloc_govern(r, now);
	if (now >= r->next_drain_ns)
		rc = drain_now(r, e);
	if (now >= r->next_trend_ns) {
		trend_tick(r);
		r->next_trend_ns = now + (uint64_t)(r->cfg->interval_s * 1e9);
		progress(r, now);
	}
	return rc;
}

/* How long to wait for events, ms: until the time asked for is over, -1 when none was. */
static int ms_left(const struct run *r)
{
	uint64_t end = end_due_ns(r), now = now_ns();
	uint64_t ms = now < end ? (end - now + 999999) / 1000000 : 0;

	if (r->cfg->duration_s <= 0)
		return -1;
	return ms < TICK_NS / 1000000 ? (int)ms : (int)(TICK_NS / 1000000);
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	r->ended = RUN_END_SIGNAL;
	snprintf(r->end_detail, sizeof(r->end_detail), "SIG%s", sigabbrev_np((int)info.ssi_signo));
}

int run_loop(struct run *r, struct err *e)
{
	int rc = 0;

	while (rc == 0 && r->ended == RUN_END_UNKNOWN) {
		struct epoll_event events[64];
		int n = epoll_wait(r->epoll_fd, events, 64, ms_left(r));

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
		for (int i = 0; i < n && rc == 0; i++) {
			uint64_t tag = events[i].data.u64;

			if (tag == TAG_SIGNAL)
				on_signal(r);
			else if (tag == TAG_TIMER)
				rc = tick(r, e);
			else if (tag == TAG_SIDEBAND)
				sideband_read(r->sideband, on_sideband, r);
			else if (tag == TAG_EVENTS)
				rc = drain_events(r->drain);
			else if (tag >= TAG_PID)
				target_ended(r, (pid_t)(tag - TAG_PID));
		}
		if (!ms_left(r) && r->ended == RUN_END_UNKNOWN)
			r->ended = RUN_END_DURATION;
	}
	return rc;
}

/* --- end
 * ----------------------------------------------------------------------------------------- */

static void leave_at_once(int signal)
{
	static const char sentence[] = "\nmemscope: stopped; files that were finished are whole\n";

	(void)signal;
	(void)!write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
	_exit(EXIT_FAILURE);
}

/* From here on a second Ctrl-C means: leave at once. Files in the making are under temporary
 * names. */
static void let_second_signal_through(struct run *r)
{
	struct sigaction sa = { .sa_handler = leave_at_once };
	sigset_t set;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigfillset(&set);
	if (r->signal_fd >= 0)
		close(TAKE_FD(r->signal_fd));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int run_end(struct run *r, struct err *e)
{
	bool exact = tracing_allocs(r);
	int rc = 0, status;

	let_second_signal_through(r);
	if (!r->session)
		return 0;
	trend_tick(r);
	session_gate(r->session, false);
	r->end_ns = now_ns();
	if (!session_start_ns(r->session))
		return 0;
	if (exact)
		r->alloc_to_ns = r->end_ns;
	session_detach(r->session);
	say_failed_probes(r);
	alloc_probes_free(TAKE_PTR(r->probes));
	rc = take_totals(r, e);
	if (rc == 0 && r->cfg->sources[MS_OFFCPU])
		rc = drain_threads(r->drain, true, e);
	if (rc == 0 && exact)
		rc = drain_inflight(r->drain, e);
	if (rc == 0 && exact)
		rc = drain_blocks(r->drain, e);
	if (rc == 0 && ingest_finish(r->ingest) < 0)
		rc = err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
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

	alloc_probes_free(r->probes);
	launch_free(r->launch);
	ingest_free(r->ingest);
	drain_free(r->drain);
	session_free(r->session);
	sideband_close(r->sideband);
	trend_csv_close(r->trend);
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
