#include "collect/stream/alloc_table.h"
#include "collect/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define RECORDS 8

struct fixture {
	struct ms_alloc_site sites[RECORDS];
	struct alloc_table *table;
	int64_t sums[N_SITE_VALUES], untracked;
	int calls, ends, images, answer;
	int64_t highest;
	uint32_t gone; /* tgid */
};

static int on_site(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values,
		   int64_t untracked, int64_t untracked_bytes, bool lost)
{
	struct fixture *f = ctx;

	f->calls++;
	if (f->answer && !(lost && f->answer == -EAGAIN))
		return f->answer;
	for (int i = 0; i < N_SITE_VALUES; i++)
		f->sums[i] += values[i];
	f->untracked += untracked;
	return 0;
}

static int on_end(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values)
{
	struct fixture *f = ctx;

	f->ends++;
	for (int i = 0; i < N_SITE_VALUES; i++)
		f->sums[i] += values[i];
	return 0;
}

static void on_image(void *ctx, const struct table_image *image)
{
	struct fixture *f = ctx;

	f->images++;
	f->highest = image->highest;
}

static bool on_gone(void *ctx, const struct proc_id *proc)
{
	struct fixture *f = ctx;

	return proc->pid == f->gone;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct alloc_table_fns fns = { on_site, on_end, on_image, on_gone, f };

	f->table = alloc_table_over(f->sites, RECORDS, &fns);
	*state = f;
	return f->table ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	alloc_table_close(f->table);
	free(f);
	return 0;
}

/* Record 1 is the root of process 7. */
static struct ms_alloc_site *add_root(struct fixture *f)
{
	f->sites[1] = (struct ms_alloc_site){ .key = { .proc = { 1, 7, 1 }, .user = MS_ROOT_STACK },
					      .root = 1,
					      .peaks = 5 };
	return &f->sites[1];
}

static struct ms_alloc_site *add_site(struct fixture *f, uint32_t ix, uint64_t allocs,
				      uint64_t frees)
{
	f->sites[ix] = (struct ms_alloc_site){
		.key = { .proc = { 1, 7, 1 }, .user = { 2 * ix + 1, ix }, .tid = 7 },
		.root = 1,
		.allocs = allocs,
		.bytes = allocs * 10,
		.frees = frees,
		.freed_bytes = frees * 10,
		.lives = { frees },
	};
	return &f->sites[ix];
}

static void what_was_told_is_not_told_again(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_site *site;

	add_root(f);
	site = add_site(f, 2, 3, 1);
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->calls, 1); /* the root has nothing to tell */
	site->allocs++;
	site->bytes += 5;
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->calls, 2);
	assert_int_equal(f->sums[SITE_OBJECTS], 4);
	assert_int_equal(f->sums[SITE_BYTES], 35);
	assert_int_equal(f->sums[SITE_FREED], 1);
	assert_int_equal(f->sums[SITE_LIVES], 1);
}

static void what_could_not_be_told_comes_with_the_next(void **state)
{
	struct fixture *f = *state;

	add_root(f);
	add_site(f, 2, 3, 0);
	f->answer = -EAGAIN;
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 0);
	f->answer = 0;
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 3);
	f->answer = -ENOMEM;
	f->sites[2].allocs++;
	assert_int_equal(alloc_table_read(f->table), -ENOMEM);
}

static void a_site_unchanged_since_the_highest_point_held_then_what_it_holds_now(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_site *changed, *same;

	add_root(f)->highest = 77;
	f->sites[1].highest_ns = 1;
	same = add_site(f, 2, 3, 1);
	same->peaks_seen = 4;
	changed = add_site(f, 3, 9, 9);
	changed->peaks_seen = 5;
	changed->peak_objects = 5;
	changed->peak_bytes = 57;
	assert_int_equal(alloc_table_finish(f->table, UINT32_MAX), 0);
	assert_int_equal(f->sums[SITE_PEAK_OBJECTS], 2 + 5);
	assert_int_equal(f->sums[SITE_PEAK_BYTES], 20 + 57);
	assert_int_equal(f->sums[SITE_LIVE_OBJECTS], 2);
	assert_int_equal(f->images, 1);
	assert_int_equal(f->highest, 77);
}

static void frees_of_a_root_are_nobodys(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_site *root = add_root(f), *site = add_site(f, 2, 5, 1);

	root->allocs = 4;
	root->cross_frees = 2;
	site->cross_frees = 1;
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sums[SITE_FREED], 4);
	assert_int_equal(f->sums[SITE_CROSS], 1);
}

static void records_of_an_image_that_has_gone_are_used_again(void **state)
{
	struct fixture *f = *state;

	add_root(f)->highest_ns = 1;
	add_site(f, 2, 3, 1);
	f->gone = 7;
	assert_int_equal(alloc_table_sweep(f->table, true), 0);
	assert_int_equal(f->sums[SITE_LIVE_OBJECTS], 2);
	assert_int_equal(f->images, 1);
	assert_int_equal(f->sites[2].key.proc.tgid, 7); /* programs may still be at it */
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sites[1].key.proc.tgid, 0);
	assert_int_equal(f->sites[2].key.proc.tgid, 0);
	assert_int_equal(alloc_table_finish(f->table, UINT32_MAX), 0);
	assert_int_equal(f->images, 1);
	assert_int_equal(f->sums[SITE_OBJECTS], 3);
}

