/* Anyone's table over time: rows in order, every column as long as the times. */
#include "import/time_table.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(time_table_freep) struct time_table *t = NULL;
	struct err e = { 0 };
	uint32_t skipped = 0;
	int r = time_table_parse(bytes_of(data, len), "x", &t, &skipped, &e);
	double sum = 0;

	if ((r == 0) != (t != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; t && i < t->n_rows; i++) {
		if (i && t->times_s[i] < t->times_s[i - 1])
			abort();
		for (uint32_t c = 0; c < t->n_columns; c++)
			sum += isinf(t->columns[c].values[i]);
	}
	if (sum > 0)
		abort();
	return 0;
}
