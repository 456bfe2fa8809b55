#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "publish_fixture.h"

/* --- tables --- */

static void a_table_is_found_by_walks_once_it_is_whole(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t t = number(f, 7);

	assert_int_equal(publish_table_state(f->p, t), PUBLISH_ABSENT);
	assert_int_equal(f->mem.tables[t].n_pages, 0);
	assert_int_equal(give(f, t, 20, 5), 0);
	assert_int_equal(publish_table_state(f->p, t), PUBLISH_RESIDENT);
	assert_true(is_whole(f, t, 20, 5));
	assert_int_equal(f->mem.tables[t].used, 100);
	assert_int_equal(number(f, 7), t);
	assert_int_not_equal(number(f, 8), t);
	assert_int_equal(stats(f).rows, 20);
	end(f);
	(void)state;
}

static void rules_are_stored_once_and_the_fixed_ones_come_first(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t a = number(f, 1), b = number(f, 2);
	struct ms_rule rules[] = { { .kind = MS_RULE_REG, .off = 8 }, { .kind = MS_RULE_FP },
				   { .kind = MS_RULE_END },           { .kind = MS_RULE_NONE },
				   { .kind = MS_RULE_BAD },           { .kind = 77 } };
	uint32_t dir[2] = { 0, 7 }, rows[7];
	struct unwind_table t = {
		.n_pages = 1, .n_rows = 7, .dir = dir, .rows = rows, .rules = rules, .n_rules = 6
	};
	const uint32_t *got;

	for (uint32_t i = 0; i < 7; i++)
		rows[i] = ms_row(i, i);
	assert_int_equal(publish_table_put(f->p, a, &t, true, f->now, NULL), 0);
	assert_int_equal(publish_table_put(f->p, b, &t, true, f->now, NULL), 0);
	for (uint32_t table = 0; table < 2; table++) {
		got = f->mem.pool + f->mem.tables[table ? b : a].rows;
		assert_int_equal(got[0] & MS_ROW_RULE_MASK, MS_RULE_FIRST);
		assert_int_equal(got[1] & MS_ROW_RULE_MASK, MS_RULE_IX_FP);
		assert_int_equal(got[2] & MS_ROW_RULE_MASK, MS_RULE_IX_END);
		assert_int_equal(got[3] & MS_ROW_RULE_MASK, MS_RULE_IX_NONE);
		assert_int_equal(got[4] & MS_ROW_RULE_MASK, MS_RULE_IX_BAD);
		assert_int_equal(got[5] & MS_ROW_RULE_MASK, MS_RULE_IX_BAD);
		assert_int_equal(got[6] & MS_ROW_RULE_MASK, MS_RULE_IX_BAD);
	}
	assert_int_equal(stats(f).rules, MS_RULE_FIRST + 1);
	assert_int_equal(rule_at(f, MS_RULE_IX_FP)->kind, MS_RULE_FP);
	end(f);
	(void)state;
}

static void rows_whose_rule_finds_no_room_are_bad_and_counted(void **state)
{
	struct fixture *f = begin(4096);

	/* One rule each; N_RULES - MS_RULE_FIRST of them fit. */
	for (uint32_t i = 0; i < 10; i++) {
		struct ms_rule rules[8] = { { 0 } };
		uint32_t dir[2] = { 0, 8 }, rows[8];
		struct unwind_table t = { .n_pages = 1,
					  .n_rows = 8,
					  .dir = dir,
					  .rows = rows,
					  .rules = rules,
					  .n_rules = 8 };

		for (uint32_t k = 0; k < 8; k++) {
			rules[k] = (struct ms_rule){ .kind = MS_RULE_REG,
						     .off = (int32_t)(100 * i + k) };
			rows[k] = ms_row(k, k);
		}
		assert_int_equal(publish_table_put(f->p, number(f, i), &t, true, f->now, NULL), 0);
	}
	assert_int_equal(stats(f).rules, N_RULES);
	assert_int_equal(stats(f).bad_rows, 80 - (N_RULES - MS_RULE_FIRST));
	end(f);
	(void)state;
}

static void a_table_larger_than_the_pool_is_refused(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t t = number(f, 1);

	assert_int_equal(give(f, t, 2000, 1), -EFBIG);
	assert_int_equal(publish_table_state(f->p, t), PUBLISH_REFUSED);
	assert_int_equal(stats(f).too_large, 1);
	assert_int_equal(give(f, number(f, 2), 0, 1), -ENODATA);
	end(f);
	(void)state;
}

