#include "collect/slicer.h"

#include "collect/counter.h"
#include "collect/go_first.h"
#include "collect/governor.h"
#include "collect/trap_cost.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS 1000000.0

/* What a slice may cost: what the budget gives in so long, within bounds. */
#define SLICE_OF_NS    (100 * MS_NS)
#define SLICE_LEAST_NS (1 * MS_NS)
#define SLICE_MOST_NS  (10 * MS_NS)

#define LENGTH_FIRST_NS (5 * MS_NS)
#define LENGTH_LEAST_NS (1 * MS_NS)
#define LENGTH_MOST_NS  (100 * MS_NS)
#define LOOK_LEAST_NS   (0.2 * MS_NS)
#define LOOK_MOST_NS    (2 * MS_NS)
/* Between two slices, even if they cost nothing. */
#define GAP_NS (50 * MS_NS)

/* Where the trap's cost could not be measured; what a program takes before it has said so. */
#define TRAP_NS       520.0
#define FIRST_PROG_NS 700.0
/*
 * By what part a call is slowed more than its trap costs here and its program says, because the program
 * itself goes on with colder caches; and by what part that may be wrong. Measured as what slices missed of
 * programs of known rate, of calls of 1.0 to 1.8 us: 20 ns in a loop of malloc and free, 60 with 300 ns of
 * arithmetic between, 90 to 190 in C++ containers, python3 and sqlite3; on a machine at a load of 15, from
 * 10 less to 480 more in C++ containers.
 */
#define CALL_AFTER  0.1
#define CALL_UNSURE 0.2

#define MAX_FDS     4096
#define MAX_THREADS 4096 /* more of them are taken to run all the time */
#define BATCH       256

/* A thread's CPU time at one moment. */
struct thread_time {
	uint32_t tid;
	uint64_t cpu_ns;
};

struct slicer {
	struct session *session;
	struct alloc_probes *probes;
	struct busy *busy; /* NULL: no thread is */
	pthread_t thread;
	bool running, stopping;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* on CLOCK_MONOTONIC */
	struct slice_times first, last;
	struct slice *done;
	uint32_t n_done, cap_done;
	struct slicer_stats stats;
	double max_percent;

	/* The thread's own. */
	struct pacer pacer;
	struct trap_cost *trap; /* NULL: it cannot be measured here */
	double trap_sum_ns;
	double call_ns, length_ns; /* expected of the next slice */
	uint64_t detach_cpu_ns, cpu_ns;
	uint64_t random;
	int fds[MAX_FDS];
	struct thread_time at_open[MAX_THREADS], at_close[MAX_THREADS];
	uint32_t keys[BATCH];
	struct ms_thread values[BATCH];
};

static uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_now(CLOCK_MONOTONIC);
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

/* What a thread that switches often has had since it was found to is not in the table. */
static void add_busy(void *ctx, const void *record)
{
	const struct times_at *at = ctx;
	const struct ms_busy *b = record;
	struct thread_time like = { .tid = b->tid }, *row;
	uint64_t since_ns = b->since_ns + b->ahead_ns;

	row = at->n ? bsearch(&like, at->rows, at->n, sizeof(like), by_tid) : NULL;
	if (!row)
		return;
	row->cpu_ns += b->oncpu_ns;
	if (b->state == MS_RUN_ON_CPU && at->ns > since_ns)
		row->cpu_ns += at->ns - since_ns;
}

/* Of all threads in the table, at `ns`, which is now or was just now; by number. */
static uint32_t read_times(struct slicer *s, uint64_t ns, struct thread_time *to)
{
	int fd = session_map_fd(s->session, SESSION_THREADS), r;
	uint32_t token, n = 0, got;
	void *in = NULL;

	do {
		got = BATCH;
		r = bpf_map_lookup_batch(fd, in, &token, s->keys, s->values, &got, NULL);
		if (r < 0 && errno != ENOENT)
			break;
		for (uint32_t i = 0; i < got && n < MAX_THREADS; i++) {
			const struct ms_thread *t = &s->values[i];

			to[n].tid = s->keys[i];
			to[n].cpu_ns = t->oncpu_ns;
			if (t->state == MS_RUN_ON_CPU && ns > t->since_ns)
				to[n].cpu_ns += ns - t->since_ns;
			n++;
		}
		in = &token;
	} while (r == 0 && n < MAX_THREADS);
	qsort(to, n, sizeof(*to), by_tid);
	if (s->busy && busy_gap_ns(s->busy))
		busy_each(s->busy, add_busy, &(struct times_at){ to, n, ns });
	return n;
}

