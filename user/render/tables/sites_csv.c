#include "render/tables/sites_csv.h"

#include "analyse/frame.h"
#include "analyse/sites.h"
#include "model/alloc_site.h"
#include "render/tables/csv_name.h"

#include <errno.h>
#include <stdlib.h>

static const char header[] =
	"pid,comm,function,module,allocs,alloc_bytes,frees,freed_bytes,temporary,cross_thread_frees,"
	"mean_lifetime_ns,under_10us,under_100us,under_1ms,under_10ms,under_100ms,under_1s,under_10s,"
	"longer,peak_blocks,peak_bytes,live_blocks,live_bytes,stack\n";

struct row {
	struct profile_sample sample;
	uint32_t at;
};

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int64_t xb = x->sample.values[SITE_BYTES], yb = y->sample.values[SITE_BYTES];

	return xb != yb ? (yb > xb) - (yb < xb) : (x->at > y->at) - (x->at < y->at);
}

static void put_numbers(struct sink *out, const int64_t *v)
{
	for (int i = SITE_OBJECTS; i < N_SITE_VALUES; i++) {
		if (i != SITE_LIFE_NS)
			sink_printf(out, ",%lld", (long long)v[i]);
		else if (v[SITE_FREED] > 0)
			sink_printf(out, ",%lld", (long long)(v[i] / v[SITE_FREED]));
		else
			sink_puts(out, ",");
	}
}

static int put_row(struct sink *out, struct dict *d, const struct profile_sample *s)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	const struct label *pid = dict_label_find(d, s->labels, "pid");
	const struct label *comm = dict_label_find(d, s->labels, "comm");
	struct site_row site;

	if (frame_path_set(&path, d, s->stack) < 0 || site_of_stack(d, s->stack, &site) < 0)
		return -ENOMEM;
	sink_printf(out, "%lld,", pid ? (long long)pid->num : 0LL);
	csv_put_name(out, comm ? dict_str(d, comm->str) : "");
	sink_puts(out, ",");
	csv_put_name(out, site.function);
	sink_puts(out, ",");
	csv_put_name(out, site.module);
	put_numbers(out, s->values);
	sink_puts(out, ",");
	csv_put_path(out, d, &path);
	sink_puts(out, "\n");
	return 0;
}

int sites_csv_write(const struct profile *p, struct sink *out, struct err *e)
{
	uint32_t n = profile_n_samples(p);
	_cleanup_(freep) struct row *rows = calloc(n ? n : 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		rows[i] = (struct row){ profile_sample(p, i), i };
	if (r == 0)
		qsort(rows, n, sizeof(*rows), by_bytes);
	sink_puts(out, header);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = put_row(out, profile_dict(p), &rows[i].sample);
	return r < 0 ? err_set(e, r, "out of memory for sites.csv") : 0;
}
