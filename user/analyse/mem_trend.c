#include "analyse/mem_trend.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int mem_trend_of(const struct mem_log *log, uint32_t n_cpus, struct mem_trend *ret_trend,
		 struct err *e)
{
	_cleanup_(freep) struct point *p = malloc(log->n * sizeof(*p));
	struct mem_trend t = {
		.begin_s = log->rows[0].time_s,
		.end_s = log->rows[log->n - 1].time_s,
		.n = log->n,
		.skipped = log->skipped,
		.first_skipped = log->first_skipped,
	};

	if (!p)
		return err_set(e, -ENOMEM, "out of memory for a log of %u rows", log->n);
	/* The RSS last: its points are those that the shape is judged by. */
	for (int c = N_MEM_COLUMNS; c-- > 0;) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < log->n; i++)
			if (!isnan(log->rows[i].value[c]))
				p[n++] = (struct point){ log->rows[i].time_s - t.begin_s,
							 log->rows[i].value[c] };
		t.column[c].known = n > 0;
		if (n)
			series_facts(p, n, &t.column[c].facts);
		if (c == MEM_COLUMN_RSS)
			trend_shape_of(p, n, &t.shape);
	}
	if (t.column[MEM_COLUMN_CPU].known)
		t.cpu_kind = cpu_kind_of(log, n_cpus);
	t.plain = plain_verdict(t.column[MEM_COLUMN_RSS].facts.first,
				t.column[MEM_COLUMN_RSS].facts.last);
	*ret_trend = t;
	return 0;
}
