#include "heap/in_use.h"
#include "run/alloc/alloc.h"
#include "run_fixture.h"

enum { PID = 7, FROM = 0x1000, SIZE = 40 };

static struct run_config cfg;

/* --- what the kernel and the processes would say ---------------------------------------------- */

static struct {
	uint64_t addrs[8]; /* in use, SIZE bytes each */
	uint32_t n;
	uint64_t unknown_bytes;
	bool unwalked, burns;
	uint32_t takes, sought; /* looks; addresses that the last one was about */
	bool results_end;
	bool target_lives;
	location_id at;
} world;

int heap_in_use_take(pid_t pid, int64_t budget_ns, const struct heap_wanted *wanted,
		     struct heap_in_use *ret_in_use, struct err *e)
{
	struct heap_in_use u = { .one_in = 1, .glibc = true, .blocks = { .max = wanted->max } };
	uint64_t from = thread_cpu_ns();

	world.takes++;
	world.sought = (uint32_t)wanted->n_addrs;
	while (world.burns && thread_cpu_ns() - from < 2000000)
		;
	u.blocks.class_of = wanted->class_of;
	for (uint32_t i = 0; i < world.n; i++)
		heap_blocks_add(&u.blocks, world.addrs[i], SIZE, SIZE);
	u.live_bytes = world.n * SIZE;
	u.unknown_bytes = world.unknown_bytes;
	snprintf(u.allocators, sizeof(u.allocators), "%s", world.unwalked ? "" : "glibc");
	*ret_in_use = u;
	return 0;
}

static struct target target = { .pid = PID };

void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	fn(ctx, &target);
}

struct target *target_of(const struct run *r, pid_t pid)
{
	return pid == PID && !target.ended_ns ? &target : NULL;
}

void session_results_end(struct session *s)
{
	world.results_end = true;
}

void bursts_each_row(struct alloc *al, bursts_row_fn fn, void *ctx)
{
	struct event_key key = { 0 };

	fn(ctx, 0, PID, &key);
}

void bursts_weight_range(const struct alloc *al, double *ret_low, double *ret_high)
{
	*ret_low = *ret_high = 1;
}

uint32_t bursts_timed(const struct alloc *al, pid_t pid, uint32_t tid)
{
	return tid;
}

static struct dict *dict;

bool ingest_place(struct ingest *in, const struct event_key *key, stack_id *ret_stack,
		  labels_id *ret_labels)
{
	*ret_stack = dict_stack(dict, &world.at, 1);
	*ret_labels = (labels_id){ 0 };
	return true;
}

/* --- a run ------------------------------------------------------------------------------------ */

static struct alloc *begun(const struct run_config *like, struct run **ret_run)
{
	struct alloc *al;

	cfg = *like;
	cfg.mem_mb = 64;
	cfg.max_overhead = 5;
	cfg.alloc = ALLOC_BURSTS;
	cfg.sources[SOURCE_ALLOC] = true;
	*ret_run = bare_run(&cfg);
	dict = (*ret_run)->dict;
	world.at = dict_location(dict, (module_id){ 0 }, 4096);
	target.ended_ns = 0;
	al = alone(*ret_run, "allocations");
	(*ret_run)->alloc.from_ns = now_ns() - 60000000000ULL;
	(*ret_run)->profiles[PROFILE_HEAP] = profile_new(dict, profile_rows[PROFILE_HEAP].types, 4);
	assert_int_equal(live_begin(al, NULL), 0);
	return al;
}

static struct alloc *of_nothing(struct run **ret_run)
{
	memset(&world, 0, sizeof(world));
	return begun(&(struct run_config){ 0 }, ret_run);
}

/* A call of burst 1 has made a block there. */
static void seen_at(struct alloc *al, uint64_t addr)
{
	const struct drain_result r = {
		.no = 1, .tid = PID, .pid = PID, .addr = addr, .size = SIZE, .time_ns = now_ns()
	};

	live_result(al, 0, &r);
}

