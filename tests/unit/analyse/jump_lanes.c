/* Jumps as lines: corners where they begin and end, one lane each, nested ones inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyse/jump_lanes.h"
#include "base/cleanup.h"

#include <string.h>

/* jumps[i]: the instruction that i jumps to, counted from 1; 0: none. */
static void assert_drawn(const uint32_t *jumps, uint32_t n, const char *const *want)
{
	struct code_instruction in[32] = { 0 };
	struct code_text code = { .n = n, .instructions = in };
	_cleanup_(freep) struct jump_row *rows = NULL;
	uint32_t columns;

	for (uint32_t i = 0; i < n; i++)
		in[i].jump = jumps[i];
	rows = jump_lanes(&code, &columns);
	assert_non_null(rows);
	for (uint32_t i = 0; i < n; i++) {
		char drawn[JUMP_COLUMNS * 3 + 1] = "";

		for (uint32_t c = JUMP_COLUMNS - columns; c < JUMP_COLUMNS; c++)
			strcat(drawn, rows[i].columns[c]);
		assert_string_equal(drawn, want[i]);
	}
}

static void a_shorter_jump_is_nearer(void **state)
{
	static const char *const want[] = { "┌────", "│ ┌─►", "│ └──", "└───►" };

	assert_drawn((const uint32_t[]){ 4, 0, 2, 0 }, 4, want);
}

static void jumps_that_cross_have_lanes_of_their_own(void **state)
{
	static const char *const want[] = { "  ┌──", "┌─┼──", "│ └─►", "└───►" };

	assert_drawn((const uint32_t[]){ 3, 4, 0, 0 }, 4, want);
}

static void jumps_to_one_place_meet_there(void **state)
{
	static const char *const want[] = { "┌────", "│    ", "│ ┌──", "└─┴─►" };

	assert_drawn((const uint32_t[]){ 4, 0, 4, 0 }, 4, want);
}

static void jumps_side_by_side_share_a_lane(void **state)
{
	static const char *const want[] = { "┌──", "└─►", "┌─►", "└──" };

	assert_drawn((const uint32_t[]){ 2, 0, 0, 3 }, 4, want);
}

static void a_jump_to_itself_and_none_have_no_line(void **state)
{
	static const char *const want[] = { "", "" };

	assert_drawn((const uint32_t[]){ 1, 0 }, 2, want);
}

static void more_jumps_than_lanes_are_left_out(void **state)
{
	uint32_t columns;
	struct code_instruction in[20] = { 0 };
	struct code_text code = { .n = 20, .instructions = in };
	_cleanup_(freep) struct jump_row *rows = NULL;
	uint32_t corners = 0;

	for (uint32_t i = 0; i < 10; i++)
		in[i].jump = 20 - i; /* all nested */
	rows = jump_lanes(&code, &columns);
	assert_int_equal(columns, JUMP_COLUMNS);
	for (uint32_t i = 0; i < 20; i++)
		for (int c = 0; c < JUMP_COLUMNS; c++)
			corners += strcmp(rows[i].columns[c], "┌") == 0;
	assert_int_equal(corners, JUMP_LANES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shorter_jump_is_nearer),
		cmocka_unit_test(jumps_that_cross_have_lanes_of_their_own),
		cmocka_unit_test(jumps_to_one_place_meet_there),
		cmocka_unit_test(jumps_side_by_side_share_a_lane),
		cmocka_unit_test(a_jump_to_itself_and_none_have_no_line),
		cmocka_unit_test(more_jumps_than_lanes_are_left_out),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
