/*
 * What a run cost: those who were profiled, and memscope itself.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_COST_H
#define MEMSCOPE_RENDER_SUMMARY_COST_H

#include "analyse/summary.h"
#include "base/sink.h"

void summary_put_cost(const struct run_summary *s, struct sink *out);

#endif
