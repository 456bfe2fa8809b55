#include "analyse/causes.h"

#include "analyse/diagnosis.h"

#include <string.h>

/* CPU shares: 1.0 is one CPU. */
#define CPU_BOUND_SHARE 0.70 /* from here on computing is the story                          */
#define IDLE_SHARE      0.05 /* below this it hardly ran                                      */
#define STARVED_PART    0.25 /* of the time it wanted a CPU, it had to wait for one            */
#define STARVED_SHARE   0.20 /* and that cost at least this part of the run …                  */
#define THROTTLED_SHARE 0.05 /* … where a quota did it                                         */
#define FREE_PART       0.15 /* so much of its CPUs was idle: none was short                   */
#define USED_UP_PART    0.50 /* of its periods a CPU quota was used up: it limits the program    */
#define ALLOCATOR_PART  0.25 /* of the samples, inside malloc and its kin                      */
#define GC_PART         0.25 /* of the samples, or of the time, collecting garbage             */
#define LEAST_SAMPLES   100  /* for a part of them to be one                                   */
#define LOCK_PART       0.50 /* of the waits at a place: from here on it is that lock           */
#define HELD_SHARE      0.20 /* one reason to wait filled this part of the run                 */
#define UNDER_PART      0.50 /* of the time that a lock was waited for: its owner waited for that     */
#define ONE_AT_A_TIME                                                                              \
	1.10          /* of the run: what happens under a lock lasts no longer, but for rounding */
#define POLLS_LEAST 4 /* times that threads were seen in poll() …                        */
#define POLLS_PART  0.8  /* … for a single peer: then that is what poll() waits for          */
#define ASKED_LEAST 3    /* times that threads were seen waiting for a peer                */
#define PARKED_PART 0.50 /* a mean wait this long is a thread without work, not a hold-up   */
#define LOOKS_LEAST 10   /* at the connections, for parts of them to be one               */
#define FOR_INBOUND                                                                                \
	0.50 /* of the looks a request waited, and one to the peer was outstanding for it */
#define OUTSTANDING   0.80 /* of the looks, where nobody is seen to wait: so much of the time …   */
#define ANSWERS_LEAST 4    /* … though so many answers came …                               */
#define ANSWER_AGE_MS 200 /* … and each took no longer than twice that: else it waits for news */
#define TURNS_LEAST                                                                                \
	4 /* times that a task got the lock it had been seen to wait for: else it is parked there */
#define LOOP_BUSY     0.50  /* from here on an event loop may itself be what requests wait for  */
#define LOCK_MEAN_NS  100e6 /* a mean futex wait this long is rather a thread without work    */
#define GROWTH_PART   0.10  /* of what it had …                                            */
#define GROWTH_MIN_KB 16384 /* … and no less than 16 MiB                                     */
#define GROWTH_KEPT   0.75  /* of the way to the peak, still there at the end                 */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static double mean_ns(const struct site_row *w)
{
	return (double)w->value / (double)(w->count > 0 ? w->count : 1);
}

/* The children are profiled, too: what they spend their time on is the answer. */
static bool waits_for_its_children(const struct run_summary *s, const struct site_row *w)
{
	return w->wait == WAIT_CHILD && s->seen_processes > 1;
}

/* poll() and ppoll(), but not epoll. */
static bool is_poll(const struct site_row *w)
{
	return w->wait == WAIT_EVENTS && strstr(w->leaf, "poll") && !strstr(w->leaf, "ep_poll") &&
	       !strstr(w->leaf, "epoll");
}

static enum wait_kind kind_of(const struct run_summary *s, const struct site_row *w)
{
	if (s->endpoints.polls >= POLLS_LEAST && w->leaf && is_poll(w) &&
	    (double)s->endpoints.polls_of_a_peer >= POLLS_PART * (double)s->endpoints.polls)
		return WAIT_SOCKET;
	return w->wait;
}

