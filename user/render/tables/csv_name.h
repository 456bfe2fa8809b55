/*
 * Fields of CSV. Names stand within quotes, with quotes doubled and control bytes replaced.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CSV_NAME_H
#define MEMSCOPE_RENDER_TABLES_CSV_NAME_H

#include "analyse/frame.h"
#include "base/sink.h"
#include "base/strbuf.h"

#include <stdint.h>

void csv_put_name(struct sink *out, const char *name);
/* A stack, root first, joined by semicolons (those of names are replaced). */
void csv_put_path(struct sink *out, const struct dict *d, const struct frame_path *path);
/* The first line of a series by stack: timestamp, a column a stack, OTHER. 0 or -ENOMEM. */
int csv_put_series_names(struct sink *out, struct dict *d, const stack_id *stacks, uint32_t n);
/* YYYY-MM-DD HH:MM:SS.mmm, local time; `wall_ns` since the Epoch. */
void csv_put_time(struct sink *out, int64_t wall_ns);
void csv_time_add(struct strbuf *out, int64_t wall_ns);

#endif
