#include "collect/stream/drain.h"
#include "base/grow.h"
#include "collect/overhead/counter.h"
#include "collect/session/session_wire.h"
#include "collect/stream/stacks_in_use.h"
#include "collect/stream/thread_rows.h"
#include "collect/wire.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#define BATCH           1024
#define DELETES         64
#define BREATH          128
#define SENT_MAX        (1u << 18) /* 26 MiB; beyond, the ring fills, and that is counted */
#define KERNEL_ENOTSUPP 524        /* the kernel's own, not in errno.h */

struct handler {
	drain_fn fn;
	void *ctx;
};

struct drain {
	struct session *session;
	struct handler handlers[N_DRAIN_KINDS][DRAIN_FNS_MAX];
	uint32_t n_handlers[N_DRAIN_KINDS];
	struct ring_buffer *ring;
	uint32_t room_left; /* of a ringful that is being read */
	struct ms_hash seed;
	int live; /* which of the two totals maps the programs use: 0 or 1 */
	int n_cpus;
	uint32_t n_totals;   /* found by the last drain */
	bool single_deletes; /* the kernel has no call for many */
	/* Sent through the ring; delivered when process records up to them have been read. */
	struct ms_total_rec *sent;
	uint32_t n_sent, sent_cap;
	uint32_t breath; /* totals delivered */
	bool oom;
	struct wait_sampler *sampler;
	struct in_use *in_use; /* by drain_stacks_in_use() */
	struct thread_rows rows;
	drain_group_fn group_fn;
	void *group_ctx;
	drain_memory_fn memory_fn;
	void *memory_ctx;
	struct ms_memory_cpu *cpus; /* of one address space */
	void *keys, *values;        /* BATCH of the largest kind */
	size_t key_cap, value_cap;
};

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	assert(d->n_handlers[kind] < DRAIN_FNS_MAX);
	d->handlers[kind][d->n_handlers[kind]++] = (struct handler){ fn, ctx };
}

void drain_on_groups(struct drain *d, drain_group_fn fn, void *ctx)
{
	d->group_fn = fn;
	d->group_ctx = ctx;
}

/* true: one of them has taken it. */
static bool hand_over(struct drain *d, enum drain_kind kind, const void *record, const void *more)
{
	for (uint32_t i = 0; i < d->n_handlers[kind]; i++)
		if (d->handlers[kind][i].fn(d->handlers[kind][i].ctx, record, more) == DRAIN_TAKEN)
			return true;
	return false;
}

/* A record torn by a preempted walk has the wrong hash and is dropped: the kernel sends the stack
 * again. A total whose stack never comes is counted in ingest. */
static void on_stack(struct drain *d, const struct ms_stack_rec *rec, size_t len)
{
	const uint64_t *frames = (const uint64_t *)(rec + 1);
	struct ms_hash h = d->seed;

	if (len < sizeof(*rec) || rec->n_frames > (len - sizeof(*rec)) / sizeof(*frames))
		return;
	for (uint32_t i = 0; i < rec->n_frames; i++)
		ms_hash_step(&h, frames[i]);
	ms_hash_end(&h, rec->n_frames);
	if (h.lo == rec->hash.lo && h.hi == rec->hash.hi)
		hand_over(d, DRAIN_STACK, rec, frames);
}

static void on_deferred(struct drain *d, const struct ms_deferred_rec *rec, size_t len)
{
	if (len >= sizeof(*rec) && rec->stack_bytes <= len - sizeof(*rec))
		hand_over(d, DRAIN_DEFERRED, rec, rec + 1);
}

static void on_chain(struct drain *d, const struct ms_chain_rec *rec, size_t len)
{
	if (len >= sizeof(*rec) &&
	    rec->n_links <= (len - sizeof(*rec)) / sizeof(struct ms_chain_link))
		hand_over(d, DRAIN_CHAIN, rec, rec + 1);
}

static void on_context(struct drain *d, const struct ms_context_rec *rec, size_t len)
{
	size_t head = offsetof(struct ms_context_rec, bytes);

	if (len >= head && rec->len <= len - head)
		hand_over(d, DRAIN_CONTEXT, rec, rec->bytes);
}

static void on_sent(struct drain *d, const struct ms_total_rec *rec)
{
	if (GROW(d->sent, d->n_sent, d->sent_cap))
		d->sent[d->n_sent++] = *rec;
	else
		d->oom = true;
}

