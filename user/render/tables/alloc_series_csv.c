#include "render/tables/alloc_series_csv.h"

#include "analyse/frame.h"
#include "render/tables/csv_name.h"

#include <errno.h>
#include <math.h>
#include <time.h>

static int put_header(const struct alloc_series_row *const *rows, uint32_t n, struct dict *d,
		      struct sink *out)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };

	sink_puts(out, "timestamp");
	for (uint32_t i = 0; i < n; i++) {
		if (frame_path_set(&path, d, rows[i]->stack) < 0)
			return -ENOMEM;
		sink_puts(out, ",");
		csv_put_path(out, d, &path);
	}
	sink_puts(out, ",OTHER\n");
	return 0;
}

int alloc_series_csv_write(const struct alloc_series *s, struct dict *d, int64_t start_ns,
			   struct sink *out, struct err *e)
{
	const struct alloc_series_row *rows[ALLOC_SERIES_COLUMNS];
	uint32_t n = alloc_series_rank(s, rows, ALLOC_SERIES_COLUMNS), n_times;
	const double *times;
	double before = 0;

	if (put_header(rows, n, d, out) < 0)
		return err_set(e, -ENOMEM, "out of memory for alloc_series.csv");
	n_times = alloc_series_times(s, &times);
	for (uint32_t i = 0; i < n_times; i++) {
		time_t sec = (time_t)((start_ns + (int64_t)(times[i] * 1e9)) / 1000000000);
		double width = times[i] > before ? times[i] - before : 1e-9;
		char when[32];
		struct tm tm;

		localtime_r(&sec, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		sink_puts(out, when);
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%lld", llround(rows[k]->bytes[i] / width));
		sink_printf(out, ",%lld\n", llround(alloc_series_other(s, rows, n, i) / width));
		before = times[i];
	}
	return 0;
}
