/*
 * pprof from anyone: it is refused with a sentence, or it can be written and read again with
 * nothing lost but what cleaning names has merged.
 */
#include "model/pprof.h"
#include "base/sink.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_and_read_again(const struct profile *p)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct profile *again = NULL;
	struct err e = { 0 };
	const char *bytes;
	size_t len;

	if (sink_open_memory(&out, NULL) < 0 || pprof_write(p, (module_id){ 0 }, out, &e) < 0 ||
	    sink_commit(out, &e) < 0)
		abort();
	bytes = sink_memory(out, &len);
	if (!pprof_recognise(bytes_of(bytes, len)) ||
	    pprof_read(d, bytes, len, "x", &again, &e) < 0)
		abort();
	if (profile_n_samples(again) > profile_n_samples(p) ||
	    profile_n_types(again) != profile_n_types(p))
		abort();
	profile_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct profile *p = NULL;
	struct err e = { 0 };
	int r = pprof_read(d, data, len, "x", &p, &e);

	if ((r == 0) != (p != NULL) || (r < 0) != (e.msg[0] != '\0'))
		abort();
	if (!p)
		return 0;
	write_and_read_again(p);
	profile_free(p);
	return 0;
}
