/* A line of /proc/PID/cgroup, and the container's id in it. */
#include "container/container.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = strndup((const char *)data, size), id[CONTAINER_ID_HEX + 1];
	const char *controllers, *path;
	uint32_t hierarchy;
	size_t len;

	if (line && cgroup_parse_line(line, &hierarchy, &controllers, &path) &&
	    container_id_in(path, id, &len) &&
	    (strlen(id) != CONTAINER_ID_HEX || len > strlen(path) || !strstr(path, id)))
		abort();
	free(line);
	return 0;
}