/* Those that are there at both ends; one that began in between had nothing before. */
static void join_times(struct slicer *s, struct slice *slice, uint32_t n_open, uint32_t n_close)
{
	uint32_t open = 0;

	slice->threads = calloc(n_close + 1, sizeof(*slice->threads));
	for (uint32_t i = 0; slice->threads && i < n_close; i++) {
		const struct thread_time *t = &s->at_close[i];
		uint64_t before = 0;

		while (open < n_open && s->at_open[open].tid < t->tid)
			open++;
		if (open < n_open && s->at_open[open].tid == t->tid)
			before = s->at_open[open].cpu_ns;
		slice->threads[slice->n_threads++] =
			(struct slice_thread){ t->tid, before,
					       t->cpu_ns > before ? t->cpu_ns : before };
	}
}

/* All threads as they are now, while our own does not run. */
static void read_end(struct slicer *s, struct slice_times *to)
{
	uint32_t n = read_times(s, now_ns(), s->at_close);

	to->threads = calloc(n + 1, sizeof(*to->threads));
	for (; to->threads && to->n < n; to->n++)
		to->threads[to->n] =
			(struct slice_thread){ s->at_close[to->n].tid, s->at_close[to->n].cpu_ns,
					       s->at_close[to->n].cpu_ns };
}

void slicer_ends(const struct slicer *s, struct slice_times *ret_first,
		 struct slice_times *ret_last)
{
	*ret_first = s->first;
	*ret_last = s->last;
}

/* 0 … 1 */
static double random_part(struct slicer *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) * 0x1p-53;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* CPU time of this thread and of those that detach, since it was last asked. */
static double own_cpu_ns(struct slicer *s)
{
	uint64_t cpu = clock_now(CLOCK_THREAD_CPUTIME_ID), detach = uprobes_detach_ns();
	uint64_t spent = cpu - s->cpu_ns + detach - s->detach_cpu_ns;

	s->cpu_ns = cpu;
	s->detach_cpu_ns = detach;
	return (double)spent;
}

static bool is_stopping(struct slicer *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return stopping;
}

/* false: it is to stop. */
static bool wait_until(struct slicer *s, uint64_t ns)
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

