/*
 * containerd: STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json, the description that
 * the runtime got (OCI runtime specification): its annotations have the names that Kubernetes or nerdctl
 * gave, linux.cgroupsPath where it is. It is there as long as the task is.
 */
#include "container/engine.h"

#include <string.h>

#define TASKS "io.containerd.runtime.v2.task"

/* Its own, and those of distributions of Kubernetes that bring it along. */
static const char *const states[] = { "/run/containerd", "/run/k3s/containerd",
				      "/run/k0s/containerd",
				      "/var/snap/microk8s/common/run/containerd" };

/* "/default/web", or "system.slice:PREFIX:ID", which systemd makes SLICE/PREFIX-ID.scope of. */
static char *cgroup_of(const cJSON *spec)
{
	const char *path =
		state_text(cJSON_GetObjectItemCaseSensitive(spec, "linux"), "cgroupsPath");

	return path && *path == '/' && path[1] ? strndup(path, PATH_MAX - 1) : NULL;
}

static void add(int root, const char *tasks, const char *id, struct container_list *l)
{
	_cleanup_(state_json_freep) cJSON *spec = NULL;
	const char *name, *kind;
	struct kubernetes_names names;
	const cJSON *notes;
	struct container *c;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.3500s/%.255s/config.json", tasks, id);
	spec = state_json(root, path);
	if (!spec)
		return;
	notes = cJSON_GetObjectItemCaseSensitive(spec, "annotations");
	kind = state_text(notes, "io.kubernetes.cri.container-type");
	if (kind && strcmp(kind, "sandbox") == 0)
		return; /* holds a pod's namespaces, runs nothing */
	names = (struct kubernetes_names){
		.namespace = state_text(notes, "io.kubernetes.cri.sandbox-namespace"),
		.pod = state_text(notes, "io.kubernetes.cri.sandbox-name"),
		.container = state_text(notes, "io.kubernetes.cri.container-name"),
	};
	if (names.container && names.pod) {
		c = container_add_kubernetes(l, "containerd", id, &names,
					     state_text(notes, "io.kubernetes.cri.image-name"));
	} else {
		name = state_text(notes, "nerdctl/name");
		c = container_add(l, "containerd", id, name,
				  state_text(notes, "org.opencontainers.image.ref.name"));
	}
	if (c)
		c->cgroup = cgroup_of(spec);
}

static bool read_state(int root, const char *state, struct container_list *l)
{
	_cleanup_(state_dir_closep) DIR *spaces = NULL;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.3000s/" TASKS, state);
	spaces = state_dir(root, path);
	for (struct dirent *ns; spaces && (ns = readdir(spaces));) {
		_cleanup_(state_dir_closep) DIR *tasks = NULL;

		if (ns->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.3000s/" TASKS "/%.255s", state, ns->d_name);
		tasks = state_dir(root, path);
		for (struct dirent *task; tasks && (task = readdir(tasks));)
			if (task->d_name[0] != '.')
				add(root, path, task->d_name, l);
	}
	return spaces != NULL;
}

bool containerd_read(int root, struct container_list *l, char *where, size_t cap)
{
	const char *named = engine_directory("containerd");
	bool found = false;

	for (size_t i = 0; i < (named ? 1 : sizeof(states) / sizeof(*states)); i++) {
		const char *state = named ? named : states[i];

		if (!read_state(root, state, l))
			continue;
		if (!found)
			snprintf(where, cap, "%s", state);
		found = true;
	}
	return found;
}