static void send_reassigned(struct drain *d, const struct ms_reassigned_rec *rec,
			    enum ms_state state, uint64_t ns, bool away)
{
	bool begun = rec->key.state == (uint8_t)state;
	int64_t weight = (int64_t)1 << rec->shift, sign = away ? -weight : weight;
	int64_t count = sign * ((int64_t)1 << rec->slice_shift % 32);
	struct ms_total_rec total = { .kind = MS_EV_TOTAL, .key = rec->key };

	if (!ns && !begun)
		return;
	total.key.state = (uint8_t)state;
	if (away) {
		total.key.user = rec->from_user;
		total.key.kernel = rec->from_kernel;
		total.key.as_gen = rec->from_as_gen;
	}
	total.total.count = (uint64_t)count;
	total.total.value = (uint64_t)(sign * (int64_t)ns);
	on_sent(d, &total);
}

static void tell_reassigned(struct drain *d, const struct ms_reassigned_rec *rec)
{
	struct drain_reassigned told = { .blocked_ns = rec->blocked_ns, .shift = rec->shift };
	struct ms_total_key key = rec->key;

	key.state = MS_STATE_NONE;
	key.slot = 0;
	key.bucket = 0;
	told.key = wire_event(&key);
	key.user = rec->from_user;
	key.kernel = rec->from_kernel;
	key.as_gen = rec->from_as_gen;
	told.from = wire_event(&key);
	hand_over(d, DRAIN_REASSIGNED, &told, NULL);
}

/* One record becomes up to four totals: the wait's parts added to its own stack and taken from the
 * expected one, so that the thread's sums do not change. */
static void on_reassigned(struct drain *d, const struct ms_reassigned_rec *rec)
{
	for (int away = 0; away < 2; away++) {
		send_reassigned(d, rec, MS_BLOCKED, rec->blocked_ns, away);
		send_reassigned(d, rec, MS_RUNNABLE, rec->runnable_ns, away);
	}
	tell_reassigned(d, rec);
}

static void on_cgroup(struct drain *d, const struct ms_cgroup_rec *rec)
{
	char path[MS_CGROUP_PATH];
	struct drain_cgroup made = { rec->id, rec->at.hierarchy, path };

	memcpy(path, rec->at.path, sizeof(path));
	path[sizeof(path) - 1] = '\0';
	hand_over(d, DRAIN_CGROUP, &made, NULL);
}

static void on_result(struct drain *d, const struct ms_result_rec *rec)
{
	struct ms_total_key k = rec->key;
	struct drain_result result = {
		.no = k.bucket,
		.tid = k.tid,
		.pid = (pid_t)k.proc.tgid,
		.addr = rec->addr,
		.old = rec->old,
		.size = rec->size,
		.time_ns = rec->time_ns,
	};

	k.bucket = 0;
	result.key = wire_event(&k);
	hand_over(d, DRAIN_RESULT, &result, NULL);
}

static void on_call(struct drain *d, const struct ms_call_rec *rec)
{
	struct drain_call call = {
		.behind = rec->behind,
		.tid = rec->tid,
		.pc = rec->pc,
		.sp = rec->sp,
		.arg = { rec->arg[0], rec->arg[1] },
		.word = rec->word,
		.addr = rec->addr,
		.entry = rec->entry,
		.edata = rec->known ? (const uint64_t *)rec->edata : NULL,
	};

	hand_over(d, DRAIN_CALL, &call, NULL);
}

