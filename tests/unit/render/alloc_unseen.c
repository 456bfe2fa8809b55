#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/summary/alloc_parts.h"

static const char *text_of(const struct run_summary *s, struct sink **ret_sink)
{
	struct err e = { 0 };
	size_t len;

	assert_int_equal(sink_open_memory(ret_sink, &e), 0);
	alloc_unseen_text(s, *ret_sink);
	assert_int_equal(sink_commit(*ret_sink, &e), 0);
	return sink_memory(*ret_sink, &len);
}

static void what_malloc_sees_of_an_interpreters_heap_is_a_share(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct run_summary s = { .alloc = { .tier = ALLOC_TIER_SAMPLED } };
	const char *text;

	s.ledger.now = (struct ledger){ .processes = 1, .objects_by = "pymalloc" };
	s.ledger.now.parts[LEDGER_LIVE].bytes = 8 << 20;
	s.ledger.now.parts[LEDGER_TRACED].bytes = 2 << 20;
	s.ledger.now.objects[LEDGER_LIVE].bytes = 6 << 20;
	text = text_of(&s, &sink);
	assert_non_null(
		strstr(text, "malloc sees 40.0% of the live heap: 6.0 MiB of small objects"));
}

static void nothing_is_said_where_objects_are_seen_or_there_are_none(void **state)
{
	for (int i = 0; i < 4; i++) {
		_cleanup_(sink_closep) struct sink *sink = NULL;
		struct run_summary s = { .alloc = { .tier = ALLOC_TIER_SAMPLED } };

		s.ledger.now =
			(struct ledger){ .processes = 1, .objects_by = i == 0 ? NULL : "pymalloc" };
		s.ledger.now.objects_traced = i == 1;
		s.ledger.now.parts[LEDGER_LIVE].bytes = 8 << 20;
		s.ledger.now.objects[LEDGER_LIVE].bytes = 6 << 20;
		s.alloc.objects_seen = i == 2;
		if (i == 3)
			s.alloc.tier = ALLOC_TIER_OFF;
		assert_string_equal(text_of(&s, &sink), "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_malloc_sees_of_an_interpreters_heap_is_a_share),
		cmocka_unit_test(nothing_is_said_where_objects_are_seen_or_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
