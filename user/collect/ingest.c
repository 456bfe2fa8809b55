#include "collect/ingest.h"

#include "base/hash.h"
#include "model/alloc_site.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define OWN_FRAMES_MAX    6      /* of a stack taken in sched_switch, before __schedule */
#define SCHEDULE_SIZE_MAX 0x2000 /* bytes of code; it has some 3,000                     */

/* A stack as it came: words, leaf first. */
struct raw_stack {
	struct ms_hash hash;
	uint16_t n;
	uint8_t flags, verdict;
	bool placed; /* `as_gen` is known better than in the totals */
	uint32_t as_gen;
	UT_hash_handle hh;
	uint64_t frames[];
};

/* A pair of raw stacks resolved in one image and generation. */
struct resolved_key {
	const struct proc *proc;
	struct ms_hash user, kernel;
	uint64_t as_gen;
};

struct resolved {
	struct resolved_key key;
	stack_id stack;
	UT_hash_handle hh;
};

struct thread_key {
	const struct proc *proc;
	uint64_t tid;
	const char *memory;
};

struct thread_labels {
	struct thread_key key;
	labels_id labels;
	UT_hash_handle hh;
};

/* What a process image holds, by its totals. */
struct holding {
	struct ms_proc proc;
	int64_t bytes;
	UT_hash_handle hh;
};

/* A total whose stack has not come yet. */
struct waiting {
	struct ms_total_key key;
	struct ms_total total;
};

struct ingest {
	uint64_t wait_min_ns, wait_max_ns; /* max 0: no bound */
	struct dict *dict;
	struct proc_table *procs;
	struct ingest_profiles profiles;
	struct raw_stack *raw;
	struct resolved *resolved;
	struct thread_labels *labels;
	struct holding *holdings;
	pid_t keep[1024]; /* as many as -p takes */
	uint32_t n_keep;
	struct waiting *waiting;
	uint32_t n_waiting, cap_waiting;
	bool finishing;
	uint64_t schedule_addr;
	struct kernel_function tracers[INGEST_TRACERS];
	module_id kernel;
	location_id lost, none, no_room;
	string_id key_pid, key_tid, key_comm, key_thread, key_memory;
	string_id key_container, key_container_id, key_ns_pid;
	struct ingest_stats stats;
	ingest_gap_fn on_gap;
	void *gap_ctx;
	ingest_alloc_fn on_alloc;
	void *alloc_ctx;
	ingest_whose_fn on_whose;
	void *whose_ctx;
	location_id scratch[2 * MS_MAX_FRAMES];
};

/* A frame that stands for the absence of one. */
static location_id named_location(struct dict *d, uint64_t vaddr, const char *name)
{
	location_id id = dict_location(d, (module_id){ 0 }, vaddr);
	struct line line = { .function = dict_string(d, name) };

	dict_location_name(d, id, &line, 1);
	return id;
}

struct ingest *ingest_new(struct dict *d, struct proc_table *procs,
			  const struct ingest_profiles *profiles, uint64_t schedule_addr)
{
	struct ingest *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->dict = d;
	in->procs = procs;
	in->profiles = *profiles;
	in->schedule_addr = schedule_addr;
	in->kernel = dict_module(
		d, &(struct module){ .kind = MODULE_KERNEL, .path = dict_string(d, "[kernel]") });
	in->lost = named_location(d, UINT64_MAX, "[stack lost]");
	in->none = named_location(d, UINT64_MAX - 1, "[no stack]");
	in->no_room = named_location(d, UINT64_MAX - 3, "[no room for more stacks]");
	in->key_pid = dict_string(d, "pid");
	in->key_tid = dict_string(d, "tid");
	in->key_comm = dict_string(d, "comm");
	in->key_thread = dict_string(d, "thread");
	in->key_memory = dict_string(d, "memory");
	in->key_container = dict_string(d, "container");
	in->key_container_id = dict_string(d, "container_id");
	in->key_ns_pid = dict_string(d, "ns_pid");
	return in;
}

void ingest_tracers(struct ingest *in, const struct kernel_function *functions, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < INGEST_TRACERS; i++)
		in->tracers[i] = functions[i];
}

