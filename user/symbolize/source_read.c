#include "symbolize/source_read.h"

#include "base/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS_MAX = 65536 }; /* NGROUPS_MAX */

/* The rights of this thread to files: those of another user and no group, until they are ours again. */
struct rights_now {
	bool changed, lowered;
	uint64_t held;
	gid_t *groups;
	int n_groups;
};

/* Of this thread alone: glibc's setgroups() would change those of all. */
static int set_groups(int n, const gid_t *groups)
{
	return syscall(SYS_setgroups, n, groups) < 0 ? -errno : 0;
}

static void take_back(struct rights_now *r)
{
	if (r->lowered && rights_set_held(r->held) < 0)
		abort(); /* ours, which we had a moment ago */
	if (r->changed) {
		setfsuid(geteuid());
		setfsgid(getegid());
		if (set_groups(r->n_groups, r->groups) < 0)
			abort(); /* ours, which we had a moment ago */
	}
	free(r->groups);
}

/* A user who may read the files of others reads sources as the user that he is. */
static int lay_down_rights(struct rights_now *r)
{
	uint64_t files = 1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE;

	r->held = rights_held();
	r->lowered = r->held & files;
	return r->lowered ? rights_set_held(r->held & ~files) : 0;
}

static int become(struct rights_now *r, uid_t user)
{
	if (geteuid() != 0)
		return lay_down_rights(r);
	if (user == 0)
		return 0;
	r->n_groups = getgroups(0, NULL);
	r->groups = r->n_groups >= 0 && r->n_groups <= GROUPS_MAX
			    ? reallocarray(NULL, (size_t)r->n_groups + 1, sizeof(*r->groups))
			    : NULL;
	if (!r->groups)
		return -ENOMEM;
	r->n_groups = getgroups(r->n_groups, r->groups);
	if (r->n_groups < 0 || set_groups(0, NULL) < 0)
		return -EPERM;
	r->changed = true;
	setfsgid(SOURCE_READER_NOBODY);
	setfsuid(user); /* which takes CAP_DAC_OVERRIDE and its kin away (capabilities(7)) */
	return setfsuid((uid_t)-1) == (int)user ? 0 : -EPERM;
}

static int open_as(source_open_fn open_source, void *ctx, module_id m, const char *path, bool host,
		   uid_t user)
{
	_cleanup_(take_back) struct rights_now now = { 0 };
	int r = become(&now, user);

	return r < 0 ? r : open_source(ctx, m, path, host);
}

static const char *why(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return "there is no such file here";
	case -EACCES:
	case -EPERM:
		return "the program's user may not read it";
	default:
		return "it cannot be read";
	}
}

static int read_all(int fd, size_t size, char **ret_bytes, size_t *ret_len)
{
	_cleanup_(freep) char *bytes = malloc(size + 1);
	size_t len = 0;
	ssize_t n;

	if (!bytes)
		return -ENOMEM;
	while (len < size && (n = read(fd, bytes + len, size - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	bytes[len] = 0;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_len = len;
	return 0;
}

int source_read(source_open_fn open_source, void *ctx, module_id m, const char *path, uid_t reader,
		int64_t built_s, struct source_text *ret)
{
	_cleanup_(closep) int fd = -1;
	char *bytes = NULL;
	struct stat st;
	size_t len = 0;
	int r;

	*ret = (struct source_text){ .path = strdup(path) };
	if (!ret->path)
		return -ENOMEM;
	if (*path != '/') {
		ret->problem = "its directory is not known";
		return 0;
	}
	fd = open_as(open_source, ctx, m, path, false, reader);
	if (fd < 0) {
		int here = open_as(open_source, ctx, m, path, true, reader);

		/* What is wrong with the one that the program sees says more than that there is none here. */
		fd = here < 0 && fd != -ENOENT ? fd : here;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		ret->problem = why(fd < 0 ? fd : -errno);
		return 0;
	}
	if (st.st_size > SOURCE_BYTES_MAX) {
		ret->problem = "it is larger than 8 MiB";
		return 0;
	}
	r = read_all(fd, (size_t)st.st_size, &bytes, &len);
	if (r == 0 && memchr(bytes, 0, len)) {
		free(bytes);
		ret->problem = "it is no text";
		return 0;
	}
	if (r == 0) {
		ret->newer = built_s && st.st_mtime > built_s;
		return source_text_split(ret, bytes, len);
	}
	ret->problem = why(r);
	return r == -ENOMEM ? r : 0;
}
