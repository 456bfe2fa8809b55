/*
 * A run's summary for people: aligned columns within 100, names from the target cleaned
 * and cut in the middle, the verdict last.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_TEXT_H
#define MEMSCOPE_RENDER_SUMMARY_TEXT_H

#include "analyse/summary.h"
#include "base/err.h"
#include "base/sink.h"

/* Errors stick in the sink. */
void summary_text_write(const struct run_summary *s, struct sink *out);

#endif
