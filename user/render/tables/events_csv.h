/*
 * events.csv: events that were asked for (-e), and the parts of those that are patterns.
 */
#ifndef MEMSCOPE_RENDER_TABLES_EVENTS_CSV_H
#define MEMSCOPE_RENDER_TABLES_EVENTS_CSV_H

#include "analyse/events.h"
#include "base/sink.h"

void events_csv_write(const struct event_row *rows, uint32_t n, struct sink *out);

#endif
