#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "eventlog_fixture.h"

static struct strbuf seen;

static int on_event(void *ctx, const struct ghc_event *e)
{
	strbuf_printf(&seen, "%u@%llu", e->number, (unsigned long long)e->ns);
	if (e->cap != GHC_NO_CAP)
		strbuf_printf(&seen, "c%u", e->cap);
	strbuf_printf(&seen, ":%zu ", e->payload.len);
	return e->number == 0 && e->ns == 666 ? -EIO : 0;
}

/* The events of the log, fed in pieces of `piece` bytes. */
static int read_events(size_t piece, struct ghc_events *ret)
{
	int r = 0;

	strbuf_free(&seen);
	ghc_events_init(ret, on_event, NULL);
	for (size_t at = 0; at < eventlog.len && r == 0; at += piece)
		r = ghc_events_feed(ret, bytes_of(eventlog.s + at, eventlog.len - at < piece
									   ? eventlog.len - at
									   : piece));
	return r;
}

static struct ghc_events *g;

static int setup(void **state)
{
	g = malloc(sizeof(*g));
	eventlog_begin();
	return 0;
}

static int teardown(void **state)
{
	free(g);
	strbuf_free(&seen);
	strbuf_free(&eventlog);
	return 0;
}

static void pieces_of_any_size_are_the_same_events(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 7, 64, 1000, 1 << 20 };

	eventlog_event(GHC_GC_START, 10);
	eventlog_message(GHC_USER_MSG, 20, "hello");
	eventlog_event(0, 30);
	eventlog_put(5, 4);
	eventlog_end();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_int_equal(read_events(sizes[i], g), 0);
		assert_string_equal(seen.s, "9@10:0 19@20:6 0@30:4 ");
		assert_true(ghc_events_ended(g));
		assert_int_equal(g->offset, eventlog.len);
		assert_int_equal(g->last_ns, 30);
	}
}

static void events_of_a_block_are_its_capabilitys(void **state)
{
	eventlog_block(10, 3, 50);
	eventlog_event(GHC_GC_END, 40);
	eventlog_event(GHC_GC_START, 60);
	eventlog_end();
	assert_int_equal(read_events(5, g), 0);
	assert_string_equal(seen.s, "18@50c3:14 10@40c3:0 9@60:0 ");
}

static void an_event_that_is_not_declared_ends_its_block(void **state)
{
	eventlog_block(30, 1, 50);
	eventlog_event(GHC_GC_END, 40);
	eventlog_event(999, 41); /* 20 bytes that nobody knows */
	eventlog_put(0, 8);
	eventlog_put(0, 2);
	eventlog_event(GHC_GC_START, 60);
	eventlog_end();
	for (size_t piece = 1; piece < 100; piece++) {
		assert_int_equal(read_events(piece, g), 0);
		assert_string_equal(seen.s, "18@50c1:14 10@40c1:0 9@60:0 ");
		assert_int_equal(g->skipped, 20);
		assert_int_equal(g->unknown, 999);
	}
}

static void one_outside_a_block_is_the_end(void **state)
{
	uint64_t at;

	eventlog_event(GHC_GC_START, 60);
	at = eventlog.len;
	eventlog_event(999, 41);
	eventlog_event(GHC_GC_END, 70);
	assert_int_equal(read_events(11, g), -EBADMSG);
	assert_string_equal(seen.s, "9@60:0 ");
	assert_int_equal(g->offset, at);
	assert_true(ghc_events_begun(g) && !ghc_events_ended(g));
}

static void what_is_cut_within_an_event_ends_before_it(void **state)
{
	uint64_t at;

	eventlog_event(GHC_GC_START, 60);
	at = eventlog.len;
	eventlog_message(GHC_USER_MSG, 20, "hello");
	eventlog.len -= 3;
	assert_int_equal(read_events(4, g), 0);
	assert_string_equal(seen.s, "9@60:0 ");
	assert_int_equal(g->offset, at);
	assert_int_equal(g->n_carry, 15);
	assert_false(ghc_events_ended(g));
}

static void a_payload_of_the_largest_size_is_read(void **state)
{
	size_t begin = eventlog_varying(GHC_USER_MSG, 1);

	for (int i = 0; i < 65535; i++)
		strbuf_putc(&eventlog, 'x');
	eventlog_size(begin);
	eventlog_event(GHC_GC_START, 2);
	assert_int_equal(read_events(65536, g), 0);
	assert_string_equal(seen.s, "19@1:65535 9@2:0 ");
	assert_int_equal(read_events(1000, g), 0);
	assert_string_equal(seen.s, "19@1:65535 9@2:0 ");
}

static void a_damaged_header_is_refused_where_it_is_damaged(void **state)
{
	for (size_t at = 0; at < 24; at += 5) {
		eventlog_begin();
		eventlog.s[at] ^= 0x55;
		if (at == 15 || at == 20)
			continue; /* the size of an event, and what it is called: any will do */
		assert_int_equal(read_events(13, g), -EBADMSG);
		assert_false(ghc_events_begun(g));
	}
}

static void the_callers_error_stops_it(void **state)
{
	eventlog_event(0, 666);
	eventlog_put(0, 4);
	eventlog_event(GHC_GC_START, 2);
	assert_int_equal(read_events(1 << 16, g), -EIO);
	assert_string_equal(seen.s, "0@666:4 ");
}

static void numbers_and_strings_end_with_the_payload(void **state)
{
	struct bytes b = bytes_of("\x01\x02\x03", 3), s;
	uint16_t two;
	uint32_t four;
	uint8_t one;

	assert_true(ghc_u16(&b, &two) && two == 0x102);
	assert_false(ghc_u32(&b, &four));
	assert_true(ghc_u8(&b, &one) && one == 3);
	assert_false(ghc_u8(&b, &one));
	b = bytes_of("ab\0cd", 5);
	s = ghc_string(&b);
	assert_int_equal(s.len, 2);
	s = ghc_string(&b);
	assert_memory_equal(s.data, "cd", 2);
	assert_int_equal(b.len, 0);
	assert_int_equal(ghc_string(&b).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pieces_of_any_size_are_the_same_events, setup,
						teardown),
		cmocka_unit_test_setup_teardown(events_of_a_block_are_its_capabilitys, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_event_that_is_not_declared_ends_its_block, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_outside_a_block_is_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_cut_within_an_event_ends_before_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_payload_of_the_largest_size_is_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_damaged_header_is_refused_where_it_is_damaged,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_callers_error_stops_it, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_and_strings_end_with_the_payload, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
