/*
 * How sure totals are that were gathered in slices of the time (bpf/slices.h): the sum of each stratum, of which neighbours are
 * compared. Of two strata, one slice of each: the square of the difference of their sums is, on average, the variance of the two
 * together, and somewhat more where the load changes from one to the next (the collapsed strata of survey sampling, Cochran 5A.12).
 */
#ifndef MEMSCOPE_COLLECT_STREAM_STRATA_H
#define MEMSCOPE_COLLECT_STREAM_STRATA_H

#include "collect/stream/drain.h"

#include <stdbool.h>

enum strata_of { STRATA_BLOCKED, STRATA_RUNNABLE, STRATA_RESIDENT, N_STRATA_OF };

struct strata;

/* Listens to the totals of `d`, before ingest does. NULL: out of memory. */
struct strata *strata_new(struct drain *d);
void strata_free(struct strata *s);

/*
 * Of strata that ended between two moments (seconds since the gate opened), their sum, and its standard
 * error. false: fewer than two are known.
 */
bool strata_error(const struct strata *s, enum strata_of of, uint64_t from_s, uint64_t to_s, double *ret_sum, double *ret_se);

/* Pure arithmetic: the standard error of the sum of `n` sums of strata, in order; neighbours are pairs, an odd one is in the last pair's place too. */
double strata_collapsed(const double *sums, uint32_t n);

#endif