const struct lock_row *causes_lock_row(const struct run_summary *s, const struct site_row *w)
{
	for (uint32_t i = 0; i < s->locks.n && w->function[0]; i++) {
		const struct lock_row *row = &s->locks.rows[i];

		if (w->wait == WAIT_GIL ? strcmp(row->kind, "GIL") == 0
					: strcmp(row->kind, "GIL") != 0 &&
						  strcmp(row->function, w->function) == 0 &&
						  strcmp(row->module, w->module) == 0)
			return (double)row->waited_ns >= LOCK_PART * (double)w->value ? row : NULL;
	}
	return NULL;
}

/*
 * A lock that somebody holds, however long: by the function that waits, or, where that says nothing, by the value that
 * it expects in the futex, which says that the lock is taken and waited for (bpf/lock_words.h).
 */
static bool is_contended(const struct run_summary *s, const struct site_row *w)
{
	return w->role == WAIT_ROLE_MUTEX || w->wait == WAIT_GIL || w->wait == WAIT_GVL ||
	       (w->wait == WAIT_LOCK && w->role == WAIT_ROLE_UNKNOWN && causes_lock_row(s, w));
}

/* Without work, or for what another thread of the program does: that one's waits are the answer. */
static bool is_of_no_effect(const struct run_summary *s, const struct site_row *w)
{
	return w->role == WAIT_ROLE_IDLE || w->role == WAIT_ROLE_JOIN ||
	       w->role == WAIT_ROLE_CONDITION || waits_for_its_children(s, w);
}

/* So long that there was no work for it. */
static bool is_parked(const struct run_summary *s, const struct site_row *w)
{
	return !wait_kind_is_hold_up(w->wait) && mean_ns(w) >= PARKED_PART * (double)s->duration_ns;
}

/* Of a connection that the program has made: whoever waits there has asked. */
static bool is_seen_asking(const struct run_summary *s)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < s->endpoints.n; i++)
		if (s->endpoints.rows[i].peer)
			seen += s->endpoints.rows[i].seen;
	return seen >= ASKED_LEAST;
}

/* The largest that surely holds up, for a fifth of the run: an event loop beside it, which is at rest for longer, is no answer. */
static const struct site_row *find_hold_up(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if ((double)w->value < HELD_SHARE * (double)s->duration_ns)
			break; /* sorted */
		if (is_of_no_effect(s, w) || is_contended(s, w) || is_parked(s, w))
			continue;
		if (wait_kind_is_hold_up(w->wait) || (w->wait == WAIT_SOCKET && is_seen_asking(s)))
			return w;
	}
	return NULL;
}

/*
 * The largest wait that may hold the program up. Where the stack does not say whether a futex is a contended lock
 * or a thread waiting to be given work, its length does: locks are held briefly, so long futex waits count only
 * when there is nothing else.
 */
static const struct site_row *find_wait(const struct run_summary *s)
{
	const struct site_row *long_lock = NULL, *hold_up = find_hold_up(s);

	if (hold_up)
		return hold_up;
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (is_of_no_effect(s, w) || is_contended(s, w))
			continue;
		if (is_parked(s, w))
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
	if (is_contended(s, w))
		return false;
	return is_of_no_effect(s, w) || is_parked(s, w) || kind_of(s, w) == WAIT_EVENTS ||
	       w->wait == WAIT_SIGNAL || w->wait == WAIT_TERMINAL ||
	       (w->wait == WAIT_LOCK && mean_ns(w) >= LOCK_MEAN_NS);
}

const struct goroutine_row *causes_goroutines(const struct run_summary *s, const struct site_row *w)
{
	for (uint32_t i = 0; i < s->goroutines.n_rows; i++)
		if (w == &s->goroutines.rows[i].at)
			return &s->goroutines.rows[i];
	return NULL;
}

