#include "screen/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct process *stat_line(struct processes *p, int pid, const char *comm, unsigned flags,
				 int ticks, int start, int pages)
{
	char line[256];
	bool bad;

	snprintf(line, sizeof(line),
		 "%d (%s) S 1 1 1 0 -1 %u 9 0 0 0 %d 0 0 0 20 0 3 0 %d 99999 %d 1844 1 1", pid,
		 comm, flags, ticks, start, pages);
	return processes_stat(p, line, &bad);
}

static void cpu_use_is_between_two_readings(void **state)
{
	struct processes p;
	struct process *row;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1000000000);
	row = stat_line(&p, 7, "web", 0, 500, 10, 100);
	assert_non_null(row);
	assert_true(row->cpu_percent < 0);
	assert_int_equal(row->threads, 3);
	assert_int_equal(row->rss_bytes, 409600);
	processes_end(&p);
	processes_begin(&p, 3000000000);
	row = stat_line(&p, 7, "web", 0, 550, 10, 100);
	processes_end(&p);
	assert_true(row->cpu_percent > 24.99 && row->cpu_percent < 25.01); /* 0.5 s in 2 s */
	assert_true(p.cpu_percent > 24.99 && p.cpu_percent < 25.01);
	processes_fini(&p);
}

static void growth_is_a_minutes_and_not_said_too_early(void **state)
{
	struct processes p;
	struct process *row;
	double bytes = 0;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1000000000);
	stat_line(&p, 7, "web", 0, 1, 10, 1000);
	processes_end(&p);
	processes_begin(&p, 3000000000);
	row = stat_line(&p, 7, "web", 0, 1, 10, 1500);
	assert_false(process_growth(&p, row, &bytes));
	processes_end(&p);
	processes_begin(&p, 11000000000);
	row = stat_line(&p, 7, "web", 0, 1, 10, 2000);
	assert_true(process_growth(&p, row, &bytes));
	processes_end(&p);
	assert_int_equal((int64_t)bytes, 1000 * 4096 * 6); /* in 10 s */
	processes_fini(&p);
}

static void names_may_have_brackets_and_blanks_in_them(void **state)
{
	struct processes p;
	struct process *row;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1);
	row = stat_line(&p, 7, "a) S 1 (b", 0, 1, 10, 1);
	assert_string_equal(row->comm, "a) S 1 (b");
	assert_int_equal(row->start_ticks, 10);
	processes_fini(&p);
}

static void a_pid_that_comes_again_is_another_process(void **state)
{
	struct processes p;
	struct process *row;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1000000000);
	row = stat_line(&p, 7, "old", 0, 500, 10, 100);
	row->runtime = "Java";
	processes_end(&p);
	processes_begin(&p, 2000000000);
	row = stat_line(&p, 7, "new", 0, 3, 900, 100);
	processes_end(&p);
	assert_int_equal(p.n, 1);
	assert_null(row->runtime);
	assert_true(row->cpu_percent < 0);
	processes_fini(&p);
}

static void who_is_not_there_any_more_is_not_shown(void **state)
{
	struct processes p;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1);
	stat_line(&p, 9, "c", 0, 1, 1, 1);
	stat_line(&p, 7, "a", 0, 1, 1, 1);
	stat_line(&p, 8, "b", 0, 1, 1, 1);
	assert_null(stat_line(&p, 2, "kthreadd", 0x00200000, 1, 1, 0));
	processes_end(&p);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.rows[1].pid, 8);
	processes_begin(&p, 2);
	stat_line(&p, 9, "c", 0, 1, 1, 1);
	processes_end(&p);
	assert_int_equal(p.n, 1);
	assert_int_equal(processes_find(&p, 9)->pid, 9);
	assert_null(processes_find(&p, 7));
	processes_fini(&p);
}

static void damaged_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"7",
		"7 (a",
		"7 a) S 1",
		"7 (a) S 1 1 1",
		")(",
		"x (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
	};
	struct processes p;
	bool bad;

	processes_init(&p, 100, 4096);
	processes_begin(&p, 1);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_null(processes_stat(&p, lines[i], &bad));
		assert_true(bad);
	}
	processes_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_use_is_between_two_readings),
		cmocka_unit_test(growth_is_a_minutes_and_not_said_too_early),
		cmocka_unit_test(names_may_have_brackets_and_blanks_in_them),
		cmocka_unit_test(a_pid_that_comes_again_is_another_process),
		cmocka_unit_test(who_is_not_there_any_more_is_not_shown),
		cmocka_unit_test(damaged_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
