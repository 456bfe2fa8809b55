/*
 * What each of many parts held at one moment after another, as a profile: censuses of a heap. Memory is bounded by how
 * many parts there are and by SAMPLE_TIMES_MAX, however many censuses.
 *
 * Between two censuses what a part holds goes in a straight line from one level to the other; a part that a census does
 * not name holds nothing then. At the begin (0 ns) and at the end (censuses_finish()) nothing is held, as GHC's own .hp files
 * and their readers have it. So values are, of each part:
 *
 *   mean_space/bytes               its mean over the whole time
 *   peak_space/bytes               what it held in the census of the highest total
 *   inuse_space/bytes              what it held in the last census
 *   space_time/byte-milliseconds   the area below its line, which has times: what lies in each bin, exactly (whole units
 *                                  are rounded so that each part's bins add up to its whole)
 *
 * and, where a file has samples of the time, too, samples/count and cpu/nanoseconds.
 */
#ifndef MEMSCOPE_IMPORT_CENSUSES_H
#define MEMSCOPE_IMPORT_CENSUSES_H

#include "model/profile.h"
#include "model/sample_times.h"

struct census_part;

struct censuses {
	struct census_part *parts; /* by key */
	struct census_part **order; /* in the order in which they came: their samples' numbers */
	uint32_t n, cap;
	struct census_part **held; /* those that the last census named, and that this one does */
	uint32_t n_held, cap_held;
	struct sample_times *times;
	uint64_t bin_ns;          /* first width of the bins */
	uint64_t last_ns, now_ns; /* of the last whole census, and of the one that is open */
	int64_t total, peak_total;
	uint64_t peak_ns, peak_census;
	uint64_t n_censuses; /* whole ones */
	uint64_t n_ticks;
	bool open;
};

/* `bin_ns`: 0 for SAMPLE_TIMES_FINE_NS. */
void censuses_init(struct censuses *l, uint64_t bin_ns);
void censuses_fini(struct censuses *l);

/* One that was open is dropped. A time before the last census's is taken for that. */
void censuses_begin(struct censuses *l, uint64_t ns);
/* Of one census the same key may come again: it adds up. Ignored outside a census. 0 or -ENOMEM. */
int censuses_add(struct censuses *l, uint64_t key, int64_t bytes);
int censuses_end(struct censuses *l);
/* A sample of the time: one tick of that part. */
int censuses_tick(struct censuses *l, uint64_t key, uint64_t ns);

/*
 * What is made of it. An open census is dropped; `end_ns` is the end of the run, and when `whole`, nothing is held then;
 * otherwise (a program that was killed) the last census is the end of what is known. `stack_of`: of a part; two parts must
 * have different ones. `tick_ns`: of CPU time that each tick stands for. Duration, times and the line Peak: are set.
 * -ENOMEM.
 */
struct censuses_made {
	stack_id (*stack_of)(void *ctx, uint64_t key);
	void *ctx;
	labels_id labels;
	uint64_t end_ns, tick_ns;
	bool whole;
	const struct profile_meta *meta; /* comments and time_ns; may be NULL */
};
int censuses_finish(struct censuses *l, struct dict *d, const struct censuses_made *how, struct profile **ret_profile);

#endif
