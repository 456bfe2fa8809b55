#include "collect/overhead/burst_timer.h"
#include "abi.h"
#include "base/clock.h"
#include "base/grow.h"
#include "collect/overhead/counter.h"
#include "collect/overhead/governor.h"
#include "collect/overhead/realtime.h"
#include "collect/overhead/trap_cost.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS 1000000.0

/* What a burst may cost: the budget of so much time, within bounds. */
#define BURST_OF_NS    (100 * MS_NS)
#define BURST_LEAST_NS (1 * MS_NS)
#define BURST_MOST_NS  (10 * MS_NS)

#define LENGTH_FIRST_NS (5 * MS_NS)
#define LENGTH_LEAST_NS (1 * MS_NS)
#define LENGTH_MOST_NS  (100 * MS_NS)
#define LOOK_LEAST_NS   (0.2 * MS_NS)
#define LOOK_MOST_NS    (2 * MS_NS)
/* Between two bursts, even if they cost nothing. */
#define GAP_NS (50 * MS_NS)

/* Defaults: of the trap where it cannot be measured, and of the program until it has reported. */
#define TRAP_NS       520.0
#define FIRST_PROG_NS 700.0
/*
 * A call is slowed by more than the trap and the program's run time, because the target goes on
 * with colder caches: by this part more, up to this time, and with this relative error. Caches are as cold
 * however long the trap took: where one takes 5 us instead of 0.5, a tenth of it was 1 us too much (estimates
 * 1.3 to 1.5 times what the target had counted). Measured as the share of
 * calls that bursts missed in programs of known rate, with calls of 1.0 to 1.8 us: 20 ns in a loop
 * of malloc and free, 60 with 300 ns of arithmetic between, 90 to 190 in C++ containers, python3
 * and sqlite3; on a machine at a load of 15, from 10 less to 480 more in C++ containers.
 */
#define CALL_AFTER         0.1
#define CALL_AFTER_MOST_NS 180.0
#define CALL_UNSURE        0.2

/* So many bursts of which calls took that part show that their returns are better traced apart. */
#define APART_LOST   0.75
#define APART_BURSTS 3

#define MAX_FDS     4096
#define MAX_THREADS 4096 /* beyond these, threads are assumed to run all the time */
#define BATCH       256

/* A thread's CPU time at one moment. */
struct thread_time {
	uint32_t tid;
	uint64_t cpu_ns;
};

/* What is read at a time. */
struct batch {
	uint32_t keys[BATCH];
	struct ms_thread values[BATCH];
	struct process_time processes[MAX_THREADS];
};

struct burst_timer {
	struct session *session;
	struct alloc_probes *probes;
	struct wait_sampler *busy;       /* NULL: none are sampled              */
	struct process_times *processes; /* NULL: the table has those of threads */
	pthread_t thread;
	bool running, stopping;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* on CLOCK_MONOTONIC */
	struct burst_times first, last;
	struct burst *done;
	uint32_t n_done, cap_done;
	struct burst_timer_stats stats;
	double max_percent;

	/* The thread's own. */
	struct pacer pacer;
	struct trap_cost *trap; /* NULL: it cannot be measured here */
	double trap_sum_ns;
	/* Expected of the next burst, without and with returns. */
	double call_ns[2], length_ns[2];
	bool results, apart;
	uint32_t lost; /* bursts of which calls took most */
	uint64_t detach_cpu_ns, cpu_ns;
	uint64_t random;
	int fds[MAX_FDS];
	struct thread_time at_open[MAX_THREADS], at_close[MAX_THREADS];
	struct batch batch;
};

static uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread_time *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct times_at {
	struct thread_time *rows;
	uint32_t n;
	uint64_t ns;
};

/* The CPU time of a sampled thread, since it became one, is not in the table. */
static void add_sampled(void *ctx, const void *record)
{
	const struct times_at *at = ctx;
	const struct ms_sampled_thread *b = record;
	struct thread_time like = { .tid = b->tid }, *row;
	uint64_t since_ns = b->since_ns + b->ahead_ns;

	row = at->n ? bsearch(&like, at->rows, at->n, sizeof(like), by_tid) : NULL;
	if (!row)
		return;
	row->cpu_ns += b->oncpu_ns;
	if (b->state == MS_RUN_ON_CPU && at->ns > since_ns)
		row->cpu_ns += at->ns - since_ns;
}

