#include "collect/stream/ingest_wire.h"

#include "ingest_fixture.h"
#include "model/alloc_site.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SCHEDULE 0xffffffff81f00000ULL
#define END_NS   5000000000ULL

static struct profile *new_profile(struct dict *d, enum profile_kind kind)
{
	return profile_new(d, profile_rows[kind].types, profile_rows[kind].n_types);
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(new_profile);

	f->p.heap = new_profile(f->d, PROFILE_HEAP);
	f->p.peak = new_profile(f->d, PROFILE_PEAK);
	f->p.sites = profile_new(f->d, alloc_site_types, N_SITE_VALUES);
	f->in = ingest_new(f->d, f->procs, &f->p, SCHEDULE);
	*state = f;
	return 0;
}

static void send_stack(struct fixture *f, uint64_t id, uint8_t flags, const uint64_t *frames,
		       uint16_t n)
{
	struct ms_stack_rec rec = {
		.kind = MS_EV_STACK, .n_frames = n, .flags = flags, .hash = { id, id }
	};

	assert_int_equal(ingest_stack(f->in, &rec, frames), 0);
}

static struct ms_total_key key_of(enum ms_source source, enum ms_state state, uint64_t user,
				  uint64_t kernel)
{
	return (struct ms_total_key){ .proc = self,
				      .user = { user, user },
				      .kernel = { kernel, kernel },
				      .tid = 4000000,
				      .source = (uint8_t)source,
				      .state = (uint8_t)state };
}

static void add_total(struct fixture *f, struct ms_total_key key, uint64_t count, uint64_t value)
{
	struct ms_total total = { .count = count, .value = value };

	assert_int_equal(ingest_total(f->in, &key, &total), 0);
}

/* The addresses of a sample's stack, leaf first. */
static uint32_t addresses(struct fixture *f, const struct profile *p, uint32_t sample,
			  uint64_t *out)
{
	uint32_t n = 0;

	for (stack_id s = profile_sample(p, sample).stack; s.ix; s = dict_stack_parent(f->d, s))
		out[n++] = dict_location_get(f->d, dict_stack_leaf(f->d, s))->vaddr;
	return n;
}

static void a_return_address_is_moved_into_its_call_and_a_leaf_is_not(void **state)
{
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000, 0x2000 }, kernel[] = { 0xffffffff81000010, 0xffffffff81000020 },
		 got[8];

	send_stack(f, 1, 0, user, 2);
	send_stack(f, 2, MS_STACK_KERNEL, kernel, 2);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 1, 2), 3, 30);
	assert_int_equal(addresses(f, f->p.oncpu, 0, got), 4);
	assert_int_equal(got[0], 0xffffffff81000010);
	assert_int_equal(got[1], 0xffffffff8100001f);
	assert_int_equal(got[2], 0x1000);
	assert_int_equal(got[3], 0x1fff);
	assert_int_equal(profile_total(f->p.oncpu, 0), 3);
	assert_int_equal(profile_total(f->p.oncpu, 1), 30);
}

static void what_a_signal_interrupted_is_no_return_address(void **state)
{
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000, 0x2000, MS_FRAME_EXACT << MS_FRAME_TAG_SHIFT | 0x3000, 0x4000 };
	uint64_t got[8];

	send_stack(f, 1, 0, user, 4);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 1, 0), 3, 30);
	assert_int_equal(addresses(f, f->p.oncpu, 0, got), 4);
	assert_int_equal(got[0], 0x1000);
	assert_int_equal(got[1], 0x1fff);
	assert_int_equal(got[2], 0x3000);
	assert_int_equal(got[3], 0x3fff);
}

static void a_stack_taken_at_a_switch_begins_at_schedule(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel[] = { 0xffffffffc0001234, 0xffffffff814b87ab, SCHEDULE + 0x617,
			      SCHEDULE + 0x8000 };
	uint64_t got[8];

	send_stack(f, 2, MS_STACK_KERNEL | MS_STACK_AT_SWITCH, kernel, 4);
	add_total(f, key_of(MS_OFFCPU, MS_BLOCKED, 0, 2), 1, 10);
	assert_int_equal(addresses(f, f->p.offcpu, 0, got), 2);
	assert_int_equal(got[0], SCHEDULE + 0x616);
}