static void an_image_is_not_ended_before_all_of_it_could_be_told(void **state)
{
	struct fixture *f = *state;

	add_root(f)->highest_ns = 1;
	add_site(f, 2, 3, 1);
	f->gone = 7;
	f->answer = -EAGAIN;
	assert_int_equal(alloc_table_sweep(f->table, true), 0);
	assert_int_equal(f->ends + f->images, 0);
	f->answer = 0;
	assert_int_equal(alloc_table_sweep(f->table, true), 0);
	assert_int_equal(f->images, 1);
	assert_int_equal(f->sums[SITE_OBJECTS], 3);
}

static void stack_that_never_comes_is_not_waited_for_when_its_process_has_gone(void **state)
{
	struct fixture *f = *state;

	add_root(f)->highest_ns = 1;
	add_site(f, 2, 3, 1);
	f->answer = -EAGAIN;
	for (int i = 0; i < 5; i++) /* it may still come */
		assert_int_equal(alloc_table_sweep(f->table, true), 0);
	f->gone = 7;
	for (int i = 0; i < 5; i++) /* it is still to be walked */
		assert_int_equal(alloc_table_sweep(f->table, false), 0);
	assert_int_equal(f->sums[SITE_OBJECTS] + f->images, 0);
	assert_int_equal(alloc_table_sweep(f->table, true), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 3);
	assert_int_equal(f->sums[SITE_LIVE_OBJECTS], 2);
	assert_int_equal(f->images, 1);
	assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sites[2].key.proc.tgid, 0);
}

static uint32_t free_record(const struct fixture *f)
{
	for (uint32_t ix = 1; ix < RECORDS; ix++)
		if (!f->sites[ix].key.proc.tgid)
			return ix;
	return 0;
}

/* Every third has a stack that never comes. */
static void short_processes_one_after_another_do_not_grow_the_table(void **state)
{
	struct fixture *f = *state;

	for (uint32_t tgid = 100; tgid < 1100; tgid++) {
		uint32_t root = free_record(f), ix;

		assert_int_not_equal(root, 0);
		f->sites[root] = (struct ms_alloc_site){
			.key = { .proc = { tgid, tgid, 1 }, .user = MS_ROOT_STACK },
			.root = root,
		};
		ix = free_record(f);
		assert_int_not_equal(ix, 0);
		add_site(f, ix, 3, 1)->root = root;
		f->sites[ix].key.proc = f->sites[root].key.proc;
		f->answer = tgid % 3 ? 0 : -EAGAIN;
		assert_int_equal(alloc_table_read(f->table), 0);
		f->gone = tgid;
		for (int i = 0; i < 2; i++) {
			assert_int_equal(alloc_table_read(f->table), 0);
			assert_int_equal(alloc_table_sweep(f->table, true), 0);
		}
		assert_int_equal(alloc_table_read(f->table), 0);
		assert_false(alloc_table_filling(f->table));
	}
	assert_int_equal(f->images, 1000);
	assert_int_equal(f->sums[SITE_OBJECTS], 3000);
	assert_int_equal(f->sums[SITE_LIVE_OBJECTS], 2000);
}

static void idle_sites_make_room_when_the_table_is_nearly_full(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_site *root = add_root(f);

	root->highest_ns = 1;
	for (uint32_t ix = 2; ix < RECORDS; ix++) {
		struct ms_alloc_site *site = add_site(f, ix, 4, ix == 2 ? 3 : 4);

		site->peaks_seen = ix == 3 ? 5 : 4;
		site->peak_objects = 1;
		site->peak_bytes = 10;
	}
	for (int i = 0; i < 3; i++) /* told; idle, and closed; emptied */
		assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sites[2].key.proc.tgid, 7); /* holds a block */
	for (uint32_t ix = 3; ix < RECORDS; ix++)
		assert_int_equal(f->sites[ix].key.proc.tgid, 0);
	assert_int_equal(alloc_table_finish(f->table, UINT32_MAX), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 4 * (RECORDS - 2));
	/* Record 2 has not changed since the highest point, 3 held a block then; the others did before. */
	assert_int_equal(f->sums[SITE_PEAK_OBJECTS], 1 + 1);
	assert_int_equal(f->sums[SITE_LIVE_OBJECTS], 1);
}

static void what_a_site_held_is_forgotten_when_its_process_gets_higher(void **state)
{
	struct fixture *f = *state;
	struct ms_alloc_site *root = add_root(f);

	for (uint32_t ix = 2; ix < RECORDS; ix++) {
		add_site(f, ix, 4, 4);
		f->sites[ix].peaks_seen = 5;
		f->sites[ix].peak_objects = 1;
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(alloc_table_read(f->table), 0);
	assert_int_equal(f->sites[2].key.proc.tgid, 0);
	root->peaks++;
	assert_int_equal(alloc_table_finish(f->table, UINT32_MAX), 0);
	assert_int_equal(f->sums[SITE_PEAK_OBJECTS], 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_told_is_not_told_again),
		TEST(what_could_not_be_told_comes_with_the_next),
		TEST(a_site_unchanged_since_the_highest_point_held_then_what_it_holds_now),
		TEST(frees_of_a_root_are_nobodys),
		TEST(records_of_an_image_that_has_gone_are_used_again),
		TEST(an_image_is_not_ended_before_all_of_it_could_be_told),
		TEST(stack_that_never_comes_is_not_waited_for_when_its_process_has_gone),
		TEST(short_processes_one_after_another_do_not_grow_the_table),
		TEST(idle_sites_make_room_when_the_table_is_nearly_full),
		TEST(what_a_site_held_is_forgotten_when_its_process_gets_higher),
	};

	return cmocka_run_group_tests_name("collect/alloc_table", tests, NULL, NULL);
}
