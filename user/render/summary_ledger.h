/*
 * Where RSS is, in the summary: a table, and an object of its JSON.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_LEDGER_H
#define MEMSCOPE_RENDER_SUMMARY_LEDGER_H

#include "analyse/summary.h"
#include "base/sink.h"

void summary_put_ledger(const struct run_summary *s, struct sink *out);

#endif
