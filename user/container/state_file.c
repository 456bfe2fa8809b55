#include "container/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define STATE_BYTES_MAX (16 << 20)
#define HOMES_MAX       4096

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
	struct passwd *pw;
	bool found = false;
	char dir[PATH_MAX];
	int at;

	setpwent();
	for (int i = 0; i < HOMES_MAX && (pw = getpwent());) {
		if (!pw->pw_uid || !pw->pw_dir || strcmp(pw->pw_dir, "/") == 0)
			continue;
		i++;
		snprintf(dir, sizeof(dir), "%s/%s", pw->pw_dir, below);
		/* Most users have none: one look says so, where an engine's reading takes ten. */
		at = state_open(root, dir, O_PATH | O_DIRECTORY);
		if (at >= 0)
			found |= read(root, dir, l);
		closep(&at);
	}
	endpwent();
	return found;
}

bool state_where(bool found, const char *dir, bool homes, char *where, size_t cap)
{
	if (found || homes)
		snprintf(where, cap, "%s", found ? dir : "homes of users");
	return found || homes;
}
