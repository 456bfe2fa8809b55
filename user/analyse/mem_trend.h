/*
 * What a memory log says: the facts of every column, and the shape of one.
 */
#ifndef MEMSCOPE_ANALYSE_MEM_TREND_H
#define MEMSCOPE_ANALYSE_MEM_TREND_H

#include "analyse/cpu_kind.h"
#include "analyse/trend_shape.h"
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
	enum cpu_kind cpu_kind; /* of the CPU column */
	/* Of the RSS, which every log has. */
	struct trend_shape shape;
	struct plain_verdict plain;
};

/* `n_cpus`: as for cpu_kind_of(). -ENOMEM. The log has a row at least. */
int mem_trend_of(const struct mem_log *log, uint32_t n_cpus, struct mem_trend *ret_trend, struct err *e);

#endif
