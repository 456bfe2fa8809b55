/*
 * What is in an archive, as `memscope ls` prints it.
 *
 * As JSON:
 *
 *   {"archive": "/var/lib/memscope/host", "container": null, "at_work": true, "labels": ["env=prod"],
 *    "first": ISO 8601, "last": …, "windows_total": 5040, "triggered": 3, "files": 20160, "bytes": 1288490188,
 *    "windows": [{"name": "20261122-195000", "trigger": null, "begin": "2026-11-22T19:50:00.400+01:00",
 *                 "begin_ns": …, "duration_ns": 120000000000, "files": 8, "bytes": 245760, "containers": 2,
 *                 "sources": ["oncpu", "offcpu"]}, …],
 *    "gaps": [{"begin_ns": …, "duration_ns": …}], "gaps_ns": 182000000000,
 *    "containers": [{"name": "web", "windows": 5040, "bytes": …, "last_ns": …}],
 *    "missing": ["web/oncpu-20261122-195000.pb.gz"], "damaged": ["sentence"], "checked": false}
 *
 * Times in ns are since the Epoch. "windows" has those that were asked for; sums and gaps are of all.
 */
#ifndef MEMSCOPE_RENDER_TABLES_ARCHIVE_TEXT_H
#define MEMSCOPE_RENDER_TABLES_ARCHIVE_TEXT_H

#include "analyse/archive_view.h"
#include "base/err.h"
#include "base/sink.h"

void archive_text_write(const struct archive_view *v, struct sink *out);
/* Into an array of archives: `memscope ls` prints one. 0 or -ENOMEM with a sentence. */
int archive_json_write(const struct archive_view *v, struct sink *out, struct err *e);

#endif
