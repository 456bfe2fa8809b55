/* What a profile is made of comes back, and bytes that do not add up are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/over_time.h"
#include "model/pprof.h"
#include "model/profile_wire.h"
#include "model/sample_times.h"

static struct dict *d;
static struct profile *p;
static struct strbuf wire;

static string_id str(const char *s)
{
	return dict_string(d, s);
}

static stack_id add_stack(void)
{
	struct module elf = { .kind = MODULE_ELF,
			      .path = str("/usr/bin/app"),
			      .build_id = str("abcd"),
			      .dev = 1,
			      .ino = 2,
			      .start = 0x1000,
			      .limit = 0x9000,
			      .file_off = 0x1000 };
	struct line inlined[2] = { { str("inner"), str("_Z5innerv"), str("/src/a.c"), 12, 10 },
				   { str("outer"), str("outer"), str("/src/a.c"), 40, 30 } };
	module_id m = dict_module(d, &elf);
	location_id frames[] = { dict_location_lines(d, m, 0x1234, inlined, 2),
				 dict_location(d, m, 0x2000),
				 dict_location(d, (module_id){ 0 }, 0xffff800000001000) };

	return dict_stack(d, frames, 3);
}

/* With everything that a profile may have. */
static int setup(void **state)
{
	static const struct value_type types[] = { { "alloc_objects", "count" },
						   { "alloc_space", "bytes" } };
	static const char *const comments[] = { "made by hand", "second", NULL },
				 *const columns[] = { "rss", "swap" };
	const uint32_t timed = 1;
	struct value_error error = {
		.samples = 12, .unseen = INFINITY, .v = 2.5, .vc = 1, .group = { 1, -2 }
	};
	struct sample_times *times;
	struct over_time *o = over_time_new();
	struct time_table *table = time_table_new(columns, 2, 3);
	struct profile_meta meta = { .time_ns = 1700000000000000000,
				     .duration_ns = 5000000000,
				     .period_type = { "space", "bytes" },
				     .period = 524288,
				     .default_type = 1,
				     .comments = comments };
	struct label label[3];
	labels_id labels;
	stack_id stack;

	(void)state;
	d = dict_new();
	p = profile_new(d, types, 2);
	label[0] = (struct label){ .key = str("pid"), .num = 12 };
	label[1] = (struct label){ .key = str("comm"), .str = str("app") };
	label[2] = (struct label){ .key = str("size"), .num = 64, .unit = str("bytes") };
	labels = dict_labels(d, label, 3);
	stack = add_stack();
	assert_int_equal(profile_set_meta(p, &meta), 0);
	assert_int_equal(profile_add(p, stack, labels, (int64_t[]){ 3, 300 }), 0);
	assert_int_equal(
		profile_add(p, dict_stack_parent(d, stack), labels, (int64_t[]){ 1, INT64_MAX }),
		0);
	assert_int_equal(profile_add(p, (stack_id){ 0 }, (labels_id){ 0 }, (int64_t[]){ -1, -7 }),
			 0);
	assert_int_equal(profile_add_error(p, stack, labels, 1, &error), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(profile_note_row(p, i % 3), 0);
	times = sample_times_new(&timed, 1, SAMPLE_TIMES_BIN_NS, 1000);
	assert_int_equal(sample_times_add(times, 0, 0, (int64_t[]){ 100 }), 0);
	assert_int_equal(sample_times_add(times, 0, 4 * SAMPLE_TIMES_BIN_NS, (int64_t[]){ 200 }),
			 0);
	profile_set_times(p, times);
	for (int i = 0; i < 3; i++) {
		table->times_s[i] = 1700000000 + i;
		table->columns[0].values[i] = 10.5 * i;
	}
	assert_int_equal(over_time_add_series(o, "trend", "Memory", table), 0);
	assert_int_equal(
		over_time_add_mark(o, &(struct over_time_mark){ 1.5, str("phase two"), false }), 0);
	o->omitted = 9;
	profile_set_over_time(p, o);
	wire = (struct strbuf){ 0 };
	profile_wire_write(p, &wire);
	assert_false(strbuf_oom(&wire));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	strbuf_free(&wire);
	profile_free(p);
	dict_free(d);
	return 0;
}

static void assert_same_pprof(const struct profile *a, const struct profile *b)
{
	_cleanup_(sink_closep) struct sink *sa = NULL, *sb = NULL;
	const char *text[2];
	size_t len[2];

	assert_int_equal(sink_open_memory(&sa, NULL), 0);
	assert_int_equal(sink_open_memory(&sb, NULL), 0);
	assert_int_equal(pprof_write(a, (module_id){ 0 }, sa, NULL), 0);
	assert_int_equal(pprof_write(b, (module_id){ 0 }, sb, NULL), 0);
	assert_int_equal(sink_commit(sa, NULL), 0);
	assert_int_equal(sink_commit(sb, NULL), 0);
	text[0] = sink_memory(sa, &len[0]);
	text[1] = sink_memory(sb, &len[1]);
	assert_int_equal(len[0], len[1]);
	assert_memory_equal(text[0], text[1], len[0]);
}

static void check(const struct profile *q)
{
	const struct sample_times *t = profile_times(q);
	const struct over_time *o = profile_over_time(q);
	struct sample_time_reader at;
	struct sample_time entry;
	struct value_error a, b;
	struct profile_sample sa = profile_sample(p, 0), sb = profile_sample(q, 0);

	assert_int_equal(profile_n_rows(q), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(profile_row_sample(q, i), i % 3);
	assert_true(profile_error(&sa, 1, &a) && profile_error(&sb, 1, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_false(profile_error(&sb, 0, &b));
	assert_non_null(t);
	assert_int_equal(sample_times_type(t, 0), 1);
	assert_int_equal(sample_times_n_entries(t), 2);
	at = sample_times_read(t, 0);
	assert_true(sample_times_next(&at, &entry) && sample_times_next(&at, &entry));
	assert_int_equal(entry.bin, 4);
	assert_int_equal(entry.values[0], 200);
	assert_non_null(o);
	assert_int_equal(o->n_series, 1);
	assert_string_equal(o->series[0].id, "trend");
	assert_string_equal(o->series[0].title, "Memory");
	assert_int_equal(o->series[0].table->n_rows, 3);
	assert_string_equal(o->series[0].table->columns[1].name, "swap");
	assert_true(o->series[0].table->columns[0].values[2] == 21.0);
	assert_true(isnan(o->series[0].table->columns[1].values[0]));
	assert_int_equal(o->n_marks, 1);
	assert_string_equal(dict_str(profile_dict(q), o->marks[0].text), "phase two");
	assert_int_equal(o->omitted, 9);
	assert_string_equal(profile_get_meta(q)->comments[1], "second");
}

static void everything_comes_back(void **state)
{
	_cleanup_(dict_freep) struct dict *other = dict_new();
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct bytes b = bytes_of(wire.s, wire.len);

	(void)state;
	assert_int_equal(profile_wire_read(other, &b, &q), 0);
	assert_int_equal(b.len, 0);
	assert_same_pprof(p, q);
	check(q);
}

/* Where names, places and stacks have other numbers already. */
static void a_dict_may_have_much_in_it(void **state)
{
	_cleanup_(dict_freep) struct dict *other = dict_new();
	_cleanup_(profile_freep) struct profile *q = NULL, *again = NULL;
	struct bytes b = bytes_of(wire.s, wire.len);
	module_id m =
		dict_module(other, &(struct module){ .kind = MODULE_KERNEL,
						     .path = dict_string(other, "[kernel]") });
	location_id l = dict_location(other, m, 7);

	(void)state;
	dict_stack(other, &l, 1);
	dict_string(other, "outer");
	dict_labels(other, &(struct label){ .key = dict_string(other, "x"), .num = 1 }, 1);
	assert_int_equal(profile_wire_read(other, &b, &q), 0);
	assert_same_pprof(p, q);
	check(q);
	/* The same once more is the same stacks, not others. */
	b = bytes_of(wire.s, wire.len);
	assert_int_equal(profile_wire_read(other, &b, &again), 0);
	assert_int_equal(profile_sample(q, 0).stack.ix, profile_sample(again, 0).stack.ix);
	assert_int_equal(profile_sample(q, 0).labels.ix, profile_sample(again, 0).labels.ix);
}

static void cut_anywhere_it_is_none(void **state)
{
	(void)state;
	for (size_t len = 0; len < wire.len; len++) {
		_cleanup_(dict_freep) struct dict *other = dict_new();
		_cleanup_(profile_freep) struct profile *q = NULL;
		struct bytes b = bytes_of(wire.s, len);

		assert_int_equal(profile_wire_read(other, &b, &q), -EBADMSG);
		assert_null(q);
	}
}

/* Every number, made as large as it can be: a refusal, or another profile, and nothing is read behind the end. */
static void numbers_that_lie_are_no_harm(void **state)
{
	int refused = 0;

	(void)state;
	for (size_t at = 0; at + 4 <= wire.len; at++) {
		_cleanup_(dict_freep) struct dict *other = dict_new();
		_cleanup_(profile_freep) struct profile *q = NULL;
		_cleanup_(freep) char *copy = malloc(wire.len);
		struct bytes b = bytes_of(copy, wire.len);

		memcpy(copy, wire.s, wire.len);
		memset(copy + at, 0xff, 4);
		refused += profile_wire_read(other, &b, &q) < 0;
	}
	assert_true(refused > 100);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_comes_back),
		TEST(a_dict_may_have_much_in_it),
		TEST(cut_anywhere_it_is_none),
		TEST(numbers_that_lie_are_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