static void a_total_waits_for_its_stack_and_is_not_lost(void **state)
{
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000 };
	struct ingest_stats st;

	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 7, 0), 5, 50);
	assert_int_equal(profile_n_samples(f->p.oncpu), 0);
	send_stack(f, 7, 0, user, 1);
	assert_int_equal(ingest_finish(f->in), 0);
	assert_int_equal(profile_total(f->p.oncpu, 0), 5);
	ingest_stats(f->in, &st);
	assert_int_equal(st.lost_stacks, 0);
}

static void what_waits_is_added_when_its_stack_comes_and_not_for_ever(void **state)
{
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000 };
	struct ingest_stats st;

	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 7, 0), 5, 50);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 8, 0), 3, 30);
	assert_int_equal(ingest_waiting(f->in, 0), 0);
	assert_int_equal(profile_n_samples(f->p.oncpu), 0);
	send_stack(f, 7, 0, user, 1);
	assert_int_equal(ingest_waiting(f->in, 0), 0);
	assert_int_equal(profile_total(f->p.oncpu, 0), 5);
	assert_int_equal(ingest_waiting(f->in, 0), 0); /* once */
	assert_int_equal(profile_total(f->p.oncpu, 0), 5);
	assert_int_equal(ingest_waiting(f->in, UINT64_MAX), 0);
	assert_int_equal(profile_total(f->p.oncpu, 0), 8);
	ingest_stats(f->in, &st);
	assert_int_equal(st.lost_stacks, 3);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 9, 0), 2, 20); /* waits as before */
	assert_int_equal(profile_total(f->p.oncpu, 0), 8);
}

static void a_stack_that_never_comes_is_shown_and_counted(void **state)
{
	struct fixture *f = *state;
	struct ingest_stats st;
	location_id leaf;

	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 7, 0), 5, 50);
	assert_int_equal(ingest_finish(f->in), 0);
	assert_int_equal(profile_total(f->p.oncpu, 0), 5);
	leaf = dict_stack_leaf(f->d, profile_sample(f->p.oncpu, 0).stack);
	assert_string_equal(dict_str(f->d, dict_location_get(f->d, leaf)->lines[0].function),
			    "[stack lost]");
	ingest_stats(f->in, &st);
	assert_int_equal(st.lost_stacks, 5);
}

static void blocked_and_runnable_are_value_types_of_their_own(void **state)
{
	struct fixture *f = *state;

	add_total(f, key_of(MS_OFFCPU, MS_BLOCKED, 0, 0), 2, 200);
	add_total(f, key_of(MS_OFFCPU, MS_RUNNABLE, 0, 0), 3, 30);
	assert_int_equal(profile_total(f->p.offcpu, 0), 2);
	assert_int_equal(profile_total(f->p.offcpu, 1), 200);
	assert_int_equal(profile_total(f->p.offcpu, 2), 3);
	assert_int_equal(profile_total(f->p.offcpu, 3), 30);
}

static void the_times_of_a_thread_add_up_to_its_life(void **state)
{
	struct fixture *f = *state;
	/* Blocked since 3 s, woken at 4 s, not on a CPU yet at 5 s. */
	struct ms_thread t = { .proc = self,
			       .first_ns = 1000000000,
			       .since_ns = 3000000000,
			       .wake_ns = 4000000000,
			       .oncpu_ns = 1500000000,
			       .blocked_ns = 400000000,
			       .runnable_ns = 100000000,
			       .state = MS_RUN_BLOCKED };
	struct ingest_stats st;

	assert_int_equal(ingest_thread(f->in, 4000000, &t, END_NS), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.times.wall_ns, 4000000000);
	assert_int_equal(st.times.oncpu_ns, 1500000000);
	assert_int_equal(st.times.blocked_ns, 1400000000);
	assert_int_equal(st.times.runnable_ns, 1100000000);
	/* What was still open is a sample too. */
	assert_int_equal(profile_total(f->p.offcpu, 1), 1000000000);
	assert_int_equal(profile_total(f->p.offcpu, 3), 1000000000);
}

