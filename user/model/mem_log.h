/*
 * A program's memory over time, as a log of it says: one row per look.
 */
#ifndef MEMSCOPE_MODEL_MEM_LOG_H
#define MEMSCOPE_MODEL_MEM_LOG_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum mem_column {
	MEM_COLUMN_RSS,
	MEM_COLUMN_ANONYMOUS,
	MEM_COLUMN_FILE,
	MEM_COLUMN_SWAP,
	MEM_COLUMN_PSS,
	MEM_COLUMN_VSZ,
	MEM_COLUMN_GROUP,   /* what control groups are charged */
	MEM_COLUMN_GC_LIVE, /* alive after the last collection of garbage */
	MEM_COLUMN_CPU,
	N_MEM_COLUMNS,
};

struct mem_log_row {
	double time_s;               /* since 1970                             */
	double value[N_MEM_COLUMNS]; /* kB; CPU: percent of one. NAN: not known */
};

struct mem_log {
	struct mem_log_row *rows;    /* times never fall                        */
	uint32_t n, cap;
	uint64_t skipped;            /* lines that were not understood, or went back in time … */
	uint64_t first_skipped;      /* … and the number of the first of them    */
	bool of_memscope;            /* written by memscope: its CPU is of each interval */
};

void mem_log_free(struct mem_log *log);
DEFINE_CLEANUP(struct mem_log *, mem_log_freep, mem_log_free)

#endif
