#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish_fixture.h"

static void spans_are_sorted_joined_and_disjoint(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t t = number(f, 1);
	struct ms_span in[] = {
		{ .start = 0x5000, .end = 0x6000, .kind = MS_SPAN_GUESS, .bias = 3 },
		{ .start = 0x1000,
		  .end = 0x2000,
		  .kind = MS_SPAN_TABLE,
		  .table = t,
		  .bias = 0x1000 },
		{ .start = 0x2000,
		  .end = 0x3000,
		  .kind = MS_SPAN_TABLE,
		  .table = t,
		  .bias = 0x1000 },
		{ .start = 0x3000,
		  .end = 0x4000,
		  .kind = MS_SPAN_TABLE,
		  .table = t,
		  .bias = 0x2000 },
		{ .start = 0x6000, .end = 0x7000, .kind = MS_SPAN_GUESS, .bias = 9 },
		{ .start = 0x3800, .end = 0x4800, .kind = MS_SPAN_FP },
		{ .start = 0x3900, .end = 0x3a00, .kind = MS_SPAN_FP },
		{ .start = 0x9000, .end = 0xa000, .kind = MS_SPAN_TABLE, .table = 999 },
	};

	assert_int_equal(put_space(f, 1, 4, in, 8), 0);
	assert_true(f->put[1]);
	assert_int_equal(f->entry[1].n_spans, 5);
	assert_int_equal(f->entry[1].as_gen, 4);
	assert_int_equal(f->entry[1].start_ns, 1);
	assert_int_equal(f->entry[1].exec_id, 1);
	assert_int_equal(f->entry[1].spans % MS_SPAN_WORDS, 0);
	assert_int_equal(span(f, 1, 0)->start, 0x1000);
	assert_int_equal(span(f, 1, 0)->end, 0x3000);
	assert_int_equal(span(f, 1, 1)->bias, 0x2000);
	assert_int_equal(span(f, 1, 2)->start, 0x4000);
	assert_int_equal(span(f, 1, 2)->end, 0x4800);
	assert_int_equal(span(f, 1, 3)->start, 0x5000);
	assert_int_equal(span(f, 1, 3)->end, 0x7000);
	assert_int_equal(span(f, 1, 4)->kind, MS_SPAN_PENDING); /* there is no such table */
	end(f);
	(void)state;
}

/* The walker's search compares by the sign of a difference. */
static void what_lies_among_the_kernels_addresses_is_left_out(void **state)
{
	struct fixture *f = begin(1024);
	const struct ms_span in[] = {
		{ .start = 0xffffffffff600000, .end = 0xffffffffff601000, .kind = MS_SPAN_GUESS },
		{ .start = 0x7ffff7fc5000, .end = 0x7ffff7fc6000, .kind = MS_SPAN_GUESS },
	};

	assert_int_equal(put_space(f, 1, 0, in, 2), 0);
	assert_int_equal(f->entry[1].n_spans, 1);
	assert_int_equal(span(f, 1, 0)->start, 0x7ffff7fc5000);
	end(f);
	(void)state;
}

static void what_is_too_many_loses_spans_without_tables_first(void **state)
{
	enum { N = MS_MAX_SPANS + 100 };
	struct fixture *f = begin(1 << 21);
	struct ms_span *in = calloc(N, sizeof(*in));
	uint32_t tables = 0;

	number(f, 0);
	for (uint32_t i = 0; i < N; i++)
		in[i] = (struct ms_span){ .start = i * 0x2000ull,
					  .end = i * 0x2000ull + 0x1000,
					  .kind = i % 2 ? MS_SPAN_TABLE : MS_SPAN_GUESS };
	assert_int_equal(put_space(f, 1, 0, in, N), 0);
	assert_int_equal(f->entry[1].n_spans, MS_MAX_SPANS);
	assert_int_equal(stats(f).spans_left_out, 100);
	for (uint32_t i = 0; i < MS_MAX_SPANS; i++) {
		tables += span(f, 1, i)->kind == MS_SPAN_TABLE;
		assert_true(!i || span(f, 1, i - 1)->end <= span(f, 1, i)->start);
	}
	assert_int_equal(tables, N / 2);
	for (uint32_t i = 0; i < N; i++)
		in[i].kind = MS_SPAN_TABLE;
	assert_int_equal(put_space(f, 2, 0, in, N), 0);
	assert_int_equal(f->entry[2].n_spans, MS_MAX_SPANS);
	free(in);
	end(f);
	(void)state;
}

static void a_fork_shares_its_parents_list_and_keeps_it(void **state)
{
	struct fixture *f = begin(1024);
	uint32_t t = number(f, 1);
	struct ms_span s[2] = { { .start = 0x1000, .end = 0x2000, .table = t },
				{ .start = 0x8000, .end = 0x9000, .kind = MS_SPAN_GUESS } };
	struct ms_span before;

	assert_int_equal(put_space(f, 1, 0, s, 1), 0);
	before = *span(f, 1, 0);
	assert_int_equal(put_space(f, 2, 0, s, 1), 0);
	assert_int_equal(f->entry[1].spans, f->entry[2].spans);
	assert_int_equal(stats(f).lists, 1);
	assert_int_equal(put_space(f, 1, 0, s, 2), 0);
	assert_int_not_equal(f->entry[1].spans, f->entry[2].spans);
	for (int i = 0; i < 50; i++) {
		f->now += SEC;
		s[1].end += 0x1000;
		assert_int_equal(put_space(f, 1, 0, s, 2), 0);
	}
	assert_memory_equal(span(f, 2, 0), &before, sizeof(before));
	end(f);
	(void)state;
}

