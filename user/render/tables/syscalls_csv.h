/*
 * syscalls.csv: system calls by process and call.
 */
#ifndef MEMSCOPE_RENDER_TABLES_SYSCALLS_CSV_H
#define MEMSCOPE_RENDER_TABLES_SYSCALLS_CSV_H

#include "analyse/syscalls.h"
#include "base/sink.h"

/* "64:5 128:2": five calls of less than 128 ns, two of less than 256 ns. */
void csv_put_histogram(const int64_t parts[SYSCALL_HISTOGRAM], struct sink *out);
void syscalls_csv_write(const struct syscall_row *rows, uint32_t n, struct sink *out);

#endif
