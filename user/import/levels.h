/*
 * What stacks held over time, from a stream of what each gained and lost: a table of the largest, as a run's live_series.csv is
 * one. Memory is bounded however long the stream is (model/sample_times.h): bins are joined in pairs.
 */
#ifndef MEMSCOPE_IMPORT_LEVELS_H
#define MEMSCOPE_IMPORT_LEVELS_H

#include "model/dict.h"
#include "model/time_table.h"

enum { LEVELS_COLUMNS = 100, LEVELS_ROWS = 500 };

struct levels;

/* NULL: out of memory. `bin_ns`: the first width of a bin. */
struct levels *levels_new(uint64_t bin_ns);
void levels_free(struct levels *l);
DEFINE_CLEANUP(struct levels *, levels_freep, levels_free)

/* Site `site` (numbers from 0) gained bytes, or lost some. 0 or -ENOMEM. */
int levels_add(struct levels *l, uint32_t site, uint64_t ns, int64_t bytes);

/* How wide its bins are by now. */
uint64_t levels_bin_ns(const struct levels *l);

/*
 * A row for each bin (several together above LEVELS_ROWS), with what was held at its end; columns are the LEVELS_COLUMNS
 * sites with most bytes x time, by their stacks (root;…;leaf), and OTHER. stacks[i]: of site i. *ret_table is NULL when nothing was
 * added. 0 or -ENOMEM.
 */
int levels_table(const struct levels *l, const struct dict *d, const stack_id *stacks, uint32_t n_sites,
		 struct time_table **ret_table);

#endif
