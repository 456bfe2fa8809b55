/* A profile as a cell says it that its file has taken over: refused, or a profile that can be written. */
#include "model/profile_wire.h"
#include "model/pprof.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct bytes b = bytes_of(data, size);

	if (profile_wire_read(d, &b, &p) < 0)
		return 0;
	if (sink_open_memory(&sink, NULL) < 0 || pprof_write(p, (module_id){ 0 }, sink, NULL) < 0)
		abort();
	return 0;
}