static void in_use(uint64_t addr)
{
	world.addrs[world.n++] = addr;
}

static struct summary_alloc reported(struct alloc *al)
{
	struct summary_alloc a = { 0 };

	live_finish(al);
	live_report(al, &a);
	return a;
}

static void end(struct alloc *al, struct run *r)
{
	live_free(al);
	bare_run_free(r);
}

/* --- facts ------------------------------------------------------------------------------------ */

static void of_two_blocks_the_one_that_is_in_use_is_live_with_its_weight(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);
	struct summary_alloc a;

	seen_at(al, FROM);
	seen_at(al, FROM + 64);
	live_settled(al, 1, PID, PID, 1);
	in_use(FROM);
	live_closing(al);
	assert_int_equal(world.sought, 2);
	a = reported(al);
	assert_true(a.live.known);
	assert_int_equal(a.live_bytes, SIZE);
	assert_int_equal(a.live_objects, 1);
	assert_int_equal(profile_total(r->profiles[PROFILE_HEAP], 3), SIZE);
	assert_string_equal(a.live.allocators, "glibc");
	end(al, r);
}

static void what_was_there_before_is_no_sites(void **state)
{
	struct summary_alloc a;
	struct alloc *al;
	struct run *r;

	memset(&world, 0, sizeof(world));
	in_use(FROM);
	al = begun(&(struct run_config){ 0 }, &r);
	live_closing(al);
	a = reported(al);
	assert_true(a.live.known);
	assert_int_equal(a.live.before_bytes, SIZE);
	assert_int_equal(a.live_bytes, 0);
	end(al, r);
}

/* A process that runs could not be walked when the run began: what its first look finds is not the bursts'. */
static void what_could_not_be_walked_at_first_is_before_at_the_next_look(void **state)
{
	struct summary_alloc a;
	struct alloc *al;
	struct run *r;

	memset(&world, 0, sizeof(world));
	in_use(FROM);
	world.unknown_bytes = 64 << 20;
	al = begun(&(struct run_config){ 0 }, &r);
	seen_at(al, FROM + 64);
	live_settled(al, 1, PID, PID, 1);
	in_use(FROM + 64);
	world.unknown_bytes = 0;
	live_row(al, now_ns());
	live_closing(al);
	a = reported(al);
	assert_int_equal(a.live.before_bytes, SIZE);
	assert_int_equal(a.live_bytes, SIZE);
	end(al, r);
}

/* A command has nothing before its first call, and its allocator is not there yet. */
static void a_command_has_nothing_before_its_first_call(void **state)
{
	char *command[] = { "true", NULL };
	struct summary_alloc a;
	struct alloc *al;
	struct run *r;

	memset(&world, 0, sizeof(world));
	world.unwalked = true;
	al = begun(&(struct run_config){ .command = command }, &r);
	world.unwalked = false;
	seen_at(al, FROM);
	live_settled(al, 1, PID, PID, 1);
	in_use(FROM);
	live_closing(al);
	a = reported(al);
	assert_int_equal(a.live.before_bytes, 0);
	assert_int_equal(a.live_bytes, SIZE);
	end(al, r);
}

static void a_last_look_that_fails_is_tried_again_and_then_nothing_is_known(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);
	struct summary_alloc a;

	live_row(al, now_ns());
	world.unknown_bytes = 64 << 20;
	world.takes = 0;
	live_closing(al);
	assert_true(world.takes > 1);
	a = reported(al);
	assert_false(a.live.known);
	assert_non_null(strstr(a.live.why_not, "could not be walked"));
	assert_int_equal(profile_total(r->profiles[PROFILE_HEAP], 3), 0);
	end(al, r);
}

