/*
 * syscalls.csv: system calls by process and call.
 */
#ifndef MEMSCOPE_RENDER_TABLES_SYSCALLS_CSV_H
#define MEMSCOPE_RENDER_TABLES_SYSCALLS_CSV_H

#include "analyse/syscalls.h"
#include "base/sink.h"

void syscalls_csv_write(const struct syscall_row *rows, uint32_t n, struct sink *out);

#endif
