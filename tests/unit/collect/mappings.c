#include "collect/stream/mappings.h"
#include "collect/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 4096ULL
#define KIB  1024ULL

enum { ANYBODY = 1, SOMEONE, ANOTHER };

static struct mappings *m;
static uint64_t now_ns;

static int make_m(void **state)
{
	m = mappings_new(1 << 20);
	now_ns = 1000;
	return !m;
}

static int free_m(void **state)
{
	mappings_free(m);
	return 0;
}

/* By the stack `who`. Each call takes 10 ns, and comes 10 ns behind the last. */
static struct ms_mapping_rec call(enum ms_mapping_what what, uint64_t who)
{
	struct ms_mapping_rec rec = { .kind = MS_EV_MAPPING, .what = (uint8_t)what };

	rec.proc.tgid = 77;
	rec.user.lo = who;
	rec.tid = 77;
	rec.memory = MS_MEMORY_ANON;
	now_ns += 10;
	rec.began_ns = now_ns;
	now_ns += 10;
	rec.time_ns = now_ns;
	return rec;
}

static void take(const struct ms_mapping_rec *rec)
{
	assert_int_equal(mappings_take(m, rec), 0);
}

static void made(uint64_t who, uint64_t addr, uint64_t len)
{
	struct ms_mapping_rec rec = call(MS_MAPPING_MADE, who);

	rec.addr = addr;
	rec.len = len;
	take(&rec);
}

static void gone(uint64_t addr, uint64_t len)
{
	struct ms_mapping_rec rec = call(MS_MAPPING_GONE, 0);

	rec.old_addr = addr;
	rec.old_len = len;
	take(&rec);
}

static void moved(uint64_t who, uint64_t from, uint64_t old_len, uint64_t to, uint64_t len)
{
	struct ms_mapping_rec rec = call(MS_MAPPING_MOVED, who);

	rec.old_addr = from;
	rec.old_len = old_len;
	rec.addr = to;
	rec.len = len;
	take(&rec);
}

static struct mappings_sum found;
static uint64_t wanted;

static int find(void *ctx, const struct mappings_row *row)
{
	if (wire_key(row->key).user.lo == wanted) {
		found.made += row->sum.made;
		found.made_bytes += row->sum.made_bytes;
		found.gone_bytes += row->sum.gone_bytes;
		found.live += row->sum.live;
		found.live_bytes += row->sum.live_bytes;
	}
	return 0;
}

static void is(uint64_t who, uint64_t calls, uint64_t bytes, uint64_t live, uint64_t live_bytes)
{
	memset(&found, 0, sizeof(found));
	wanted = who;
	assert_int_equal(mappings_each(m, find, NULL), 0);
	assert_int_equal(found.made, calls);
	assert_int_equal(found.made_bytes, bytes);
	assert_int_equal(found.live, live);
	assert_int_equal(found.live_bytes, live_bytes);
	assert_int_equal(found.gone_bytes, bytes - live_bytes);
}

static void what_is_given_back_in_parts_is_there_until_its_last_page_goes(void **state)
{
	made(ANYBODY, 0x10000, 16 * PAGE);
	gone(0x10000 + 4 * PAGE, 4 * PAGE); /* its middle */
	is(ANYBODY, 1, 16 * PAGE, 1, 12 * PAGE);
	gone(0x10000 - PAGE, 5 * PAGE); /* its front, and what nobody knows */
	is(ANYBODY, 1, 16 * PAGE, 1, 8 * PAGE);
	gone(0x10000 + 8 * PAGE, 8 * PAGE);
	is(ANYBODY, 1, 16 * PAGE, 0, 0);
	gone(0x10000, 16 * PAGE);
	is(ANYBODY, 1, 16 * PAGE, 0, 0);
}

static void one_call_gives_back_what_several_have_made(void **state)
{
	for (uint64_t i = 0; i < 40; i++)
		made(i % 2 ? SOMEONE : ANYBODY, 0x100000 + i * 2 * PAGE, PAGE + i % 2 * PAGE);
	is(SOMEONE, 20, 40 * PAGE, 20, 40 * PAGE);
	gone(0x100000 + 3 * PAGE, 70 * PAGE); /* from the second page of number 1 into number 36 */
	is(SOMEONE, 20, 40 * PAGE, 3, 5 * PAGE);
	is(ANYBODY, 20, 20 * PAGE, 2, 2 * PAGE);
}