static uint32_t read_processes(const struct burst_timer *s, struct batch *batch,
			       struct thread_time *to)
{
	uint32_t n = process_times_read(s->processes, batch->processes, MAX_THREADS);

	for (uint32_t i = 0; i < n; i++)
		to[i] = (struct thread_time){ batch->processes[i].pid, batch->processes[i].cpu_ns };
	qsort(to, n, sizeof(*to), by_tid);
	return n;
}

/* CPU times of all threads in the table at `ns`, which is now or was just now; sorted by tid. */
static uint32_t read_times(const struct burst_timer *s, uint64_t ns, struct batch *batch,
			   struct thread_time *to)
{
	int fd = session_map_fd(s->session, SESSION_THREADS), r;
	uint32_t token, n = 0, got;
	void *in = NULL;

	if (s->processes)
		return read_processes(s, batch, to);
	do {
		got = BATCH;
		r = bpf_map_lookup_batch(fd, in, &token, batch->keys, batch->values, &got, NULL);
		if (r < 0 && errno != ENOENT)
			break;
		for (uint32_t i = 0; i < got && n < MAX_THREADS; i++) {
			const struct ms_thread *t = &batch->values[i];

			to[n].tid = batch->keys[i];
			to[n].cpu_ns = t->oncpu_ns;
			if (t->state == MS_RUN_ON_CPU && ns > t->since_ns)
				to[n].cpu_ns += ns - t->since_ns;
			n++;
		}
		in = &token;
	} while (r == 0 && n < MAX_THREADS);
	qsort(to, n, sizeof(*to), by_tid);
	if (s->busy && wait_sampler_any(s->busy))
		wait_sampler_each(s->busy, add_sampled, &(struct times_at){ to, n, ns });
	return n;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* Threads seen at both ends; one that began in between had no CPU time before. `part` of what they had until
 * they were read, they had in the burst. */
static void join_times(struct burst_timer *s, struct burst *burst, uint32_t n_open,
		       uint32_t n_close, double part)
{
	uint32_t open = 0;

	burst->threads = calloc(n_close + 1, sizeof(*burst->threads));
	for (uint32_t i = 0; burst->threads && i < n_close; i++) {
		const struct thread_time *t = &s->at_close[i];
		uint64_t before = 0;

		while (open < n_open && s->at_open[open].tid < t->tid)
			open++;
		if (open < n_open && s->at_open[open].tid == t->tid)
			before = s->at_open[open].cpu_ns;
		burst->threads[burst->n_threads++] = (struct burst_thread){
			t->tid, before,
			t->cpu_ns > before
				? before + (uint64_t)((double)(t->cpu_ns - before) * part)
				: before
		};
	}
}

/*
 * The clocks of processes are read before the burst is opened, and when it is noticed that it is closed, as it
 * is when its calls are used up. We may have waited for a CPU at both. Hits outside of it cost only their trap,
 * and are counted: with w of its own work for each,
 *
 *   CPU time = hits (w + cost) + late (w + trap)
 *
 * so the part of it that was in the burst follows.
 */
static double part_in_burst(double cpu_ns, double hits, double cost_ns, double late, double trap_ns)
{
	double work_ns;

	if (late < 1 || hits < 1 || cpu_ns <= 0)
		return 1;
	work_ns = most((cpu_ns - hits * cost_ns - late * trap_ns) / (hits + late), 0);
	return hits * (work_ns + cost_ns) /
	       (hits * (work_ns + cost_ns) + late * (work_ns + trap_ns));
}

static double spent_between(const struct burst_timer *s, uint32_t n_open, uint32_t n_close)
{
	double sum = 0;

	for (uint32_t i = 0; i < n_close; i++)
		sum += (double)s->at_close[i].cpu_ns;
	for (uint32_t i = 0; i < n_open; i++)
		sum -= (double)s->at_open[i].cpu_ns;
	return sum;
}

/* The present times of all threads, while our own thread does not run. */
static void read_now(const struct burst_timer *s, struct batch *batch, struct thread_time *at,
		     struct burst_times *to)
{
	uint32_t n = read_times(s, now_ns(), batch, at);