void ingest_forget(struct ingest *in)
{
	hash_free(in->resolved);
	hash_free(in->labels);
}

void ingest_free(struct ingest *in)
{
	if (!in)
		return;
	ingest_forget(in);
	hash_free(in->holdings);
	hash_free(in->raw);
	free(in->waiting);
	free(in);
}

void ingest_on_gap(struct ingest *in, ingest_gap_fn fn, void *ctx)
{
	in->on_gap = fn;
	in->gap_ctx = ctx;
}

void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx)
{
	in->on_alloc = fn;
	in->alloc_ctx = ctx;
}

void ingest_on_whose(struct ingest *in, ingest_whose_fn fn, void *ctx)
{
	in->on_whose = fn;
	in->whose_ctx = ctx;
}

static struct raw_stack *raw_find(struct ingest *in, const struct ms_hash *hash)
{
	struct raw_stack *raw;

	HASH_FIND(hh, in->raw, hash, sizeof(*hash), raw);
	return raw;
}

static int add_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
		     bool placed, uint32_t as_gen)
{
	struct raw_stack *raw = raw_find(in, &rec->hash);

	if (raw || rec->n_frames > MS_MAX_FRAMES)
		return 0;
	raw = malloc(sizeof(*raw) + rec->n_frames * sizeof(*frames));
	if (!raw)
		return -ENOMEM;
	raw->hash = rec->hash;
	raw->n = rec->n_frames;
	raw->flags = rec->flags;
	raw->verdict = rec->verdict;
	raw->placed = placed;
	raw->as_gen = as_gen;
	memcpy(raw->frames, frames, rec->n_frames * sizeof(*frames));
	HASH_ADD(hh, in->raw, hash, sizeof(raw->hash), raw);
	if (hash_added(raw))
		return 0;
	free(raw);
	return -ENOMEM;
}

int ingest_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames)
{
	return add_stack(in, rec, frames, false, 0);
}

int ingest_stack_placed(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
			uint32_t as_gen)
{
	return add_stack(in, rec, frames, true, as_gen);
}

/* --- resolving --- */

static bool is_tracer(const struct ingest *in, uint64_t addr)
{
	for (int i = 0; i < INGEST_TRACERS; i++)
		if (addr - in->tracers[i].addr < in->tracers[i].size)
			return true;
	return false;
}

/*
 * A stack taken in sched_switch begins with our own program and the tracepoint's machinery; what
 * the thread did begins at __schedule. One taken in rss_stat begins behind the machinery. How many
 * frames that is differs between kernels.
 */
static uint32_t own_frames(const struct ingest *in, const struct raw_stack *raw)
{
	uint32_t n = 0;

	if (raw->flags & MS_STACK_AT_RSS) {
		for (uint32_t i = 0; i < raw->n && i < OWN_FRAMES_MAX; i++)
			if (is_tracer(in, raw->frames[i]))
				n = i + 1;
		return n;
	}
	if (!(raw->flags & MS_STACK_AT_SWITCH) || !in->schedule_addr)
		return 0;
	for (uint32_t i = 0; i < raw->n && i < OWN_FRAMES_MAX; i++)
		if (raw->frames[i] - in->schedule_addr < SCHEDULE_SIZE_MAX)
			return i;
	return 0;
}

static uint32_t kernel_frames(struct ingest *in, const struct raw_stack *raw, location_id *out)
{
	uint32_t n = 0;

	/* Only where an interrupt found the kernel is the leaf not a return address. */
	for (uint32_t i = own_frames(in, raw); i < raw->n; i++) {
		bool leaf = i == 0 && !(raw->flags & (MS_STACK_AT_SWITCH | MS_STACK_AT_RSS));

		out[n++] = dict_location(in->dict, in->kernel,
					 leaf ? raw->frames[i] : raw->frames[i] - 1);
	}
	return n;
}

static location_id user_location(struct ingest *in, struct proc *proc, uint32_t gen, uint64_t frame,
				 bool leaf)
{
	bool exact = leaf || frame >> MS_FRAME_TAG_SHIFT == MS_FRAME_EXACT;
	uint64_t addr = frame & MS_FRAME_ADDR_MASK, pc = exact || !addr ? addr : addr - 1, vaddr;
	module_id module;

	proc_resolve(in->procs, proc, gen, pc, &module, &vaddr);
	return dict_location(in->dict, module, vaddr);
}