static void what_a_walk_may_be_reading_is_not_overwritten_before_the_grace_is_over(void **state)
{
	struct fixture *f = begin(128);
	struct ms_span s = { .start = 0x1000, .end = 0x2000, .kind = MS_SPAN_FP };
	struct ms_space old;
	int r = 0;

	assert_int_equal(put_space(f, 1, 0, &s, 1), 0);
	old = f->entry[1];
	/* As many changes as there is room for, within the grace time. */
	for (int i = 0; i < 100 && r == 0; i++) {
		s.end += 0x1000;
		r = put_space(f, 1, 0, &s, 1);
	}
	assert_int_equal(r, -EAGAIN);
	assert_false(f->put[1]); /* what it had does not describe it any more */
	assert_int_equal(((struct ms_span *)(f->mem.pool + old.spans))->end, 0x2000);
	f->now += MS_POOL_GRACE_NS;
	assert_int_equal(put_space(f, 1, 0, &s, 1), 0);
	assert_true(f->put[1]);
	end(f);
	(void)state;
}

static void another_image_takes_the_entry_and_the_old_one_is_kept_a_while(void **state)
{
	struct fixture *f = begin(1024);
	struct ms_span s = { .start = 0x1000, .end = 0x2000, .kind = MS_SPAN_FP };
	struct ms_proc before = { .tgid = 9, .start_ns = 5, .exec_id = 1 }, after = before, got;
	struct ms_space space;

	after.exec_id = 2;
	assert_int_equal(publish_space_put(f->p, &before, 0, &s, 1, false, f->now), 0);
	s.end = 0x4000;
	assert_int_equal(publish_space_put(f->p, &after, 0, &s, 1, false, f->now), 0);
	assert_int_equal(f->entry[9].exec_id, 2);
	assert_true(publish_space(f->p, &before, &space));
	assert_true(publish_space_of_pid(f->p, 9, &got, &space));
	assert_int_equal(got.exec_id, 2);
	f->now += PUBLISH_KEEP_NS;
	publish_tick(f->p, f->now);
	assert_false(publish_space(f->p, &before, &space));
	assert_true(publish_space(f->p, &after, &space));
	publish_space_end(f->p, 9, f->now);
	assert_false(f->put[9]);
	assert_false(publish_space_of_pid(f->p, 9, &got, &space));
	assert_true(publish_space(f->p, &after, &space));
	f->now += PUBLISH_KEEP_NS;
	publish_tick(f->p, f->now);
	assert_false(publish_space(f->p, &after, &space));
	assert_int_equal(stats(f).lists, 0);
	assert_int_equal(stats(f).spaces, 0);
	end(f);
	(void)state;
}

static void a_process_that_has_ended_gets_spans_but_no_entry(void **state)
{
	struct fixture *f = begin(1024);
	struct ms_span s = { .start = 0x1000, .end = 0x2000, .kind = MS_SPAN_FP };
	struct ms_proc proc = { .tgid = 9, .start_ns = 5, .exec_id = 1 };
	struct ms_space space;

	assert_int_equal(publish_space_put(f->p, &proc, 0, &s, 1, true, f->now), 0);
	assert_false(f->put[9]);
	assert_true(publish_space(f->p, &proc, &space));
	assert_int_equal(space.n_spans, 1);
	f->now += PUBLISH_KEEP_NS;
	publish_tick(f->p, f->now);
	assert_false(publish_space(f->p, &proc, &space));
	end(f);
	(void)state;
}

static void an_entry_that_is_refused_leaves_none_behind(void **state)
{
	struct fixture *f = begin(1024);

	assert_int_equal(put_one(f, 1, number(f, 1)), 0);
	f->refuse = true;
	assert_int_equal(put_one(f, 1, number(f, 2)), 0);
	assert_false(f->put[1]);
	assert_int_equal(put_one(f, 2, number(f, 2)), 0);
	assert_int_equal(stats(f).entries_failed, 2);
	assert_int_equal(stats(f).spaces, 0);
	end(f);
	(void)state;
}

static void a_pool_of_nothing_says_so(void **state)
{
	struct fixture *f = begin(0);

	assert_int_equal(give(f, number(f, 1), 1, 1), -EFBIG);
	assert_int_equal(put_one(f, 1, number(f, 1)), -ENOSPC);
	end(f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_are_sorted_joined_and_disjoint),
		cmocka_unit_test(what_lies_among_the_kernels_addresses_is_left_out),
		cmocka_unit_test(what_is_too_many_loses_spans_without_tables_first),
		cmocka_unit_test(a_fork_shares_its_parents_list_and_keeps_it),
		cmocka_unit_test(
			what_a_walk_may_be_reading_is_not_overwritten_before_the_grace_is_over),
		cmocka_unit_test(another_image_takes_the_entry_and_the_old_one_is_kept_a_while),
		cmocka_unit_test(a_process_that_has_ended_gets_spans_but_no_entry),
		cmocka_unit_test(an_entry_that_is_refused_leaves_none_behind),
		cmocka_unit_test(a_pool_of_nothing_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