	to->threads = calloc(n + 1, sizeof(*to->threads));
	for (; to->threads && to->n < n; to->n++)
		to->threads[to->n] =
			(struct burst_thread){ at[to->n].tid, at[to->n].cpu_ns, at[to->n].cpu_ns };
}

static void read_end(struct burst_timer *s, struct burst_times *to)
{
	read_now(s, &s->batch, s->at_close, to);
}

void burst_timer_times(struct burst_timer *s, struct burst_times *ret_now)
{
	_cleanup_(freep) struct batch *batch = malloc(sizeof(*batch));
	_cleanup_(freep) struct thread_time *at = malloc(MAX_THREADS * sizeof(*at));

	*ret_now = (struct burst_times){ 0 };
	if (batch && at)
		read_now(s, batch, at, ret_now);
}

void burst_timer_ends(const struct burst_timer *s, struct burst_times *ret_first,
		      struct burst_times *ret_last)
{
	*ret_first = s->first;
	*ret_last = s->last;
}

/* 0 … 1 */
static double random_part(struct burst_timer *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) * 0x1p-53;
}

/* CPU time of this thread and of the detaching ones since the last call. */
static double own_cpu_ns(struct burst_timer *s)
{
	uint64_t cpu = clock_now(CLOCK_THREAD_CPUTIME_ID), detach = uprobes_detach_ns();
	uint64_t spent = cpu - s->cpu_ns + detach - s->detach_cpu_ns;

	s->cpu_ns = cpu;
	s->detach_cpu_ns = detach;
	return (double)spent;
}

static bool is_stopping(struct burst_timer *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return stopping;
}

/* false: it is to stop. */
static bool wait_until(struct burst_timer *s, uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
	bool stopping;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && now_ns() < ns)
		pthread_cond_timedwait(&s->wake, &s->lock, &until);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return !stopping;
}

/* Waits until the burst's time, or its calls, are used up. */
static void wait_in_burst(struct burst_timer *s, uint64_t open_ns, int64_t calls)
{
	uint64_t end_ns = open_ns + (uint64_t)s->length_ns[s->results], now = open_ns;

	while (now < end_ns && !is_stopping(s)) {
		int64_t left = session_burst_left(s->session);
		double taken = (double)(calls - left), look;

		if (!left)
			return;
		/* Half of how long the calls that are left will last, at this rate. */
		look = taken > 0 ? (double)(now - open_ns) / taken * (double)left / 2
				 : LOOK_LEAST_NS;
		look = least(most(look, LOOK_LEAST_NS), LOOK_MOST_NS);
		look = least(look, (double)(end_ns - now));
		nanosleep(&(struct timespec){ .tv_nsec = (long)look }, NULL);
		now = now_ns();
	}
}

static void adapt(struct burst_timer *s, const struct burst *burst, bool used_up)
{
	double length = (double)(burst->close_ns - burst->open_ns);
	double *next = &s->length_ns[s->results];

	if (burst->hits)
		s->call_ns[s->results] = burst->call_ns;
	*next = used_up ? most(length * 2, LENGTH_LEAST_NS) : *next * 2;
	*next = least(*next, LENGTH_MOST_NS);
	s->lost += s->results && burst->call_ns * (double)burst->calls > APART_LOST * length;
	s->apart |= s->lost >= APART_BURSTS;
}

static void burst_done(struct burst_timer *s, const struct burst *burst)
{
	if (!GROW(s->done, s->n_done, s->cap_done)) { /* its totals will belong to no burst */
		free(burst->threads);
		return;
	}
	s->done[s->n_done++] = *burst;
}

/* What a trap costs, at the most expensive of the probed instructions that matter. */
struct trap_ns {
	double entry, exit;
};

static struct trap_ns measure_trap(struct burst_timer *s)
{
	double ns = s->trap ? trap_cost_ns(s->trap) : 0;

	ns = ns > 0 ? ns : TRAP_NS;
	return (struct trap_ns){ alloc_probes_trap_ns(s->probes, ns),
				 alloc_probes_exit_ns(s->probes, ns) };
}