static void take_record(struct drain *d, void *data, size_t len)
{
	uint32_t kind = len >= sizeof(kind) ? *(const uint32_t *)data : 0;

	if (kind == MS_EV_STACK)
		on_stack(d, data, len);
	else if (kind == MS_EV_DEFERRED)
		on_deferred(d, data, len);
	else if (kind == MS_EV_CHAIN)
		on_chain(d, data, len);
	else if (kind == MS_EV_SAMPLE && len >= sizeof(struct ms_sample_rec))
		hand_over(d, DRAIN_SAMPLE, data, NULL);
	else if (kind == MS_EV_LABELS && len >= sizeof(struct ms_labels_rec))
		hand_over(d, DRAIN_LABELS, data, NULL);
	else if (kind == MS_EV_WAKER && len >= sizeof(struct ms_waker_rec))
		hand_over(d, DRAIN_WAKER, data, NULL);
	else if (kind == MS_EV_ENDED && len >= sizeof(struct ms_ended_rec))
		hand_over(d, DRAIN_ENDED, data, NULL);
	else if (kind == MS_EV_OBJECT && len >= sizeof(struct ms_object_rec))
		hand_over(d, DRAIN_OBJECT, data, NULL);
	else if (kind == MS_EV_CONTEXT)
		on_context(d, data, len);
	else if (kind == MS_EV_TOTAL && len >= sizeof(struct ms_total_rec))
		on_sent(d, data);
	else if (kind == MS_EV_RESULT && len >= sizeof(struct ms_result_rec))
		on_result(d, data);
	else if (kind == MS_EV_CALL && len >= sizeof(struct ms_call_rec))
		on_call(d, data);
	else if (kind == MS_EV_MAPPING && len >= sizeof(struct ms_mapping_rec))
		hand_over(d, DRAIN_MAPPING, data, NULL);
	else if (kind == MS_EV_CGROUP && len >= sizeof(struct ms_cgroup_rec))
		on_cgroup(d, data);
	else if (kind == MS_EV_REASSIGNED && len >= sizeof(struct ms_reassigned_rec) &&
		 ((const struct ms_reassigned_rec *)data)->shift < 32)
		on_reassigned(d, data);
}

/* What a record takes of the ring: its header, and up to eight bytes to align it (kernel/bpf/ringbuf.c). */
static uint32_t room_of(size_t len)
{
	return (uint32_t)(BPF_RINGBUF_HDR_SZ + ((len + 7) & ~7ul));
}

/* One that is answered with an error has been read. */
static int on_event(void *ctx, void *data, size_t len)
{
	struct drain *d = ctx;
	bool last = d->room_left <= room_of(len);

	take_record(d, data, len);
	d->room_left -= last ? d->room_left : room_of(len);
	return last ? -EAGAIN : 0;
}

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

int drain_new(struct session *s, struct drain **ret_drain, struct err *e)
{
	_cleanup_(drain_freep) struct drain *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(e, -ENOMEM, "out of memory");
	d->session = s;
	d->n_cpus = libbpf_num_possible_cpus();
	session_seed(s, &d->seed);
	d->key_cap = max_size(sizeof(struct ms_total_key), sizeof(struct ms_block_key));
	d->value_cap = max_size(sizeof(struct ms_thread), sizeof(struct ms_inflight));
	d->value_cap = max_size(d->value_cap, (size_t)d->n_cpus * sizeof(uint64_t) / BATCH + 8);
	d->keys = calloc(BATCH, d->key_cap);
	d->values = calloc(BATCH, d->value_cap);
	d->cpus = calloc(d->n_cpus > 0 ? (size_t)d->n_cpus : 1, sizeof(*d->cpus));
	d->ring = ring_buffer__new(session_map_fd(s, SESSION_EVENTS), on_event, d, NULL);
	if (!d->keys || !d->values || !d->cpus || !d->ring || d->n_cpus <= 0)
		return err_set(e, -ENOMEM, "cannot read the events ring: %s", strerror(errno));
	*ret_drain = TAKE_PTR(d);
	return 0;
}

void drain_free(struct drain *d)
{
	if (!d)
		return;
	ring_buffer__free(d->ring);
	free(d->keys);
	free(d->values);
	free(d->cpus);
	free(d->sent);
	thread_rows_fini(&d->rows);
	free(d);
}

void drain_wait_sampler(struct drain *d, struct wait_sampler *sampler)
{
	d->sampler = sampler;
}

int drain_events_fd(const struct drain *d)
{
	return ring_buffer__epoll_fd(d->ring);
}

int drain_events(struct drain *d)
{
	int n;

	d->room_left = session_map_max(d->session, SESSION_EVENTS);
	n = ring_buffer__consume(d->ring);
	return n < 0 && n != -EAGAIN ? n : 0;
}

typedef bool (*entry_fn)(struct drain *d, const void *key, const void *value);

/* One entry at a time, for kernels whose hash maps have no batch operations (before 5.6). A key
 * that has been deleted is no place to go on from: the kernel would return the first key again. So
 * `key` stays at the last one kept. */
