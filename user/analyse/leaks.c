#include "analyse/leaks.h"

void leaks_of(const struct live_series *series, struct dict *d, double age_s,
	      struct summary_alloc *to)
{
	struct leak leaks[SUMMARY_LEAKS];
	uint32_t n = live_series_leaks(series, age_s, leaks, SUMMARY_LEAKS);

	for (uint32_t i = 0; i < n && to->n_leaks < SUMMARY_LEAKS; i++) {
		const struct series_line *l = &leaks[i].shape.tail;
		struct summary_leak *leak = &to->leaks[to->n_leaks];

		if (site_of_stack(d, leaks[i].row->stack, &leak->site) < 0)
			continue;
		leak->live = leaks[i].row->live;
		leak->slope = l->slope * 1024;
		leak->slope_low = l->slope_low * 1024;
		leak->slope_high = l->slope_high * 1024;
		leak->r2 = l->r2;
		leak->since_s = leaks[i].shape.since_s;
		leak->survived = leaks[i].survived;
		leak->age_s = leaks[i].age_s;
		to->n_leaks++;
	}
}
