/*
 * Names in a field of CSV: within quotes, with quotes doubled and control bytes replaced.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CSV_NAME_H
#define MEMSCOPE_RENDER_TABLES_CSV_NAME_H

#include "analyse/frame.h"
#include "base/sink.h"

void csv_put_name(struct sink *out, const char *name);
/* A stack, root first, joined by semicolons (those of names are replaced). */
void csv_put_path(struct sink *out, const struct dict *d, const struct frame_path *path);

#endif
