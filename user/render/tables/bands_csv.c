#include "render/tables/bands_csv.h"

#include "analyse/frame.h"
#include "render/tables/csv_name.h"

#include <errno.h>
#include <time.h>

static int put_header(const struct live_series_row *const *bands, uint32_t n, struct dict *d,
		      struct sink *out)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };

	sink_puts(out, "timestamp");
	for (uint32_t i = 0; i < n; i++) {
		if (frame_path_set(&path, d, bands[i]->stack) < 0)
			return -ENOMEM;
		sink_puts(out, ",");
		csv_put_path(out, d, &path);
	}
	sink_puts(out, ",OTHER\n");
	return 0;
}

int bands_csv_write(const struct live_series *b, struct dict *d, int64_t start_ns, struct sink *out,
		    struct err *e)
{
	const struct live_series_row *bands[LIVE_SERIES_COLUMNS];
	uint32_t n = live_series_rank(b, bands, LIVE_SERIES_COLUMNS), n_times;
	const double *times;

	if (put_header(bands, n, d, out) < 0)
		return err_set(e, -ENOMEM, "out of memory for live_series.csv");
	n_times = live_series_times(b, &times);
	for (uint32_t i = 0; i < n_times; i++) {
		time_t sec = (time_t)(start_ns / 1000000000 + (int64_t)times[i]);
		char when[32];
		struct tm tm;

		localtime_r(&sec, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		sink_puts(out, when);
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%lld", (long long)bands[k]->bytes[i]);
		sink_printf(out, ",%lld\n", (long long)live_series_other(b, bands, n, i));
	}
	return 0;
}
