/*
 * Families of metrics as Prometheus and its relatives scrape them.
 *
 *   METRICS_TEXT          text/plain; version=0.0.4
 *   METRICS_OPENMETRICS   application/openmetrics-text; version=1.0.0: ends with # EOF, counters have _created
 *
 * Sources: prometheus.io/docs/instrumenting/exposition_formats, and the specification of OpenMetrics 1.0. A family is
 * written whole before the next begins, which both ask for. A value that is not finite is left out: it is not known.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_METRICS_H
#define MEMSCOPE_RENDER_FORMATS_METRICS_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

struct metric_family {
	const char
		*name; /* of a counter without _total; with its unit: "memscope_own_cpu_seconds"  */
	const char *help; /* one line                                                        */
	bool counter;     /* else a gauge                                                    */
};

struct metric_label {
	const char *name, *value; /* any bytes: those that are not UTF-8 are replaced             */
};

enum { METRIC_LABELS_MAX = 4 };

/* What the header Accept asks for, by its weights (RFC 9110 §12.5.1); NULL: text. */
enum metrics_format metrics_accepted(const char *accept);
const char *metrics_content_type(enum metrics_format format);

/* The begin of a family. */
void metrics_family(struct strbuf *out, enum metrics_format format,
		    const struct metric_family *family);
/* A series of it; `created_s`: since when a counter counts, seconds since the Epoch; NAN: not known. */
void metrics_series(struct strbuf *out, enum metrics_format format,
		    const struct metric_family *family, const struct metric_label *labels,
		    uint32_t n_labels, double value, double created_s);
void metrics_end(struct strbuf *out, enum metrics_format format);

#endif
