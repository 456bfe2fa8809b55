/*
 * A memory log as a chart: RSS and what it is made of over time, where its shape changed (dashed,
 * upright), the line that a growth was judged by (dashed), and both verdicts in words. One picture
 * without scripts, so any viewer shows it. Where more rows than pixels fall together, the lowest and
 * the highest of each pixel are drawn: no peak is lost. Where no row was written for much longer
 * than usual, the line is broken.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_TREND_SVG_H
#define MEMSCOPE_RENDER_FORMATS_TREND_SVG_H

#include "analyse/mem_trend.h"
#include "base/sink.h"

/* `trend` is what mem_trend_of() said of `log`. -ENOMEM. */
int trend_svg(const struct mem_log *log, const struct mem_trend *trend, const char *name,
	      struct sink *out, struct err *e);

/* The RSS of several logs over the time since each began, below one another in the legend. */
int trend_svg_compare(const struct mem_log *const *logs, const struct mem_trend *trends, const char *const *names,
		      uint32_t n, struct sink *out, struct err *e);

#endif