static void what_is_cut_of_an_open_wait_is_less_than_it_will_come_to(void **state)
{
	struct fixture *f = *state;
	/* Blocked since 3 s, woken at 4 s by the scheduler's clock, give or take some us. */
	struct ms_thread t = {
		.proc = self, .since_ns = 3000000000, .wake_ns = 4000000000, .state = MS_RUN_BLOCKED
	};

	assert_int_equal(ingest_open_wait(f->in, f->p.offcpu, 4000000, &t, END_NS), 0);
	assert_int_equal(profile_total(f->p.offcpu, 1), 999900000);
	assert_int_equal(profile_total(f->p.offcpu, 3), 999900000);
	t.wake_ns = END_NS + 1; /* after the boundary: it was blocked there */
	assert_int_equal(ingest_open_wait(f->in, f->p.offcpu, 4000000, &t, END_NS), 0);
	assert_int_equal(profile_total(f->p.offcpu, 1), 2999900000);
	assert_int_equal(profile_total(f->p.offcpu, 3), 999900000);
	t.wake_ns = t.since_ns + 10; /* at once, as good as: nothing is taken for blocked */
	assert_int_equal(ingest_open_wait(f->in, f->p.offcpu, 4000000, &t, END_NS), 0);
	assert_int_equal(profile_total(f->p.offcpu, 1), 2999900000);
}

static void what_a_thread_was_held_is_not_its_time(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = { .proc = self,
			       .first_ns = 1000000000,
			       .since_ns = 4500000000,
			       .oncpu_ns = 3400000000,
			       .held_ns = 100000000,
			       .state = MS_RUN_HELD };
	struct ingest_stats st;

	assert_int_equal(ingest_thread(f->in, 4000000, &t, END_NS), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.times.held_ns, 600000000);
	assert_int_equal(st.times.wall_ns, 3400000000);
	assert_int_equal(st.times.blocked_ns, 0);
	assert_int_equal(profile_n_samples(f->p.offcpu), 0);
}

static void an_exited_thread_ends_at_its_last_switch(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = { .proc = self,
			       .first_ns = 1000,
			       .since_ns = 3000,
			       .oncpu_ns = 2000,
			       .state = MS_RUN_GONE };
	struct ingest_stats st;

	assert_int_equal(ingest_thread(f->in, 4000000, &t, END_NS), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.times.wall_ns, 2000);
	assert_int_equal(profile_n_samples(f->p.offcpu), 0);
}

/* 20,000 threads that live for a moment, of a process in which one stays. */
static void threads_that_come_and_go_share_a_sample(void **state)
{
	enum { N = 20000, STAYS = 4100000, TID = 4200000 };
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000 };
	struct ms_total_key key = key_of(MS_ONCPU, MS_STATE_NONE, 1, 0);
	struct ingest_stats st;
	uint32_t n;

	proc_table_comm(f->procs, 10, 4000000, 4000000, "server", true);
	proc_table_fork(f->procs, 20, 4000000, 4000000, STAYS);
	assert_non_null(proc_table_find(f->procs, &(struct proc_id){ 4000000, 1, 1 }));
	send_stack(f, 1, 0, user, 1);
	for (int i = 0; i < N; i++) {
		key.tid = (uint32_t)(TID + i);
		proc_table_fork(f->procs, 100 + (uint64_t)i, 4000000, 4000000, TID + i);
		proc_table_exit(f->procs, 100 + (uint64_t)i, 4000000, TID + i);
		add_total(f, key, 1, 10);
		if (i % 1000 == 999)
			proc_table_drained(f->procs);
	}
	n = profile_n_samples(f->p.oncpu);
	assert_int_equal(n, INGEST_SHOWN_ENDED + 1);
	assert_int_equal(profile_total(f->p.oncpu, 0), N);
	key.tid = STAYS;
	add_total(f, key, 1, 10);
	assert_int_equal(profile_n_samples(f->p.oncpu), n + 1);
	assert_int_equal(dict_label_find(f->d, profile_sample(f->p.oncpu, n).labels, "tid")->num,
			 STAYS);
	ingest_stats(f->in, &st);
	assert_int_equal(st.numberless, N - INGEST_SHOWN_ENDED);
}

