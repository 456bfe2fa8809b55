/*
 * Records of the ring, without a ring: what libbpf and the session do is done here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "collect/session/session_wire.h"
#include "collect/stream/drain.h"
#include "collect/wire.h"

static const struct ms_hash seed = { 3, 5 };
static ring_buffer_sample_fn on_record;
static void *on_record_ctx;

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx,
				     const struct ring_buffer_opts *opts)
{
	on_record = fn;
	on_record_ctx = ctx;
	return (struct ring_buffer *)1;
}

void ring_buffer__free(struct ring_buffer *rb)
{
}

/* Records that programs write as fast as they are read: of `len` bytes, so many at most. */
static struct {
	size_t len;
	uint32_t most, read;
} storm;

int ring_buffer__consume(struct ring_buffer *rb)
{
	static const struct ms_ended_rec rec = { .kind = MS_EV_ENDED };
	int r = 0;

	for (storm.read = 0; storm.read < storm.most && r == 0; storm.read++)
		r = on_record(on_record_ctx, (void *)(uintptr_t)&rec, storm.len);
	return r < 0 ? r : (int)storm.read;
}

uint32_t session_map_max(const struct session *s, enum session_map m)
{
	return 64 << 10;
}

int ring_buffer__epoll_fd(const struct ring_buffer *rb)
{
	return -1;
}

int session_map_fd(const struct session *s, enum session_map m)
{
	return -1;
}

void session_seed(const struct session *s, struct ms_hash *ret_seed)
{
	*ret_seed = seed;
}

bool session_gate_is_open(const struct session *s)
{
	return true;
}

int session_queued(struct session *s, session_record_fn each, void *ctx)
{
	return 0;
}

int wait_sampler_each(struct wait_sampler *b, session_record_fn each, void *ctx)
{
	return 0;
}

static struct {
	uint32_t n;
	struct drain_cgroup cgroup;
	char path[300];
	struct drain_burst burst;
	struct drain_reassigned reassigned;
	struct ms_total_key keys[8];
	struct ms_total totals[8];
} got;

static enum drain_says count(void *ctx, const void *record, const void *more)
{
	got.n++;
	return DRAIN_TAKEN;
}

static enum drain_says keep_cgroup(void *ctx, const void *record, const void *more)
{
	got.cgroup = *(const struct drain_cgroup *)record;
	snprintf(got.path, sizeof(got.path), "%s", got.cgroup.path);
	return DRAIN_TAKEN;
}

static enum drain_says keep_burst(void *ctx, const void *record, const void *more)
{
	got.burst = *(const struct drain_burst *)record;
	return DRAIN_TAKEN;
}

static enum drain_says keep_reassigned(void *ctx, const void *record, const void *more)
{
	got.reassigned = *(const struct drain_reassigned *)record;
	return DRAIN_TAKEN;
}

static enum drain_says keep_total(void *ctx, const void *total, const void *key)
{
	assert_true(got.n < 8);
	got.totals[got.n] = *(const struct ms_total *)total;
	got.keys[got.n++] = *(const struct ms_total_key *)key;
	return DRAIN_TAKEN;
}

/* The table of threads: each has its place; what is deleted leaves it. */
enum { THREADS = 2500 };
static struct {
	bool there[THREADS], gone[THREADS], vanishes[THREADS];
	bool no_batches; /* the kernel cannot delete many at once */
	uint32_t deletions;
} threads;

int bpf_map_lookup_batch(int fd, void *in_batch, void *out_batch, void *keys, void *values,
			 __u32 *count, const struct bpf_map_batch_opts *opts)
{
	uint32_t at = in_batch ? *(uint32_t *)in_batch : 0, n = 0;

	for (; at < THREADS && n < *count; at++) {
		struct ms_thread *t = (struct ms_thread *)values + n;

		if (!threads.there[at])
			continue;
		memset(t, 0, sizeof(*t));
		t->state = threads.gone[at] ? MS_RUN_GONE : MS_RUN_BLOCKED;
		((uint32_t *)keys)[n++] = at;
	}
	*(uint32_t *)out_batch = at;
	*count = n;
	/* Another deletes what was read just now. */
	for (uint32_t i = 0; i < at; i++)
		threads.there[i] &= !threads.vanishes[i];
	errno = ENOENT;
	return at < THREADS ? 0 : -1;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	uint32_t at = *(const uint32_t *)key;

	threads.deletions++;
	errno = ENOENT;
	if (!threads.there[at])
		return -1;
	threads.there[at] = false;
	return 0;
}

