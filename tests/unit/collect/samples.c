#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi.h"
#include "collect/probes/samplers.h"
#include "collect/stream/samples.h"

#include <string.h>

#define ROOM (1 << 20)

static struct ms_sample_rec record(enum ms_sample_what what, uint64_t addr, uint64_t size,
				   uint64_t weight)
{
	static uint64_t now = 1;
	struct ms_sample_rec rec = {
		.kind = MS_EV_SAMPLE,
		.what = what,
		.proc = { .tgid = 10, .start_ns = 5 },
		.user = { 1, 1 },
		.addr = addr,
		.size = size,
		.weight = weight,
		.tid = 10,
		.time_ns = now += 10000000,
	};

	return rec;
}

static void take(struct samples *s, struct ms_sample_rec rec)
{
	assert_int_equal(samples_take(s, &rec), 0);
}

static struct samples_stats stats_of(const struct samples *s)
{
	struct samples_stats st;

	samples_stats(s, &st);
	return st;
}

struct rows {
	struct samples_row row[8];
	uint32_t n;
};

/* The row of a table's sampler that tells of frees by class, and of one whose objects have headers. */
static uint8_t source_that(bool by_class)
{
	for (uint32_t i = 0; i < n_samplers; i++)
		if (by_class ? samplers[i].by_class : samplers[i].header > 0)
			return (uint8_t)(i + 1);
	fail();
	return 0;
}

static int keep_row(void *ctx, struct samples_row *row)
{
	struct rows *rows = ctx;

	rows->row[rows->n++] = *row;
	return 0;
}

static void blocks_live_from_their_allocation_to_their_free(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct rows rows = { .n = 0 };

	(void)state;
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 100, 1000));
	take(s, record(MS_SAMPLE_ALLOC, 0x2000, 300, 1100));
	assert_int_equal(samples_live_bytes(s), 2100);
	take(s, record(MS_SAMPLE_FREE, 0x1000, 0, 0));
	assert_int_equal(samples_live_bytes(s), 1100);
	for (int i = 0; i < 2; i++) { /* asked twice, the same */
		rows.n = 0;
		assert_int_equal(samples_each(s, keep_row, &rows), 0);
		assert_int_equal(rows.n, 1);
		assert_true(rows.row[0].alloc.bytes == 2100 && rows.row[0].alloc.samples == 2);
		assert_true(rows.row[0].live.bytes == 1100 && rows.row[0].live.samples == 1);
	}
	assert_int_equal(stats_of(s).frees, 1);
	samples_free(s);
}

static void stacks_threads_and_images_have_sums_of_their_own(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct rows rows = { .n = 0 };
	struct ms_sample_rec rec = record(MS_SAMPLE_ALLOC, 0x1000, 100, 1000);

	(void)state;
	take(s, rec);
	rec.user.lo = 2;
	rec.addr = 0x2000;
	take(s, rec);
	rec.tid = 11;
	rec.addr = 0x3000;
	take(s, rec);
	rec.proc.exec_id = 1; /* the same address in another image is another block */
	take(s, rec);
	samples_each(s, keep_row, &rows);
	assert_int_equal(rows.n, 4);
	assert_int_equal(samples_live_bytes(s), 4000);
	rec.what = MS_SAMPLE_FREE;
	take(s, rec);
	assert_int_equal(samples_live_bytes(s), 3000);
	samples_free(s);
}

static void frees_of_unknown_blocks_are_counted_and_change_nothing(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	take(s, record(MS_SAMPLE_FREE, 0x1000, 0, 0));
	take(s, record(MS_SAMPLE_UNTRACKED, 0x1000, 100, 1000));
	take(s, record(MS_SAMPLE_FREE, 0x1000, 0, 0));
	assert_int_equal(stats_of(s).unknown_frees, 2);
	assert_int_equal(stats_of(s).untracked, 1);
	assert_true(stats_of(s).alloc.bytes == 1000);
	assert_int_equal(samples_live_bytes(s), 0);
	samples_free(s);
}

