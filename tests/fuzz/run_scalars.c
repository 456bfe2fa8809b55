/* The summary of somebody's run: a number, or none. */
#include "import/run_scalars.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct run_scalars s;
	struct err e = { 0 };
	int r = run_scalars_parse(bytes_of(data, len), "x", &s, &e);

	if ((r < 0) != (e.msg[0] != '\0'))
		abort();
	for (int i = 0; r == 0 && i < N_RUN_SCALARS; i++)
		if (isinf(s.value[i]) && i != RUN_RESIDENT)
			abort();
	return 0;
}