static bool is_empty(const struct ms_hash *h)
{
	return !h->lo && !h->hi;
}

/*
 * The interned stack of `key`. false: a record has not arrived (and we are not finishing).
 */
static bool resolve(struct ingest *in, struct proc *proc, const struct ms_total_key *key,
		    stack_id *ret_stack)
{
	struct raw_stack *user = is_empty(&key->user) ? NULL : raw_find(in, &key->user);
	struct raw_stack *kernel = is_empty(&key->kernel) ? NULL : raw_find(in, &key->kernel);
	struct resolved_key k;
	struct resolved *res;
	uint32_t n = 0;

	if (!in->finishing &&
	    ((!user && !is_empty(&key->user)) || (!kernel && !is_empty(&key->kernel))))
		return false;
	memset(&k, 0, sizeof(k));
	k.proc = proc;
	k.user = key->user;
	k.kernel = key->kernel;
	k.as_gen = user && user->placed ? user->as_gen : key->as_gen;
	HASH_FIND(hh, in->resolved, &k, sizeof(k), res);
	if (res) {
		*ret_stack = res->stack;
		return true;
	}
	if (kernel)
		n = kernel_frames(in, kernel, in->scratch);
	for (uint32_t i = 0; user && i < user->n; i++)
		in->scratch[n++] =
			user_location(in, proc, (uint32_t)k.as_gen, user->frames[i], i == 0);
	if (!user && !is_empty(&key->user))
		in->scratch[n++] = in->lost;
	if (!n)
		in->scratch[n++] = in->none; /* viewers drop samples without a frame */
	*ret_stack = dict_stack(in->dict, in->scratch, n);

	res = hash_new(in->resolved, key, &k);
	if (res) /* only a cache */
		res->stack = *ret_stack;
	return true;
}

/* Adds what container a process is in to its labels; returns how many there are then. */
static uint32_t whose(struct ingest *in, const struct ms_proc *p, uint64_t cgroup_id,
		      struct label *set, uint32_t n)
{
	struct ingest_container c = { 0 };

	if (in->on_whose)
		in->on_whose(in->whose_ctx, p, cgroup_id, &c);
	if (c.name)
		set[n++] = (struct label){ .key = in->key_container,
					   .str = dict_string(in->dict, c.name) };
	if (c.id)
		set[n++] = (struct label){ .key = in->key_container_id,
					   .str = dict_string(in->dict, c.id) };
	if (c.ns_pid)
		set[n++] = (struct label){ .key = in->key_ns_pid, .num = c.ns_pid };
	return n;
}

/* `tid` 0: of the process. `memory`: what kind, NULL for what is no memory; one of a few strings. */
static labels_id labels_of(struct ingest *in, struct proc *proc, const struct ms_proc *p,
			   uint32_t tid, uint64_t cgroup_id, const char *memory)
{
	struct thread_key k;
	struct thread_labels *lab;
	struct label set[8] = { { .key = in->key_pid, .num = p->tgid }, { .key = in->key_comm } };
	uint32_t n = 2;
	labels_id labels;
	const char *name;

	memset(&k, 0, sizeof(k));
	k.proc = proc;
	k.tid = (uint64_t)p->tgid << 32 | tid;
	k.memory = memory;
	HASH_FIND(hh, in->labels, &k, sizeof(k), lab);
	if (lab)
		return lab->labels;
	set[1].str =
		dict_string(in->dict, proc && *proc_comm(proc) ? proc_comm(proc) : "[unknown]");
	if (tid)
		set[n++] = (struct label){ .key = in->key_tid, .num = tid };
	name = proc && tid ? proc_thread_comm(proc, (pid_t)tid) : NULL;
	if (name && *name)
		set[n++] =
			(struct label){ .key = in->key_thread, .str = dict_string(in->dict, name) };
	if (memory)
		set[n++] = (struct label){ .key = in->key_memory,
					   .str = dict_string(in->dict, memory) };
	n = whose(in, p, cgroup_id, set, n);
	labels = dict_labels(in->dict, set, n);
	lab = hash_new(in->labels, key, &k);
	if (lab) /* only a cache */
		lab->labels = labels;
	return labels;
}

