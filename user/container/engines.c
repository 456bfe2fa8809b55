#include "container/engine.h"

#include <stdlib.h>
#include <string.h>

const struct engine engines[] = {
	{ "podman", "MEMSCOPE_PODMAN_ROOT",
	  "/var/lib/containers/storage, graphroot of /etc/containers/storage.conf, "
	  ".local/share/containers/storage in the homes of users",
	  podman_read, ".local/share/containers/storage", podman_read_home },
	{ "crio", "MEMSCOPE_CRIO_ROOT",
	  "/var/lib/containers/storage, root of /etc/crio/crio.conf, "
	  "graphroot of /etc/containers/storage.conf",
	  crio_read, NULL, NULL },
	{ "docker", "MEMSCOPE_DOCKER_ROOT",
	  "/var/lib/docker, data-root of /etc/docker/daemon.json, "
	  ".local/share/docker in the homes of users",
	  docker_read, ".local/share/docker", docker_read_home },
	/* Behind Docker, which runs its own through it. */
	{ "containerd", "MEMSCOPE_CONTAINERD_STATE",
	  "/run/containerd, /run/k3s/containerd, /run/k0s/containerd, "
	  "/var/snap/microk8s/common/run/containerd",
	  containerd_read, NULL, NULL },
	{ 0 },
};

const char *engine_directory(const char *engine)
{
	for (const struct engine *e = engines; e->name; e++)
		if (strcmp(e->name, engine) == 0) {
			const char *dir = getenv(e->env);

			return dir && *dir == '/' ? dir : NULL;
		}
	return NULL;
}