static int walk_slowly(struct drain *d, int fd, size_t key_size, entry_fn fn)
{
	char *key = d->keys, *next = (char *)d->keys + key_size;
	bool first = true;

	while (bpf_map_get_next_key(fd, first ? NULL : key, next) == 0) {
		bool drop = bpf_map_lookup_elem(fd, next, d->values) == 0 && fn(d, next, d->values);
		bool restart = drop && first;

		if (drop)
			bpf_map_delete_elem(fd, next);
		if (restart)
			continue; /* still at the beginning */
		if (!drop) {
			memcpy(key, next, key_size);
			first = false;
		}
	}
	return errno == ENOENT ? 0 : -errno;
}

/*
 * Those of d->keys, by `n` ascending numbers of them. Few at a time: a thread may take up its own again between its reading and this.
 */
static void delete_keys(struct drain *d, int fd, size_t key_size, const uint32_t *which, uint32_t n)
{
	char *keys = d->keys;

	for (uint32_t i = 0; i < n; i++)
		memmove(keys + i * key_size, keys + which[i] * key_size, key_size);
	for (uint32_t at = 0; at < n;) {
		uint32_t done = n - at;
		int r = d->single_deletes
				? -EINVAL
				: bpf_map_delete_batch(fd, keys + at * key_size, &done, NULL);

		/* At one that is gone already the kernel stops; or it has no such call, and leaves the number alone. */
		if (r < 0 && (d->single_deletes || done >= n - at)) {
			d->single_deletes = true;
			done = 0;
		}
		at += done;
		if (r < 0 && at < n)
			bpf_map_delete_elem(fd, keys + at++ * key_size);
	}
}

/*
 * Calls `fn` for each entry. Entries for which it returns true leave the map; with `all` they all
 * leave at once (a map that no program writes to). A hash map's batches are whole buckets, and the
 * token is the next bucket's number: deleting what a batch returned does not disturb the next.
 */
static int walk_map(struct drain *d, int fd, size_t key_size, size_t value_size, bool all,
		    entry_fn fn)
{
	uint32_t token = 0, n, n_done, done[DELETES];
	void *in = NULL;
	int r, err;

	do {
		n = BATCH;
		r = all ? bpf_map_lookup_and_delete_batch(fd, in, &token, d->keys, d->values, &n,
							  NULL)
			: bpf_map_lookup_batch(fd, in, &token, d->keys, d->values, &n, NULL);
		err = r < 0 ? errno : 0;
		if (!in && (err == EINVAL || err == ENOTSUP || err == KERNEL_ENOTSUPP))
			return walk_slowly(d, fd, key_size, fn);
		if (err && err != ENOENT)
			return -err;
		n_done = 0;
		for (uint32_t i = 0; i < n; i++) {
			if (fn(d, (char *)d->keys + i * key_size,
			       (char *)d->values + i * value_size) &&
			    !all)
				done[n_done++] = i;
			if (n_done < DELETES)
				continue;
			delete_keys(d, fd, key_size, done, n_done);
			n_done = 0;
		}
		delete_keys(d, fd, key_size, done, n_done);
		in = &token;
	} while (!err);
	return 0;
}

void drain_breathe(struct drain *d)
{
	if (++d->breath % BREATH == 0 && d->n_sent < SENT_MAX)
		drain_events(d);
}

static bool hand_burst(struct drain *d, const struct ms_total *total,
		       const struct ms_total_key *key)
{
	struct drain_burst calls = {
		.no = key->bucket, .tid = key->tid, .calls = total->count, .bytes = total->value
	};
	struct ms_total_key k = *key;

	k.bucket = 0;
	calls.key = wire_event(&k);
	return hand_over(d, DRAIN_BURST, &calls, NULL);
}

static void hand_total(struct drain *d, const struct ms_total *total,
		       const struct ms_total_key *key)
{
	bool burst = key->source == MS_ALLOC && key->bucket;
	struct proc_id proc = wire_id(&key->proc);

	if (d->group_fn && total->cgroup_id)
		d->group_fn(d->group_ctx, &proc, total->cgroup_id);
	if (!burst || !hand_burst(d, total, key))
		hand_over(d, DRAIN_TOTAL, total, key);
}

static bool on_total(struct drain *d, const void *key, const void *value)
{
	d->n_totals++;
	hand_total(d, value, key);
	drain_breathe(d);
	return true;
}

static const enum session_map totals_maps[MS_N_LANES][2] = {
	[MS_LANE_TASK] = { SESSION_TOTALS_A, SESSION_TOTALS_B },
	[MS_LANE_IRQ] = { SESSION_IRQ_TOTALS_A, SESSION_IRQ_TOTALS_B },
};

