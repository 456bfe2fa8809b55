/*
 * census.csv: what the largest types of a process had at each census, for a stacked chart.
 *
 *   timestamp,"dict","web.Session",OTHER,"dict objects","web.Session objects",OTHER objects
 *   2026-11-21 10:00:01,1048576,4096,70000,5000,64,900
 *
 * Bytes of the CENSUS_COLUMNS types that had most over all censuses, and OTHER for the rest, so that these add up to what was
 * in use; then the number of their objects.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CENSUS_CSV_H
#define MEMSCOPE_RENDER_TABLES_CENSUS_CSV_H

#include "analyse/census_series.h"
#include "base/sink.h"

#define CENSUS_COLUMNS 15

void census_csv_write(const struct census_series *s, struct sink *out);

#endif