/* As the kernel does: up to the first that is not there, and says how many. */
int bpf_map_delete_batch(int fd, const void *keys, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	uint32_t n = 0, before = threads.deletions;

	if (threads.no_batches) {
		errno = EINVAL; /* and `count` stays as it was */
		return -1;
	}
	while (n < *count && bpf_map_delete_elem(fd, (const uint32_t *)keys + n) == 0)
		n++;
	threads.deletions = before + 1;
	if (n == *count)
		return 0;
	*count = n;
	return -1;
}

static int setup(void **state)
{
	struct drain *d;

	memset(&got, 0, sizeof(got));
	if (drain_new(NULL, &d, NULL) < 0)
		return -1;
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	drain_free(*state);
	return 0;
}

static void send(const void *record, size_t len)
{
	/* libbpf's own type of the record: not const */
	on_record(on_record_ctx, (void *)(uintptr_t)record, len);
}

struct stack {
	struct ms_stack_rec rec;
	uint64_t frames[2];
};

static void a_stack_that_was_torn_is_left_out(void **state)
{
	struct stack s = { .rec = { .kind = MS_EV_STACK, .n_frames = 2, .hash = seed },
			   .frames = { 0x1000, 0x2000 } };

	drain_on(*state, DRAIN_STACK, count, NULL);
	for (int i = 0; i < 2; i++)
		ms_hash_step(&s.rec.hash, s.frames[i]);
	ms_hash_end(&s.rec.hash, 2);
	send(&s, sizeof(s));
	assert_int_equal(got.n, 1);
	s.frames[1]++;
	send(&s, sizeof(s));
	assert_int_equal(got.n, 1);
}

static void records_that_are_cut_short_are_left_out(void **state)
{
	const struct ms_deferred_rec deferred = { .kind = MS_EV_DEFERRED, .stack_bytes = 8 };
	const struct ms_chain_rec chain = { .kind = MS_EV_CHAIN, .n_links = 1 };
	const struct stack s = { .rec = { .kind = MS_EV_STACK, .n_frames = 3 } };
	const uint32_t kinds[] = { MS_EV_STACK,  MS_EV_SAMPLE,  MS_EV_TOTAL,
				   MS_EV_CGROUP, MS_EV_MAPPING, MS_EV_REASSIGNED };

	for (int kind = 0; kind < N_DRAIN_KINDS; kind++)
		drain_on(*state, (enum drain_kind)kind, count, NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		send(&kinds[i], sizeof(kinds[i]));
	send(&deferred, sizeof(deferred));
	send(&chain, sizeof(chain));
	send(&chain, sizeof(chain) - 1);
	send(&s, sizeof(s));
	send(&s, 2);
	assert_int_equal(drain_sent(*state), 0);
	assert_int_equal(got.n, 0);
}

static void a_control_group_has_a_path_that_ends(void **state)
{
	struct ms_cgroup_rec rec = { .kind = MS_EV_CGROUP, .id = 7, .at.hierarchy = 2 };

	memset(rec.at.path, 'x', sizeof(rec.at.path));
	drain_on(*state, DRAIN_CGROUP, keep_cgroup, NULL);
	send(&rec, sizeof(rec));
	assert_int_equal(got.cgroup.id, 7);
	assert_int_equal(got.cgroup.hierarchy, 2);
	assert_int_equal(strlen(got.path), sizeof(rec.at.path) - 1);
}

static void calls_of_a_burst_are_kept_from_the_totals_and_share_a_key(void **state)
{
	struct ms_total_rec rec = {
		.kind = MS_EV_TOTAL,
		.key = { .proc.tgid = 9, .tid = 10, .source = MS_ALLOC, .bucket = 3 },
		.total = { .count = 5, .value = 640 }
	};
	struct event_key first;

	drain_on(*state, DRAIN_BURST, keep_burst, NULL);
	drain_on(*state, DRAIN_TOTAL, keep_total, NULL);
	send(&rec, sizeof(rec));
	assert_int_equal(drain_sent(*state), 0);
	assert_int_equal(got.burst.no, 3);
	assert_int_equal(got.burst.tid, 10);
	assert_int_equal(got.burst.calls, 5);
	assert_int_equal(got.burst.bytes, 640);
	assert_int_equal(event_proc(&got.burst.key).pid, 9);
	first = got.burst.key;
	rec.key.bucket = 4;
	send(&rec, sizeof(rec));
	assert_int_equal(drain_sent(*state), 0);
	assert_int_equal(got.burst.no, 4);
	assert_memory_equal(&got.burst.key, &first, sizeof(first));
	assert_int_equal(got.n, 0);
	/* Time buckets of other sources are no bursts. */
	rec.key.source = MS_ONCPU;
	send(&rec, sizeof(rec));
	assert_int_equal(drain_sent(*state), 0);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.keys[0].bucket, 4);
}

