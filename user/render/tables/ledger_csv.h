/*
 * rss_breakdown.csv: what RSS, or PSS, consisted of over time, one line at a time, as analyse/ledger.h splits it.
 *
 *   timestamp,rss,live,free_retained,metadata,heap_unwalked,other_anonymous,stacks,file_modified,file,
 *   shared_memory,unexplained,live_blocks,live_bytes,traced_bytes
 *
 * Of containers and of a host `pss` is in the place of `rss`, and three columns more follow: processes, those
 * that were read; not_read, those that there was no time for, and not_read_rss, their RSS, in no other column.
 *
 * Bytes that are resident, up to unexplained. live_blocks and live_bytes are what is in use by
 * walking the allocator, resident or not; traced_bytes what the table of traced blocks holds, as it was
 * asked for, empty when not traced. timestamp as in trend.csv.
 */
#ifndef MEMSCOPE_RENDER_TABLES_LEDGER_CSV_H
#define MEMSCOPE_RENDER_TABLES_LEDGER_CSV_H

#include "analyse/ledger.h"
#include "base/strbuf.h"

void ledger_csv_header(bool by_pss, struct strbuf *out);
/* `time_ns`: Unix time. `traced`: bytes, < 0 when not known. */
void ledger_csv_row(const struct ledger *l, int64_t time_ns, int64_t traced, struct strbuf *out);

#endif
