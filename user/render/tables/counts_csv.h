/*
 * counts.csv: functions whose calls were counted and timed (--count).
 */
#ifndef MEMSCOPE_RENDER_TABLES_COUNTS_CSV_H
#define MEMSCOPE_RENDER_TABLES_COUNTS_CSV_H

#include "analyse/counts.h"
#include "base/sink.h"

void counts_csv_write(const struct count_row *rows, uint32_t n, struct sink *out);

#endif
