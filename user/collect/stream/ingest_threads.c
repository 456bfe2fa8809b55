#include "collect/stream/ingest_parts.h"

/* A wake-up's time comes from two clocks read one after the other, here and again when the wait
 * ends: it is exact to some us. An open wait must not be reported longer than it will be when it
 * ends. */
#define WAKE_NS 100000ULL

static struct ms_total_key wait_key(uint32_t tid, const struct ms_thread *t, enum ms_state state)
{
	return (struct ms_total_key){
		.proc = t->proc,
		.user = t->user,
		.kernel = t->kernel,
		.tid = tid,
		.as_gen = t->as_gen,
		.source = MS_OFFCPU,
		.bucket = t->labels,
		.state = (uint8_t)state,
	};
}

static int open_wait(struct ingest *in, uint32_t tid, const struct ms_thread *t,
		     enum ms_state state, uint64_t end_ns, uint64_t ns)
{
	struct ms_total_key key = wait_key(tid, t, state);
	struct ms_total total = { .count = 1, .value = ns };

	ingest_set_slot(in, end_ns, ns, &key, &total);
	return ns ? ingest_total(in, &key, &total) : 0;
}

/* What is known of a thread that has labels of its own, NULL: it has none. `stays`: it may have them now. */
static const struct shown_thread *shown(struct ingest *in, const struct ms_proc *p, uint32_t tid,
					bool stays)
{
	uint64_t pid = (uint64_t)p->tgid << 32, key = pid | tid;
	struct shown_thread *all, *one;

	HASH_FIND(hh, in->shown, &key, sizeof(key), one);
	if (one)
		return one;
	all = hash_get(in->shown, pid_tid, &pid);
	if (!all || all->n >= (stays ? INGEST_SHOWN_MAX : INGEST_SHOWN_ENDED))
		return NULL;
	one = hash_new(in->shown, pid_tid, &key);
	if (one)
		one->n = all->n++;
	return one;
}

bool ingest_thread_shown(struct ingest *in, const struct proc *proc, const struct ms_proc *p,
			 uint32_t tid)
{
	bool stays = proc && proc_thread_stays(in->procs, proc, (pid_t)tid);

	if (shown(in, p, tid, stays))
		return true;
	in->stats.numberless++;
	return false;
}

bool ingest_process_shown(struct ingest *in, const struct proc *proc, const struct ms_proc *p)
{
	uint64_t pid = (uint64_t)p->tgid << 32;
	struct shown_thread *all;
	bool stays;

	if (!in->processes_max)
		return true;
	if (!proc) /* nothing says when it ends */
		return in->n_processes < in->processes_max;
	all = hash_get(in->shown, pid_tid, &pid);
	if (!all || all->process)
		return all;
	stays = proc_stays(in->procs, proc);
	if (!stays && in->n_processes >= in->processes_max) {
		in->stats.numberless_processes++;
		return false;
	}
	in->n_processes += !stays;
	all->process = true;
	return true;
}

/* It is in a wait when a window ends, which ends in another one: with the same labels. */
static void show_process(struct ingest *in, const struct proc *proc, const struct ms_proc *p)
{
	uint64_t pid = (uint64_t)p->tgid << 32;
	struct shown_thread *all;

	if (!in->processes_max || !proc || proc_exited(proc))
		return;
	all = hash_get(in->shown, pid_tid, &pid);
	if (all)
		all->process = true;
}

bool ingest_shows_process(struct ingest *in, const struct proc_id *id)
{
	const struct ms_proc p = wire_proc(id);

	return ingest_process_shown(in, ingest_proc(in, &p), &p);
}

void ingest_few_processes(struct ingest *in, uint32_t max)
{
	in->processes_max = max;
}

void ingest_forget_shown(struct ingest *in)
{
	struct shown_thread *one, *next;

	HASH_ITER (hh, in->shown, one, next)
		if (!proc_table_first(in->procs, (pid_t)(one->pid_tid >> 32))) {
			HASH_DEL(in->shown, one);
			free(one);
		}
}

uint32_t ingest_site_tid(struct ingest *in, const struct ms_proc *p, uint32_t tid)
{
	const struct shown_thread *one = tid ? shown(in, p, tid, false) : NULL;

	if (one && one->n < INGEST_SHOWN_ENDED)
		return tid;
	in->stats.numberless += tid != 0;
	return 0;
}

