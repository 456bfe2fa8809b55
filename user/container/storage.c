/*
 * The lists of the containers/storage library, in which podman and CRI-O keep their containers:
 *
 *   GRAPHROOT/DRIVER-containers/containers.json            those that outlive a restart of the host
 *   GRAPHROOT/DRIVER-containers/volatile-containers.json   the others: CRI-O's, podman's with --rm
 *   RUNROOT/DRIVER-containers/volatile-containers.json     these, where the store is transient
 *
 * Each is an array of { id, names, metadata }; `metadata` is JSON in a string, the engine's own
 * (containers/storage, containers.go and store.go).
 */
#include "container/storage.h"

#include "base/cleanup.h"

#include <string.h>

enum { LINES_MAX = 100000 }; /* of a file that may grow while it is read */

static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };
static const char *const lists[] = { "containers.json", "volatile-containers.json" };

bool storage_each(int root, const char *at, storage_fn fn, void *ctx)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
		for (size_t j = 0; j < sizeof(lists) / sizeof(*lists); j++) {
			_cleanup_(state_json_freep) cJSON *list = NULL;
			const cJSON *one;
			char path[PATH_MAX];

			snprintf(path, sizeof(path), "%.3500s/%s-containers/%s", at, drivers[i],
				 lists[j]);
			list = state_json(root, path);
			found |= list != NULL;
			cJSON_ArrayForEach(one, list)
			{
				const char *text = state_text(one, "metadata");
				const char *id = state_text(one, "id");
				_cleanup_(state_json_freep) cJSON *metadata =
					text ? cJSON_Parse(text) : NULL;

				if (id)
					fn(ctx, id, one, metadata);
			}
		}
	return found;
}

bool storage_configured(int root, const char *file, const char *key, char *out, size_t cap)
{
	int fd = state_open(root, file);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = false;
	char line[1024], word[64], value[1024];

	for (int i = 0; f && i < LINES_MAX && fgets(line, sizeof(line), f); i++)
		if (sscanf(line, " %63[a-z_] = \"%1023[^\"]\"", word, value) == 2 &&
		    strcmp(word, key) == 0) {
			snprintf(out, cap, "%s", value);
			found = true;
		}
	return found;
}
