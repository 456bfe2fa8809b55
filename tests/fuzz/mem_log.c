/* Anyone's memory log: rows in order, whatever is in the file. */
#include "import/mem_log.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(mem_log_freep) struct mem_log *log = NULL;
	struct err e = { 0 };
	FILE *f;
	int r;

	if (!len)
		return 0;
	f = fmemopen((void *)data, len, "r");
	if (!f)
		abort();
	r = mem_log_parse(f, "x", &log, &e);
	fclose(f);
	if ((r == 0) != (log != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; log && i < log->n; i++)
		if (isnan(log->rows[i].value[MEM_COLUMN_RSS]) ||
		    (i && log->rows[i].time_s < log->rows[i - 1].time_s))
			abort();
	return 0;
}