struct event_key ingest_event(struct ingest *in, const struct event_key *of)
{
	struct ms_total_key key = wire_key(of);

	key.tid = ingest_site_tid(in, &key.proc, key.tid);
	return wire_event(&key);
}

/* What a thread has done since its last switch, up to `to`. */
struct open_state {
	uint64_t to, oncpu, blocked, runnable, held;
};

static struct open_state open_state(const struct ms_thread *t, uint64_t end_ns)
{
	struct open_state o = { .to = end_ns > t->since_ns ? end_ns : t->since_ns };

	switch ((enum ms_run_state)t->state) {
	case MS_RUN_GONE:
	case MS_RUN_SAMPLED: /* drain.c adds its present state, unless it just ended */
		o.to = t->since_ns;
		break;
	case MS_RUN_ON_CPU:
		o.oncpu = o.to - t->since_ns;
		break;
	case MS_RUN_BLOCKED:
		if (t->wake_ns && t->wake_ns < o.to)
			o.runnable = o.to - t->wake_ns;
		o.blocked = o.to - t->since_ns - o.runnable;
		break;
	case MS_RUN_RUNNABLE:
		o.runnable = o.to - t->since_ns;
		break;
	case MS_RUN_HELD:
		o.held = o.to - t->since_ns;
		break;
	}
	return o;
}

void ingest_waits(struct ingest *in, uint64_t min_ns, uint64_t max_ns)
{
	in->wait_min_ns = min_ns;
	in->wait_max_ns = max_ns;
}

static bool wait_in_bounds(const struct ingest *in, const struct open_state *o)
{
	uint64_t ns = o->blocked + o->runnable;

	return ns >= in->wait_min_ns && (!in->wait_max_ns || ns <= in->wait_max_ns);
}

int ingest_thread(struct ingest *in, uint32_t tid, const struct ms_thread *t, uint64_t end_ns)
{
	struct open_state o = open_state(t, end_ns);
	struct ingest_times *sum = &in->stats.times;
	uint64_t held = t->held_ns + o.held;
	int r;

	sum->threads++;
	sum->oncpu_ns += t->oncpu_ns + o.oncpu;
	sum->blocked_ns += t->blocked_ns + o.blocked;
	sum->runnable_ns += t->runnable_ns + o.runnable;
	sum->held_ns += held;
	sum->wall_ns += o.to - t->first_ns - held;
	if (!wait_in_bounds(in, &o)) {
		sum->left_out += o.blocked || o.runnable;
		sum->left_out_ns += o.blocked + o.runnable;
		return 0;
	}
	r = open_wait(in, tid, t, MS_BLOCKED, o.to - o.runnable, o.blocked);
	return r < 0 ? r : open_wait(in, tid, t, MS_RUNNABLE, o.to, o.runnable);
}

int ingest_open_wait(struct ingest *in, struct profile *to, uint32_t tid, const struct ms_thread *t,
		     uint64_t now_ns)
{
	struct open_state o = open_state(t, now_ns);
	struct ms_total_key key = wait_key(tid, t, MS_BLOCKED);
	struct proc *proc = ingest_proc(in, &key.proc);
	bool in_bounds = wait_in_bounds(in, &o);
	int64_t values[4];
	stack_id stack;

	if (o.blocked && o.runnable) {
		o.blocked -= o.blocked < WAKE_NS ? o.blocked : WAKE_NS;
		o.runnable -= o.runnable < WAKE_NS ? o.runnable : WAKE_NS;
	}
	if ((!o.blocked && !o.runnable) || !in_bounds || !ingest_resolve(in, proc, &key, &stack))
		return 0;
	show_process(in, proc, &key.proc);
	values[0] = o.blocked > 0;
	values[1] = (int64_t)o.blocked;
	values[2] = o.runnable > 0;
	values[3] = (int64_t)o.runnable;
	return profile_add(to, stack, ingest_labels(in, proc, &key.proc, key.tid, 0, NULL), values);
}

int ingest_rest(struct ingest *in, struct profile *to, const struct ms_total_key *key,
		const struct ms_total *total)
{
	struct event_key of = wire_event(key);
	int64_t values[4] = {};
	labels_id labels;
	stack_id stack;

	if (!ingest_place(in, &of, &stack, &labels))
		return 0;
	ingest_wait_values(key, total, values);
	return profile_add(to, stack, labels, values);
}
