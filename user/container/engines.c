#include "container/engine.h"

const struct engine engines[] = {
	{ "podman", podman_read },
	{ "docker", docker_read },
	{ "containerd", containerd_read }, /* behind Docker, which runs its own through it */
	{ 0 },
};