/* Of Go's: for the network. What libraries wait for by themselves holds nobody up. */
static const struct site_row *find_goroutines(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->goroutines.n_rows; i++) {
		const struct goroutine_row *row = &s->goroutines.rows[i];

		if (goroutines_held_up(row) && row->at.wait == WAIT_SOCKET &&
		    !is_parked(s, &row->at))
			return &row->at;
	}
	return NULL;
}

static const struct site_row *larger(const struct site_row *a, const struct site_row *b)
{
	return a && (!b || a->value >= b->value) ? a : b;
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

static const struct site_row *find_lock(const struct run_summary *s)
{
	const struct site_row *threads = NULL, *goroutines = NULL;

	for (uint32_t i = 0; i < s->offcpu.n_waits && !threads; i++)
		if (is_contended(s, &s->offcpu.waits[i]))
			threads = &s->offcpu.waits[i];
	for (uint32_t i = 0; i < s->goroutines.n_rows && !goroutines; i++)
		if (goroutines_held_up(&s->goroutines.rows[i]) &&
		    s->goroutines.rows[i].at.role == WAIT_ROLE_MUTEX)
			goroutines = &s->goroutines.rows[i].at;
	return larger(threads, goroutines);
}

/* --- what is under the lock --- */

/* Of who is known to have it: the wait in the function in which it was. */
static const struct site_row *wait_of_owner(const struct run_summary *s, const struct lock_row *row)
{
	if (!*row->held_in || (double)row->held_in_ns < LOCK_PART * (double)row->held_ns)
		return NULL;
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];
		enum wait_kind kind = kind_of(s, w);

		if ((wait_kind_is_hold_up(kind) || kind == WAIT_SOCKET || kind == WAIT_PIPE) &&
		    strcmp(w->function, row->held_in) == 0 &&
		    strcmp(w->module, row->held_module) == 0 &&
		    (double)w->value >= UNDER_PART * (double)row->held_ns)
			return w;
	}
	return NULL;
}

/*
 * What those wait for who have the lock: then that is the cause, and the lock hands it on. Where it is not known who has it,
 * by functions that wait for either (lock_chain.h).
 */
static const struct site_row *find_under_lock(const struct run_summary *s,
					      const struct site_row *lock)
{
	const struct lock_row *row = lock ? causes_lock_row(s, lock) : NULL;
	const struct site_row *under = s->offcpu.under_mutex;
	int64_t waited;

	if (row && (double)row->known_ns >= LOCK_PART * (double)row->waited_ns)
		return wait_of_owner(s, row);
	if (!lock || !under || lock != s->offcpu.mutex)
		return NULL;
	waited = least(lock->value, s->duration_ns);
	return (double)under->value >= UNDER_PART * (double)waited &&
			       (double)under->value <= ONE_AT_A_TIME * (double)s->duration_ns
		       ? under
		       : NULL;
}

/* --- short of CPU --- */

/* Python's code of one process, and Ruby's (of one Ractor), runs on one CPU at a time. */
static bool runs_one_at_a_time(const struct run_summary *s)
{
	return s->langs.processes == 1 && s->seen_processes <= 1 && s->langs.name &&
	       (strncmp(s->langs.name, "CPython", 7) == 0 ||
		strncmp(s->langs.name, "Ruby", 4) == 0);
}

/*
 * Of the time that threads were ready to run, what others are to blame for: they, or a quota, must have had as much.
 * Where nothing is known of the CPUs, all of it.
 */
static int64_t lost_ns(const struct run_summary *s, int64_t throttled_ns)
{
	int64_t others_ns = s->cpus.busy_ns - s->time.oncpu_ns - s->own.cpu_ns;
	int64_t all_ns = s->cpus.busy_ns + s->cpus.idle_ns, lost;

	if (!s->cpus.known || s->target == RUN_HOST)
		return s->time.runnable_ns;
	if (others_ns < 0 || (double)s->cpus.idle_ns >= FREE_PART * (double)all_ns)
		others_ns = 0;
	lost = least(s->time.runnable_ns, others_ns + throttled_ns);
	if (runs_one_at_a_time(s))
		lost = least(lost, s->duration_ns - s->time.oncpu_ns);
	return lost > 0 ? lost : 0;
}

