/*
 * The parts of the summary's text that are about memory.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_MEMORY_H
#define MEMSCOPE_RENDER_SUMMARY_MEMORY_H

#include "analyse/summary.h"
#include "base/sink.h"

void summary_put_alloc(const struct run_summary *s, struct sink *out);
void summary_put_growth(const struct run_summary *s, struct sink *out);
void summary_put_rss(const struct run_summary *s, struct sink *out);
/* What is wrong with it, if anything: diagnosis.h. */
void summary_put_diagnoses(const struct run_summary *s, struct sink *out);

#endif