static void one_burst(struct burst_timer *s, uint32_t no)
{
	uint64_t calls_before = counter_read(s->session, STAT_BURST_CALLS);
	uint64_t prog_before = counter_read(s->session, STAT_BURST_NS);
	uint64_t timed_before = counter_read(s->session, STAT_BURST_TIMED);
	uint64_t other_before = counter_read(s->session, STAT_PROBE_OTHER);
	uint64_t results_before = counter_read(s->session, STAT_BURST_RESULTS);
	uint64_t calls, timed, late, begin, end, results;
	struct burst burst = { .no = no };
	struct trap_ns before = measure_trap(s), after;
	double prog_ns, cost_ns, own_ns, trap_ns;
	int64_t budget;
	uint32_t n, n_open, n_close = 0;
	uint64_t late_open, late_close;
	double part = 1;

	/* What single-stepped instructions cost is known too badly to estimate amounts from. */
	s->apart |= alloc_probes_new_exits(s->probes);
	burst.alternates = s->apart;
	s->results = session_results(s->session, !s->apart || no % 2 == 0);
	burst.apart = s->apart && s->results;
	budget = (int64_t)most(s->stats.burst_ns / s->call_ns[s->results], 16);
	begin = now_ns();
	n = alloc_probes_attach(s->probes, s->results, s->fds, MAX_FDS);
	late_open = counter_read(s->session, STAT_PROBE_OTHER);
	n_open = s->processes ? read_times(s, 0, &s->batch, s->at_open) : 0;
	burst.open_ns = now_ns();
	session_burst_open(s->session, no, budget);
	if (!s->processes)
		n_open = read_times(s, burst.open_ns, &s->batch, s->at_open);
	wait_in_burst(s, burst.open_ns, budget);
	burst.close_ns = session_burst_close(s->session);
	end = now_ns();
	if (s->processes)
		n_close = read_times(s, end, &s->batch, s->at_close);
	late_close = counter_read(s->session, STAT_PROBE_OTHER);
	uprobes_detach(s->fds, n);
	if (!s->processes)
		n_close = read_times(s, burst.close_ns, &s->batch, s->at_close);

	burst.hits = (uint64_t)(budget - session_burst_left(s->session));
	calls = counter_read(s->session, STAT_BURST_CALLS) - calls_before;
	timed = counter_read(s->session, STAT_BURST_TIMED) - timed_before;
	prog_ns = (double)(counter_read(s->session, STAT_BURST_NS) - prog_before);
	/* Untimed hits are assumed to take as long: they were preempted, or are of operator new. */
	prog_ns = (double)burst.hits * (timed ? prog_ns / (double)timed : FIRST_PROG_NS);
	late = counter_read(s->session, STAT_PROBE_OTHER) - other_before;
	after = measure_trap(s);
	trap_ns = (before.entry + after.entry) / 2;
	results = counter_read(s->session, STAT_BURST_RESULTS) - results_before;
	results = results < burst.hits ? results : burst.hits;
	cost_ns = (double)(burst.hits - results) * trap_ns + prog_ns;
	cost_ns += (double)results * (before.exit + after.exit) / 2;
	cost_ns += least(cost_ns * CALL_AFTER, (double)calls * CALL_AFTER_MOST_NS);
	burst.call_ns = calls ? cost_ns / (double)calls : s->call_ns[s->results];
	burst.calls = calls;
	burst.results = results;
	if (s->processes)
		part = part_in_burst(spent_between(s, n_open, n_close), (double)burst.hits,
				     cost_ns / most((double)burst.hits, 1),
				     (double)(late_close - late_open), trap_ns);
	join_times(s, &burst, n_open, n_close, part);
	cost_ns += (double)late * trap_ns;
	burst.call_sure_ns = burst.call_ns * CALL_UNSURE;
	own_ns = own_cpu_ns(s);
	adapt(s, &burst, burst.hits >= (uint64_t)budget);

	pthread_mutex_lock(&s->lock);
	s->pacer.share = s->max_percent / 100;
	pacer_spend(&s->pacer, now_ns(), cost_ns + own_ns);
	burst_done(s, &burst);
	s->stats.bursts++;
	s->trap_sum_ns += trap_ns;
	s->stats.trap_ns = s->trap_sum_ns / s->stats.bursts;
	s->stats.hits += burst.hits;
	s->stats.late_hits += late;
	s->stats.target_ns += cost_ns;
	s->stats.own_ns += own_ns;
	s->stats.worst_ns = most(s->stats.worst_ns, cost_ns + own_ns);
	s->stats.attach_ns += burst.open_ns - begin;
	if (s->stats.attach_worst_ns < burst.open_ns - begin)
		s->stats.attach_worst_ns = burst.open_ns - begin;
	if (s->stats.detach_worst_ns < end - burst.close_ns)
		s->stats.detach_worst_ns = end - burst.close_ns;
	pthread_mutex_unlock(&s->lock);
}

