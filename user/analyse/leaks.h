/* Stacks whose live memory grows and stays, for the summary. */
#ifndef MEMSCOPE_ANALYSE_LEAKS_H
#define MEMSCOPE_ANALYSE_LEAKS_H

#include "analyse/live_series.h"
#include "analyse/summary.h"
#include "model/dict.h"

/* Adds them to `to`, the fastest first, at most SUMMARY_LEAKS. Strings are of `d`. */
void leaks_of(const struct live_series *series, struct dict *d, double age_s,
	      struct summary_alloc *to);

#endif