/* 3,000 processes that live for a moment; two that stay, one of which ends. */
static void processes_that_come_and_go_share_a_sample(void **state)
{
	enum {
		N = 3000,
		SHOWN = 100,
		STAYS = 3999990,
		ENDS = 3999991,
		PID = 4000000,
		LATER = 500000
	};
	struct fixture *f = *state;
	uint64_t user[] = { 0x1000 };
	struct ms_total_key key = key_of(MS_ONCPU, MS_STATE_NONE, 1, 0);
	const struct label *comm;
	struct ingest_stats st;
	struct profile_sample s;
	uint32_t n;

	ingest_few_processes(f->in, SHOWN);
	proc_table_comm(f->procs, 10, STAYS, STAYS, "server", true);
	proc_table_comm(f->procs, 10, ENDS, ENDS, "worker", true);
	proc_table_drained(f->procs);
	send_stack(f, 1, 0, user, 1);
	for (uint32_t i = 0; i < N; i++) {
		key.proc = (struct ms_proc){ .tgid = PID + i, .exec_id = 1, .start_ns = 100 + i };
		key.tid = PID + i;
		proc_table_comm(f->procs, 100 + i, (pid_t)(PID + i), (pid_t)(PID + i), "cc1", true);
		if (i % 2)
			proc_table_exit(f->procs, 100 + i, (pid_t)(PID + i), (pid_t)(PID + i));
		add_total(f, key, 1, 10);
	}
	n = profile_n_samples(f->p.oncpu);
	assert_int_equal(n, SHOWN + 1);
	assert_int_equal(profile_total(f->p.oncpu, 0), N);
	s = profile_sample(f->p.oncpu, n - 1);
	comm = dict_label_find(f->d, s.labels, "comm");
	assert_string_equal(dict_str(f->d, comm->str), "cc1");
	assert_null(dict_label_find(f->d, s.labels, "pid"));
	assert_null(dict_label_find(f->d, s.labels, "tid"));
	assert_int_equal(s.values[0], N - SHOWN);
	ingest_stats(f->in, &st);
	assert_int_equal(st.numberless_processes, N - SHOWN);

	/* Who was there before the last drain has its number, and keeps it when it ends. */
	key.proc = (struct ms_proc){ .tgid = ENDS, .exec_id = 1, .start_ns = 10 };
	key.tid = ENDS;
	add_total(f, key, 1, 10);
	proc_table_exit(f->procs, LATER, ENDS, ENDS);
	ingest_forget(f->in);
	add_total(f, key, 1, 10);
	key.proc.tgid = key.tid = STAYS;
	add_total(f, key, 1, 10);
	assert_int_equal(profile_n_samples(f->p.oncpu), n + 2);
	s = profile_sample(f->p.oncpu, n);
	assert_int_equal(dict_label_find(f->d, s.labels, "pid")->num, ENDS);
	assert_int_equal(s.values[0], 2);
}

/* Allocations that are added up in the run and ended after it: always under the same key. */
static void allocations_of_many_threads_have_one_key(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_ALLOC, MS_STATE_NONE, 1, 0);
	struct event_key first = wire_event(&key), of, rest[2];

	of = ingest_event(f->in, &first);
	assert_memory_equal(&of, &first, sizeof(of));
	for (uint32_t i = 0; i < 2 * INGEST_SHOWN_ENDED; i++) {
		key.tid = 4200000 + i;
		of = wire_event(&key);
		rest[i % 2] = ingest_event(f->in, &of);
	}
	assert_memory_equal(&rest[0], &rest[1], sizeof(of));
	of = ingest_event(f->in, &first);
	assert_memory_equal(&of, &first, sizeof(of));
}

static void a_process_without_records_has_gone_when_it_is_not_there(void **state)
{
	struct fixture *f = *state;
	struct proc_id here = { .pid = (uint32_t)getppid(), .start_ns = 1 };
	struct proc_id nowhere = { .pid = 0x7ffffffe, .start_ns = 1 };

	assert_false(ingest_gone(f->in, &here));
	assert_true(ingest_gone(f->in, &nowhere));
}

