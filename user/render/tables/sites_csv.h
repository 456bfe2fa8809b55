/*
 * sites.csv: what became of what each stack of each process allocated while every call was traced.
 *
 *   pid,comm,function,module,allocs,alloc_bytes,frees,freed_bytes,temporary,cross_thread_frees,
 *   mean_lifetime_ns,under_10us,under_100us,under_1ms,under_10ms,under_100ms,under_1s,under_10s,longer,
 *   peak_blocks,peak_bytes,live_blocks,live_bytes,stack
 *
 * A row is a stack, most bytes first; what the columns mean is in model/alloc_site.h. `function` and
 * `module` are who asked (sites.h), `stack` is all of it, root first. The mean lifetime is of what was
 * freed, and so are the eight columns behind it; it is empty where nothing was. peak_… is what was live
 * when the process held most, live_… at the end. Blocks that are in neither frees nor live went with
 * their process, or were not followed because the table of blocks was full.
 */
#ifndef MEMSCOPE_RENDER_TABLES_SITES_CSV_H
#define MEMSCOPE_RENDER_TABLES_SITES_CSV_H

#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

/* `p`: of alloc_site_types. 0 or -ENOMEM. */
int sites_csv_write(const struct profile *p, struct sink *out, struct err *e);

#endif
