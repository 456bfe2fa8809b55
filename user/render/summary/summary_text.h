/*
 * A run's summary for people: aligned columns within 100, names from the target cleaned
 * and cut in the middle, the verdict first and last.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_SUMMARY_TEXT_H
#define MEMSCOPE_RENDER_SUMMARY_SUMMARY_TEXT_H

#include "analyse/summary.h"
#include "base/err.h"
#include "base/sink.h"

/* Of the first screen, whatever the run found. */
#define SUMMARY_SCREEN_LINES 38

/* All of it. `colour`: for a terminal. Errors stick in the sink. */
void summary_text_write(const struct run_summary *s, bool colour, struct sink *out);

/*
 * The first screen: the same sections in the same order, what matters of each, in at most
 * SUMMARY_SCREEN_LINES. Tables have fewer rows when there is much to say; what is cut ends in "…".
 */
void summary_screen_write(const struct run_summary *s, bool colour, struct sink *out);

#endif