/* --- event loops --- */

/*
 * Whom it waits for, by its connections. Requests that wait in the program say that it is waited for; where none are seen
 * (they come over unix sockets, or it asks of its own accord) it asks again as soon as it has an answer.
 * Who asks and is to wait for news (a long poll, a queue's blocking read) does so for seconds.
 */
static const struct summary_peer *find_peer(const struct run_summary *s, double share)
{
	double looks = s->peers.looks;

	if (looks < LOOKS_LEAST)
		return NULL;
	for (uint32_t i = 0; i < s->peers.n; i++) {
		const struct summary_peer *p = &s->peers.rows[i];
		/* One outstanding for many that wait: the loop is slow itself, or they wait for a connection. */
		bool for_most =
			share < LOOP_BUSY || 2 * (double)p->requests >= (double)s->peers.inbound;

		if (p->for_inbound >= FOR_INBOUND * looks && for_most)
			return p;
		if (p->looks >= OUTSTANDING * looks && p->answers >= ANSWERS_LEAST &&
		    p->age_ms < ANSWER_AGE_MS)
			return p;
	}
	return NULL;
}

/* Tasks that take turns at a lock of asyncio's: the thread itself waits for events. */
static const struct task_row *find_task_lock(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->tasks.n && s->tasks.looks >= LOOKS_LEAST; i++) {
		const struct task_row *row = &s->tasks.rows[i];

		if (row->wait == TASK_WAIT_LOCK && 2 * row->looks >= s->tasks.looks &&
		    row->left >= TURNS_LEAST)
			return row;
	}
	return NULL;
}

/* --- */

static void find_starved(struct causes *c)
{
	const struct run_summary *s = c->s;
	int64_t throttled_ns = s->cpus.throttled_ns > 0 ? s->cpus.throttled_ns : 0;
	int64_t lost = lost_ns(s, throttled_ns), wanted_ns = s->time.oncpu_ns + lost;

	if (!s->time.known || wanted_ns <= 0 || s->duration_ns <= 0)
		return;
	/* On a busy machine a group that has used up its quota hardly loses time by it, and will once it is quiet. */
	c->throttled =
		s->cpus.used_up >= USED_UP_PART || (double)throttled_ns >= 0.5 * (double)lost;
	if ((double)lost <
	    (c->throttled ? THROTTLED_SHARE : STARVED_SHARE) * (double)s->duration_ns)
		return;
	/* Who hardly ran and was not pushed off its CPU was woken for a moment's work: it is late, but hardly short. */
	if (s->cpus.known && !c->throttled && c->share < IDLE_SHARE &&
	    (double)s->time.preempted_ns < STARVED_SHARE * (double)s->duration_ns)
		return;
	c->starved = (double)lost / (double)wanted_ns;
	c->starved_ns = lost;
}

/* --- */

static void has(struct causes *c, enum verdict_kind kind, bool is)
{
	if (is && c->n < CAUSES_MAX)
		c->kinds[c->n++] = kind;
}

/* Waiting for new work is what a program at rest does. */
static bool is_rest(enum wait_kind k)
{
	return k == WAIT_EVENTS || k == WAIT_TIMER || k == WAIT_SIGNAL || k == WAIT_TERMINAL;
}

