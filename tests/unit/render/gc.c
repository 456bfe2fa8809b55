#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/summary/sections.h"

#define MS 1000000LL

static const struct gc_row row = { .runtime = "GHC",
				   .processes = 1,
				   .count = 42,
				   .major = 2,
				   .kinds = { { "generation 0", 40 }, { "generation 1", 2 } },
				   .n_kinds = 2,
				   .time_ns = 500 * MS,
				   .seen_ns = 2000 * MS,
				   .longest_ns = 90 * MS,
				   .live_bytes = 3 << 20,
				   .heap_bytes = GC_UNKNOWN,
				   .missing = "" };

static const char *shown(const struct gc_row *r)
{
	static char text[2048];
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct run_summary s = { .gc = { .n = 1 } };
	size_t n;

	s.gc.rows[0] = *r;
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	section_gc_text(&s, out);
	assert_int_equal(sink_commit(out, NULL), 0);
	assert_true(strlen(sink_memory(out, &n)) < sizeof(text));
	strcpy(text, sink_memory(out, &n));
	return text;
}

static void counts_times_and_what_is_alive_are_one_sentence(void **state)
{
	(void)state;
	assert_string_equal(
		shown(&row),
		"\nGarbage collection\n"
		"  GHC: 42 collections (generation 0: 40, generation 1: 2), 500.0 ms, 25.0% of the time, longest\n"
		"  pause seen 90.0 ms; 3.0 MiB alive after the last\n");
}

static void an_estimate_has_its_interval_and_why_it_is_one(void **state)
{
	struct gc_row r = row;
	const char *text;

	(void)state;
	r.time_ns = r.longest_ns = GC_UNKNOWN;
	r.looked_ns = 2000 * MS;
	r.looks = 100;
	r.collecting = r.found = 25;
	r.missing = "It takes none.";
	r.untested = true;
	text = shown(&r);
	assert_non_null(strstr(text, "about 500.0 ms, 25.0% of the time"));
	assert_non_null(strstr(text, "interval 17.5 to"));
	assert_non_null(strstr(text, "\n    It takes none.\n"));
	assert_non_null(strstr(text, "never tried with this version"));
	assert_null(strstr(text, "pause"));
}

static void a_run_without_such_a_runtime_has_no_section(void **state)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct run_summary s = { .gc = { .n = 0 } };
	size_t n;

	(void)state;
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	section_gc_text(&s, out);
	assert_int_equal(sink_commit(out, NULL), 0);
	assert_string_equal(sink_memory(out, &n), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_times_and_what_is_alive_are_one_sentence),
		cmocka_unit_test(an_estimate_has_its_interval_and_why_it_is_one),
		cmocka_unit_test(a_run_without_such_a_runtime_has_no_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
