/*
 * Podman: the lists of containers/storage (storage.h), `image-name` of their metadata. Where the graph root is,
 * storage.conf may say; users without root have theirs at home.
 */
#include "container/storage.h"

static void add(void *ctx, const char *id, const cJSON *one, const cJSON *metadata)
{
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(one, "names");
	const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, 0));

	if (!storage_has_pod(metadata))
		container_add(ctx, "podman", id, name, state_text(metadata, "image-name"));
}

bool podman_read_home(int root, const char *graph_root, struct container_list *l)
{
	return storage_each(root, graph_root, add, l);
}

bool podman_read(int root, struct container_list *l, char *where, size_t cap)
{
	const char *named = engine_directory("podman");
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "%s", named ? named : STORAGE_GRAPH_ROOT);
	found = podman_read_home(root, path, l);
	if (!found && !named &&
	    storage_configured(root, STORAGE_CONF, "graphroot", path, sizeof(path)))
		found = podman_read_home(root, path, l);
	if (!named)
		podman_read_home(root, STORAGE_RUN_ROOT, l);
	return state_where(found, path, where, cap);
}