static void *burst_timer_loop(void *ctx)
{
	struct burst_timer *s = ctx;
	uint64_t now, due;

	realtime_begin();
	s->cpu_ns = clock_now(CLOCK_THREAD_CPUTIME_ID);
	if (trap_cost_open(s->session, TRAP_EMULATED, &s->trap) < 0)
		s->trap = NULL;
	s->call_ns[0] = s->call_ns[1] = measure_trap(s).entry + FIRST_PROG_NS;
	s->call_ns[1] += measure_trap(s).exit;
	own_cpu_ns(s);
	for (uint32_t no = 1; !is_stopping(s); no++) {
		one_burst(s, no);
		now = now_ns();
		due = pacer_due_ns(&s->pacer);
		due = due > now ? due : now;
		if (!wait_until(s, due + (uint64_t)(GAP_NS * (0.5 + random_part(s)))))
			break;
	}
	trap_cost_close(TAKE_PTR(s->trap));
	return NULL;
}

int burst_timer_start(struct session *session, struct alloc_probes *probes,
		      struct wait_sampler *busy, struct process_times *processes,
		      double max_percent, bool apart, struct burst_timer **ret_timer, struct err *e)
{
	struct burst_timer *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->session = session;
	s->probes = probes;
	s->busy = busy;
	s->processes = processes;
	s->max_percent = max_percent;
	s->random = now_ns() | 1;
	s->apart = apart;
	s->length_ns[0] = s->length_ns[1] = LENGTH_FIRST_NS;
	s->detach_cpu_ns = uprobes_detach_ns();
	s->stats.burst_ns =
		least(most(BURST_OF_NS * max_percent / 100, BURST_LEAST_NS), BURST_MOST_NS);
	pacer_init(&s->pacer, max_percent, s->stats.burst_ns, now_ns());
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	read_end(s, &s->first);
	r = pthread_create(&s->thread, NULL, burst_timer_loop, s);
	if (r) {
		burst_timer_free(s);
		return err_set(e, -r, "cannot begin a thread: %s", strerror(r));
	}
	s->running = true;
	*ret_timer = s;
	return 0;
}

void burst_timer_limit(struct burst_timer *s, double max_percent)
{
	pthread_mutex_lock(&s->lock);
	s->max_percent = max_percent;
	pthread_mutex_unlock(&s->lock);
}

void burst_timer_stop(struct burst_timer *s)
{
	if (!s || !s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->running = false;
	read_end(s, &s->last);
}

void burst_timer_free(struct burst_timer *s)
{
	if (!s)
		return;
	burst_timer_stop(s);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	for (uint32_t i = 0; i < s->n_done; i++)
		free(s->done[i].threads);
	free(s->done);
	free(s->first.threads);
	free(s->last.threads);
	free(s);
}

uint32_t burst_timer_take(struct burst_timer *s, struct burst *ret_bursts, uint32_t cap)
{
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->n_done < cap ? s->n_done : cap;
	if (n)
		memcpy(ret_bursts, s->done, n * sizeof(*ret_bursts));
	if (n)
		memmove(s->done, s->done + n, (s->n_done - n) * sizeof(*s->done));
	s->n_done -= n;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void burst_timer_stats(struct burst_timer *s, struct burst_timer_stats *ret_stats)
{
	pthread_mutex_lock(&s->lock);
	*ret_stats = s->stats;
	pthread_mutex_unlock(&s->lock);
}
