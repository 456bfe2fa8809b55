/*
 * trend.csv: memory and CPU over time, one line per interval, each written with one write(2) as
 * it becomes known: a crash loses at most the line being written, a full disk never leaves half
 * a line.
 *
 *   timestamp,rss_kb,vsz_kb,cpu_percent,pss_kb,anonymous_kb,file_kb,swap_kb,threads,
 *   minor_faults,major_faults,live_bytes,shared_kb,private_kb
 *   gc_count,gc_major_count,gc_ms,gc_live_kb,gc_heap_kb,timestamp_ms       of a run alone: trend_csv_open()
 *
 * The first four are in the order that existing scripts read. timestamp is local time,
 * YYYY-MM-DD HH:MM:SS, and timestamp_ms what belongs behind it; cpu_percent is that of the interval, 100.0 being one CPU; the first row's
 * interval is only what went by between the begin of the run and the first look, some tenths of a
 * second. live_bytes is the sum at that moment. What is not known is an empty field.
 * Collections of garbage are those since the run began, of all targets; gc_ms may be an estimate (analyse/gc_counts.h).
 *
 * A log of control groups has more columns: processes,group_kb,group_anonymous_kb,group_file_kb,
 * group_kernel_kb (model/mem_sample.h: struct mem_group).
 */
#ifndef MEMSCOPE_RENDER_TABLES_TREND_CSV_H
#define MEMSCOPE_RENDER_TABLES_TREND_CSV_H

#include "base/cleanup.h"
#include "base/err.h"
#include "model/gc_counters.h"
#include "model/mem_sample.h"

#include <stdbool.h>

struct sink;
struct trend_csv;

/* Creates `path` (mode 0600) below `dir_fd` (or AT_FDCWD), empties what was there, writes the
 * header. */
int trend_csv_open(int dir_fd, const char *path, struct trend_csv **ret_trend, struct err *e);

/*
 * Opens `path` to go on with it, or creates it. A line that was cut short at its end, by a crash, is
 * taken away. `groups`: with the columns of control groups. -EBADMSG: what is there does not begin with
 * that header, and is left alone; -EBUSY: another memscope is writing it.
 */
int trend_csv_append(const char *path, bool groups, struct trend_csv **ret_trend, struct err *e);

/*
 * Appends a line. `live_bytes`: allocated and not freed, MEM_UNKNOWN when not traced; `group`: NULL in a
 * log that has no columns for it; `gc`: NULL, nothing is known of it. After an error (-ENOSPC) the file holds whole lines, and later rows may be tried again.
 */
int trend_csv_row(struct trend_csv *t, const struct mem_sample *s, int64_t live_bytes,
		  const struct mem_group *group, const struct gc_sample *gc, struct err *e);

/* The line of names of a log of control groups, and lines as above, for who has them all at once. */
void trend_csv_put_names(struct sink *out);
void trend_csv_put_row(struct sink *out, const struct mem_sample *s, int64_t live_bytes,
		       const struct mem_group *group);

void trend_csv_close(struct trend_csv *t);
DEFINE_CLEANUP(struct trend_csv *, trend_csv_closep, trend_csv_close)

#endif