static const char *memory_name(const struct ms_total_key *key)
{
	static const char *const names[MS_N_MEMORY_KINDS] = { "file", "anonymous", "shared" };

	return key->memory < MS_N_MEMORY_KINDS ? names[key->memory] : NULL;
}

static struct proc *proc_of(struct ingest *in, const struct ms_proc *p)
{
	struct proc_id id = { .pid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns };

	return proc_table_find(in->procs, &id);
}

/* --- samples --- */

static int wait_for_stack(struct ingest *in, const struct ms_total_key *key,
			  const struct ms_total *total)
{
	if (in->n_waiting == in->cap_waiting) {
		uint32_t cap = in->cap_waiting ? in->cap_waiting * 2 : 64;
		struct waiting *more = realloc(in->waiting, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		in->waiting = more;
		in->cap_waiting = cap;
	}
	in->waiting[in->n_waiting++] = (struct waiting){ *key, *total };
	return 0;
}

static void tell_gap(struct ingest *in, const struct ms_total_key *key, uint64_t count)
{
	const struct raw_stack *user;

	if (!in->on_gap || is_empty(&key->user))
		return;
	user = raw_find(in, &key->user);
	if (user && user->verdict != MS_COMPLETE)
		in->on_gap(in->gap_ctx, key, (enum ms_verdict)user->verdict, user->frames, user->n,
			   count);
}

static void wait_values(const struct ms_total_key *key, const struct ms_total *total,
			int64_t values[4])
{
	int first = key->state == MS_BLOCKED ? 0 : 2;

	values[first] = (int64_t)total->count;
	values[first + 1] = (int64_t)total->value;
}

static int add_sample(struct ingest *in, const struct ms_total_key *key,
		      const struct ms_total *total)
{
	int64_t count = (int64_t)total->count, value = (int64_t)total->value;
	struct proc *proc = proc_of(in, &key->proc);
	struct profile *p = NULL;
	int64_t values[4] = {};
	labels_id labels;
	stack_id stack;

	if (!resolve(in, proc, key, &stack))
		return wait_for_stack(in, key, total);
	if (in->finishing && !is_empty(&key->user) && !raw_find(in, &key->user))
		in->stats.lost_stacks += total->count;
	if (!proc)
		in->stats.unknown_process += total->count;
	labels = labels_of(in, proc, &key->proc, key->tid, total->cgroup_id,
			   key->source == MS_GROWTH ? memory_name(key) : NULL);
	tell_gap(in, key, total->count);
	switch (key->source) {
	case MS_ONCPU:
		p = in->profiles.oncpu;
		in->stats.oncpu_samples += total->count;
		values[0] = count;
		values[1] = value;
		break;
	case MS_OFFCPU:
		p = in->profiles.offcpu;
		wait_values(key, total, values);
		break;
	case MS_GROWTH:
		p = in->profiles.growth;
		values[key->state == MS_RETURNED] = value;
		if (key->state == MS_RETURNED)
			in->stats.returned_bytes += total->value;
		else
			in->stats.resident_bytes += total->value;
		break;
	}
	return p ? profile_add(p, stack, labels, values) : 0;
}

static void hold(struct ingest *in, const struct ms_proc *proc, int64_t bytes)
{
	struct holding *h = hash_get(in->holdings, proc, proc);

	if (h)
		h->bytes += bytes;
}

int ingest_total(struct ingest *in, const struct ms_total_key *key, const struct ms_total *total)
{
	return add_sample(in, key, total);
}

void ingest_keep(struct ingest *in, pid_t pid)
{
	if (in->n_keep < sizeof(in->keep) / sizeof(*in->keep))
		in->keep[in->n_keep++] = pid;
}

bool ingest_gone(struct ingest *in, const struct ms_proc *p)
{
	struct proc *proc = proc_of(in, p);

	if (proc && proc_replaced(proc))
		return true;
	for (uint32_t i = 0; i < in->n_keep; i++)
		if (in->keep[i] == (pid_t)p->tgid)
			return false;
	/* Of one whose records were lost it is asked whether it is there. */
	return proc ? proc_exited(proc) : kill((pid_t)p->tgid, 0) < 0 && errno == ESRCH;
}

int64_t ingest_live_bytes(struct ingest *in)
{
	struct holding *h, *next;
	int64_t sum = 0;

	HASH_ITER (hh, in->holdings, h, next) {
		if (ingest_gone(in, &h->proc)) {
			HASH_DEL(in->holdings, h);
			free(h);
		} else {
			sum += h->bytes;
		}
	}
	return sum;
}

/* --- exact allocations --- */

static struct ms_total_key total_key(const struct ms_alloc_key *site)
{
	return (struct ms_total_key){
		.proc = site->proc,
		.user = site->user,
		.tid = site->tid,
		.as_gen = site->as_gen,
		.source = MS_ALLOC,
	};
}

static bool is_root(const struct ms_alloc_key *site)
{
	return !site->user.lo && site->user.hi == MS_ROOT_STACK.hi;
}

/* `lost`: what has not arrived will not. */
static bool site_stack(struct ingest *in, struct proc *proc, const struct ms_alloc_key *site,
		       bool lost, stack_id *ret_stack)
{
	struct ms_total_key key = total_key(site);

	if (is_root(site))
		*ret_stack = dict_stack(in->dict, &in->no_room, 1);
	else if (lost && !is_empty(&site->user) && !raw_find(in, &site->user))
		*ret_stack = dict_stack(in->dict, &in->lost, 1);
	else
		return resolve(in, proc, &key, ret_stack);
	return true;
}

/* The profiles of allocations have a label for the thread, that of sites has not. */
static int add_to_sites(struct ingest *in, struct proc *proc, const struct ms_alloc_key *site,
			uint64_t cgroup_id, stack_id stack, const int64_t *values)
{
	return in->profiles.sites
		       ? profile_add(in->profiles.sites, stack,
				     labels_of(in, proc, &site->proc, 0, cgroup_id, NULL), values)
		       : 0;
}

int ingest_site(struct ingest *in, const struct ms_alloc_key *site, uint64_t cgroup_id,
		const int64_t *values, int64_t untracked, int64_t untracked_bytes, bool lost)
{
	const int64_t allocated[4] = { values[SITE_OBJECTS], values[SITE_BYTES] };
	int64_t gone = values[SITE_FREED] + untracked;
	int64_t gone_bytes = values[SITE_FREED_BYTES] + untracked_bytes;
	uint64_t count = (uint64_t)values[SITE_OBJECTS];
	struct proc *proc = proc_of(in, &site->proc);
	struct ms_total_key key = total_key(site);
	stack_id stack;
	labels_id labels;
	int r = 0;

	if (!site_stack(in, proc, site, lost, &stack))
		return -EAGAIN;
	if (!is_empty(&site->user) && !is_root(site) && !raw_find(in, &site->user))
		in->stats.lost_stacks += count;
	if (!proc)
		in->stats.unknown_process += count;
	in->stats.allocated += count;
	in->stats.allocated_bytes += (uint64_t)values[SITE_BYTES];
	in->stats.freed += (uint64_t)values[SITE_FREED];
	in->stats.freed_bytes += (uint64_t)values[SITE_FREED_BYTES];
	in->stats.untracked += (uint64_t)untracked;
	in->stats.untracked_bytes += (uint64_t)untracked_bytes;
	hold(in, &site->proc, values[SITE_BYTES] - gone_bytes);
	if (count)
		tell_gap(in, &key, count);
	if (in->on_alloc && count)
		in->on_alloc(in->alloc_ctx, &site->proc, stack, allocated[0], allocated[1], 0);
	if (in->on_alloc && gone)
		in->on_alloc(in->alloc_ctx, &site->proc, stack, -gone, -gone_bytes, 0);
	labels = labels_of(in, proc, &site->proc, site->tid, cgroup_id, NULL);
	if (count && in->profiles.alloc)
		r = profile_add(in->profiles.alloc, stack, labels, allocated);
	if (count && r == 0 && in->profiles.heap)
		r = profile_add(in->profiles.heap, stack, labels, allocated);
	return r == 0 ? add_to_sites(in, proc, site, cgroup_id, stack, values) : r;
}

int ingest_site_end(struct ingest *in, const struct ms_alloc_key *site, uint64_t cgroup_id,
		    const int64_t *values)
{
	const int64_t live[4] = { 0, 0, values[SITE_LIVE_OBJECTS], values[SITE_LIVE_BYTES] };
	struct proc *proc = proc_of(in, &site->proc);
	int64_t end[N_SITE_VALUES] = {
		[SITE_PEAK_OBJECTS] = values[SITE_PEAK_OBJECTS],
		[SITE_PEAK_BYTES] = values[SITE_PEAK_BYTES],
	};
	labels_id labels;
	stack_id stack;
	int r = 0;

	if (!site_stack(in, proc, site, true, &stack))
		return -EAGAIN;
	labels = labels_of(in, proc, &site->proc, site->tid, cgroup_id, NULL);
	if (ingest_gone(in, &site->proc)) {
		in->stats.ended += (uint64_t)live[2];
		in->stats.ended_bytes += (uint64_t)live[3];
	} else {
		in->stats.live += (uint64_t)live[2];
		in->stats.live_bytes += (uint64_t)live[3];
		end[SITE_LIVE_OBJECTS] = live[2];
		end[SITE_LIVE_BYTES] = live[3];
		if (live[2] && in->profiles.heap)
			r = profile_add(in->profiles.heap, stack, labels, live);
	}
	if (r == 0 && end[SITE_PEAK_OBJECTS] && in->profiles.peak)
		r = profile_add(in->profiles.peak, stack, labels, &end[SITE_PEAK_OBJECTS]);
	return r == 0 ? add_to_sites(in, proc, site, cgroup_id, stack, end) : r;
}

int ingest_block(struct ingest *in, const struct ms_alloc_key *site, const struct ms_block *block)
{
	stack_id stack;

	if (!in->on_alloc || ingest_gone(in, &site->proc) ||
	    !site_stack(in, proc_of(in, &site->proc), site, false, &stack))
		return 0;
	in->on_alloc(in->alloc_ctx, &site->proc, stack, 1, (int64_t)block->size, block->born_ns);
	return 0;
}

static struct ms_total_key wait_key(uint32_t tid, const struct ms_thread *t, enum ms_state state)
{
	return (struct ms_total_key){
		.proc = t->proc,
		.user = t->user,
		.kernel = t->kernel,
		.tid = tid,
		.as_gen = t->as_gen,
		.source = MS_OFFCPU,
		.state = (uint8_t)state,
	};
}

static int open_wait(struct ingest *in, uint32_t tid, const struct ms_thread *t,
		     enum ms_state state, uint64_t ns)
{
	struct ms_total_key key = wait_key(tid, t, state);
	struct ms_total total = { .count = 1, .value = ns };

	return ns ? add_sample(in, &key, &total) : 0;
}

/* What a thread does since it was last switched: until `to`. */
struct open_state {
	uint64_t to, oncpu, blocked, runnable, held;
};

static struct open_state open_state(const struct ms_thread *t, uint64_t end_ns)
{
	struct open_state o = { .to = end_ns > t->since_ns ? end_ns : t->since_ns };

	switch ((enum ms_run_state)t->state) {
	case MS_RUN_GONE:
	case MS_RUN_BUSY: /* drain.c has its present state, unless it went in that moment */
		o.to = t->since_ns;
		break;
	case MS_RUN_ON_CPU:
		o.oncpu = o.to - t->since_ns;
		break;
	case MS_RUN_BLOCKED:
		o.blocked = (t->wake_ns ? t->wake_ns : o.to) - t->since_ns;
		o.runnable = t->wake_ns && o.to > t->wake_ns ? o.to - t->wake_ns : 0;
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

static bool wait_is_told(const struct ingest *in, const struct open_state *o)
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
	if (!wait_is_told(in, &o)) {
		sum->left_out += o.blocked || o.runnable;
		sum->left_out_ns += o.blocked + o.runnable;
		return 0;
	}
	r = open_wait(in, tid, t, MS_BLOCKED, o.blocked);
	return r < 0 ? r : open_wait(in, tid, t, MS_RUNNABLE, o.runnable);
}

int ingest_open_wait(struct ingest *in, struct profile *to, uint32_t tid, const struct ms_thread *t,
		     uint64_t now_ns)
{
	struct open_state o = open_state(t, now_ns);
	struct ms_total_key key = wait_key(tid, t, MS_BLOCKED);
	struct proc *proc = proc_of(in, &key.proc);
	const int64_t values[4] = { o.blocked > 0, (int64_t)o.blocked, o.runnable > 0,
				    (int64_t)o.runnable };
	stack_id stack;

	if ((!o.blocked && !o.runnable) || !wait_is_told(in, &o) ||
	    !resolve(in, proc, &key, &stack))
		return 0;
	return profile_add(to, stack, labels_of(in, proc, &key.proc, key.tid, 0, NULL), values);
}

int ingest_rest(struct ingest *in, struct profile *to, const struct ms_total_key *key,
		const struct ms_total *total)
{
	int64_t values[4] = {};
	labels_id labels;
	stack_id stack;

	if (!ingest_place(in, key, &stack, &labels))
		return 0;
	wait_values(key, total, values);
	return profile_add(to, stack, labels, values);
}

int ingest_finish(struct ingest *in)
{
	int r = 0;

	in->finishing = true;
	for (uint32_t i = 0; i < in->n_waiting && r == 0; i++)
		r = add_sample(in, &in->waiting[i].key, &in->waiting[i].total);
	in->n_waiting = 0;
	return r == 0 && dict_oom(in->dict) ? -ENOMEM : r;
}

int ingest_estimate(struct ingest *in, const struct ms_total_key *key, const int64_t values[4],
		    uint64_t samples, stack_id *ret_stack, labels_id *ret_labels)
{
	struct proc *proc = proc_of(in, &key->proc);
	stack_id stack;
	labels_id labels;
	int r;

	if (!resolve(in, proc, key, &stack))
		return -EAGAIN;
	if (!is_empty(&key->user) && !raw_find(in, &key->user))
		in->stats.lost_stacks += samples;
	if (!proc)
		in->stats.unknown_process += samples;
	tell_gap(in, key, samples);
	labels = labels_of(in, proc, &key->proc, key->tid, 0, NULL);
	r = in->profiles.alloc ? profile_add(in->profiles.alloc, stack, labels, values) : 0;
	if (r == 0 && in->profiles.heap)
		r = profile_add(in->profiles.heap, stack, labels, values);
	if (r == 0) {
		*ret_stack = stack;
		*ret_labels = labels;
	}
	return r;
}

int ingest_mapping(struct ingest *in, const struct ms_total_key *key, uint64_t cgroup_id,
		   const int64_t values[4])
{
	struct proc *proc = proc_of(in, &key->proc);
	stack_id stack;

	if (!resolve(in, proc, key, &stack))
		return -EAGAIN;
	if (!is_empty(&key->user) && !raw_find(in, &key->user))
		in->stats.lost_stacks += (uint64_t)values[0];
	if (!proc)
		in->stats.unknown_process += (uint64_t)values[0];
	tell_gap(in, key, (uint64_t)values[0]);
	return in->profiles.mappings ? profile_add(in->profiles.mappings, stack,
						   labels_of(in, proc, &key->proc, key->tid,
							     cgroup_id, memory_name(key)),
						   values)
				     : 0;
}

bool ingest_place(struct ingest *in, const struct ms_total_key *key, stack_id *ret_stack,
		  labels_id *ret_labels)
{
	struct proc *proc = proc_of(in, &key->proc);

	if (!resolve(in, proc, key, ret_stack))
		return false;
	*ret_labels = labels_of(in, proc, &key->proc, key->tid, 0, NULL);
	return true;
}

void ingest_stats(const struct ingest *in, struct ingest_stats *ret_stats)
{
	*ret_stats = in->stats;
}
