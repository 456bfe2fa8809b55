#include "run/place_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PLACES = 5 };

/* Of a file, of the kernel, of generated code, and two of files that have no symbols. */
static struct dict *four_places(location_id at[PLACES])
{
	static const enum module_kind kinds[PLACES] = { MODULE_ELF, MODULE_KERNEL, MODULE_ANON,
							MODULE_ELF, MODULE_ELF };
	struct dict *d = dict_new();

	for (int i = 0; i < PLACES; i++) {
		struct module m = { .kind = kinds[i], .path = dict_string(d, "/bin/x") };

		at[i] = dict_location(d, dict_module(d, &m), 4096u * (unsigned)(i + 1));
	}
	return d;
}

static void name(struct dict *d, location_id at, const char *function, const char *system_name)
{
	const struct line lines[2] = {
		{ .function = dict_string(d, "inlined"),
		  .system_name = dict_string(d, "inlined"),
		  .file = dict_string(d, "a.c"),
		  .line = 3,
		  .start_line = 1 },
		{ .function = dict_string(d, function),
		  .system_name = dict_string(d, system_name),
		  .file = dict_string(d, "b.c"),
		  .line = 70000,
		  .start_line = 2 },
	};

	dict_location_name(d, at, lines, 2);
}

static struct strbuf names_of_a_child(void)
{
	static const bool fresh[PLACES + 1] = { true, true, true, true, true, true };
	location_id at[PLACES];
	struct dict *d = four_places(at);
	struct strbuf b = { 0 };

	name(d, at[0], "f()", "_Z1fv");
	name(d, at[1], "schedule", "schedule");
	name(d, at[2], "generated", "generated");
	name(d, at[3], "[x+0x3f80]", "");
	name(d, at[4], "x+0x5000", "");
	place_names_add(d, fresh, &b);
	dict_free(d);
	return b;
}

static void names_of_files_and_the_kernel_are_taken_and_others_not(void **state)
{
	struct strbuf b = names_of_a_child();
	location_id at[PLACES];
	struct dict *d = four_places(at);
	struct place_names_taken taken;
	const struct location *l;

	taken = place_names_take(d, (struct bytes){ (const uint8_t *)b.s, b.len }, 100);
	assert_int_equal(taken.named, 3);
	assert_int_equal(taken.ranges, 1);
	assert_int_equal(taken.unread + taken.read, 0);
	l = dict_location_get(d, at[0]);
	assert_true(l->named && l->n_lines == 2);
	assert_string_equal(dict_str(d, l->lines[1].function), "f()");
	assert_string_equal(dict_str(d, l->lines[1].system_name), "_Z1fv");
	assert_string_equal(dict_str(d, l->lines[0].file), "a.c");
	assert_int_equal(l->lines[1].line, 70000);
	assert_true(dict_location_get(d, at[1])->named);
	assert_false(dict_location_get(d, at[2])->named);
	assert_string_equal(dict_str(d, dict_location_get(d, at[3])->lines[1].function),
			    "[x+0x3f80]");
	assert_false(dict_location_get(d, at[4])->named);
	taken = place_names_take(d, (struct bytes){ (const uint8_t *)b.s, b.len }, 100);
	assert_int_equal(taken.named + taken.ranges, 0);
	strbuf_free(&b);
	dict_free(d);
}

static void at_most_so_many_are_taken(void **state)
{
	struct strbuf b = names_of_a_child();
	location_id at[PLACES];
	struct dict *d = four_places(at);

	assert_int_equal(
		place_names_take(d, (struct bytes){ (const uint8_t *)b.s, b.len }, 1).named, 1);
	assert_false(dict_location_get(d, at[1])->named);
	strbuf_free(&b);
	dict_free(d);
}

static void what_is_cut_or_wrong_ends_it(void **state)
{
	struct strbuf b = names_of_a_child();

	for (size_t len = 0; len < b.len; len++) {
		location_id at[PLACES];
		struct dict *d = four_places(at);
		uint8_t *part = malloc(len + 1);

		memcpy(part, b.s, len);
		assert_true(place_names_take(d, (struct bytes){ part, len }, 100).named < 3);
		if (len > 4)
			part[0] = 200; /* no such place */
		assert_int_equal(place_names_take(d, (struct bytes){ part, len }, 100).named, 0);
		free(part);
		dict_free(d);
	}
	strbuf_free(&b);
}

/* What a child found by symbols alone, and what a later one found that might read debug info. */
static void names_that_debug_info_may_know_more_of_give_way_to_its(void **state)
{
	static const bool fresh[PLACES + 1] = { false, true };
	struct strbuf by_symbols = { 0 }, by_lines = { 0 };
	location_id at[PLACES];
	struct dict *d = four_places(at), *child = four_places(at);
	struct line line = { .function = dict_string(child, "f()"),
			     .system_name = dict_string(child, "_Z1fv") };
	struct place_names_taken taken;

	dict_location_name_unread(child, at[0], &line, 1);
	place_names_add(child, fresh, &by_symbols);
	name(child, at[0], "f()", "_Z1fv");
	place_names_add(child, fresh, &by_lines);

	taken = place_names_take(d, bytes_of(by_symbols.s, by_symbols.len), 100);
	assert_true(taken.unread == 1 && !taken.named && !taken.read);
	assert_true(dict_location_get(d, at[0])->lines_unread);
	taken = place_names_take(d, bytes_of(by_symbols.s, by_symbols.len), 100);
	assert_int_equal(taken.unread + taken.named + taken.read, 0);
	/* Though there is room for no other. */
	taken = place_names_take(d, bytes_of(by_lines.s, by_lines.len), 0);
	assert_true(taken.named == 1 && taken.read == 1 && !taken.unread);
	assert_false(dict_location_get(d, at[0])->lines_unread);
	assert_int_equal(dict_location_get(d, at[0])->n_lines, 2);
	taken = place_names_take(d, bytes_of(by_symbols.s, by_symbols.len), 100);
	assert_int_equal(taken.unread + taken.named + taken.read, 0);
	assert_int_equal(dict_location_get(d, at[0])->n_lines, 2);
	strbuf_free(&by_symbols);
	strbuf_free(&by_lines);
	dict_free(child);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_files_and_the_kernel_are_taken_and_others_not),
		cmocka_unit_test(names_that_debug_info_may_know_more_of_give_way_to_its),
		cmocka_unit_test(at_most_so_many_are_taken),
		cmocka_unit_test(what_is_cut_or_wrong_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