static void a_file_without_rows_has_a_row_that_says_so(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t none = number(f, 1), large = number(f, 2);

	publish_table_none(f->p, none);
	give(f, large, 2000, 1);
	assert_int_equal(publish_table_state(f->p, none), PUBLISH_NO_ROWS);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ms_table *t = &f->mem.tables[i ? large : none];

		assert_int_equal(t->n_pages, 1);
		assert_int_equal(f->mem.pool[t->dir], 0);
		assert_int_equal(f->mem.pool[t->dir + 1], 1);
		assert_int_equal(f->mem.pool[t->rows] & MS_ROW_RULE_MASK, MS_RULE_IX_NONE);
	}
	/* It costs no room, and does not outlive its file. */
	assert_int_equal(stats(f).table_bytes, 0);
	f->now += MS_POOL_GRACE_NS;
	for (uint32_t i = 10; i < 10 + N_TABLES; i++)
		assert_int_equal(f->mem.tables[number(f, i)].n_pages, 0);
	end(f);
	(void)state;
}

static void tables_nobody_refers_to_make_way_first_then_the_least_recently_used(void **state)
{
	struct fixture *f = begin(1024); /* 960 words for tables: three of 300 rows */
	uint32_t a = number(f, 1), b = number(f, 2), c = number(f, 3), d = number(f, 4);

	assert_int_equal(give(f, a, 300, 1), 0);
	assert_int_equal(give(f, b, 300, 2), 0);
	assert_int_equal(give(f, c, 300, 3), 0);
	assert_int_equal(put_one(f, 1, a), 0);
	assert_int_equal(put_one(f, 2, b), 0);
	f->mem.tables[a].used = 90;
	f->mem.tables[b].used = 80;
	f->mem.tables[c].used = 200; /* what nobody refers to may have been used just now */
	assert_int_equal(give(f, d, 300, 4), -EAGAIN);
	assert_int_equal(publish_table_state(f->p, c), PUBLISH_EVICTED);
	assert_int_equal(f->mem.tables[c].n_pages, 0);
	f->now += SEC / 2;
	assert_int_equal(give(f, d, 300, 4), -EAGAIN); /* a walk may still read it */
	assert_int_equal(stats(f).evictions, 1);
	f->now += SEC / 2;
	assert_int_equal(give(f, d, 300, 4), 0);
	assert_int_equal(put_one(f, 3, d), 0);
	assert_int_equal(give(f, c, 300, 3), -EAGAIN);
	assert_int_equal(publish_table_state(f->p, b), PUBLISH_EVICTED);
	assert_int_equal(publish_table_evictions(f->p, b), 1);
	assert_int_equal(stats(f).evicted_in_use, 1);
	assert_int_equal(span(f, 2, 0)->table, b); /* its spans name it still */
	assert_true(is_whole(f, a, 300, 1));
	assert_true(is_whole(f, d, 300, 4));
	end(f);
	(void)state;
}

static void a_table_that_comes_back_is_another_one_to_who_remembers_its_rules(void **state)
{
	struct fixture *f = begin(1024); /* 960 words for tables: one of 800 rows */
	uint32_t a = number(f, 1), b = number(f, 2), serial, rows;

	assert_int_equal(give(f, a, 800, 1), 0);
	serial = f->mem.tables[a].serial;
	rows = f->mem.tables[a].rows;
	assert_int_equal(give(f, b, 800, 2), -EAGAIN);
	f->now += SEC;
	assert_int_equal(give(f, b, 800, 2), 0);
	assert_int_equal(f->mem.tables[b].rows, rows);
	assert_int_not_equal(f->mem.tables[b].serial, serial);
	assert_int_equal(give(f, a, 800, 1), -EAGAIN);
	f->now += SEC;
	assert_int_equal(give(f, a, 800, 1), 0);
	assert_int_not_equal(f->mem.tables[a].serial, serial);
	assert_int_not_equal(f->mem.tables[a].serial, f->mem.tables[b].serial);
	end(f);
	(void)state;
}