int drain_flip(struct drain *d, struct err *e)
{
	int live = session_map_fd(d->session, SESSION_TOTALS_LIVE);

	for (uint32_t lane = 0; lane < MS_N_LANES; lane++) {
		int fresh = session_map_fd(d->session, totals_maps[lane][!d->live]);

		/* Returns after a grace period (the kernel's maybe_wait_bpf_programs() for maps of
		 * maps): no program that found the other map is still adding to it. */
		if (bpf_map_update_elem(live, &lane, &fresh, BPF_ANY) < 0)
			return err_set(e, -errno, "cannot exchange the totals maps: %s",
				       strerror(errno));
	}
	d->live = !d->live;
	return 0;
}

/* Only those there at the start: drain_breathe() may append more, whose process records have not been
 * read yet. Each is copied, because appending may move the array. */
int drain_sent(struct drain *d)
{
	uint32_t n = d->n_sent;

	for (uint32_t i = 0; i < n; i++) {
		struct ms_total_rec rec = d->sent[i];

		hand_total(d, &rec.total, &rec.key);
		drain_breathe(d);
	}
	if (n)
		memmove(d->sent, d->sent + n, (d->n_sent - n) * sizeof(*d->sent));
	d->n_sent -= n;
	return d->oom ? -ENOMEM : 0;
}

bool drain_sent_waits(const struct drain *d)
{
	return d->n_sent > 0;
}

int drain_totals(struct drain *d, struct err *e)
{
	uint32_t fullest = 0;
	int r = drain_events(d);

	if (r < 0)
		return err_set(e, r, "cannot read the events ring: %s", strerror(-r));
	for (uint32_t lane = 0; lane < MS_N_LANES && r == 0; lane++) {
		d->n_totals = 0;
		r = walk_map(d, session_map_fd(d->session, totals_maps[lane][!d->live]),
			     sizeof(struct ms_total_key), sizeof(struct ms_total), true, on_total);
		if (d->n_totals > fullest)
			fullest = d->n_totals;
	}
	d->n_totals = fullest;
	return r < 0 ? err_set(e, r, "cannot read the totals: %s", strerror(-r)) : 0;
}

static bool on_gone_thread(struct drain *d, const void *key, const void *value)
{
	const struct ms_thread *t = value;

	if (t->state != MS_RUN_GONE)
		return false;
	hand_over(d, DRAIN_THREAD, t, key);
	return true;
}

static void on_rest(void *ctx, const struct ms_total_key *key, const struct ms_total *total)
{
	hand_over(ctx, DRAIN_REST, total, key);
}

static bool on_thread(struct drain *d, const void *key, const void *value)
{
	uint32_t tid = *(const uint32_t *)key;
	struct ms_thread whole;
	const struct ms_sampled_thread *sampled = thread_rows_join(&d->rows, tid, value, &whole);

	hand_over(d, DRAIN_THREAD, &whole, &tid);
	if (sampled)
		thread_rows_rest(sampled, on_rest, d);
	return false;
}

/* Woken threads are read first: such a record is valid if the wait is still the same
 * (bpf/offcpu.bpf.c). */
int drain_threads(struct drain *d, bool all, struct err *e)
{
	int r = all ? thread_rows_read(&d->rows, d->session, d->sampler) : 0;

	if (r == 0)
		r = walk_map(d, session_map_fd(d->session, SESSION_THREADS), sizeof(uint32_t),
			     sizeof(struct ms_thread), false, all ? on_thread : on_gone_thread);
	return r < 0 ? err_set(e, r, "cannot read the table of threads: %s", strerror(-r)) : 0;
}

struct in_use {
	stack_hash_fn fn;
	void *ctx;
};

static bool on_thread_stack(struct drain *d, const void *key, const void *value)
{
	const struct ms_thread *t = value;

	(void)key;
	if (t->user.lo)
		d->in_use->fn(d->in_use->ctx, &t->user);
	return false;
}

static void on_sampled_stacks(void *ctx, const void *record)
{
	const struct ms_sampled_thread *t = record;
	const struct in_use *in_use = ctx;

	if (t->user.lo)
		in_use->fn(in_use->ctx, &t->user);
	for (int i = 0; i < MS_WAIT_SITES; i++)
		if (t->sites[i].user.lo)
			in_use->fn(in_use->ctx, &t->sites[i].user);
}