/* Until the slice's time is over, or its calls. */
static void wait_in_slice(struct slicer *s, uint64_t open_ns, int64_t calls)
{
	uint64_t end_ns = open_ns + (uint64_t)s->length_ns, now = open_ns;

	while (now < end_ns && !is_stopping(s)) {
		int64_t left = session_slice_left(s->session);
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

static void adapt(struct slicer *s, const struct slice *slice, bool used_up)
{
	double length = (double)(slice->close_ns - slice->open_ns);

	if (slice->hits)
		s->call_ns = slice->call_ns;
	s->length_ns = used_up ? most(length * 2, LENGTH_LEAST_NS) : s->length_ns * 2;
	s->length_ns = least(s->length_ns, LENGTH_MOST_NS);
}

static void slice_done(struct slicer *s, const struct slice *slice)
{
	struct slice *more = s->done;

	if (s->n_done == s->cap_done) {
		s->cap_done = s->cap_done ? s->cap_done * 2 : 64;
		more = realloc(s->done, s->cap_done * sizeof(*more));
		if (!more) { /* its totals will belong to no slice */
			s->cap_done = s->n_done;
			free(slice->threads);
			return;
		}
		s->done = more;
	}
	s->done[s->n_done++] = *slice;
}

/* What a trap costs now, at the dearest of the places that matter. */
static double measure_trap(struct slicer *s)
{
	double ns = s->trap ? trap_cost_ns(s->trap) : 0;

	return alloc_probes_trap_ns(s->probes, ns > 0 ? ns : TRAP_NS);
}

static void one_slice(struct slicer *s, uint32_t no)
{
	uint64_t calls_before = counter_read(s->session, STAT_SLICE_CALLS);
	uint64_t prog_before = counter_read(s->session, STAT_SLICE_NS);
	uint64_t timed_before = counter_read(s->session, STAT_SLICE_TIMED);
	uint64_t other_before = counter_read(s->session, STAT_PROBE_OTHER);
	uint64_t calls, timed, late, begin, end;
	struct slice slice = { .no = no };
	double trap_ns = measure_trap(s), prog_ns, cost_ns, own_ns;
	int64_t budget;
	uint32_t n, n_open;

	budget = (int64_t)most(s->stats.slice_ns / s->call_ns, 16);
	begin = now_ns();
	n = alloc_probes_attach(s->probes, s->fds, MAX_FDS);
	slice.open_ns = now_ns();
	session_slice_open(s->session, no, budget);
	n_open = read_times(s, now_ns(), s->at_open);
	wait_in_slice(s, slice.open_ns, budget);
	slice.close_ns = session_slice_close(s->session);
	end = now_ns();
	uprobes_detach(s->fds, n);
	join_times(s, &slice, n_open, read_times(s, slice.close_ns, s->at_close));

	slice.hits = (uint64_t)(budget - session_slice_left(s->session));
	calls = counter_read(s->session, STAT_SLICE_CALLS) - calls_before;
	timed = counter_read(s->session, STAT_SLICE_TIMED) - timed_before;
	prog_ns = (double)(counter_read(s->session, STAT_SLICE_NS) - prog_before);
	/* Of others it took as long on average: they were preempted, or are of operator new. */
	prog_ns = (double)slice.hits * (timed ? prog_ns / (double)timed : FIRST_PROG_NS);
	late = counter_read(s->session, STAT_PROBE_OTHER) - other_before;
	trap_ns = (trap_ns + measure_trap(s)) / 2;
	cost_ns = ((double)slice.hits * trap_ns + prog_ns) * (1 + CALL_AFTER);
	slice.call_ns = calls ? cost_ns / (double)calls : s->call_ns;
	cost_ns += (double)late * trap_ns;
	slice.call_sure_ns = slice.call_ns * CALL_UNSURE;
	own_ns = own_cpu_ns(s);
	adapt(s, &slice, slice.hits >= (uint64_t)budget);

	pthread_mutex_lock(&s->lock);
	s->pacer.share = s->max_percent / 100;
	pacer_spend(&s->pacer, now_ns(), cost_ns + own_ns);
	slice_done(s, &slice);
	s->stats.slices++;
	s->trap_sum_ns += trap_ns;
	s->stats.trap_ns = s->trap_sum_ns / s->stats.slices;
	s->stats.hits += slice.hits;
	s->stats.late_hits += late;
	s->stats.target_ns += cost_ns;
	s->stats.own_ns += own_ns;
	s->stats.worst_ns = most(s->stats.worst_ns, cost_ns + own_ns);
	s->stats.attach_ns += slice.open_ns - begin;
	if (s->stats.attach_worst_ns < slice.open_ns - begin)
		s->stats.attach_worst_ns = slice.open_ns - begin;
	if (s->stats.detach_worst_ns < end - slice.close_ns)
		s->stats.detach_worst_ns = end - slice.close_ns;
	pthread_mutex_unlock(&s->lock);
}

static void *slicer_loop(void *ctx)
{
	struct slicer *s = ctx;
	uint64_t now, due;

	go_first();
	s->cpu_ns = clock_now(CLOCK_THREAD_CPUTIME_ID);
	if (trap_cost_open(s->session, &s->trap) < 0)
		s->trap = NULL;
	s->call_ns = measure_trap(s) + FIRST_PROG_NS;
	own_cpu_ns(s);
	for (uint32_t no = 1; !is_stopping(s); no++) {
		one_slice(s, no);
		now = now_ns();
		due = pacer_due_ns(&s->pacer);
		due = due > now ? due : now;
		if (!wait_until(s, due + (uint64_t)(GAP_NS * (0.5 + random_part(s)))))
			break;
	}
	trap_cost_close(TAKE_PTR(s->trap));
	return NULL;
}

int slicer_start(struct session *session, struct alloc_probes *probes, struct busy *busy,
		 double max_percent, struct slicer **ret_slicer, struct err *e)
{
	struct slicer *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->session = session;
	s->probes = probes;
	s->busy = busy;
	s->max_percent = max_percent;
	s->random = now_ns() | 1;
	s->length_ns = LENGTH_FIRST_NS;
	s->detach_cpu_ns = uprobes_detach_ns();
	s->stats.slice_ns =
		least(most(SLICE_OF_NS * max_percent / 100, SLICE_LEAST_NS), SLICE_MOST_NS);
	pacer_init(&s->pacer, max_percent, s->stats.slice_ns, now_ns());
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	read_end(s, &s->first);
	r = pthread_create(&s->thread, NULL, slicer_loop, s);
	if (r) {
		slicer_free(s);
		return err_set(e, -r, "cannot begin a thread: %s", strerror(r));
	}
	s->running = true;
	*ret_slicer = s;
	return 0;
}

void slicer_limit(struct slicer *s, double max_percent)
{
	pthread_mutex_lock(&s->lock);
	s->max_percent = max_percent;
	pthread_mutex_unlock(&s->lock);
}

void slicer_stop(struct slicer *s)
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

void slicer_free(struct slicer *s)
{
	if (!s)
		return;
	slicer_stop(s);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	for (uint32_t i = 0; i < s->n_done; i++)
		free(s->done[i].threads);
	free(s->done);
	free(s->first.threads);
	free(s->last.threads);
	free(s);
}

uint32_t slicer_take(struct slicer *s, struct slice *ret_slices, uint32_t cap)
{
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->n_done < cap ? s->n_done : cap;
	if (n)
		memcpy(ret_slices, s->done, n * sizeof(*ret_slices));
	if (n)
		memmove(s->done, s->done + n, (s->n_done - n) * sizeof(*s->done));
	s->n_done -= n;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void slicer_stats(struct slicer *s, struct slicer_stats *ret_stats)
{
	pthread_mutex_lock(&s->lock);
	*ret_stats = s->stats;
	pthread_mutex_unlock(&s->lock);
}
