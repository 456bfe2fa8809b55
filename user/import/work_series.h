/*
 * Figures of a program's work, as others write them, a line at a time.
 *
 *   CSV          timestamp,name,value   the time in seconds since the Epoch, or as 2026-11-21 10:00:01, local, with
 *                                       a T and a Z too; names may be quoted
 *   Prometheus   name{label="…"} value [ms]     comments, histogram buckets and NaN are passed over
 *
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, the text format 0.0.4.)
 */
#ifndef MEMSCOPE_IMPORT_WORK_SERIES_H
#define MEMSCOPE_IMPORT_WORK_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { WORK_NAME = 96 };

struct work_value {
	char name[WORK_NAME];
	double value;
	double time_s; /* since the Epoch; 0: not said */
};

/* A line without its end. false: it is none of these, or says nothing. */
bool work_csv_line(const char *line, struct work_value *ret_value);
bool work_prometheus_line(const char *line, struct work_value *ret_value);

/* Does this name say that it counts ("_total", "_count", "_sum")? Then a fall is a new beginning. */
bool work_is_counter(const char *name);

#endif