static void an_address_that_comes_again_replaces_its_block(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 100, 1000));
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 200, 1050));
	assert_int_equal(samples_live_bytes(s), 1050);
	assert_int_equal(stats_of(s).reused, 1);
	assert_true(stats_of(s).alloc.bytes == 2050);
	samples_free(s);
}

static void an_event_heard_twice_is_one(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct ms_sample_rec rec = record(MS_SAMPLE_ALLOC, 0x1000, 100, 1000), twin = rec;

	(void)state;
	take(s, rec);
	twin.time_ns += 5000;
	take(s, twin);
	assert_int_equal(stats_of(s).alloc.samples, 1);
	assert_int_equal(stats_of(s).reused, 0);
	samples_free(s);
}

static void a_full_table_is_counted_and_makes_room_again(void **state)
{
	struct samples *s = samples_new(2000);
	uint64_t n = 0;

	(void)state;
	while (!stats_of(s).full && n < 1000)
		take(s, record(MS_SAMPLE_ALLOC, 0x1000 + 64 * n++, 100, 1000));
	assert_true(n > 1 && n < 1000);
	assert_int_equal(stats_of(s).untracked, 1);
	assert_int_equal(stats_of(s).alloc.samples, n);
	assert_int_equal(samples_live_bytes(s), (n - 1) * 1000);
	take(s, record(MS_SAMPLE_FREE, 0x1000, 0, 0));
	take(s, record(MS_SAMPLE_ALLOC, 0x9000000, 100, 1000));
	assert_int_equal(stats_of(s).full, 1);
	samples_free(s);
}

static bool is_ten(void *ctx, const struct proc_id *proc)
{
	(void)ctx;
	return proc->pid == 10;
}

static void blocks_of_images_that_are_gone_leave_with_them(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct ms_sample_rec rec = record(MS_SAMPLE_ALLOC, 0x1000, 100, 1000);

	(void)state;
	take(s, rec);
	rec.proc.tgid = 11;
	take(s, rec);
	samples_sweep(s, is_ten, NULL);
	assert_int_equal(samples_live_bytes(s), 1000);
	assert_int_equal(stats_of(s).ended, 1);
	assert_true(stats_of(s).ended_bytes == 1000);
	samples_free(s);
}

static void what_no_sampler_says_is_left_out(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 0, 1000));
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 100, 0));
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 100, UINT64_MAX));
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, UINT64_MAX, 100));
	assert_int_equal(stats_of(s).alloc.samples, 0);
	assert_int_equal(samples_live_bytes(s), 0);
	samples_free(s);
}

/* size/(1 - exp(-size/rate)) of blocks of 64 and of 1,000,000 bytes at 524,288. */
static void the_rate_is_known_from_the_smallest_sample(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	take(s, record(MS_SAMPLE_ALLOC, 0x1000, 1000000, 1174378));
	take(s, record(MS_SAMPLE_ALLOC, 0x2000, 64, 524320));
	take(s, record(MS_SAMPLE_ALLOC, 0x3000, 1000000, 1174378));
	assert_true(stats_of(s).rate == 524288);
	samples_free(s);
}

static void weights_follow_from_the_rate(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct ms_sample_rec rec = record(MS_SAMPLE_ALLOC, 0x1000, 128, 524288);
	struct samples_stats st;

	(void)state;
	rec.source = source_that(false);
	rec.weigh = MS_WEIGH_RATE;
	take(s, rec); /* 128 / (1 - exp(-128 / 524288)) = 524352.003 */
	assert_int_equal(samples_live_bytes(s), 524352);
	rec.addr = 0x2000;
	rec.size = 524288;
	take(s, rec); /* 524288 / (1 - exp(-1)) = 829411.4 */
	assert_int_equal(samples_live_bytes(s), 524352 + 829411);
	rec.addr = 0x3000;
	rec.shift = 3; /* seven others were left out */
	take(s, rec);
	assert_int_equal(samples_live_bytes(s), 524352 + 829411 + 6635291);
	rec.addr = 0x4000;
	rec.shift = 0;
	rec.weight = 1; /* every block */
	take(s, rec);
	assert_int_equal(samples_live_bytes(s), 524352 + 829411 + 6635291 + 524288);
	st = stats_of(s);
	assert_int_equal(st.by_source, 1ULL << rec.source);
	samples_free(s);
}

