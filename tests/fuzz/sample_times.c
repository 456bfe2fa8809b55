/* A table of times of somebody's profile: none, or one that adds up to it. */
#include "import/sample_times.h"
#include "model/sample_times.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" } };
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	struct err e = { 0 };
	int r;

	for (uint64_t i = 0; i < 2; i++) {
		location_id l = dict_location(d, (module_id){ 0 }, i);

		profile_add(p, dict_stack(d, &l, 1), (labels_id){ 0 },
			    (int64_t[]){ 3 + (int64_t)i, 30 + 10 * (int64_t)i });
	}
	r = sample_times_parse(p, bytes_of(data, len), "x", &e);
	if ((r == 0) != (profile_times(p) != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; r == 0 && i < 2; i++) {
		const struct sample_times *t = profile_times(p);
		int64_t sums[SAMPLE_TIMES_TYPES];

		sample_times_sum(t, i, 0, UINT32_MAX, sums);
		for (uint32_t k = 0; k < sample_times_n_types(t); k++)
			if (sums[k] != profile_sample(p, i).values[sample_times_type(t, k)])
				abort();
	}
	profile_free(p);
	dict_free(d);
	return 0;
}
