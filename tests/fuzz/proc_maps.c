/* One line of /proc/PID/maps: the path in it is the target's choice. */
#include "proc/proc_maps.h"
#include "base/cleanup.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *line = malloc(size + 1);
	struct proc_map map;

	if (!line)
		return 0;
	memcpy(line, data, size);
	if (proc_maps_parse(line, size, &map) < 0)
		return 0;
	if (map.start >= map.end || map.path < line || map.path + strlen(map.path) > line + size)
		abort();
	return 0;
}
