/* A perf map, written by whoever may write to the target's /tmp. */
#include "symbolize/perf_map.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t asked[] = { 0, 1, 0x10, 0x1000, 0x1008, 0x3ef414c0, UINT64_MAX };
	const uint32_t n = sizeof(asked) / sizeof(asked[0]);
	struct perf_map *m;

	if (perf_map_parse((const char *)data, size, asked, n, &m) < 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const char *name = perf_map_find(m, asked[i], &len);

		if (name && (name < (const char *)data || len > size))
			abort();
	}
	perf_map_free(m);
	return 0;
}