static void live_is_what_was_allocated_less_what_was_freed_or_not_followed(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = self, .tid = 4000000 };
	const int64_t did[N_SITE_VALUES] = {
		[SITE_OBJECTS] = 4, [SITE_BYTES] = 400, [SITE_FREED] = 2, [SITE_FREED_BYTES] = 200
	};
	const int64_t end[N_SITE_VALUES] = { [SITE_PEAK_OBJECTS] = 3,
					     [SITE_PEAK_BYTES] = 300,
					     [SITE_LIVE_OBJECTS] = 1,
					     [SITE_LIVE_BYTES] = 100 };
	struct ingest_stats st;

	ingest_keep(f->in, (pid_t)self.tgid);
	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 1, 100, false), 0);
	assert_int_equal(ingest_live_bytes(f->in), 100);
	assert_int_equal(ingest_site_end(f->in, wire_site_key(&site), 0, end), 0);
	assert_int_equal(profile_total(f->p.alloc, 0), 4);
	assert_int_equal(profile_total(f->p.alloc, 1), 400);
	assert_int_equal(profile_total(f->p.heap, 1), 400);
	assert_int_equal(profile_total(f->p.heap, 2), 1);
	assert_int_equal(profile_total(f->p.heap, 3), 100);
	assert_int_equal(profile_total(f->p.peak, 0), 3);
	assert_int_equal(profile_total(f->p.peak, 1), 300);
	assert_int_equal(profile_n_samples(f->p.sites), 1);
	assert_int_equal(profile_total(f->p.sites, SITE_LIVE_BYTES), 100);
	ingest_stats(f->in, &st);
	assert_int_equal(st.allocated - st.freed - st.untracked, st.live);
	assert_int_equal(st.allocated_bytes - st.freed_bytes - st.untracked_bytes, st.live_bytes);
}

static void a_site_is_told_again_until_its_stack_has_come(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = self, .user = { 7, 7 }, .tid = 4000000 };
	const int64_t did[N_SITE_VALUES] = { [SITE_OBJECTS] = 1, [SITE_BYTES] = 10 };
	uint64_t user[] = { 0x1000 };

	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 0, 0, false), -EAGAIN);
	assert_int_equal(profile_n_samples(f->p.alloc), 0);
	assert_int_equal(ingest_live_bytes(f->in), 0);
	send_stack(f, 7, 0, user, 1);
	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 0, 0, false), 0);
	assert_int_equal(profile_total(f->p.alloc, 1), 10);
}

static void a_site_whose_stack_will_not_come_is_told_without_it(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = self, .user = { 7, 7 }, .tid = 4000000 };
	const int64_t did[N_SITE_VALUES] = { [SITE_OBJECTS] = 3, [SITE_BYTES] = 10 };
	struct ingest_stats st;

	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 0, 0, true), 0);
	assert_int_equal(profile_total(f->p.alloc, 1), 10);
	ingest_stats(f->in, &st);
	assert_int_equal(st.lost_stacks, 3);
}

static void what_found_no_room_in_the_table_of_sites_has_a_frame_that_says_so(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key root = { .proc = self, .user = MS_ROOT_STACK };
	const int64_t did[N_SITE_VALUES] = { [SITE_OBJECTS] = 1, [SITE_BYTES] = 10 };
	location_id leaf;

	assert_int_equal(ingest_site(f->in, wire_site_key(&root), 0, did, 0, 0, false), 0);
	leaf = dict_stack_leaf(f->d, profile_sample(f->p.alloc, 0).stack);
	assert_string_equal(dict_str(f->d, dict_location_get(f->d, leaf)->lines[0].function),
			    "[no room for more stacks]");
}

static void sites_of_several_threads_are_one_row_of_their_process(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = self, .tid = 4000000 };
	const int64_t did[N_SITE_VALUES] = { [SITE_OBJECTS] = 1, [SITE_TEMPORARY] = 1 };

	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 0, 0, false), 0);
	site.tid++;
	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 0, 0, false), 0);
	assert_int_equal(profile_n_samples(f->p.alloc), 2);
	assert_int_equal(profile_n_samples(f->p.sites), 1);
	assert_int_equal(profile_total(f->p.sites, SITE_TEMPORARY), 2);
}