static void an_object_may_be_freed_by_its_header(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct ms_sample_rec rec = record(MS_SAMPLE_ALLOC, 0x1008, 1000, 1000);

	(void)state;
	rec.source = source_that(false);
	take(s, rec);
	rec.what = MS_SAMPLE_FREE;
	rec.addr = 0x1000;
	take(s, rec);
	assert_int_equal(samples_live_bytes(s), 0);
	take(s, rec);
	assert_int_equal(stats_of(s).unknown_frees, 1);
	samples_free(s);
}

static struct ms_sample_rec of_class(enum ms_sample_what what, uint64_t class, uint64_t size,
				     uint64_t ns)
{
	struct ms_sample_rec rec = record(what, class, size, what == MS_SAMPLE_FREE ? ns : 4096);

	rec.source = source_that(true);
	rec.weigh = MS_WEIGH_RATE;
	if (what == MS_SAMPLE_ALLOC)
		rec.time_ns = ns;
	return rec;
}

static void a_free_by_class_is_of_the_block_of_its_time(void **state)
{
	const uint64_t second = 1000000000;
	struct samples *s = samples_new(ROOM);
	int64_t one;

	(void)state;
	take(s, of_class(MS_SAMPLE_ALLOC, 7, 4096, 5 * second));
	one = samples_live_bytes(s);
	take(s, of_class(MS_SAMPLE_ALLOC, 7, 4096, 5 * second + 1000)); /* no twin: both live */
	take(s, of_class(MS_SAMPLE_ALLOC, 7, 4096, 9 * second));
	assert_int_equal(samples_live_bytes(s), 3 * one);
	/* From before the run; of another size; of another class. */
	take(s, of_class(MS_SAMPLE_FREE, 7, 4096, 2 * second));
	take(s, of_class(MS_SAMPLE_FREE, 7, 8192, 5 * second));
	take(s, of_class(MS_SAMPLE_FREE, 8, 4096, 5 * second));
	assert_int_equal(samples_live_bytes(s), 3 * one);
	assert_int_equal(stats_of(s).unknown_frees, 3);
	/* By a clock some ms behind; on the other side of a boundary between spans. */
	for (int i = 2; i >= 0; i--) {
		uint64_t ns = i == 2 ? 9 * second - 8000000 : 5 * second - 4000000;

		take(s, of_class(MS_SAMPLE_FREE, 7, 4096, ns));
		assert_int_equal(samples_live_bytes(s), i * one);
	}
	assert_int_equal(stats_of(s).frees, 3);
	samples_free(s);
}

static void many_of_a_class_are_freed_in_any_order(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		take(s, of_class(MS_SAMPLE_ALLOC, 7, 64, (i + 1) * 20000000));
	for (uint64_t i = 0; i < 100; i += 2)
		take(s, of_class(MS_SAMPLE_FREE, 7, 64, (i + 1) * 20000000 - 1000000));
	for (uint64_t i = 99; i < 100; i -= 2)
		take(s, of_class(MS_SAMPLE_FREE, 7, 64, (i + 1) * 20000000));
	assert_int_equal(samples_live_bytes(s), 0);
	assert_int_equal(stats_of(s).frees, 100);
	samples_free(s);
}

static void a_sampler_that_does_not_tell_of_frees_is_no_loss(void **state)
{
	struct samples *s = samples_new(ROOM);
	struct ms_sample_rec rec = record(MS_SAMPLE_UNTRACKED, 1, 4096, 65536);

	(void)state;
	for (uint32_t i = 0; i < n_samplers; i++)
		if (!samplers[i].free)
			rec.source = (uint8_t)(i + 1);
	assert_true(rec.source);
	rec.weigh = MS_WEIGH_RATE;
	take(s, rec);
	take(s, rec);
	assert_int_equal(samples_live_bytes(s), 0);
	assert_int_equal(stats_of(s).unreported, 2);
	assert_int_equal(stats_of(s).untracked, 0);
	assert_int_equal(stats_of(s).alloc.samples, 2);
	samples_free(s);
}

