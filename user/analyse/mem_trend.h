/*
 * What a memory log says: the facts of every column, and the course of one.
 */
#ifndef MEMSCOPE_ANALYSE_MEM_TREND_H
#define MEMSCOPE_ANALYSE_MEM_TREND_H

#include "analyse/course.h"
#include "base/err.h"
#include "model/mem_log.h"

#include <stdbool.h>

struct mem_trend {
	double begin_s, end_s; /* since 1970 */
	uint32_t n;
	uint64_t skipped, first_skipped;
	struct {
		bool known;    /* in at least one row */
		struct series_facts facts;
	} column[N_MEM_COLUMNS];
	/* Of the RSS, which every log has. */
	struct course course;
	struct plain_verdict plain;
};

/* -ENOMEM. The log has a row at least. */
int mem_trend_of(const struct mem_log *log, struct mem_trend *ret_trend, struct err *e);

#endif