static void pages_that_came_and_went_are_value_types_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct ms_total_key key = key_of(MS_GROWTH, MS_RESIDENT, 0, 0);
	struct ingest_stats st;

	add_total(f, key, 1, 127 * 4096);
	key.state = MS_RETURNED;
	add_total(f, key, 2, 512 * 4096);
	assert_int_equal(profile_total(f->p.growth, 0), 127 * 4096);
	assert_int_equal(profile_total(f->p.growth, 1), 512 * 4096);
	assert_int_equal(profile_n_samples(f->p.growth), 1);
	assert_int_equal(profile_n_samples(f->p.alloc), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.resident_bytes, 127 * 4096);
	assert_int_equal(st.returned_bytes, 512 * 4096);
}

static void kinds_of_memory_are_labels(void **state)
{
	static const char *const names[] = { "file", "anonymous", "shared" };
	struct fixture *f = *state;

	for (uint8_t kind = 0; kind < MS_N_MEMORY_KINDS; kind++) {
		struct ms_total_key key = key_of(MS_GROWTH, MS_RESIDENT, 0, 0);
		const struct label *label;

		key.memory = kind;
		add_total(f, key, 1, 4096);
		label = dict_label_find(f->d, profile_sample(f->p.growth, kind).labels, "memory");
		assert_non_null(label);
		assert_string_equal(dict_str(f->d, label->str), names[kind]);
	}
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 0, 0), 1, 10);
	assert_null(dict_label_find(f->d, profile_sample(f->p.oncpu, 0).labels, "memory"));
}

static void in_a_container(void *ctx, const struct proc_id *proc, uint64_t cgroup_id,
			   struct ingest_container *ret)
{
	assert_int_equal(proc->pid, self.tgid);
	*(uint64_t *)ctx = cgroup_id;
	*ret = (struct ingest_container){
		.name = "web", .id = "0123", .ns_pid = 7, .pod = "web-0", .namespace = "shop"
	};
}

static void the_container_of_a_process_is_a_label(void **state)
{
	struct fixture *f = *state;
	struct ms_total total = { .count = 1, .value = 1, .cgroup_id = 4242 };
	struct ms_total_key key = key_of(MS_ONCPU, MS_STATE_NONE, 0, 0);
	uint64_t cgroup_id = 0;
	labels_id labels;

	ingest_container_lookup(f->in, in_a_container, &cgroup_id);
	assert_int_equal(ingest_total(f->in, &key, &total), 0);
	assert_int_equal(cgroup_id, 4242);
	labels = profile_sample(f->p.oncpu, 0).labels;
	assert_string_equal(dict_str(f->d, dict_label_find(f->d, labels, "container")->str), "web");
	assert_string_equal(dict_str(f->d, dict_label_find(f->d, labels, "container_id")->str),
			    "0123");
	assert_string_equal(dict_str(f->d, dict_label_find(f->d, labels, "pod")->str), "web-0");
	assert_string_equal(dict_str(f->d, dict_label_find(f->d, labels, "namespace")->str),
			    "shop");
	assert_int_equal(dict_label_find(f->d, labels, "ns_pid")->num, 7);
}

static void a_stack_taken_at_a_count_of_pages_begins_with_who_changed_it(void **state)
{
	static const struct kernel_function tracers[] = {
		{ 0xffffffff81200000, 0x80 }, /* mm_trace_rss_stat, with its neighbour behind it */
		{ 0, 0 },
		{ 0xffffffff81100000, 0x100 },
	};
	/* The tracer's call is its last instruction. */
	uint64_t kernel[] = { 0xffffffffa0000010, 0xffffffff81100040, 0xffffffff81200080,
			      0xffffffff81200081, 0xffffffff81000020 },
		 got[8];
	struct fixture *f = *state;

	ingest_tracers(f->in, tracers, 3);
	send_stack(f, 2, MS_STACK_KERNEL | MS_STACK_AT_RSS, kernel, 5);
	add_total(f, key_of(MS_GROWTH, MS_RESIDENT, 0, 2), 1, 4096);
	assert_int_equal(addresses(f, f->p.growth, 0, got), 2);
	assert_int_equal(got[0],
			 0xffffffff81200080); /* a return address: it is the leaf, but called */
	assert_int_equal(got[1], 0xffffffff8100001f);
}