static void rank(struct causes *c)
{
	const struct run_summary *s = c->s;
	bool held = c->wait && !is_rest(c->wait_kind) && c->wait_share >= HELD_SHARE;
	bool bound = c->share >= CPU_BOUND_SHARE, starved = c->starved >= STARVED_PART;
	bool growing = c->grown_kb && s->shape.kind != TREND_SHAPE_SETTLED &&
		       !diagnosis_collector_made_room(s);
	bool contended = c->lock && (double)c->lock->value >= HELD_SHARE * (double)s->duration_ns;

	/* Threads that are held up say it better, and where; not those that may only be without work. */
	if (c->under_lock || (held && !(c->peer && summary_wait_is_idle(s, c->wait))))
		c->peer = NULL;
	held = held || c->peer;

	has(c, VERDICT_LEAK, *c->leak);
	has(c, VERDICT_GC,
	    (c->gc >= GC_PART || c->gc_stopped >= GC_PART) && c->share >= IDLE_SHARE);
	/* Who has a lock and is short of CPU keeps it for long: where less was waited for it, that is what follows. */
	has(c, VERDICT_STARVED, starved && c->lock && c->starved_ns >= c->lock->value);
	has(c, VERDICT_WAITING, contended && c->under_lock);
	has(c, VERDICT_CONTENDED, contended);
	if (!c->lock && !bound)
		has(c, VERDICT_CONTENDED, c->task_lock);
	has(c, VERDICT_STARVED, starved && !(c->lock && c->starved_ns >= c->lock->value));
	/* A thread that waits while others compute is the smaller part; for a socket, it may have nothing to do. */
	if (!(contended && c->under_lock))
		has(c, VERDICT_WAITING, held && (!bound || (!c->peer && c->wait_share > c->share)));
	has(c, c->allocator >= ALLOCATOR_PART ? VERDICT_MEMORY : VERDICT_CPU, bound);
	if (bound && c->wait_share <= c->share && !(contended && c->under_lock))
		has(c, VERDICT_WAITING, held && wait_kind_is_hold_up(c->wait_kind));
	if (c->n == 0)
		has(c,
		    growing                 ? VERDICT_GROWING
		    : c->share < IDLE_SHARE ? VERDICT_IDLE
					    : VERDICT_MIXED,
		    true);
}

/* Of the runtime whose processes stood still for the largest part of their time. */
static double find_stopped(const struct run_summary *s)
{
	double most = 0;

	for (uint32_t i = 0; i < s->gc.n; i++) {
		const struct gc_row *row = &s->gc.rows[i];
		struct gc_time_of time;

		if (row->seen_ns > 0 && gc_row_time(row, &time) &&
		    (double)time.low_ns / (double)row->seen_ns > most)
			most = (double)time.low_ns / (double)row->seen_ns;
	}
	return most < 1 ? most : 1;
}

void causes_find(const struct run_summary *s, struct causes *ret_causes)
{
	struct causes c = { .s = s, .share = summary_cpu_share(s) };

	if (s->target == RUN_HOST && s->n_cpus > 0 && c.share > 0)
		c.share /= s->n_cpus;
	find_starved(&c);
	if (s->oncpu.samples >= LEAST_SAMPLES) {
		c.allocator = (double)s->oncpu.allocator_samples / (double)s->oncpu.samples;
		c.gc = (double)s->oncpu.gc_samples / (double)s->oncpu.samples;
	}
	c.gc_stopped = find_stopped(s);
	if (s->target != RUN_HOST && s->duration_ns > 0) {
		c.lock = find_lock(s);
		c.under_lock = find_under_lock(s, c.lock);
		c.wait = c.under_lock ? c.under_lock : larger(find_wait(s), find_goroutines(s));
		c.wait_kind = c.wait ? kind_of(s, c.wait) : WAIT_OTHER;
		c.wait_share = c.wait ? (double)c.wait->value / (double)s->duration_ns : 0;
		c.peer = find_peer(s, c.share);
		c.task_lock = find_task_lock(s);
	}
	c.grown_kb = find_growth(s);
	if (!diagnosis_leak_sentence(s, c.leak, sizeof(c.leak)))
		*c.leak = '\0';
	if (c.share < 0 && !c.wait && !c.lock && !c.grown_kb)
		has(&c, VERDICT_NOTHING, true);
	else
		rank(&c);
	*ret_causes = c;
}
