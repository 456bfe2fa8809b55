/* Names of files that have a time. */
#include "base/window_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void parse(const char *file, const char *source, const char *word, const char *stamp,
		  const char *ext)
{
	struct window_name n;

	assert_true(window_name_parse(file, &n));
	assert_string_equal(n.source, source);
	assert_string_equal(n.word, word);
	assert_string_equal(n.stamp, stamp);
	assert_string_equal(n.ext, ext);
}

static void a_name_has_a_source_a_word_a_stamp_and_an_ending(void **state)
{
	parse("oncpu-20261122-195000.pb.gz", "oncpu", "", "20261122-195000", ".pb.gz");
	parse("oncpu_rss_4G-20261122-195000-2.times.csv.gz", "oncpu", "rss_4G", "20261122-195000-2",
	      ".times.csv.gz");
}

static void events_have_dashes_and_underscores_in_their_names(void **state)
{
	char stamp[32];

	parse("page-faults-20261122-195000.pb.gz", "page-faults", "", "20261122-195000", ".pb.gz");
	parse("L1-dcache-load-misses-20261122-195000-11.folded", "L1-dcache-load-misses", "",
	      "20261122-195000-11", ".folded");
	parse("sched_process_fork-20261122-195000.pb.gz", "sched_process_fork", "",
	      "20261122-195000", ".pb.gz");
	parse("page-faults_rss_1_5G-20261122-195000.pb.gz", "page-faults", "rss_1_5G",
	      "20261122-195000", ".pb.gz");
	parse("sched_process_fork_growth_10M_min-20261122-195000.folded", "sched_process_fork",
	      "growth_10M_min", "20261122-195000", ".folded");
	parse("LLC-loads_oom-20261122-195000.pb.gz", "LLC-loads", "oom", "20261122-195000",
	      ".pb.gz");
	parse("sched_cpu_migrate-20261122-195000.pb.gz", "sched_cpu_migrate", "", "20261122-195000",
	      ".pb.gz");
	parse("mm_rss_stat-20261122-195000.pb.gz", "mm_rss_stat", "", "20261122-195000", ".pb.gz");
	assert_true(is_window_name("web/page-faults-20261122-195000.pb.gz", stamp, sizeof(stamp)));
	assert_string_equal(stamp, "20261122-195000");
}

static void what_has_no_stamp_is_no_window(void **state)
{
	static const char *const others[] = { "oncpu.pb.gz",
					      "page-faults.pb.gz",
					      "-20261122-195000.pb.gz",
					      "oncpu-20261122-195000",
					      "oncpu-20261122-195000-.pb.gz",
					      "oncpu-2026112-195000.pb.gz",
					      ".a-20261122-195000.pb.gz",
					      "a/b/oncpu-20261122-195000.pb.gz" };
	char stamp[32];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(is_window_name(others[i], stamp, sizeof(stamp)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_a_source_a_word_a_stamp_and_an_ending),
		cmocka_unit_test(events_have_dashes_and_underscores_in_their_names),
		cmocka_unit_test(what_has_no_stamp_is_no_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
