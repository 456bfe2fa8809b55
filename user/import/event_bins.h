/*
 * Figures over time out of events that come in any order, as a table: in bounded memory, however many events.
 *
 * Time is cut into bins, of 1 ms at first; when there are more than EVENT_BINS_MAX, each is twice as wide. A level (bytes
 * in use) keeps its highest value of a bin, what is counted (bytes, collections, seconds) its sum, and the table has the sum up
 * to there: it is a counter. A row's time is that of the bin's last event.
 */
#ifndef MEMSCOPE_IMPORT_EVENT_BINS_H
#define MEMSCOPE_IMPORT_EVENT_BINS_H

#include "model/time_table.h"

#include <stdbool.h>
#include <stddef.h>

enum { EVENT_BINS_MAX = 1 << 16, EVENT_BINS_COLUMNS = 8 };

struct event_bins {
	uint64_t bin_ns;
	uint32_t n_columns, n_bins;
	size_t cap_bins;
	uint32_t counted; /* by column: a bit where it is counted */
	struct event_bin *bins;
};

/* `counted`: a bit for each column that is. */
void event_bins_init(struct event_bins *b, uint32_t n_columns, uint32_t counted);
void event_bins_fini(struct event_bins *b);
/* 0 or -ENOMEM. */
int event_bins_add(struct event_bins *b, uint32_t column, uint64_t ns, double value);
/*
 * The columns `wanted` (n of them) named `names`, those without any value left out; rows where none of them has one, too.
 * Times are `begin_s` and what passed since. *ret_table is NULL where nothing is left. 0 or -ENOMEM.
 */
int event_bins_table(const struct event_bins *b, const uint32_t *wanted, const char *const *names, uint32_t n,
		     double begin_s, struct time_table **ret_table);

#endif
