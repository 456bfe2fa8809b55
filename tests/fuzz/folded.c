/*
 * Whatever someone calls a profile, by way of the readers' table: mostly folded text, since bytes
 * seldom happen to be a profile.
 */
#include "import/readers.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct import_info info = { 0 };
	struct profile *p = NULL;
	struct err e = { 0 };
	int r = import_bytes(d, bytes_of(data, len), "x", NULL, &p, &info, &e);

	if ((r == 0) != (p != NULL) || (r < 0) != (e.msg[0] != '\0') || (r == 0 && !info.format))
		abort();
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++)
		if (dict_stack_depth(d, profile_sample(p, i).stack) > len)
			abort();
	profile_free(p);
	return 0;
}
