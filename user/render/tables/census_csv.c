#include "render/tables/census_csv.h"

#include "render/tables/csv_name.h"

#include <stdio.h>

static void put_head(const struct census_row *const *rows, uint32_t n, struct sink *out)
{
	sink_puts(out, "timestamp");
	for (uint32_t k = 0; k < n; k++) {
		sink_puts(out, ",");
		csv_put_name(out, rows[k]->name);
	}
	sink_puts(out, ",OTHER");
	for (uint32_t k = 0; k < n; k++) {
		char name[CENSUS_NAME + 16];

		snprintf(name, sizeof(name), "%s objects", rows[k]->name);
		sink_puts(out, ",");
		csv_put_name(out, name);
	}
	sink_puts(out, ",OTHER objects\n");
}

void census_csv_write(const struct census_series *s, struct sink *out)
{
	const struct census_row *rows[CENSUS_COLUMNS];
	uint32_t n = census_series_rank(s, rows, CENSUS_COLUMNS), n_times;
	const int64_t *wall_ns;

	put_head(rows, n, out);
	n_times = census_series_times(s, &wall_ns);
	for (uint32_t i = 0; i < n_times; i++) {
		struct census_count other = census_series_other(s, rows, n, i);

		csv_put_time(out, wall_ns[i]);
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%llu", (unsigned long long)rows[k]->bytes[i]);
		sink_printf(out, ",%llu", (unsigned long long)other.bytes);
		for (uint32_t k = 0; k < n; k++)
			sink_printf(out, ",%llu", (unsigned long long)rows[k]->objects[i]);
		sink_printf(out, ",%llu\n", (unsigned long long)other.objects);
	}
}
