#include "analyse/cpu_kind.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define LEAST_ROWS   20
#define ROUNDING     0.11 /* percent: two values of one decimal */
#define CLOCK_S      1.0  /* stamps are whole seconds            */
#define STEADY       0.5  /* percent of a CPU: changes below are nothing to tell by */
#define STEADY_SHARE 0.02
#define RESTARTS_MAX 2 /* or one in 50 rows */

/* Can an average over a life go from `a` to `b`? `since_s`: the first row of this life, at the earliest. */
static bool can_be_of_life(const struct mem_log_row *a, const struct mem_log_row *b, double since_s,
			   double cpu_max)
{
	double from = a->value[MEM_COLUMN_CPU], to = b->value[MEM_COLUMN_CPU];
	double from_s = a->time_s - since_s, to_s = b->time_s - since_s;
	double to_least_s = fmax(to_s - CLOCK_S, 0);

	if (to < from * fmax(from_s - CLOCK_S, 0) / (to_s + CLOCK_S) - ROUNDING)
		return false;
	return (to - ROUNDING) * to_least_s <=
	       from * (from_s + CLOCK_S) + cpu_max * (to_s - from_s + 2 * CLOCK_S);
}

enum cpu_kind cpu_kind_of(const struct mem_log *log, uint32_t n_cpus)
{
	const struct mem_log_row *last = NULL;
	double since_s = 0, low = INFINITY, high = -INFINITY, cpu_max;
	uint32_t n = 0, broken = 0;

	if (log->of_memscope)
		return CPU_OF_INTERVAL;
	for (uint32_t i = 0; i < log->n; i++) {
		double v = log->rows[i].value[MEM_COLUMN_CPU];

		low = isnan(v) ? low : fmin(low, v);
		high = isnan(v) ? high : fmax(high, v);
	}
	cpu_max = fmax(100.0 * n_cpus, high);
	for (uint32_t i = 0; i < log->n; i++) {
		const struct mem_log_row *row = &log->rows[i];

		if (isnan(row->value[MEM_COLUMN_CPU]))
			continue;
		if (!last || !can_be_of_life(last, row, since_s, cpu_max)) {
			broken += last != NULL;
			since_s = row->time_s;
		}
		last = row;
		n++;
	}
	if (broken > RESTARTS_MAX && broken > n / 50)
		return CPU_OF_INTERVAL;
	if (broken || n < LEAST_ROWS || high - low < fmax(STEADY, STEADY_SHARE * high))
		return CPU_UNKNOWN;
	return CPU_OF_LIFE;
}

const char *cpu_kind_name(enum cpu_kind kind)
{
	return kind == CPU_OF_INTERVAL ? "interval" : kind == CPU_OF_LIFE ? "lifetime" : NULL;
}