/* 2 ms of CPU time, of which half of 5 % may be: the next one is due in 80 ms; so it is after one that fails. */
static void looks_are_paced_by_what_they_cost_also_if_they_fail(void **state)
{
	for (int fails = 0; fails < 2; fails++) {
		struct run *r;
		struct alloc *al = of_nothing(&r);
		uint64_t from;

		world.burns = true;
		world.unknown_bytes = fails ? 64 << 20 : 0;
		world.takes = 0;
		from = now_ns();
		while (world.takes < 3)
			live_row(al, now_ns());
		assert_true(now_ns() - from >= 2 * 2000000 / 0.025);
		end(al, r);
	}
}

static void where_no_allocator_is_ever_found_returns_are_not_traced_any_more(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);

	world.unwalked = true;
	for (int i = 0; i < 20 && !world.results_end; i++) {
		live_row(al, now_ns());
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	assert_true(world.results_end);
	live_closing(al);
	assert_false(reported(al).live.known);
	end(al, r);
}

static void where_returns_of_too_many_calls_were_not_seen_nothing_is_known(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);

	live_returns(al, 1000, 700);
	live_closing(al);
	assert_non_null(strstr(reported(al).live.why_not, "too many calls"));
	end(al, r);
}

static void calls_whose_return_was_not_seen_are_stood_for_by_the_others(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);

	seen_at(al, FROM);
	live_returns(al, 1000, 900);
	live_settled(al, 1, PID, PID, 9);
	/* As much is in use as the weight says. */
	in_use(FROM);
	for (int i = 1; i < 8; i++)
		in_use(FROM + 64 * (uint64_t)i);
	live_closing(al);
	assert_int_equal(reported(al).live_bytes, 8 * SIZE);
	end(al, r);
}

static void a_process_that_runs_another_program_begins_anew(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);
	const struct process_event exec = { .kind = PROCESS_EXEC, .pid = PID, .listed = true };

	seen_at(al, FROM);
	live_settled(al, 1, PID, PID, 1);
	live_process_event(al, &exec);
	in_use(FROM);
	live_closing(al);
	/* It has been asked about nothing: what was seen there is gone. */
	assert_int_equal(world.sought, 0);
	assert_int_equal(reported(al).live.kept, 0);
	end(al, r);
}

static void a_process_that_has_ended_is_not_walked(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);
	const struct process_event ended = { .kind = PROCESS_ENDED, .pid = PID, .listed = true };

	live_process_event(al, &ended);
	target.ended_ns = 1;
	world.takes = 0;
	live_row(al, now_ns());
	assert_int_equal(world.takes, 0);
	end(al, r);
}

/* By the look at the call rate. */
static void returns_are_apart_where_exact_tracing_would_cost_two_cpus(void **state)
{
	struct run *r;
	struct alloc *al = of_nothing(&r);

	assert_false(live_apart(al));
	al->cost_percent = 150;
	assert_false(live_apart(al));
	al->cost_percent = 250;
	assert_true(live_apart(al));
	end(al, r);
	assert_false(
		live_apart(&(struct alloc){ .cost_percent = 250 })); /* nothing is looked for */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_two_blocks_the_one_that_is_in_use_is_live_with_its_weight),
		cmocka_unit_test(what_was_there_before_is_no_sites),
		cmocka_unit_test(what_could_not_be_walked_at_first_is_before_at_the_next_look),
		cmocka_unit_test(a_command_has_nothing_before_its_first_call),
		cmocka_unit_test(a_last_look_that_fails_is_tried_again_and_then_nothing_is_known),
		cmocka_unit_test(looks_are_paced_by_what_they_cost_also_if_they_fail),
		cmocka_unit_test(where_no_allocator_is_ever_found_returns_are_not_traced_any_more),
		cmocka_unit_test(where_returns_of_too_many_calls_were_not_seen_nothing_is_known),
		cmocka_unit_test(calls_whose_return_was_not_seen_are_stood_for_by_the_others),
		cmocka_unit_test(a_process_that_runs_another_program_begins_anew),
		cmocka_unit_test(a_process_that_has_ended_is_not_walked),
		cmocka_unit_test(returns_are_apart_where_exact_tracing_would_cost_two_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
