/* When the samples of a profile came, as a table: read back by import/sample_times.h, which says what is in it. */
#include "model/sample_times.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>

struct times_writer {
	struct sink *out;
	const struct sample_times *times;
};

static void put_second(struct sink *out, uint64_t ns)
{
	char digits[16];
	int n = snprintf(digits, sizeof(digits), "%09" PRIu64, ns % 1000000000);

	while (n && digits[n - 1] == '0')
		n--;
	sink_printf(out, "%" PRIu64 "%s%.*s", ns / 1000000000, n ? "." : "", n, digits);
}

static int put_entry(void *ctx, uint32_t sample, const struct sample_time *entry)
{
	const struct times_writer *w = ctx;
	bool any = false;

	for (uint32_t i = 0; i < sample_times_n_types(w->times); i++)
		any |= entry->values[i] != 0;
	if (!any)
		return 0;
	sink_printf(w->out, "%" PRIu32 ",", sample);
	put_second(w->out, entry->bin * sample_times_bin_ns(w->times));
	for (uint32_t i = 0; i < sample_times_n_types(w->times); i++)
		sink_printf(w->out, ",%" PRId64, entry->values[i]);
	sink_puts(w->out, "\n");
	return 0;
}

int times_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		struct err *e)
{
	struct times_writer w = { out, profile_times(p) };

	(void)opts;
	if (!w.times || !profile_n_samples(p))
		return err_set(e, -ENODATA,
			       "of this profile it is not known when its samples came");
	sink_printf(out, "# %" PRIu32 " samples, in bins of ", profile_n_samples(p));
	put_second(out, sample_times_bin_ns(w.times));
	sink_puts(out, " s\nsample,second");
	for (uint32_t i = 0; i < sample_times_n_types(w.times); i++) {
		const struct value_type *t = profile_type(p, sample_times_type(w.times, i));

		sink_printf(out, ",%s/%s", t->name, t->unit);
	}
	sink_puts(out, "\n");
	return sample_times_in_order(w.times, put_entry, &w) < 0
		       ? err_set(e, -ENOMEM, "out of memory for a table of times")
		       : 0;
}