static void what_is_only_mapped_does_not_drive_out_what_processes_refer_to(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t a = number(f, 1), b = number(f, 2), c = number(f, 3), d = number(f, 4);

	assert_int_equal(give(f, a, 300, 1), 0);
	assert_int_equal(give(f, b, 300, 2), 0);
	assert_int_equal(give(f, c, 300, 3), 0);
	assert_int_equal(put_one(f, 1, a), 0);
	assert_int_equal(put_one(f, 2, b), 0);
	assert_int_equal(put_one(f, 3, d), 0);
	/* Two in a row would be needed, and only one of them is free to go. */
	assert_int_equal(give_if(f, d, 400, 4, false), -ENOSPC);
	assert_int_equal(stats(f).evictions, 0);
	assert_int_equal(stats(f).no_room, 1);
	assert_int_equal(give_if(f, d, 300, 4, false), -EAGAIN);
	assert_int_equal(publish_table_state(f->p, c), PUBLISH_EVICTED);
	assert_int_equal(stats(f).evicted_in_use, 0);
	f->now += MS_POOL_GRACE_NS;
	assert_int_equal(give_if(f, d, 300, 4, false), 0);
	end(f);
	(void)state;
}

static void what_walks_have_just_used_stays(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t a = number(f, 1), b = number(f, 2);

	assert_int_equal(give_if(f, a, 800, 1, false), 0);
	assert_int_equal(f->mem.tables[a].used, 0);
	assert_int_equal(put_one(f, 1, a), 0);
	f->mem.tables[a].used = 99;
	assert_int_equal(give(f, b, 800, 2), -ENOSPC);
	f->now += SEC;
	assert_int_equal(give(f, b, 800, 2), -EAGAIN);
	assert_int_equal(stats(f).evicted_in_use, 1);
	end(f);
	(void)state;
}

static void a_number_is_anothers_only_when_no_walk_can_mean_its_old_file(void **state)
{
	struct fixture *f = begin(4096);
	uint32_t t[N_TABLES], again;

	for (uint32_t i = 0; i < N_TABLES; i++) {
		t[i] = number(f, i);
		assert_int_not_equal(t[i], PUBLISH_NO_TABLE);
		assert_int_equal(put_one(f, i, t[i]), 0);
	}
	assert_int_equal(number(f, 100), PUBLISH_NO_TABLE);
	publish_space_end(f->p, 5, f->now);
	f->now += PUBLISH_KEEP_NS;
	publish_tick(f->p, f->now);
	assert_int_equal(number(f, 100), PUBLISH_NO_TABLE);
	f->now += MS_POOL_GRACE_NS;
	again = number(f, 100);
	assert_int_equal(again, t[5]);
	assert_int_equal(publish_table_find(f->p, &(struct publish_key){ 4, { 5 } }),
			 PUBLISH_NO_TABLE);
	assert_int_equal(stats(f).no_number, 2);
	end(f);
	(void)state;
}

/* --- anything, against a model --- */

struct model_table {
	uint32_t n_rows, seed;
	bool resident;
};

/* A walk that has read a table's or a process's entry, and goes on reading for the grace time. */
struct reader {
	uint64_t until;
	uint32_t at, n;
	uint32_t words[400];
};

static void read_on(struct fixture *f, struct reader *r, uint32_t at, uint32_t n)
{
	r->until = f->now + MS_POOL_GRACE_NS;
	r->at = at;
	r->n = n < 400 ? n : 400;
	memcpy(r->words, f->mem.pool + at, r->n * 4);
}

