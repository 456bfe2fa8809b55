/* HotSpot's counters in a hostile file: what is read lies in it, and numbers stay numbers. */
#include "heap/gc/hsperf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1); /* to its very end, for AddressSanitizer */
	struct gc_counters c;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	bytes = realloc(bytes, size ? size : 1);
	if (hsperf_read(bytes, size, &c) == 0) {
		if (!c.n_kinds || c.n_kinds > GC_KINDS || c.time_ns < GC_UNKNOWN ||
		    c.last_ns < GC_UNKNOWN || c.live_bytes < GC_UNKNOWN ||
		    c.heap_bytes < GC_UNKNOWN)
			abort();
		for (uint32_t i = 0; i < c.n_kinds; i++)
			if (strnlen(c.kinds[i].name, GC_KIND_NAME) == GC_KIND_NAME)
				abort();
	}
	free(bytes);
	return 0;
}
