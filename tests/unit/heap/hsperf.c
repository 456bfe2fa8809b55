#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/gc/hsperf.h"

static uint8_t file[4096];
static size_t len;
static uint32_t n;

static void put32(size_t at, uint32_t v)
{
	memcpy(file + at, &v, 4);
}

static void begin(void)
{
	memset(file, 0, sizeof(file));
	memcpy(file, "\xca\xfe\xc0\xc0\x01\x02\x00\x01", 8);
	put32(24, 32);
	len = 32;
	n = 0;
}

/* A number; with `text`, a text. */
static void entry(const char *name, int64_t number, const char *text)
{
	size_t at = len, data = (20 + strlen(name) + 1 + 7) & ~(size_t)7;

	put32(at + 4, 20);
	file[at + 12] = text ? 'B' : 'J';
	put32(at + 16, (uint32_t)data);
	strcpy((char *)file + at + 20, name);
	if (text) {
		put32(at + 8, (uint32_t)strlen(text) + 1);
		strcpy((char *)file + at + data, text);
		len = at + ((data + strlen(text) + 1 + 7) & ~(size_t)7);
	} else {
		memcpy(file + at + data, &number, 8);
		len = at + data + 8;
	}
	put32(at, (uint32_t)(len - at));
	put32(28, ++n);
}

static void whole(void)
{
	begin();
	entry("sun.gc.collector.0.name", 0, "G1 young collection pauses");
	entry("sun.gc.collector.0.invocations", 7, NULL);
	entry("sun.gc.collector.0.time", 50, NULL);
	entry("sun.gc.collector.0.lastEntryTime", 1000, NULL);
	entry("sun.gc.collector.0.lastExitTime", 1010, NULL);
	entry("sun.gc.collector.1.name", 0, "G1 full collection pauses");
	entry("sun.gc.collector.1.invocations", 2, NULL);
	entry("sun.gc.collector.1.time", 30, NULL);
	entry("sun.gc.collector.1.lastEntryTime", 900, NULL);
	entry("sun.gc.collector.1.lastExitTime", 990, NULL);
	entry("sun.gc.generation.0.capacity", 4000, NULL);
	entry("sun.gc.generation.0.space.0.name", 0, "eden");
	entry("sun.gc.generation.0.space.0.used", 3000, NULL);
	entry("sun.gc.generation.0.space.1.used", 100, NULL);
	entry("sun.gc.generation.1.capacity", 8000, NULL);
	entry("sun.gc.generation.1.space.0.used", 500, NULL);
	entry("sun.os.hrt.frequency", 1000000, NULL); /* ticks of 1 us */
}

static void counts_times_and_spaces_are_what_the_file_says(void **state)
{
	struct gc_counters c;

	(void)state;
	whole();
	assert_int_equal(hsperf_read(file, len, &c), 0);
	assert_int_equal(c.count, 9);
	assert_int_equal(c.major, 2);
	assert_int_equal(c.n_kinds, 2);
	assert_string_equal(c.kinds[0].name, "G1 young collection pauses");
	assert_int_equal(c.kinds[1].count, 2);
	assert_int_equal(c.time_ns, 80000);
	assert_int_equal(c.last_ns, 10000); /* of the one that ended last */
	assert_int_equal(c.last_at, 1010);
	assert_int_equal(c.live_bytes, 600); /* without eden */
	assert_int_equal(c.heap_bytes, 12000);
	assert_false(c.looks);
}

static void a_collector_that_is_at_work_has_no_last_pause(void **state)
{
	struct gc_counters c;

	(void)state;
	begin();
	entry("sun.gc.collector.0.invocations", 0, NULL);
	entry("sun.gc.collector.0.lastEntryTime", 0, NULL);
	entry("sun.gc.collector.0.lastExitTime", 0, NULL);
	entry("sun.gc.collector.1.invocations", 3, NULL);
	entry("sun.gc.collector.1.lastEntryTime", 700, NULL);
	entry("sun.gc.collector.1.lastExitTime", 600, NULL);
	entry("sun.os.hrt.frequency", 1000000, NULL);
	assert_int_equal(hsperf_read(file, len, &c), 0);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.last_ns, GC_UNKNOWN);
}

static void a_time_without_a_frequency_is_not_known(void **state)
{
	struct gc_counters c;

	(void)state;
	begin();
	entry("sun.gc.collector.0.invocations", 7, NULL);
	entry("sun.gc.collector.0.time", 50, NULL);
	assert_int_equal(hsperf_read(file, len, &c), 0);
	assert_int_equal(c.count, 7);
	assert_int_equal(c.time_ns, GC_UNKNOWN);
	assert_int_equal(c.live_bytes, GC_UNKNOWN);
}

static void what_is_no_such_file_is_refused(void **state)
{
	struct gc_counters c;

	(void)state;
	assert_int_equal(hsperf_read(file, 0, &c), -EBADMSG);
	whole();
	file[7] = 0; /* it is being made */
	assert_int_equal(hsperf_read(file, len, &c), -EBADMSG);
	whole();
	assert_int_equal(hsperf_read(file, len - 1, &c), -EBADMSG); /* the last entry is cut off */
	begin();
	entry("sun.rt.safepoints", 1, NULL);
	assert_int_equal(hsperf_read(file, len, &c), -ENOENT);
	whole();
	put32(32, 8); /* shorter than an entry is */
	assert_int_equal(hsperf_read(file, len, &c), -EBADMSG);
}

static void offsets_that_leave_an_entry_are_left_out(void **state)
{
	struct gc_counters c;

	(void)state;
	begin();
	entry("sun.gc.collector.0.invocations", 7, NULL);
	entry("sun.gc.collector.1.invocations", 9, NULL);
	put32(32 + 16, 4000); /* its data */
	assert_int_equal(hsperf_read(file, len, &c), 0);
	assert_int_equal(c.count, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_times_and_spaces_are_what_the_file_says),
		cmocka_unit_test(a_collector_that_is_at_work_has_no_last_pause),
		cmocka_unit_test(a_time_without_a_frequency_is_not_known),
		cmocka_unit_test(what_is_no_such_file_is_refused),
		cmocka_unit_test(offsets_that_leave_an_entry_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