static void any_order_of_changes_keeps_what_walks_can_reach_whole(void **state)
{
	enum { FILES = 24, READERS = 64, STEPS = 60000 };
	struct fixture *f = begin(4096);
	struct model_table files[FILES] = { { 0 } };
	struct reader readers[READERS] = { { 0 } };
	uint32_t placed = 0, again = 0;

	srand(1);
	for (uint32_t i = 0; i < FILES; i++)
		files[i] = (struct model_table){ .n_rows = 1 + (uint32_t)rand() % 900, .seed = i };
	for (int step = 0; step < STEPS; step++) {
		uint32_t file = (uint32_t)rand() % FILES, pid = (uint32_t)rand() % N_PIDS;
		struct reader *r = &readers[rand() % READERS];
		struct ms_span s[6];
		uint32_t t, n = 0;
		int rc;

		f->now += (uint64_t)rand() % (SEC / 8);
		switch (rand() % 5) {
		case 0:
			t = number(f, file);
			if (t == PUBLISH_NO_TABLE)
				break;
			rc = give(f, t, files[file].n_rows, files[file].seed);
			assert_true(rc == 0 || rc == -EAGAIN || rc == -ENOSPC);
			placed += rc == 0;
			again += rc == -EAGAIN;
			if (rc == 0)
				assert_true(is_whole(f, t, files[file].n_rows, files[file].seed));
			break;
		case 1:
			for (; n < 6; n++) {
				t = number(f, (uint32_t)rand() % FILES);
				s[n] = (struct ms_span){ .start = n * 0x1000,
							 .end = n * 0x1000 + 0x800,
							 .table = t,
							 .kind = t == PUBLISH_NO_TABLE
									 ? MS_SPAN_PENDING
									 : MS_SPAN_TABLE };
			}
			rc = put_space(f, pid, 0, s, n);
			assert_true(rc == 0 || rc == -EAGAIN || rc == -ENOSPC);
			break;
		case 2:
			publish_space_end(f->p, pid, f->now);
			break;
		case 3:
			publish_tick(f->p, f->now);
			break;
		case 4:
			t = (uint32_t)rand() % N_TABLES;
			if (r->until > f->now)
				break;
			if (f->mem.tables[t].n_pages && rand() % 2) {
				f->mem.tables[t].used = (uint32_t)(f->now / SEC);
				read_on(f, r, f->mem.tables[t].rows, 1);
			} else if (f->put[pid]) {
				read_on(f, r, f->entry[pid].spans,
					f->entry[pid].n_spans * MS_SPAN_WORDS);
			}
			break;
		}
		for (uint32_t i = 0; i < READERS; i++)
			if (readers[i].until > f->now && readers[i].n)
				assert_memory_equal(readers[i].words, f->mem.pool + readers[i].at,
						    readers[i].n * 4);
		/* Every table that can be reached is one file's, whole. */
		for (uint32_t i = 0; i < FILES && step % 16 == 0; i++) {
			struct publish_key key = key_of(i);

			t = publish_table_find(f->p, &key);
			if (t != PUBLISH_NO_TABLE && f->mem.tables[t].n_pages)
				assert_true(is_whole(f, t, files[i].n_rows, files[i].seed));
		}
		for (uint32_t i = 0; i < N_PIDS && step % 16 == 0; i++)
			for (uint32_t k = 0; f->put[i] && k < f->entry[i].n_spans; k++)
				assert_true(span(f, i, k)->start == k * 0x1000 &&
					    span(f, i, k)->end == k * 0x1000 + 0x800);
	}
	assert_true(placed > STEPS / 100);
	assert_true(again > 0);
	assert_true(stats(f).evictions > 100);
	end(f);
	(void)state;
}

static void everything_given_back_is_one_piece_again(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t t;

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(give(f, number(f, i), 60, i), 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(put_one(f, i, number(f, 10)), 0);
	for (uint32_t i = 0; i < 10; i++)
		publish_space_end(f->p, i, f->now);
	f->now += PUBLISH_KEEP_NS;
	publish_tick(f->p, f->now);
	t = number(f, 11);
	assert_int_equal(give(f, t, 950, 77), -EAGAIN);
	assert_int_equal(stats(f).tables, 0);
	f->now += MS_POOL_GRACE_NS;
	assert_int_equal(give(f, t, 950, 77), 0);
	assert_true(is_whole(f, t, 950, 77));
	f->now += MS_POOL_GRACE_NS;
	publish_tick(f->p, f->now);
	assert_int_equal(stats(f).span_bytes + stats(f).waiting_bytes, 0);
	end(f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_found_by_walks_once_it_is_whole),
		cmocka_unit_test(rules_are_stored_once_and_the_fixed_ones_come_first),
		cmocka_unit_test(rows_whose_rule_finds_no_room_are_bad_and_counted),
		cmocka_unit_test(a_file_without_rows_has_a_row_that_says_so),
		cmocka_unit_test(a_table_larger_than_the_pool_is_refused),
		cmocka_unit_test(
			tables_nobody_refers_to_make_way_first_then_the_least_recently_used),
		cmocka_unit_test(a_table_that_comes_back_is_another_one_to_who_remembers_its_rules),
		cmocka_unit_test(what_is_only_mapped_does_not_drive_out_what_processes_refer_to),
		cmocka_unit_test(what_walks_have_just_used_stays),
		cmocka_unit_test(a_number_is_anothers_only_when_no_walk_can_mean_its_old_file),
		cmocka_unit_test(any_order_of_changes_keeps_what_walks_can_reach_whole),
		cmocka_unit_test(everything_given_back_is_one_piece_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
