/*
 * State files of container engines, below a root of its own: the first byte says which one it is, the rest is the file. Names go
 * into outputs, so that what is read has to be text of a bounded length.
 */
#include "container/container.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *const files[] = {
	"var/lib/containers/storage/overlay-containers/containers.json",
	"var/lib/docker/containers/" ID "/config.v2.json",
	"run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
	"etc/containers/storage.conf",
	"etc/docker/daemon.json",
};

static char root[] = "/tmp/memscope-fuzz-engines-XXXXXX";

static void remove_root(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command) != 0)
		_exit(EXIT_FAILURE);
}

static void make_folders(void)
{
	if (!mkdtemp(root))
		abort();
	atexit(remove_root);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", root, files[i]);
		for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
			*slash = '\0';
			mkdir(path, 0700);
			*slash = '/';
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	struct container_list l = { 0 };
	char path[PATH_MAX];
	FILE *f;

	if (!made)
		make_folders();
	made = true;
	if (!size)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", root,
		 files[*data % (sizeof(files) / sizeof(*files))]);
	f = fopen(path, "w");
	if (!f || fwrite(data + 1, 1, size - 1, f) != size - 1 || fclose(f) != 0)
		abort();
	if (containers_read(root, NULL, &l, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < l.n; i++)
		if (!l.list[i].id || !l.list[i].name || strlen(l.list[i].id) > NAME_MAX)
			abort();
	containers_fini(&l);
	unlink(path);
	return 0;
}
