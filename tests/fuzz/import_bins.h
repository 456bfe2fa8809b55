/* A reader of import/ whose profile has all of a value in its bins: they add up, or there is one sentence. */
#ifndef TESTS_FUZZ_IMPORT_BINS_H
#define TESTS_FUZZ_IMPORT_BINS_H

#include "import/readers.h"
#include "model/sample_times.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void fuzz_bins(const uint8_t *data, size_t len,
		      int (*read)(struct dict *, struct input *, const char *, struct import_info *,
				  struct profile **, struct err *),
		      bool (*recognise)(struct bytes))
{
	_cleanup_(input_freep) struct input *in = input_of_bytes(bytes_of(data, len));
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct import_info info = { 0 };
	struct profile *p = NULL;
	struct err e = { 0 };
	int r = read(d, in, "x", &info, &p, &e);

	recognise(bytes_of(data, len));
	if ((r == 0) != (p != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t sum[SAMPLE_TIMES_TYPES] = { 0 };

		if (!profile_times(p))
			break;
		sample_times_sum(profile_times(p), i, 0, UINT32_MAX, sum);
		for (uint32_t t = 0; t < sample_times_n_types(profile_times(p)); t++)
			if (sum[t] != s.values[sample_times_type(profile_times(p), t)] &&
			    sum[t] < INT64_MAX / 2)
				abort();
	}
	profile_free(p);
}

#endif
