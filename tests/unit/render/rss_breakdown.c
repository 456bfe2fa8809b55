#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/summary/sections.h"

static const char *text_of(const struct run_summary *s, struct sink **ret_sink)
{
	struct err e = { 0 };
	size_t len;

	assert_int_equal(sink_open_memory(ret_sink, &e), 0);
	section_rss_breakdown_text(s, *ret_sink);
	assert_int_equal(sink_commit(*ret_sink, &e), 0);
	return sink_memory(*ret_sink, &len);
}

static void nothing_is_said_without_a_ledger(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct run_summary s = { 0 };

	assert_string_equal(text_of(&s, &sink), "");
}

static void parts_and_what_is_left_are_shown_with_their_sign(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct run_summary s = { 0 };
	const char *text;

	s.ledger.now = (struct ledger){ .processes = 1, .rss = 4 << 20, .allocators = "glibc" };
	s.ledger.now.parts[LEDGER_BEFORE] = (struct ledger_row){ 3 << 20, 5 << 20, 1234 };
	s.ledger.now.parts[LEDGER_LIVE] = (struct ledger_row){ 1 << 20, 1 << 20, 2 };
	s.ledger.now.parts[LEDGER_FILE].resident = 1 << 20;
	s.ledger.now.unsupported_allocator = "libmimalloc";
	s.ledger.at_ns = 2000000000;
	text = text_of(&s, &sink);
	assert_non_null(strstr(text, "4.0 MiB, after 2.0 s of the run; glibc walked\n"));
	assert_non_null(
		strstr(text, "live, pre-existing        3.0 MiB   75.0%  of 5.0 MiB in 1,234"));
	assert_non_null(strstr(text, "live, not traced"));
	assert_non_null(strstr(text, "unexplained              -1.0 MiB"));
	assert_non_null(strstr(text, "libmimalloc is mapped but was not walked"));
	assert_null(strstr(text, "stacks"));
}

static void what_an_interpreter_keeps_its_objects_in_is_a_line_of_its_own(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct run_summary s = { 0 };
	struct ledger *l = &s.ledger.now;
	const char *text;

	*l = (struct ledger){ .processes = 1, .rss = 8 << 20, .objects_by = "pymalloc" };
	l->object_arenas = 3;
	l->objects[LEDGER_LIVE] = (struct ledger_row){ 1 << 20, 1 << 20, 4321 };
	l->objects[LEDGER_FREE] = (struct ledger_row){ 1 << 20, 2 << 20, 7 };
	text = text_of(&s, &sink);
	assert_non_null(strstr(text, "  - for objects             2.0 MiB   25.0%  of the above, "
				     "pymalloc's 3 arenas: 1.0 MiB live in 4,321 blocks, "
				     "2.0 MiB free\n"));
	assert_non_null(strstr(text, "unexplained               8.0 MiB"));
}

static void containers_are_rows_and_what_was_not_read_is_said(void **state)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct summary_container_memory rows[] = {
		{ "web", { .processes = 2, .pss = 6 << 20, .by_pss = true } },
		{ "host", { .processes = 1, .pss = 2 << 20, .by_pss = true, .not_read = 7 } },
	};
	struct run_summary s = { 0 };
	const char *text;

	s.ledger.now = (struct ledger){ .processes = 3,
					.rss = 16 << 20,
					.pss = 8 << 20,
					.by_pss = true,
					.not_read = 7,
					.not_read_rss = 1 << 20 };
	s.ledger.now.parts[LEDGER_FILE] =
		(struct ledger_row){ .resident = 12 << 20, .pss = 4 << 20 };
	rows[0].now.parts[LEDGER_LIVE].pss = 1 << 20;
	s.ledger.containers = rows;
	s.ledger.n_containers = 2;
	text = text_of(&s, &sink);
	assert_non_null(strstr(text, "8.0 MiB (PSS) of 3 processes"));
	assert_non_null(strstr(text, "none counts twice"));
	assert_non_null(strstr(text, "unexplained               4.0 MiB   50.0%"));
	assert_non_null(strstr(text, "not read: 7 processes with 1.0 MiB of RSS"));
	assert_non_null(strstr(
		text, "web                       6.0 MiB   75.0%  2 processes; heaps 1.0 MiB\n"));
	assert_non_null(strstr(text, "1 process; heaps 0 B; 7 not read\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_without_a_ledger),
		cmocka_unit_test(parts_and_what_is_left_are_shown_with_their_sign),
		cmocka_unit_test(what_an_interpreter_keeps_its_objects_in_is_a_line_of_its_own),
		cmocka_unit_test(containers_are_rows_and_what_was_not_read_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
