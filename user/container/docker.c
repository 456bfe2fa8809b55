/*
 * Docker: DATA/containers/ID/config.v2.json. Where DATA is, daemon.json may say ("data-root"); users
 * without root have theirs at home.
 */
#include "container/engine.h"

#include <string.h>

#define DATA_ROOT "/var/lib/docker"
#define SERVICE   "com.docker.compose.service"
/* Labels of cri-dockerd, by which kubelet runs containers with Docker. */
#define POD_NAME      "io.kubernetes.pod.name"
#define POD_NAMESPACE "io.kubernetes.pod.namespace"
#define POD_CONTAINER "io.kubernetes.container.name"
#define POD_KIND      "io.kubernetes.docker.type"

static void add(int root, const char *dir, const char *id, struct container_list *l)
{
	_cleanup_(state_json_freep) cJSON *state = NULL;
	const cJSON *config, *labels;
	const char *name, *service, *kind;
	struct kubernetes_names names;
	struct container *c;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/config.v2.json", dir, id);
	state = state_json(root, path);
	name = state_text(state, "Name");
	if (!name)
		return;
	config = cJSON_GetObjectItemCaseSensitive(state, "Config");
	labels = cJSON_GetObjectItemCaseSensitive(config, "Labels");
	kind = state_text(labels, POD_KIND);
	if (kind && strcmp(kind, "podsandbox") == 0)
		return; /* holds a pod's namespaces, runs nothing */
	names = (struct kubernetes_names){
		.namespace = state_text(labels, POD_NAMESPACE),
		.pod = state_text(labels, POD_NAME),
		.container = state_text(labels, POD_CONTAINER),
	};
	if (names.pod && names.container) {
		container_add_kubernetes(l, "docker", id, &names, state_text(config, "Image"));
		return;
	}
	c = container_add(l, "docker", id, *name == '/' ? name + 1 : name,
			  state_text(config, "Image"));
	service = state_text(labels, SERVICE);
	if (c && service)
		c->alias = strndup(service, NAME_MAX);
}

bool docker_read_home(int root, const char *data, struct container_list *l)
{
	_cleanup_(state_dir_closep) DIR *d = NULL;
	char dir[PATH_MAX - 512];

	snprintf(dir, sizeof(dir), "%.3000s/containers", data);
	d = state_dir(root, dir);
	for (struct dirent *ent; d && (ent = readdir(d));)
		if (ent->d_name[0] != '.')
			add(root, dir, ent->d_name, l);
	return d != NULL;
}

bool docker_read(int root, struct container_list *l, char *where, size_t cap)
{
	_cleanup_(state_json_freep) cJSON *daemon = state_json(root, "/etc/docker/daemon.json");
	const char *named = engine_directory("docker"), *data = state_text(daemon, "data-root");

	data = named ? named : data ? data : DATA_ROOT;
	return state_where(docker_read_home(root, data, l), data, where, cap);
}
