#include "render/tables/counts_csv.h"

#include "render/tables/csv_name.h"
#include "render/tables/syscalls_csv.h"

void counts_csv_write(const struct count_row *rows, uint32_t n, struct sink *out)
{
	sink_puts(
		out,
		"function,profile,calls,returned,left,in_progress,lost,time_ns,outermost,"
		"outermost_ns,shortest_ns,longest_ns,p50_ns,p99_ns,counted_s,timed_s,untimed,histogram\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct count_row *row = &rows[i];

		csv_put_name(out, row->function);
		sink_puts(out, ",");
		csv_put_name(out, row->profile);
		sink_printf(
			out,
			",%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%.3f,%.3f,",
			(long long)row->calls, (long long)row->returned, (long long)row->left,
			(long long)row->open, (long long)row->lost, (long long)row->ns,
			(long long)row->outer, (long long)row->outer_ns,
			(long long)row->shortest_ns, (long long)row->longest_ns,
			(long long)histogram_quantile(row->parts, row->longest_ns, 0.5),
			(long long)histogram_quantile(row->parts, row->longest_ns, 0.99),
			row->counted_s, row->timed_s);
		csv_put_name(out, row->untimed ? row->untimed : "");
		sink_puts(out, ",");
		csv_put_histogram(row->parts, out);
		sink_puts(out, "\n");
	}
}
