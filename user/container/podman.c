/*
 * Podman, and others that keep containers with the containers/storage library (CRI-O):
 * GRAPHROOT/overlay-containers/containers.json is a list of { id, names, metadata }. Where the graph root
 * is, storage.conf may say; users without root have theirs at home.
 */
#include "base/cleanup.h"
#include "container/engine.h"

#include <fcntl.h>
#include <string.h>

#define GRAPH_ROOT "/var/lib/containers/storage"
#define AT_HOME    ".local/share/containers/storage"

static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };

/* metadata is JSON in a string, "image-name" one of its members. */
static void add(struct container_list *l, const cJSON *one)
{
	const char *text = state_text(one, "metadata"), *id = state_text(one, "id");
	_cleanup_(state_json_freep) cJSON *metadata = text ? cJSON_Parse(text) : NULL;
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(one, "names");
	const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, 0));

	if (id)
		container_add(l, "podman", id, name, state_text(metadata, "image-name"));
}

static bool read_storage(int root, const char *graph_root, struct container_list *l)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++) {
		_cleanup_(state_json_freep) cJSON *list = NULL;
		const cJSON *one;
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s-containers/containers.json", graph_root,
			 drivers[i]);
		list = state_json(root, path);
		found |= list != NULL;
		cJSON_ArrayForEach(one, list) add(l, one);
	}
	return found;
}

/* graphroot = "/some/where", the last one. */
static bool configured_root(int root, char *out, size_t cap)
{
	int fd = state_open(root, "/etc/containers/storage.conf", O_RDONLY);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = false;
	char line[1024], value[1024];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " graphroot = \"%1023[^\"]\"", value) == 1) {
			snprintf(out, cap, "%s", value);
			found = true;
		}
	return found;
}

bool podman_read(int root, struct container_list *l, char *where, size_t cap)
{
	const char *named = engine_directory("podman");
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "%s", named ? named : GRAPH_ROOT);
	found = read_storage(root, path, l);
	if (!found && !named && configured_root(root, path, sizeof(path)))
		found = read_storage(root, path, l);
	return state_where(found, path, state_read_homes(root, AT_HOME, read_storage, l), where,
			   cap);
}