static void without_names_of_kernel_functions_the_whole_stack_is_shown(void **state)
{
	uint64_t kernel[] = { 0xffffffffa0000010, 0xffffffff81200040 }, got[8];
	struct fixture *f = *state;

	send_stack(f, 2, MS_STACK_KERNEL | MS_STACK_AT_RSS, kernel, 2);
	add_total(f, key_of(MS_GROWTH, MS_RESIDENT, 0, 2), 1, 4096);
	assert_int_equal(addresses(f, f->p.growth, 0, got), 2);
}

/* Frames of a language: their location has the address of their code; 0x7000 to 0x7fff is the interpreter. */
static location_id lang_place(void *ctx, const struct proc_id *id, const uint64_t words[2])
{
	struct fixture *f = ctx;

	assert_int_equal(id->pid, self.tgid);
	return dict_location(f->d, (module_id){ 0 }, words[0] & MS_FRAME_ADDR_MASK);
}

static uint32_t seen;

static void lang_seen(void *ctx, pid_t pid, const uint64_t words[2])
{
	(void)ctx, (void)words;
	assert_int_equal(pid, 77);
	seen++;
}

static module_id interpreter;

static bool lang_internal(void *ctx, const struct proc_id *id, module_id module)
{
	(void)ctx, (void)id;
	return module.ix == interpreter.ix;
}

static uint64_t native;

static void lang_native(void *ctx, const struct proc_id *id, const uint64_t *frames, uint32_t n,
			uint64_t count)
{
	(void)ctx, (void)frames, (void)n;
	assert_int_equal(id->pid, self.tgid);
	native += count;
}

#define LANG(code)                                                                                 \
	(MS_FRAME_LANG << MS_FRAME_TAG_SHIFT | (code)),                                            \
		(MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_PYTHON                 \
								  << MS_LANG_SHIFT)

/* native leaf, two frames of the language, three of the interpreter between, one more, executed, then its main */
static const uint64_t mixed[] = { 0x1000, LANG(0x10), LANG(0x20), 0x2000,
				  0x3000, LANG(0x30), 0x4000,     0x5000 };

static void send_mixed(struct fixture *f, bool keep_native)
{
	const struct ingest_langs langs = { .place = lang_place,
					    .seen = lang_seen,
					    .internal = lang_internal,
					    .native = lang_native,
					    .ctx = f,
					    .keep_native = keep_native };
	struct ms_stack_rec rec = {
		.kind = MS_EV_STACK, .n_frames = sizeof(mixed) / 8, .hash = { 9, 9 }, .tgid = 77
	};

	/* Nothing is mapped: all modules are none. */
	interpreter = (module_id){ 0 };
	seen = 0;
	ingest_on_langs(f->in, &langs);
	assert_int_equal(ingest_stack(f->in, &rec, mixed), 0);
	assert_int_equal(seen, 3);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 9, 0), 1, 1);
}

static void an_interpreters_frames_between_those_of_its_language_are_hidden(void **state)
{
	struct fixture *f = *state;
	uint64_t got[16];

	send_mixed(f, false);
	assert_int_equal(addresses(f, f->p.oncpu, 0, got), 5);
	assert_int_equal(got[0], 0x1000);
	assert_int_equal(got[1], 0x10);
	assert_int_equal(got[2], 0x20);
	assert_int_equal(got[3], 0x30);
	assert_int_equal(got[4], 0x4fff);
}

/* Of V8: the code of a bytecode, a function, its caller. */
static uint32_t frames_of_v8(struct fixture *f, uint32_t sample, uint32_t kind, uint64_t got[16])
{
	const uint64_t frames[] = { 0x1000, MS_FRAME_LANG << MS_FRAME_TAG_SHIFT | 0x10,
				    MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT |
					    (uint64_t)MS_LANG_V8 << MS_LANG_SHIFT | kind | 60,
				    0x2000 };
	struct ms_stack_rec rec = {
		.kind = MS_EV_STACK, .n_frames = 4, .hash = { 20 + sample, 20 + sample }, .tgid = 77
	};

	assert_int_equal(ingest_stack(f->in, &rec, frames), 0);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 20 + sample, 0), 1, 1);
	return addresses(f, f->p.oncpu, sample, got);
}

