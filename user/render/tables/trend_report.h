/*
 * What a memory log says, as text: one fact a line, in an order and of a shape that stay, so that
 * `diff` of two reports shows what has changed. Or as JSON.
 */
#ifndef MEMSCOPE_RENDER_TABLES_TREND_REPORT_H
#define MEMSCOPE_RENDER_TABLES_TREND_REPORT_H

#include "analyse/mem_trend.h"
#include "base/sink.h"

void trend_report_text(const struct mem_trend *t, const char *name, struct sink *out);
/* Two logs side by side, and by how much the second differs; of more, a line for each. */
void trend_report_compare(const struct mem_trend *t, const char *const *names, uint32_t n, struct sink *out);
/* One object for each log: {"name": …, "rows": …, "rss_kb": {…}, "trend_shape": …, …} in an array. */
int trend_report_json(const struct mem_trend *t, const char *const *names, uint32_t n,
		      struct sink *out, struct err *e);

#endif
