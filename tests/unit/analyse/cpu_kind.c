/* What CPU percentages mean, known from programs whose CPU time is known: never the wrong way round. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyse/cpu_kind.h"

#define EACH 400
#define ROWS 600
#define CPUS 4

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double between(double low, double high)
{
	return low + (high - low) * uniform();
}

/* One decimal, as ps and most scripts print. */
static double printed(double percent)
{
	return floor(percent * 10) / 10;
}

enum life { STEADY, NOISY, BURSTS, DAILY, N_LIVES };

/* CPUs in use in the `i`th interval. */
static double use(enum life life, uint32_t i, double level)
{
	switch (life) {
	case STEADY:
		return level;
	case NOISY:
		return level * between(0.3, 1.7);
	case BURSTS:
		return uniform() < 0.2 ? fmin(3 * level, CPUS) : 0.1 * level;
	default:
		return level * (1.2 + sin(i / 40.0)) * between(0.8, 1.2);
	}
}

/* Rows of the same program: by its whole life, and by the interval before each. */
static void make(enum life life, uint32_t n, uint32_t restart_at, struct mem_log *of_life,
		 struct mem_log *of_interval)
{
	double step = floor(between(1, 300)), age = uniform() < 0.3 ? 0 : between(0, 1e6),
	       t = 1.8e9;
	double level = between(0.05, CPUS / 3.0), cpu = age * level * between(0.2, 1);

	of_life->n = of_interval->n = n;
	for (uint32_t i = 0; i < n; i++) {
		double now = use(life, i, level);

		if (restart_at && i && i % restart_at == 0)
			age = cpu = 0;
		age += step;
		cpu += now * step;
		t += step;
		of_life->rows[i].time_s = of_interval->rows[i].time_s = floor(t);
		of_life->rows[i].value[MEM_COLUMN_CPU] = printed(100 * cpu / age);
		of_interval->rows[i].value[MEM_COLUMN_CPU] = printed(100 * now);
	}
}

static struct mem_log_row rows[2][ROWS];
static struct mem_log logs[2] = { { .rows = rows[0] }, { .rows = rows[1] } };

static void neither_is_taken_for_the_other(void **unused)
{
	uint32_t right[2] = { 0 }, n = 0;

	state = 88172645463325252ULL;
	for (int life = STEADY; life < N_LIVES; life++)
		for (int i = 0; i < EACH; i++, n++) {
			enum cpu_kind kind;

			make((enum life)life, 20 + (uint32_t)between(0, ROWS - 20), 0, &logs[0],
			     &logs[1]);
			kind = cpu_kind_of(&logs[0], CPUS);
			assert_int_not_equal(kind, CPU_OF_INTERVAL);
			right[0] += kind == CPU_OF_LIFE;
			kind = cpu_kind_of(&logs[1], CPUS);
			assert_int_not_equal(kind, CPU_OF_LIFE);
			right[1] += kind == CPU_OF_INTERVAL;
		}
	print_message("of %u logs of lives %u are known, of as many of intervals %u\n", n, right[0],
		      right[1]);
	/* All of intervals that are not steady, but for the shortest. */
	assert_true(right[1] > n * 3 / 4 * 95 / 100);
	assert_true(right[0] > n / 5);
}

static void a_restart_makes_no_interval_of_a_life(void **unused)
{
	state = 362436069;
	for (int i = 0; i < EACH; i++) {
		make(NOISY, 200, 150, &logs[0], &logs[1]);
		assert_int_not_equal(cpu_kind_of(&logs[0], CPUS), CPU_OF_INTERVAL);
	}
}

static void a_log_of_memscope_is_of_intervals(void **unused)
{
	state = 521288629;
	make(STEADY, 3, 0, &logs[0], &logs[1]);
	logs[1].of_memscope = true;
	assert_int_equal(cpu_kind_of(&logs[1], CPUS), CPU_OF_INTERVAL);
	logs[1].of_memscope = false;
	assert_int_equal(cpu_kind_of(&logs[1], CPUS), CPU_UNKNOWN);
}

static void rows_without_a_value_are_skipped(void **unused)
{
	state = 521288629;
	make(NOISY, 100, 0, &logs[0], &logs[1]);
	for (int i = 0; i < 100; i += 3)
		rows[1][i].value[MEM_COLUMN_CPU] = NAN;
	assert_int_equal(cpu_kind_of(&logs[1], CPUS), CPU_OF_INTERVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neither_is_taken_for_the_other),
		cmocka_unit_test(a_restart_makes_no_interval_of_a_life),
		cmocka_unit_test(a_log_of_memscope_is_of_intervals),
		cmocka_unit_test(rows_without_a_value_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