/* Of a thread that counts what it allocates: so far, the object included. */
static struct ms_sample_rec counted(uint32_t tid, uint64_t counter, uint64_t size, uint64_t buffer)
{
	struct ms_sample_rec rec =
		record(MS_SAMPLE_UNTRACKED, buffer ? buffer + size : 1, size, counter);

	for (uint32_t i = 0; i < n_samplers; i++)
		if (samplers[i].counter)
			rec.source = (uint8_t)(i + 1);
	rec.weigh = MS_WEIGH_COUNTER;
	rec.tid = tid;
	return rec;
}

static double bytes_after(struct samples *s, struct ms_sample_rec rec)
{
	double before = stats_of(s).alloc.bytes;

	take(s, rec);
	return stats_of(s).alloc.bytes - before;
}

static void a_sample_of_a_thread_that_counts_stands_for_what_came_since_its_last(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	/* One that began in the run, and one that has allocated before. */
	assert_true(bytes_after(s, counted(1, 100, 100, 4096)) == 100);
	assert_true(bytes_after(s, counted(2, 1000000, 100, 4096)) == 2048 + 100);
	assert_true(bytes_after(s, counted(1, 4200, 300, 8192)) == 4100);
	assert_true(bytes_after(s, counted(2, 1004000, 50, 4096)) == 4000);
	/* Without a new buffer. */
	assert_true(bytes_after(s, counted(1, 9200, 600, 0)) == 5000);
	assert_true(bytes_after(s, counted(1, 9800, 600, 0)) == 600);
	/* Another thread has the number. */
	assert_true(bytes_after(s, counted(1, 200, 200, 4096)) == 200);
	assert_int_equal(stats_of(s).unreported, 7);
	assert_int_equal(samples_live_bytes(s), 0);
	assert_true(stats_of(s).rate == stats_of(s).alloc.bytes / 7);
	samples_free(s);
}

static void an_object_as_large_as_a_buffer_stands_for_itself(void **state)
{
	struct samples *s = samples_new(ROOM);

	(void)state;
	take(s, counted(1, 100, 100, 4096));
	assert_true(bytes_after(s, counted(1, 100 + 3000 + 50000, 50000, 0)) == 50000);
	/* What came before it, and after. */
	assert_true(bytes_after(s, counted(1, 53100 + 900, 200, 4096)) == 3000 + 900);
	assert_true(bytes_after(s, counted(1, 54000 + 9000, 9000, 4096)) == 9000);
	samples_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_live_from_their_allocation_to_their_free),
		cmocka_unit_test(stacks_threads_and_images_have_sums_of_their_own),
		cmocka_unit_test(frees_of_unknown_blocks_are_counted_and_change_nothing),
		cmocka_unit_test(an_address_that_comes_again_replaces_its_block),
		cmocka_unit_test(an_event_heard_twice_is_one),
		cmocka_unit_test(a_full_table_is_counted_and_makes_room_again),
		cmocka_unit_test(blocks_of_images_that_are_gone_leave_with_them),
		cmocka_unit_test(what_no_sampler_says_is_left_out),
		cmocka_unit_test(
			a_sample_of_a_thread_that_counts_stands_for_what_came_since_its_last),
		cmocka_unit_test(an_object_as_large_as_a_buffer_stands_for_itself),
		cmocka_unit_test(the_rate_is_known_from_the_smallest_sample),
		cmocka_unit_test(weights_follow_from_the_rate),
		cmocka_unit_test(an_object_may_be_freed_by_its_header),
		cmocka_unit_test(a_free_by_class_is_of_the_block_of_its_time),
		cmocka_unit_test(many_of_a_class_are_freed_in_any_order),
		cmocka_unit_test(a_sampler_that_does_not_tell_of_frees_is_no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
