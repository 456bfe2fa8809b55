/*
 * When the values of a profile's samples came: a store beside the profile, bounded in memory.
 *
 * Time is cut into bins of equal width. Bin 0 begins when the profile does (profile_meta.time_ns), bin b lasts from
 * b × bin_ns to (b + 1) × bin_ns after that. Of sample i, which is the profile's i-th, there is a run of entries (bin,
 * values), by bin and each bin once. One or two of the profile's value types have times: `types` says which. An
 * entry's values over all bins add up to the sample's value of that type in the profile, exactly.
 *
 * When entries take more than their budget, bins are joined in pairs and are twice as wide from then on. So the width is
 * the first one times a power of two, and memory is bounded however long a run is.
 *
 * What an event counts for: a moment (a sample on a CPU, an allocation, a page that became resident) is in the
 * bin of that moment. What lasts (a wait: blocked or runnable time) is spread over the bins that it spans, in proportion
 * to its time in each, as a timeline shows it; the bins of an hour's wait have a second each. What is known for a
 * stretch of time only, as the calls between two readings of a table, is spread alike.
 *
 * Where a sampled estimate is corrected afterwards, a bin's value may be below 0 until sample_times_fit().
 */
#ifndef MEMSCOPE_MODEL_SAMPLE_TIMES_H
#define MEMSCOPE_MODEL_SAMPLE_TIMES_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct sample_times;

enum { SAMPLE_TIMES_TYPES = 2 };

struct sample_time {
	int64_t values[SAMPLE_TIMES_TYPES]; /* beyond those that have times: 0 */
	uint32_t bin;
};

/* Reads a sample's run from its front; good until the store changes. */
struct sample_time_reader {
	const struct sample_times *times;
	uint32_t sample, next;
};

#define SAMPLE_TIMES_BIN_NS 1000000000ULL /* the usual first width */
/* --fine: 7.8125 ms, so that a second has whole bins at each width up to 1 s. */
#define SAMPLE_TIMES_FINE_NS (SAMPLE_TIMES_BIN_NS / 128)
/* The usual budget of a reader of files. */
#define SAMPLE_TIMES_MAX (1u << 20)

/*
 * `types`: n (1 or 2) indexes of value types of the profile, the one to show first at the front. `max`: entries; where
 * samples are so many that each one's last bin takes more, two for each sample. NULL: out of memory.
 */
struct sample_times *sample_times_new(const uint32_t *types, uint32_t n, uint64_t bin_ns, uint32_t max);
void sample_times_free(struct sample_times *t);
DEFINE_CLEANUP(struct sample_times *, sample_times_freep, sample_times_free)

uint32_t sample_times_n_types(const struct sample_times *t);
uint32_t sample_times_type(const struct sample_times *t, uint32_t i);
uint64_t sample_times_bin_ns(const struct sample_times *t);
/* Up to the last one that has an entry. */
uint32_t sample_times_n_bins(const struct sample_times *t);
/* Samples up to the last one that has an entry: not more than the profile has. */
uint32_t sample_times_n_samples(const struct sample_times *t);
uint64_t sample_times_n_entries(const struct sample_times *t);
/* Entries of one sample; 0 also where there is no such sample. */
uint32_t sample_times_count(const struct sample_times *t, uint32_t sample);
/*
 *	struct sample_time_reader at = sample_times_read(t, sample);
 *	struct sample_time entry;
 *
 *	while (sample_times_next(&at, &entry))
 */
struct sample_time_reader sample_times_read(const struct sample_times *t, uint32_t sample);
bool sample_times_next(struct sample_time_reader *at, struct sample_time *ret_entry);

/*
 * `values` (as many as there are types) came at `ns` after the begin, or evenly between two such moments. Rounding
 * loses nothing: the parts add up to the whole. 0 or -ENOMEM.
 */
int sample_times_add(struct sample_times *t, uint32_t sample, uint64_t ns, const int64_t *values);
int sample_times_add_span(struct sample_times *t, uint32_t sample, uint64_t from_ns, uint64_t to_ns,
			  const int64_t *values);

/*
 * What `sample` has in bins from … to-1 becomes `to_sample`'s of another store, with as many types; bin `from` is that one's
 * first. 0 or -ENOMEM.
 */
int sample_times_copy(const struct sample_times *t, uint32_t sample, uint32_t from, uint32_t to,
		      struct sample_times *into, uint32_t to_sample);

/*
 * Makes a sample's entries add up to `totals` in each type: those below 0 become 0, the others are scaled. A sample
 * without any entry has its total in `bin`. 0 or -ENOMEM.
 */
int sample_times_fit(struct sample_times *t, uint32_t sample, const int64_t *totals, uint32_t bin);

/* Widens bins until `ns` is in one of the first `max`: before much is added that is far from what there is. */
void sample_times_reach(struct sample_times *t, uint64_t ns, uint32_t max);

/* Forgets all entries; bins have their first width again. */
void sample_times_clear(struct sample_times *t);

/* What sample `sample` has in bins from … to-1, by type. */
void sample_times_sum(const struct sample_times *t, uint32_t sample, uint32_t from, uint32_t to,
		      int64_t ret_values[SAMPLE_TIMES_TYPES]);

/*
 * All entries in the order of time, those of a bin by sample: for formats that have a time with each sample. `fn` returns 0
 * to go on. What it returned, or -ENOMEM.
 */
int sample_times_in_order(const struct sample_times *t,
			  int (*fn)(void *ctx, uint32_t sample, const struct sample_time *entry), void *ctx);

#endif
