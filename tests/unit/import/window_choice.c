#include "import/window_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "windows_fixture.h"

static struct err e;
static struct strbuf text;

/* An archive of windows of two minutes, with a gap, and one of a trigger. It is 21:00. */
static int setup(void **state)
{
	if (windows_dir_make(state) < 0)
		return -1;
	window_file("oncpu", "20261122-194800", 400, 120);
	window_file("oncpu", "20261122-195000", 400, 120);
	window_file("oncpu", "20261122-195200", 400, 60);
	window_file("oncpu", "20261122-200000", 0, 120);
	trigger_file("oncpu", "oom", "20261122-195530", 30);
	return 0;
}

static int teardown(void **state)
{
	strbuf_free(&text);
	return windows_dir_remove(state);
}

/* Those that `word` means: "194800 195000", or the error. */
static const char *chosen(const char *word)
{
	struct windows w;
	struct window_choice c;
	uint32_t *list, n;

	strbuf_reset(&text);
	assert_int_equal(windows_read(windows_dir, NULL, &w, &e), 0);
	if (window_choice_parse(word, stamp_time("20261122-210000") * NS, &c, &e) < 0 ||
	    window_choose(&w, &c, &list, &n, &e) < 0) {
		windows_fini(&w);
		return e.msg;
	}
	for (uint32_t i = 0; i < n; i++)
		strbuf_printf(&text, "%s%s%s%s", i ? " " : "", w.all[list[i]].word,
			      *w.all[list[i]].word ? "-" : "", w.all[list[i]].stamp + 9);
	free(list);
	windows_fini(&w);
	return text.s;
}

static void a_moment_is_in_one_window(void **state)
{
	assert_string_equal(chosen("at:2026-11-22T19:51"), "195000");
	assert_string_equal(chosen("at:19:51"), "195000");
	assert_string_equal(chosen("at:20:01:59"), "200000");
	assert_string_equal(chosen("at:20261122-194800"), "194800");
}

static void where_no_window_has_the_moment_a_trigger_s_has_it(void **state)
{
	assert_string_equal(chosen("at:19:55:10"), "oom-195530");
}

static void what_was_not_gathered_has_its_neighbours_named(void **state)
{
	const char *said = chosen("at:19:57");

	assert_non_null(strstr(said, "no window has at:19:57; the nearest: "
				     "at:2026-11-22T19:52:00, which ends at 19:53:00; and "
				     "at:2026-11-22T20:00:00"));
	assert_non_null(strstr(chosen("at:2026-11-22T12:00"), "at:2026-11-22T19:48:00"));
	assert_null(strstr(chosen("at:20:59"), "; and"));
}

static void a_range_takes_what_has_any_of_it(void **state)
{
	assert_string_equal(chosen("19:49..19:51"), "194800 195000");
	assert_string_equal(chosen("19:50:01..19:52"), "195000");
	assert_string_equal(chosen("2026-11-22T19:52..2026-11-22T20:30"), "195000 195200 200000");
	assert_string_equal(chosen("19:55.."), "200000");
	assert_string_equal(chosen("..19:50"), "194800");
	assert_string_equal(chosen("-70m..-65m"), "194800 195000 195200"); /* its last 0.4 s */
	assert_string_equal(chosen("-69m..-65m"), "195000 195200");
	assert_non_null(strstr(chosen("19:54..19:59"), "no window has"));
}

static void the_last_are_counted_or_of_a_time(void **state)
{
	assert_string_equal(chosen("last:2"), "195200 200000");
	assert_string_equal(chosen("last:99"), "194800 195000 195200 200000");
	assert_string_equal(chosen("last:1h"), "200000");
	assert_non_null(strstr(chosen("last:10m"), "no window has last:10m"));
}

static void windows_go_by_their_names_too(void **state)
{
	assert_string_equal(chosen("20261122-195000"), "195000");
	assert_string_equal(chosen("oom-20261122-195530"), "oom-195530");
	assert_string_equal(chosen("20261122-195530"), "oom-195530");
	assert_non_null(strstr(chosen("rss-20261122-195530"), "there is no window"));
}

static void mistakes_are_named(void **state)
{
	assert_non_null(strstr(chosen("at:noon"), "at:noon: when?"));
	assert_non_null(strstr(chosen("19:50..19:40x"), "ends of a range are times"));
	assert_non_null(
		strstr(chosen("2026-11-22T19:50..2026-11-22T19:40"), "is not after its begin"));
	assert_non_null(strstr(chosen("last:0"), "how many?"));
	assert_non_null(strstr(chosen("last:x"), "how many?"));
}

static void other_words_choose_no_windows(void **state)
{
	static const char *const words[] = { "latest",      "all",     "3",       "last:3", "a,b",
					     "..",          "../x.pb", "oncpu",   "a..b",   "x/..",
					     "oncpu.pb.gz", "-",       "20261122" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_false(is_window_choice(words[i]));
	assert_true(is_window_choice("at:x"));
	assert_true(is_window_choice("19:40.."));
	assert_true(is_window_choice("last:30m"));
	assert_true(is_window_choice("oom-20261122-195530"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_moment_is_in_one_window),
		cmocka_unit_test(where_no_window_has_the_moment_a_trigger_s_has_it),
		cmocka_unit_test(what_was_not_gathered_has_its_neighbours_named),
		cmocka_unit_test(a_range_takes_what_has_any_of_it),
		cmocka_unit_test(the_last_are_counted_or_of_a_time),
		cmocka_unit_test(windows_go_by_their_names_too),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(other_words_choose_no_windows),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