static void what_is_mapped_over_is_gone(void **state)
{
	made(ANYBODY, 0x10000, 8 * PAGE);
	made(SOMEONE, 0x10000 + 2 * PAGE, 3 * PAGE);
	is(ANYBODY, 1, 8 * PAGE, 1, 5 * PAGE);
	is(SOMEONE, 1, 3 * PAGE, 1, 3 * PAGE);
	made(ANOTHER, 0x10000, 8 * PAGE);
	is(ANYBODY, 1, 8 * PAGE, 0, 0);
	is(SOMEONE, 1, 3 * PAGE, 0, 0);
	is(ANOTHER, 1, 8 * PAGE, 1, 8 * PAGE);
}

static void growth_belongs_to_who_grew_and_the_rest_stays_whose_it_was(void **state)
{
	made(ANYBODY, 0x10000, 4 * PAGE);
	moved(SOMEONE, 0x10000, 4 * PAGE, 0x10000, 6 * PAGE); /* in place */
	is(ANYBODY, 1, 4 * PAGE, 1, 4 * PAGE);
	is(SOMEONE, 1, 2 * PAGE, 1, 2 * PAGE);
	moved(ANOTHER, 0x10000, 6 * PAGE, 0x90000, 7 * PAGE);
	is(ANOTHER, 1, PAGE, 1, PAGE);
	gone(0x10000, 6 * PAGE); /* nothing is there any more */
	is(ANYBODY, 1, 4 * PAGE, 1, 4 * PAGE);
	gone(0x90000, 5 * PAGE);
	is(ANYBODY, 1, 4 * PAGE, 0, 0);
	is(SOMEONE, 1, 2 * PAGE, 1, PAGE);
}

static void what_shrinks_loses_its_end(void **state)
{
	made(ANYBODY, 0x10000, 8 * PAGE);
	moved(SOMEONE, 0x10000, 8 * PAGE, 0x10000, 3 * PAGE);
	is(ANYBODY, 1, 8 * PAGE, 1, 3 * PAGE);
	moved(SOMEONE, 0x10000, 3 * PAGE, 0x50000, 1 * PAGE);
	is(ANYBODY, 1, 8 * PAGE, 1, PAGE);
	is(SOMEONE, 0, 0, 0, 0);
}

static void a_move_takes_the_place_of_what_was_there(void **state)
{
	made(ANYBODY, 0x10000, 4 * PAGE);
	made(SOMEONE, 0x50000, 8 * PAGE);
	moved(ANOTHER, 0x10000, 4 * PAGE, 0x50000 + PAGE, 4 * PAGE);
	is(ANYBODY, 1, 4 * PAGE, 1, 4 * PAGE);
	is(SOMEONE, 1, 8 * PAGE, 1, 4 * PAGE);
	is(ANOTHER, 0, 0, 0, 0);
}

static void one_mapping_at_two_places_is_two(void **state)
{
	struct ms_mapping_rec rec;

	made(ANYBODY, 0x10000, 4 * PAGE);
	rec = call(MS_MAPPING_TWICE, SOMEONE);
	rec.old_addr = 0x10000;
	rec.addr = 0x50000;
	rec.len = 4 * PAGE;
	take(&rec);
	is(ANYBODY, 1, 4 * PAGE, 1, 4 * PAGE);
	is(SOMEONE, 1, 4 * PAGE, 1, 4 * PAGE);
}

/* Thread A gives a range back; before it is seen to return, B has it, and A's record comes last. */
static void a_range_that_another_thread_has_by_now_stays_its_own(void **state)
{
	struct ms_mapping_rec late, move;

	made(ANYBODY, 0x10000, 4 * PAGE);
	late = call(MS_MAPPING_GONE, 0);
	late.old_addr = 0x10000;
	late.old_len = 4 * PAGE;
	made(SOMEONE, 0x10000, 4 * PAGE);
	take(&late);
	is(ANYBODY, 1, 4 * PAGE, 0, 0);
	is(SOMEONE, 1, 4 * PAGE, 1, 4 * PAGE);
	move = call(MS_MAPPING_MOVED, ANYBODY);
	move.old_addr = 0x10000;
	move.addr = 0x90000;
	move.old_len = move.len = 4 * PAGE;
	gone(0x10000, 4 * PAGE);
	made(ANOTHER, 0x10000, 4 * PAGE);
	take(&move);
	is(ANOTHER, 1, 4 * PAGE, 1, 4 * PAGE);
}

static bool is_77(void *ctx, const struct proc_id *proc)
{
	return proc->pid == 77;
}

