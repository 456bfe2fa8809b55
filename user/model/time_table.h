/*
 * Figures over time: rows in the order of a file, columns by name. trend.csv, alloc_series.csv and their like, read back.
 */
#ifndef MEMSCOPE_MODEL_TIME_TABLE_H
#define MEMSCOPE_MODEL_TIME_TABLE_H

#include "base/cleanup.h"

#include <stdint.h>
#include <stdlib.h>

struct time_column {
	char *name;
	double *values; /* n_rows of them; NAN: the field is empty */
};

struct time_table {
	double *times_s; /* since the Epoch */
	struct time_column *columns;
	uint32_t n_rows, n_columns;
};

static inline void time_table_free(struct time_table *t)
{
	if (!t)
		return;
	for (uint32_t c = 0; c < t->n_columns; c++) {
		free(t->columns[c].name);
		free(t->columns[c].values);
	}
	free(t->columns);
	free(t->times_s);
	free(t);
}
DEFINE_CLEANUP(struct time_table *, time_table_freep, time_table_free)

#endif
