/*
 * containerd: /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json, the description that
 * the runtime got (OCI runtime specification): its annotations have the names that Kubernetes or nerdctl
 * gave, linux.cgroupsPath where it is. It is there as long as the task is.
 */
#include "container/engine.h"

#include <string.h>

#define TASKS "/run/containerd/io.containerd.runtime.v2.task"

/* "/default/web", or "system.slice:PREFIX:ID", which systemd makes SLICE/PREFIX-ID.scope of. */
static char *cgroup_of(const cJSON *spec)
{
	const char *path =
		state_text(cJSON_GetObjectItemCaseSensitive(spec, "linux"), "cgroupsPath");

	return path && *path == '/' && path[1] ? strndup(path, PATH_MAX - 1) : NULL;
}

static void add(int root, const char *ns, const char *id, struct container_list *l)
{
	_cleanup_(state_json_freep) cJSON *spec = NULL;
	const char *name, *pod, *kind;
	const cJSON *notes;
	struct container *c;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), TASKS "/%s/%s/config.json", ns, id);
	spec = state_json(root, path);
	if (!spec)
		return;
	notes = cJSON_GetObjectItemCaseSensitive(spec, "annotations");
	kind = state_text(notes, "io.kubernetes.cri.container-type");
	if (kind && strcmp(kind, "sandbox") == 0)
		return; /* holds a pod's namespaces, runs nothing */
	name = state_text(notes, "io.kubernetes.cri.container-name");
	pod = state_text(notes, "io.kubernetes.cri.sandbox-name");
	if (name && pod) {
		snprintf(path, sizeof(path), "%.255s/%.255s", pod, name);
		c = container_add(l, "containerd", id, path,
				  state_text(notes, "io.kubernetes.cri.image-name"));
		if (c)
			c->alias = strndup(name, NAME_MAX);
	} else {
		name = state_text(notes, "nerdctl/name");
		c = container_add(l, "containerd", id, name,
				  state_text(notes, "org.opencontainers.image.ref.name"));
	}
	if (c)
		c->cgroup = cgroup_of(spec);
}

bool containerd_read(int root, struct container_list *l, char *where, size_t cap)
{
	_cleanup_(state_dir_closep) DIR *spaces = state_dir(root, TASKS);

	for (struct dirent *ns; spaces && (ns = readdir(spaces));) {
		_cleanup_(state_dir_closep) DIR *tasks = NULL;
		char path[PATH_MAX];

		if (ns->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), TASKS "/%s", ns->d_name);
		tasks = state_dir(root, path);
		for (struct dirent *task; tasks && (task = readdir(tasks));)
			if (task->d_name[0] != '.')
				add(root, ns->d_name, task->d_name, l);
	}
	if (spaces)
		snprintf(where, cap, "%s", TASKS);
	return spaces != NULL;
}