static void what_ended_processes_had_is_neither_there_nor_given_back(void **state)
{
	struct mappings_stats st;

	made(ANYBODY, 0x10000, 8 * PAGE);
	gone(0x10000, PAGE);
	mappings_sweep(m, is_77, NULL);
	mappings_stats(m, &st);
	assert_int_equal(st.ended_bytes, 7 * PAGE);
	assert_int_equal(st.by[MS_MEMORY_ANON].gone_bytes, PAGE);
	assert_int_equal(st.by[MS_MEMORY_ANON].live_bytes, 0);
	assert_int_equal(st.by[MS_MEMORY_ANON].live, 0);
}

static void mappings_without_room_are_counted_and_said(void **state)
{
	struct mappings_stats st;

	mappings_free(m);
	m = mappings_new(KIB);
	for (uint64_t i = 0; i < 100; i++)
		made(ANYBODY, 0x100000 + i * 2 * PAGE, PAGE);
	mappings_stats(m, &st);
	assert_true(st.full > 0 && st.full < 100);
	assert_int_equal(st.by[MS_MEMORY_ANON].made, 100);
	assert_int_equal(st.by[MS_MEMORY_ANON].live, 100 - st.full);
	gone(0, 1ULL << 40);
	mappings_stats(m, &st);
	assert_int_equal(st.by[MS_MEMORY_ANON].live_bytes, 0);
}

/* Beside an array of pages, each with its owner: whatever is done to both, they agree. */
static void ranges_agree_with_a_list_of_pages(void **state)
{
	enum { PAGES = 64, STEPS = 20000 };
	uint8_t owner[PAGES] = { 0 };
	uint64_t live[4] = { 0 };

	srand(5);
	for (int step = 0; step < STEPS; step++) {
		uint64_t at = (uint64_t)rand() % PAGES, n = 1 + (uint64_t)rand() % 12;
		uint64_t to = (uint64_t)rand() % PAGES, who = 1 + (uint64_t)rand() % 3;
		uint8_t piece[12];

		n = at + n > PAGES ? PAGES - at : n;
		switch (rand() % 3) {
		case 0:
			made(who, at * PAGE, n * PAGE);
			memset(&owner[at], (int)who, n);
			break;
		case 1:
			gone(at * PAGE, n * PAGE);
			memset(&owner[at], 0, n);
			break;
		default: /* to where it does not lie over itself, at its old length */
			if (to + n > PAGES || (to < at + n && at < to + n))
				continue;
			moved(who, at * PAGE, n * PAGE, to * PAGE, n * PAGE);
			memcpy(piece, &owner[at], n);
			memset(&owner[at], 0, n);
			memcpy(&owner[to], piece, n);
			break;
		}
		memset(live, 0, sizeof(live));
		for (int i = 0; i < PAGES; i++)
			live[owner[i]] += PAGE;
		for (wanted = 1; wanted < 4; wanted++) {
			memset(&found, 0, sizeof(found));
			mappings_each(m, find, NULL);
			assert_int_equal(found.live_bytes, live[wanted]);
			assert_int_equal(found.made_bytes - found.gone_bytes, live[wanted]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_is_given_back_in_parts_is_there_until_its_last_page_goes, make_m,
			free_m),
		cmocka_unit_test_setup_teardown(one_call_gives_back_what_several_have_made, make_m,
						free_m),
		cmocka_unit_test_setup_teardown(what_is_mapped_over_is_gone, make_m, free_m),
		cmocka_unit_test_setup_teardown(
			growth_belongs_to_who_grew_and_the_rest_stays_whose_it_was, make_m, free_m),
		cmocka_unit_test_setup_teardown(what_shrinks_loses_its_end, make_m, free_m),
		cmocka_unit_test_setup_teardown(a_move_takes_the_place_of_what_was_there, make_m,
						free_m),
		cmocka_unit_test_setup_teardown(one_mapping_at_two_places_is_two, make_m, free_m),
		cmocka_unit_test_setup_teardown(
			a_range_that_another_thread_has_by_now_stays_its_own, make_m, free_m),
		cmocka_unit_test_setup_teardown(
			what_ended_processes_had_is_neither_there_nor_given_back, make_m, free_m),
		cmocka_unit_test_setup_teardown(mappings_without_room_are_counted_and_said, make_m,
						free_m),
		cmocka_unit_test_setup_teardown(ranges_agree_with_a_list_of_pages, make_m, free_m),
	};

	return cmocka_run_group_tests_name("collect/mappings", tests, NULL, NULL);
}
