#include "render/tables/alloc_series_csv.h"

#include "render/tables/csv_name.h"

#include <errno.h>
#include <math.h>

int alloc_series_csv_write(const struct alloc_series *s, struct dict *d, int64_t start_ns,
			   struct sink *out, struct err *e)
{
	const struct alloc_series_row *rows[ALLOC_SERIES_COLUMNS];
	uint32_t n = alloc_series_rank(s, rows, ALLOC_SERIES_COLUMNS), n_times;
	stack_id stacks[ALLOC_SERIES_COLUMNS];
	const double *times;
	double before = 0;

	for (uint32_t i = 0; i < n; i++)
		stacks[i] = rows[i]->stack;
	if (csv_put_series_names(out, d, stacks, n) < 0)
		return err_set(e, -ENOMEM, "out of memory for alloc_series.csv");
	n_times = alloc_series_times(s, &times);
	for (uint32_t i = 0; i < n_times; i++) {
		double width = times[i] > before ? times[i] - before : 1e-9;

		csv_put_time(out, start_ns + (int64_t)(times[i] * 1e9));
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%lld", llround(rows[k]->bytes[i] / width));
		sink_printf(out, ",%lld\n", llround(alloc_series_other(s, rows, n, i) / width));
		before = times[i];
	}
	return 0;
}
