#include "render/tables/events_csv.h"

#include "render/tables/csv_name.h"

void events_csv_write(const struct event_row *rows, uint32_t n, struct sink *out)
{
	sink_puts(out,
		  "event,part,profile,unit,count,samples,on_stacks,on_stacks_error,period,one_in,"
		  "missed,stopped_s,why\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct event_row *row = &rows[i];

		csv_put_name(out, row->event);
		sink_puts(out, ",");
		csv_put_name(out, row->part);
		sink_puts(out, ",");
		csv_put_name(out, row->profile);
		sink_printf(out, ",%s,%lld,%lld,%lld,%lld,%llu,%u,%lld,%.3f,", row->unit,
			    (long long)row->count, (long long)row->samples,
			    (long long)row->on_stacks, (long long)row->on_stacks_error,
			    (unsigned long long)row->period, row->one_in, (long long)row->missed,
			    row->stopped_s);
		csv_put_name(out, row->why ? row->why : "");
		sink_puts(out, "\n");
	}
}