static void an_interpreters_frames_stay_where_they_are_asked_for(void **state)
{
	struct fixture *f = *state;
	uint64_t got[16];

	send_mixed(f, true);
	assert_int_equal(addresses(f, f->p.oncpu, 0, got), 8);
	assert_int_equal(got[3], 0x1fff);
	assert_int_equal(got[4], 0x2fff);
	assert_int_equal(got[6], 0x3fff);
	assert_int_equal(frames_of_v8(f, 1, MS_V8_INTERPRETED, got), 3);
}

static void a_librarys_frames_between_those_of_a_language_stay(void **state)
{
	struct fixture *f = *state;
	uint64_t got[16];

	interpreter = (module_id){ 0 };
	send_mixed(f, false);
	ingest_forget(f->in);
	interpreter.ix = 12345; /* all else is a library */
	add_total(f, key_of(MS_OFFCPU, MS_BLOCKED, 9, 0), 1, 1);
	assert_int_equal(addresses(f, f->p.offcpu, 0, got), 8);
}

static void a_leaf_that_executes_a_bytecode_is_its_functions(void **state)
{
	struct fixture *f = *state;
	uint64_t got[16];

	send_mixed(f, false);
	assert_int_equal(frames_of_v8(f, 1, MS_V8_INTERPRETED, got), 2);
	assert_int_equal(got[0], 0x10);
	/* Compiled code calls something. */
	assert_int_equal(frames_of_v8(f, 2, MS_V8_BASELINE, got), 3);
	assert_int_equal(got[0], 0x1000);
}

static void events_without_a_frame_of_a_language_are_reported(void **state)
{
	uint64_t frames[] = { 0x1000, 0x7000 };
	struct fixture *f = *state;

	native = 0;
	send_mixed(f, false);
	assert_int_equal(native, 0);
	send_stack(f, 2, 0, frames, 2);
	add_total(f, key_of(MS_ONCPU, MS_STATE_NONE, 2, 0), 3, 1);
	assert_int_equal(native, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fixture_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_return_address_is_moved_into_its_call_and_a_leaf_is_not),
		TEST(what_a_signal_interrupted_is_no_return_address),
		TEST(a_stack_taken_at_a_switch_begins_at_schedule),
		TEST(a_total_waits_for_its_stack_and_is_not_lost),
		TEST(what_waits_is_added_when_its_stack_comes_and_not_for_ever),
		TEST(a_stack_that_never_comes_is_shown_and_counted),
		TEST(blocked_and_runnable_are_value_types_of_their_own),
		TEST(the_times_of_a_thread_add_up_to_its_life),
		TEST(what_is_cut_of_an_open_wait_is_less_than_it_will_come_to),
		TEST(what_a_thread_was_held_is_not_its_time),
		TEST(an_exited_thread_ends_at_its_last_switch),
		TEST(threads_that_come_and_go_share_a_sample),
		TEST(processes_that_come_and_go_share_a_sample),
		TEST(allocations_of_many_threads_have_one_key),
		TEST(a_process_without_records_has_gone_when_it_is_not_there),
		TEST(live_is_what_was_allocated_less_what_was_freed_or_not_followed),
		TEST(a_site_is_told_again_until_its_stack_has_come),
		TEST(a_site_whose_stack_will_not_come_is_told_without_it),
		TEST(what_found_no_room_in_the_table_of_sites_has_a_frame_that_says_so),
		TEST(sites_of_several_threads_are_one_row_of_their_process),
		TEST(pages_that_came_and_went_are_value_types_of_their_own),
		TEST(kinds_of_memory_are_labels),
		TEST(an_interpreters_frames_between_those_of_its_language_are_hidden),
		TEST(an_interpreters_frames_stay_where_they_are_asked_for),
		TEST(a_librarys_frames_between_those_of_a_language_stay),
		TEST(a_leaf_that_executes_a_bytecode_is_its_functions),
		TEST(events_without_a_frame_of_a_language_are_reported),
		TEST(the_container_of_a_process_is_a_label),
		TEST(a_stack_taken_at_a_count_of_pages_begins_with_who_changed_it),
		TEST(without_names_of_kernel_functions_the_whole_stack_is_shown),
	};

	return cmocka_run_group_tests_name("collect/ingest", tests, NULL, NULL);
}