int drain_stacks_in_use(struct drain *d, stack_hash_fn fn, void *ctx)
{
	struct in_use in_use = { fn, ctx };
	int fd = session_map_fd(d->session, SESSION_THREADS), r = 0;

	d->in_use = &in_use;
	if (fd >= 0) /* waits are gathered */
		r = walk_map(d, fd, sizeof(uint32_t), sizeof(struct ms_thread), false,
			     on_thread_stack);
	d->in_use = NULL;
	return r == 0 && d->sampler ? wait_sampler_each(d->sampler, on_sampled_stacks, &in_use) : r;
}

void drain_send_again(const struct drain *d, const struct ms_hash *stack)
{
	bpf_map_delete_elem(session_map_fd(d->session, SESSION_SEEN), stack);
	bpf_map_delete_elem(session_map_fd(d->session, SESSION_IRQ_SEEN), stack);
}

static bool hand_block(struct drain *d, const struct ms_proc *proc, uint64_t addr,
		       const struct ms_block *block)
{
	struct drain_block b = { wire_id(proc), addr, block->size, block->born_ns, block->site };

	return hand_over(d, DRAIN_BLOCK, &b, NULL);
}

static bool on_block(struct drain *d, const void *key, const void *value)
{
	const struct ms_block_key *at = key;

	return hand_block(d, &at->proc, at->addr, value);
}

static bool on_inflight(struct drain *d, const void *key, const void *value)
{
	const struct ms_inflight *in = value;

	(void)key;
	if (in->sp && in->has_old)
		hand_block(d, &in->proc, in->arg, &in->old);
	return false;
}

int drain_inflight(struct drain *d, struct err *e)
{
	int r = walk_map(d, session_map_fd(d->session, SESSION_INFLIGHT), sizeof(uint32_t),
			 sizeof(struct ms_inflight), false, on_inflight);

	return r < 0 ? err_set(e, r, "cannot read the calls in flight: %s", strerror(-r)) : 0;
}

int drain_blocks(struct drain *d, struct err *e)
{
	int r = walk_map(d, session_map_fd(d->session, SESSION_BLOCKS), sizeof(struct ms_block_key),
			 sizeof(struct ms_block), false, on_block);

	return r < 0 ? err_set(e, r, "cannot read the table of live blocks: %s", strerror(-r)) : 0;
}

static int64_t net_pages(const struct drain *d, const void *mm, struct ms_memory_cpu *cpus)
{
	int64_t sum = 0;

	if (bpf_map_lookup_elem(session_map_fd(d->session, SESSION_MEMORY_CPUS), mm, cpus) < 0)
		return 0;
	for (int i = 0; i < d->n_cpus; i++)
		sum += cpus[i].net;
	return sum;
}

static bool on_memory(struct drain *d, const void *key, const void *value)
{
	const struct ms_memory *is = value;
	struct drain_memory memory = { (pid_t)is->proc.tgid, is->flags & MS_MEMORY_WHOLE,
				       net_pages(d, key, d->cpus) };
	bool drop = d->memory_fn(d->memory_ctx, &memory);

	if (drop)
		bpf_map_delete_elem(session_map_fd(d->session, SESSION_MEMORY_CPUS), key);
	return drop;
}

int drain_memories(struct drain *d, drain_memory_fn fn, void *ctx)
{
	d->memory_fn = fn;
	d->memory_ctx = ctx;
	return walk_map(d, session_map_fd(d->session, SESSION_MEMORIES), sizeof(uint64_t),
			sizeof(struct ms_memory), false, on_memory);
}

void drain_stats(const struct drain *d, uint64_t *ret_stats)
{
	bool over = !session_gate_is_open(d->session);

	counters_read(d->session, SESSION_STATS, N_STATS, ret_stats);
	for (uint32_t i = 0; over && i < N_STATS; i++)
		ret_stats[i] += d->rows.rest[i];
}

void drain_verdicts(const struct drain *d, uint64_t ret_verdicts[MS_N_SOURCES][MS_N_VERDICTS])
{
	counters_read(d->session, SESSION_VERDICTS, MS_N_SOURCES * MS_N_VERDICTS, ret_verdicts[0]);
}

uint64_t drain_wait_clock(const struct drain *d, uint64_t ns)
{
	return session_slice_clock(d->session, SOURCE_OFFCPU, ns);
}

uint32_t drain_last_totals(const struct drain *d)
{
	return d->n_totals;
}
