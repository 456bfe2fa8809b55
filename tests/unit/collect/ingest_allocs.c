/*
 * Allocations as they come from the kernel: to the profiles, to who listens, and to what is live; of
 * processes that are there, and of one that has gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/sources.h"
#include "collect/stream/ingest_wire.h"
#include "model/alloc_site.h"

#include <errno.h>
#include <unistd.h>

struct change {
	int64_t blocks, bytes;
	uint64_t born_ns;
};

struct fixture {
	struct dict *d;
	struct proc_table *procs;
	struct ingest_profiles p;
	struct ingest *in;
	struct change reported[8];
	int n_reported;
};

static struct profile *new_profile(struct dict *d, enum profile_kind kind)
{
	return profile_new(d, profile_rows[kind].types, profile_rows[kind].n_types);
}

static void tell(void *ctx, const struct proc_id *proc, stack_id stack, int64_t blocks,
		 int64_t bytes, uint64_t born_ns)
{
	struct fixture *f = ctx;

	assert_true(f->n_reported < 8);
	f->reported[f->n_reported++] = (struct change){ blocks, bytes, born_ns };
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->procs = proc_table_new(f->d);
	f->p.alloc = new_profile(f->d, PROFILE_ALLOC);
	f->p.heap = new_profile(f->d, PROFILE_HEAP);
	f->p.peak = new_profile(f->d, PROFILE_PEAK);
	f->p.mappings = new_profile(f->d, PROFILE_MAPPINGS);
	f->p.sites = profile_new(f->d, alloc_site_types, N_SITE_VALUES);
	f->in = ingest_new(f->d, f->procs, &f->p, 0);
	ingest_on_alloc(f->in, tell, f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ingest_free(f->in);
	profile_free(f->p.alloc);
	profile_free(f->p.heap);
	profile_free(f->p.peak);
	profile_free(f->p.mappings);
	profile_free(f->p.sites);
	proc_table_free(f->procs);
	dict_free(f->d);
	free(f);
	return 0;
}

/* A number that no process has (pid_max is 4194304 at most). */
static const struct ms_proc gone = { .start_ns = 1, .tgid = 5000000, .exec_id = 1 };
static const struct proc_id gone_id = { .pid = 5000000, .exec_id = 1, .start_ns = 1 };

static struct ms_proc here(void)
{
	return (struct ms_proc){ .start_ns = 1, .tgid = (uint32_t)getpid(), .exec_id = 1 };
}

static void send_stack(struct fixture *f, uint64_t id)
{
	struct ms_stack_rec rec = { .kind = MS_EV_STACK, .n_frames = 1, .hash = { id, id } };
	uint64_t frame = 0x1000;

	assert_int_equal(ingest_stack(f->in, &rec, &frame), 0);
}

static const int64_t did[N_SITE_VALUES] = {
	[SITE_OBJECTS] = 5, [SITE_BYTES] = 500, [SITE_FREED] = 2, [SITE_FREED_BYTES] = 200
};
static const int64_t last[N_SITE_VALUES] = { [SITE_PEAK_OBJECTS] = 4,
					     [SITE_PEAK_BYTES] = 400,
					     [SITE_LIVE_OBJECTS] = 3,
					     [SITE_LIVE_BYTES] = 300 };

static void who_listens_hears_of_what_came_and_then_of_what_went(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = here(), .tid = 1 };

	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, did, 1, 100, false), 0);
	assert_int_equal(f->n_reported, 2);
	assert_int_equal(f->reported[0].blocks, 5);
	assert_int_equal(f->reported[0].bytes, 500);
	/* What is not followed any more has gone for who counts what is there. */
	assert_int_equal(f->reported[1].blocks, -3);
	assert_int_equal(f->reported[1].bytes, -300);
}

static void a_site_that_did_nothing_is_no_news(void **state)
{
	static const int64_t nothing[N_SITE_VALUES] = { 0 };
	struct fixture *f = *state;
	struct ms_alloc_key site = { .proc = here(), .tid = 1 };

	assert_int_equal(ingest_site(f->in, wire_site_key(&site), 0, nothing, 0, 0, false), 0);
	assert_int_equal(f->n_reported, 0);
	assert_int_equal(profile_n_samples(f->p.alloc), 0);
	assert_int_equal(profile_n_samples(f->p.heap), 0);
}

static void live_bytes_are_of_processes_that_are_there(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key ours = { .proc = here(), .tid = 1 },
			    theirs = { .proc = gone, .tid = 2 };

	assert_int_equal(ingest_site(f->in, wire_site_key(&ours), 0, did, 0, 0, false), 0);
	assert_int_equal(ingest_site(f->in, wire_site_key(&theirs), 0, did, 0, 0, false), 0);
	assert_int_equal(ingest_live_bytes(f->in), 300);
	/* It is forgotten and not counted again. */
	assert_int_equal(ingest_live_bytes(f->in), 300);
}

