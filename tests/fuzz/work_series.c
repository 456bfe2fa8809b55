/* A line of --series, as CSV and as Prometheus writes it. */
#include "import/work_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct work_value *v)
{
	if (!*v->name || strnlen(v->name, WORK_NAME) == WORK_NAME || !isfinite(v->value) ||
	    v->time_s < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = strndup((const char *)data, size);
	struct work_value v;

	if (line && work_csv_line(line, &v))
		check(&v);
	if (line && work_prometheus_line(line, &v))
		check(&v);
	free(line);
	return 0;
}
