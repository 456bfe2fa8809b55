#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "render/summary/alloc_parts.h"

static const char *text_of(const struct summary_alloc *a, struct sink **ret_sink)
{
	struct err e = { 0 };
	size_t len;

	assert_int_equal(sink_open_memory(ret_sink, &e), 0);
	alloc_live_text(a, *ret_sink);
	assert_int_equal(sink_commit(*ret_sink, &e), 0);
	return sink_memory(*ret_sink, &len);
}

static void why_live_is_unknown_is_said(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	const struct summary_alloc a = { .live.why_not = "they could not be walked" };

	assert_string_equal(text_of(&a, &sink), "  live is unknown: they could not be walked\n");
	(void)state;
}

static void nothing_is_said_where_it_was_not_looked_for(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	const struct summary_alloc a = { 0 };

	assert_string_equal(text_of(&a, &sink), "");
	(void)state;
}

static void each_site_has_its_interval_and_how_many_blocks_it_rests_on(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	const struct site_row site = { .function = "leak_here",
				       .module = "server",
				       .value = 4 << 20,
				       .low = 3 << 20,
				       .high = 5 << 20,
				       .samples = 117 };
	struct summary_alloc a = { .live_bytes = 8 << 20,
				   .live_objects = 77,
				   .live_interval = { 7 << 20, 9 << 20, 1234 },
				   .live_sites = &site,
				   .n_live_sites = 1 };
	const char *text;

	a.live.known = true;
	a.live_peak.known = true;
	a.live_peak.bytes = 12 << 20;
	a.live_peak.low = 10 << 20;
	a.live_peak.high = 15 << 20;
	a.live_peak.at_ns = 4200000000;
	a.live.looks = 3;
	a.live.unknown = 5;
	snprintf(a.live.allocators, sizeof(a.live.allocators), "glibc");
	text = text_of(&a, &sink);
	assert_non_null(
		strstr(text, "8.0 MiB            77 blocks; 95% interval 7.0 MiB to 9.0 MiB\n"));
	assert_non_null(strstr(
		text, "12.0 MiB live, 4.2 s into the run; 95% interval 10.0 MiB to 15.0 MiB\n"));
	assert_non_null(strstr(text, "3 looks at the structures of glibc"));
	assert_non_null(strstr(text, "; 5 times"));
	assert_non_null(
		strstr(text, "4.0 MiB      3.0 MiB      5.0 MiB        117   50.0%  leak_here"));
	assert_null(strstr(text, "thread caches"));
	sink_close(sink);
	sink = NULL;
	a.live_peak.in_use = true;
	text = text_of(&a, &sink);
	assert_non_null(strstr(text, "12.0 MiB in use at a look, 4.2 s into the run\n"));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(why_live_is_unknown_is_said),
		cmocka_unit_test(nothing_is_said_where_it_was_not_looked_for),
		cmocka_unit_test(each_site_has_its_interval_and_how_many_blocks_it_rests_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
