/* What perf script printed, or somebody says it did. */
#include "import/readers.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct import_info info = { 0 };
	struct profile *p = NULL;
	struct err e = { 0 };
	_cleanup_(input_freep) struct input *in = input_of_bytes(bytes_of(data, len));
	int r = perf_script_read(d, in, "x", &info, &p, &e);

	perf_script_recognise(bytes_of(data, len));
	if ((r == 0) != (p != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++)
		if (dict_stack_depth(d, profile_sample(p, i).stack) > len)
			abort();
	profile_free(p);
	return 0;
}