static void a_reassigned_wait_leaves_the_times_of_its_thread_as_they_were(void **state)
{
	struct ms_reassigned_rec rec = {
		.kind = MS_EV_REASSIGNED,
		.shift = 2,
		.key = { .proc.tgid = 9,
			 .user = { 1, 1 },
			 .source = MS_OFFCPU,
			 .state = MS_BLOCKED },
		.from_user = { 3, 3 },
		.from_as_gen = 1,
		.blocked_ns = 100,
		.runnable_ns = 10,
	};
	int64_t count_sum = 0, ns_sum = 0, ns_here = 0;
	struct ms_total_key key, from;

	drain_on(*state, DRAIN_REASSIGNED, keep_reassigned, NULL);
	drain_on(*state, DRAIN_TOTAL, keep_total, NULL);
	send(&rec, sizeof(rec));
	assert_int_equal(got.reassigned.blocked_ns, 100);
	assert_int_equal(got.reassigned.shift, 2);
	key = wire_key(&got.reassigned.key);
	from = wire_key(&got.reassigned.from);
	assert_int_equal(key.state, MS_STATE_NONE);
	assert_int_equal(from.state, MS_STATE_NONE);
	assert_int_equal(key.user.lo, 1);
	assert_int_equal(from.user.lo, 3);
	assert_int_equal(from.as_gen, 1);
	assert_int_equal(drain_sent(*state), 0);
	assert_int_equal(got.n, 4);
	for (uint32_t i = 0; i < got.n; i++) {
		count_sum += (int64_t)got.totals[i].count;
		ns_sum += (int64_t)got.totals[i].value;
		if (got.keys[i].user.lo == 1)
			ns_here += (int64_t)got.totals[i].value;
	}
	assert_int_equal(count_sum, 0);
	assert_int_equal(ns_sum, 0);
	assert_int_equal(ns_here, 4 * 110);
}

/* What was there when reading began is read: a ringful has no more. */
static void reading_ends_though_records_come_as_fast_as_they_are_read(void **state)
{
	size_t room = 8 + ((sizeof(struct ms_ended_rec) + 7) & ~7ul);

	drain_on(*state, DRAIN_ENDED, count, NULL);
	storm.len = sizeof(struct ms_ended_rec);
	storm.most = 1000000;
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(drain_events(*state), 0);
		assert_int_equal(storm.read, (65536 + room - 1) / room);
		assert_int_equal(got.n, (uint32_t)i * storm.read);
	}
	storm.most = 10;
	assert_int_equal(drain_events(*state), 0);
	assert_int_equal(storm.read, 10);
	storm.most = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* `gone` threads are handed over and leave the table, all others stay. */
static void assert_left(struct drain *d, uint32_t gone)
{
	uint32_t left = 0;

	got.n = 0;
	assert_int_equal(drain_threads(d, false, NULL), 0);
	assert_int_equal(got.n, gone);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(threads.there[i], !threads.gone[i]);
		left += threads.there[i];
	}
	assert_int_equal(left, THREADS - gone);
}

static void threads_that_are_gone_leave_the_table_many_at_a_time(void **state)
{
	struct drain *d = *state;
	uint32_t gone = 0;

	drain_on(d, DRAIN_THREAD, count, NULL);
	for (int way = 0; way < 3; way++) {
		memset(&threads, 0, sizeof(threads));
		gone = 0;
		threads.no_batches = way == 2;
		for (uint32_t i = 0; i < THREADS; i++) {
			threads.there[i] = true;
			threads.gone[i] = i % 3 == 1;
			threads.vanishes[i] = way == 1 && i % 30 == 1;
			gone += threads.gone[i];
		}
		assert_left(d, gone);
		/* 64 of 833 at a time, and the rest of each 1,024 that are read; or one call for each. */
		if (way == 0)
			assert_int_equal(threads.deletions, 15);
		if (way == 2)
			assert_int_equal(threads.deletions, gone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stack_that_was_torn_is_left_out),
		TEST(threads_that_are_gone_leave_the_table_many_at_a_time),
		TEST(records_that_are_cut_short_are_left_out),
		TEST(reading_ends_though_records_come_as_fast_as_they_are_read),
		TEST(a_control_group_has_a_path_that_ends),
		TEST(calls_of_a_burst_are_kept_from_the_totals_and_share_a_key),
		TEST(a_reassigned_wait_leaves_the_times_of_its_thread_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
