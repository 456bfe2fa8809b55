/*
 * CRI-O: the lists of containers/storage (storage.h). The metadata of a container name the pod's infrastructure
 * container (`pod-id`), whose own metadata have the pod's name and namespace; `metadata-name` is what Kubernetes
 * calls either (cri-o, internal/storage/runtime.go, RuntimeContainerMetadata):
 *
 *   infrastructure   { pod-id: its own id, metadata-name: POD, namespace, pod: true, … }
 *   container        { pod-id, metadata-name: CONTAINER, image-name, … }
 *
 * Its control groups are …/crio-ID.scope or …/crio-ID, without a process for an infrastructure container that was
 * dropped; those of conmon are crio-conmon-ID. Where the graph root is, crio.conf may say (`root`), or storage.conf.
 */
#include "base/grow.h"
#include "container/storage.h"

#include <stdlib.h>
#include <string.h>

struct pod {
	char *id, *name, *namespace;
};

struct reading {
	struct container_list *l;
	struct pod *pods;
	uint32_t n_pods, cap;
	uint32_t seen; /* containers and pods of CRI-O */
};

static void take_pod(void *ctx, const char *id, const cJSON *one, const cJSON *metadata)
{
	const char *pod = state_text(metadata, "pod-id"),
		   *space = state_text(metadata, "namespace");
	const char *name = state_text(metadata, "metadata-name");
	struct reading *r = ctx;

	r->seen += pod != NULL;
	if (!pod || !name || strcmp(pod, id) != 0 || r->n_pods == CONTAINERS_MAX ||
	    !GROW(r->pods, r->n_pods, r->cap))
		return;
	r->pods[r->n_pods++] = (struct pod){
		.id = strndup(id, NAME_MAX),
		.name = strndup(name, NAME_MAX),
		.namespace = space ? strndup(space, NAME_MAX) : NULL,
	};
	(void)one;
}

static const struct pod *pod_of(const struct reading *r, const char *id)
{
	for (uint32_t i = 0; i < r->n_pods; i++)
		if (r->pods[i].id && strcmp(r->pods[i].id, id) == 0)
			return &r->pods[i];
	return NULL;
}

/* An infrastructure container holds a pod's namespaces and runs nothing. */
static void take_container(void *ctx, const char *id, const cJSON *one, const cJSON *metadata)
{
	const char *pod_id = state_text(metadata, "pod-id");
	const struct reading *r = ctx;
	const struct pod *pod = pod_id ? pod_of(r, pod_id) : NULL;
	const struct kubernetes_names names = {
		.namespace = pod ? pod->namespace : NULL,
		.pod = pod ? pod->name : NULL,
		.container = state_text(metadata, "metadata-name"),
	};

	if (pod_id && strcmp(pod_id, id) != 0)
		container_add_kubernetes(r->l, "crio", id, &names,
					 state_text(metadata, "image-name"));
	(void)one;
}

/* Pods may stand in another list, and behind their containers. */
static bool read_storage(int root, const char *graph_root, const char *run_root,
			 struct container_list *l)
{
	struct reading r = { .l = l };

	storage_each(root, graph_root, take_pod, &r);
	if (run_root)
		storage_each(root, run_root, take_pod, &r);
	if (r.seen) {
		storage_each(root, graph_root, take_container, &r);
		if (run_root)
			storage_each(root, run_root, take_container, &r);
	}
	for (uint32_t i = 0; i < r.n_pods; i++) {
		free(r.pods[i].id);
		free(r.pods[i].name);
		free(r.pods[i].namespace);
	}
	free(r.pods);
	return r.seen > 0;
}

bool crio_read(int root, struct container_list *l, char *where, size_t cap)
{
	const char *named = engine_directory("crio");
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "%s", named ? named : STORAGE_GRAPH_ROOT);
	found = read_storage(root, path, named ? NULL : STORAGE_RUN_ROOT, l);
	if (!found && !named &&
	    (storage_configured(root, "/etc/crio/crio.conf", "root", path, sizeof(path)) ||
	     storage_configured(root, STORAGE_CONF, "graphroot", path, sizeof(path))))
		found = read_storage(root, path, NULL, l);
	return state_where(found, path, where, cap);
}
