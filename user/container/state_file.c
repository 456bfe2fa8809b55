#include "base/clock.h"
#include "container/engine.h"
#include "container/homes.h"
#include "proc/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define STATE_BYTES_MAX (16 << 20)
#define HOME_BYTES_MAX  (1 << 20)
#define HOME_NS         20000000ull  /* of CPU time, of one user … */
#define HOMES_NS_MAX    200000000ull /* … and of all               */
#define NOBODYS         ((uid_t)-1)

/* While a home is read: until when, and whose files are believed: a link may lead to others'. */
static _Thread_local uint64_t until_ns;
static _Thread_local uid_t owner;

static bool is_over(void)
{
	return until_ns && thread_cpu_ns() > until_ns;
}

int state_find(int root, const char *dir)
{
	_cleanup_(closep) int fd = ns_find_below(root, dir);
	struct statx at;

	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &at) < 0)
		return -errno;
	return S_ISDIR(at.stx_mode) ? TAKE_FD(fd) : -ENOTDIR;
}

/* A directory, or a regular file that is not too large: a user has made it, and may have made a link to any device of the host. */
static int open_state(int root, const char *path, mode_t type)
{
	_cleanup_(closep) int at = ns_find_below(root, path), fd = -1;
	struct stat st;

	if (at < 0)
		return at;
	fd = ns_reopen(at);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != type)
		return -EINVAL;
	if (type == S_IFREG && st.st_size > (until_ns ? HOME_BYTES_MAX : STATE_BYTES_MAX))
		return -EFBIG;
	if (until_ns && st.st_uid != owner)
		return -EPERM;
	return TAKE_FD(fd);
}

int state_open(int root, const char *path)
{
	return open_state(root, path, S_IFREG);
}

cJSON *state_json(int root, const char *path)
{
	_cleanup_(closep) int fd = is_over() ? -EBUSY : state_open(root, path);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t have = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > STATE_BYTES_MAX)
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
	_cleanup_(closep) int fd = open_state(root, path, S_IFDIR);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = -1; /* its own now */
	return d;
}

const char *state_text(const cJSON *of, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(of, name));
}

/* Whose it is. */
static uid_t owner_of(int dir)
{
	struct statx at;

	return statx(dir, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &at) < 0 ? NOBODYS
										      : at.stx_uid;
}

bool state_read_homes(int root, const struct engine *engine, struct container_list *l)
{
	uint64_t end_ns = thread_cpu_ns() + HOMES_NS_MAX;
	const char *const *homes;
	bool found = false;
	char dir[PATH_MAX];
	uint32_t n = 0;
	int at;

	homes = engine->at_home ? homes_of_users("/etc/passwd", now_ns(), &n) : NULL;
	for (uint32_t i = 0; i < n && thread_cpu_ns() < end_ns; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", homes[i], engine->at_home);
		/* Most users have none: one look says so, where an engine's reading takes ten. */
		at = state_find(root, dir);
		if (at >= 0) {
			until_ns = thread_cpu_ns() + HOME_NS;
			/* What is root's own there is nobody's: it is in no user's slice. */
			owner = owner_of(at);
			l->uid = owner ? owner : NOBODYS;
			found |= engine->read_home(root, dir, l);
			l->uid = 0;
			until_ns = 0;
		}
		closep(&at);
	}
	return found;
}

bool state_where(bool found, const char *dir, char *where, size_t cap)
{
	if (found)
		snprintf(where, cap, "%s", dir);
	return found;
}
