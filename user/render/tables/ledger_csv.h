/*
 * rss_breakdown.csv: what RSS consisted of over time, one line at a time, as analyse/ledger.h splits it.
 *
 *   timestamp,rss,live,free_retained,metadata,heap_unwalked,other_anonymous,stacks,file_modified,file,
 *   shared_memory,unexplained,live_blocks,live_bytes,traced_bytes
 *
 * Bytes that are resident, up to unexplained. live_blocks and live_bytes are what is in use by
 * walking the allocator, resident or not; traced_bytes what the table of traced blocks holds, as it was
 * asked for, empty when not traced. timestamp as in trend.csv.
 */
#ifndef MEMSCOPE_RENDER_TABLES_LEDGER_CSV_H
#define MEMSCOPE_RENDER_TABLES_LEDGER_CSV_H

#include "analyse/ledger.h"
#include "base/strbuf.h"

void ledger_csv_header(struct strbuf *out);
/* `time_ns`: Unix time. `traced`: bytes, < 0 when not known. */
void ledger_csv_row(const struct ledger *l, int64_t time_ns, int64_t traced, struct strbuf *out);

#endif
