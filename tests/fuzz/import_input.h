/* A reader of import/ that takes its bytes as they come: what every one of them keeps. */
#ifndef TESTS_FUZZ_IMPORT_INPUT_H
#define TESTS_FUZZ_IMPORT_INPUT_H

#include "import/readers.h"
#include "model/over_time.h"
#include "model/sample_times.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int fuzz_input(const uint8_t *data, size_t len,
		      int (*read)(struct dict *, struct input *, const char *, struct import_info *,
				  struct profile **, struct err *),
		      bool (*recognise)(struct bytes))
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(input_freep) struct input *in = input_of_bytes(bytes_of(data, len));
	struct import_info info = { 0 };
	struct profile *p = NULL;
	struct err e = { 0 };
	int r = read(d, in, "x", &info, &p, &e);

	recognise(bytes_of(data, len));
	if ((r == 0) != (p != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++)
		if (dict_stack_depth(d, profile_sample(p, i).stack) > len)
			abort();
	for (uint32_t i = 0; p && profile_over_time(p) && i < profile_over_time(p)->n_series; i++)
		if (profile_over_time(p)->series[i].table->n_rows > 2 * len + 2000)
			abort();
	if (p && profile_times(p) &&
	    sample_times_n_samples(profile_times(p)) > profile_n_samples(p))
		abort();
	profile_free(p);
	return 0;
}

#endif