static void blocks_of_a_process_that_ended_went_with_it(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key ours = { .proc = here(), .tid = 1 },
			    theirs = { .proc = gone, .tid = 2 };
	struct ingest_stats st;

	assert_int_equal(ingest_site_end(f->in, wire_site_key(&ours), 0, last), 0);
	assert_int_equal(ingest_site_end(f->in, wire_site_key(&theirs), 0, last), 0);
	ingest_stats(f->in, &st);
	assert_int_equal(st.live, 3);
	assert_int_equal(st.live_bytes, 300);
	assert_int_equal(st.ended, 3);
	assert_int_equal(st.ended_bytes, 300);
	assert_int_equal(profile_total(f->p.heap, 3), 300);
	assert_int_equal(profile_total(f->p.sites, SITE_LIVE_BYTES), 300);
	/* The highest point was there for both. */
	assert_int_equal(profile_total(f->p.peak, 1), 800);
}

static void a_process_that_is_kept_counts_as_there(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key theirs = { .proc = gone, .tid = 2 };

	assert_true(ingest_gone(f->in, &gone_id));
	ingest_keep(f->in, (pid_t)gone.tgid);
	assert_false(ingest_gone(f->in, &gone_id));
	assert_int_equal(ingest_site_end(f->in, wire_site_key(&theirs), 0, last), 0);
	assert_int_equal(profile_total(f->p.heap, 3), 300);
}

static void a_block_that_is_live_at_the_end_is_told_with_its_birth(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_key ours = { .proc = here(), .tid = 1 },
			    theirs = { .proc = gone, .tid = 2 };
	struct ms_block block = { .size = 64, .born_ns = 77 };

	assert_int_equal(
		ingest_block(f->in, wire_site_key(&ours), (int64_t)block.size, block.born_ns), 0);
	assert_int_equal(
		ingest_block(f->in, wire_site_key(&theirs), (int64_t)block.size, block.born_ns), 0);
	assert_int_equal(f->n_reported, 1);
	assert_int_equal(f->reported[0].blocks, 1);
	assert_int_equal(f->reported[0].bytes, 64);
	assert_int_equal(f->reported[0].born_ns, 77);
}

static void an_estimate_waits_for_its_stack(void **state)
{
	static const int64_t values[4] = { 10, 1000, 4, 400 };
	struct fixture *f = *state;
	struct ms_total_key key = {
		.proc = here(), .user = { 9, 9 }, .tid = 1, .source = MS_ALLOC
	};
	struct event_key of = wire_event(&key);
	stack_id stack;
	labels_id labels;

	assert_int_equal(ingest_estimate(f->in, &of, values, 1, &stack, &labels), -EAGAIN);
	assert_int_equal(profile_n_samples(f->p.alloc), 0);
	send_stack(f, 9);
	assert_int_equal(ingest_estimate(f->in, &of, values, 1, &stack, &labels), 0);
	assert_int_equal(profile_total(f->p.alloc, 1), 1000);
	assert_int_equal(profile_total(f->p.heap, 3), 400);
	assert_int_equal(profile_sample(f->p.alloc, 0).stack.ix, stack.ix);
}

static void a_mapping_goes_to_its_own_profile_and_no_other(void **state)
{
	static const int64_t values[4] = { 1, 8192, 1, 4096 };
	struct fixture *f = *state;
	struct ms_total_key key = {
		.proc = here(), .user = { 9, 9 }, .tid = 1, .source = MS_ALLOC
	};
	struct event_key of = wire_event(&key);

	send_stack(f, 9);
	assert_int_equal(ingest_mapping(f->in, &of, 0, values), 0);
	assert_int_equal(profile_total(f->p.mappings, 3), 4096);
	assert_int_equal(profile_n_samples(f->p.alloc) + profile_n_samples(f->p.heap), 0);
	assert_int_equal(f->n_reported, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			who_listens_hears_of_what_came_and_then_of_what_went, setup, teardown),
		cmocka_unit_test_setup_teardown(a_site_that_did_nothing_is_no_news, setup,
						teardown),
		cmocka_unit_test_setup_teardown(live_bytes_are_of_processes_that_are_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(blocks_of_a_process_that_ended_went_with_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_that_is_kept_counts_as_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_block_that_is_live_at_the_end_is_told_with_its_birth, setup, teardown),
		cmocka_unit_test_setup_teardown(an_estimate_waits_for_its_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mapping_goes_to_its_own_profile_and_no_other,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
