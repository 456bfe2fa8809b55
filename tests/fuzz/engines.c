/*
 * State files of container engines, below a root of its own with one user: the first byte says which one it is, the rest is the file.
 * Names go into outputs, so that what is read has to be text of a bounded length.
 */
#include "container/container.h"
#include "container/homes.h"
#include "scratch_folder.h"

#include <limits.h>
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *const files[] = {
	"var/lib/containers/storage/overlay-containers/containers.json",
	"var/lib/docker/containers/" ID "/config.v2.json",
	"run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
	"etc/containers/storage.conf",
	"etc/docker/daemon.json",
	"home/user/.local/share/containers/storage/overlay-containers/containers.json",
};

/* Not those of this machine, for each of which some files are looked for. */
const char *const *homes_of_users(const char *passwd, uint64_t now_ns, uint32_t *ret_n)
{
	static const char *const list[] = { "/home/user" };

	(void)passwd;
	(void)now_ns;
	*ret_n = 1;
	return list;
}

static void make_folders(void)
{
	const char *root = scratch_folder();

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
	const char *file;

	if (!made)
		make_folders();
	made = true;
	if (!size)
		return 0;
	file = files[(uint8_t)(*data - 'A') % (sizeof(files) / sizeof(*files))];
	scratch_write(file, data + 1, size - 1);
	if (containers_read(scratch_folder(), NULL, &l, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < l.n; i++)
		if (!l.list[i].id || !l.list[i].name || strlen(l.list[i].id) > NAME_MAX)
			abort();
	containers_fini(&l);
	snprintf(path, sizeof(path), "%s/%s", scratch_folder(), file);
	unlink(path);
	return 0;
}
