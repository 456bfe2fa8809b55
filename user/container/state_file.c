#include "base/clock.h"
#include "container/engine.h"
#include "container/homes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define STATE_BYTES_MAX (16 << 20)

int state_open(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NONBLOCK),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

cJSON *state_json(int root, const char *path)
{
	_cleanup_(closep) int fd = state_open(root, path, O_RDONLY);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t have = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > STATE_BYTES_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	while (have < (size_t)st.st_size &&
	       (n = read(fd, text + have, (size_t)st.st_size - have)) > 0)
		have += (size_t)n;
	return cJSON_ParseWithLength(text, have);
}

DIR *state_dir(int root, const char *path)
{
	_cleanup_(closep) int fd = state_open(root, path, O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = -1; /* its own now */
	return d;
}

const char *state_text(const cJSON *of, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(of, name));
}

bool state_read_homes(int root, const char *below, state_read_fn read, struct container_list *l)
{
	const char *const *homes;
	bool found = false;
	char dir[PATH_MAX];
	uint32_t n;
	int at;

	homes = homes_of_users("/etc/passwd", now_ns(), &n);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", homes[i], below);
		/* Most users have none: one look says so, where an engine's reading takes ten. */
		at = state_open(root, dir, O_PATH | O_DIRECTORY);
		if (at >= 0)
			found |= read(root, dir, l);
		closep(&at);
	}
	return found;
}

bool state_where(bool found, const char *dir, bool homes, char *where, size_t cap)
{
	if (found || homes)
		snprintf(where, cap, "%s", found ? dir : "homes of users");
	return found || homes;
}
