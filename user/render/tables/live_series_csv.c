#include "render/tables/live_series_csv.h"

#include "render/tables/csv_name.h"

#include <errno.h>

int live_series_csv_write(const struct live_series *b, struct dict *d, int64_t start_ns,
			  struct sink *out, struct err *e)
{
	const struct live_series_row *rows[LIVE_SERIES_COLUMNS];
	uint32_t n = live_series_rank(b, rows, LIVE_SERIES_COLUMNS), n_times;
	stack_id stacks[LIVE_SERIES_COLUMNS];
	const double *times;

	for (uint32_t i = 0; i < n; i++)
		stacks[i] = rows[i]->stack;
	if (csv_put_series_names(out, d, stacks, n) < 0)
		return err_set(e, -ENOMEM, "out of memory for live_series.csv");
	n_times = live_series_times(b, &times);
	for (uint32_t i = 0; i < n_times; i++) {
		csv_put_time(out, start_ns + (int64_t)(times[i] * 1e9));
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%lld", (long long)rows[k]->bytes[i]);
		sink_printf(out, ",%lld\n", (long long)live_series_other(b, rows, n, i));
	}
	return 0;
}
