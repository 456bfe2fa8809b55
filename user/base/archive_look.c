/* An archive as people look at it: nothing is locked, so nobody who writes it has to wait. */
#include "base/archive.h"
#include "base/archive_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct missing {
	const struct list *l;
	int (*fn)(void *ctx, const char *name);
	void *ctx;
};

static int look_for(void *ctx, const char *name)
{
	const struct missing *m = ctx;

	return list_sees(m->l, name) ? 0 : m->fn(m->ctx, name);
}

static int read_list(const char *dir, struct list *l)
{
	l->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir_fd < 0)
		return -errno;
	l->fd = openat(l->dir_fd, ARCHIVE_LIST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return l->fd < 0 ? -errno : list_read(l, dir, NULL);
}

int archive_each_missing(const char *dir, int (*fn)(void *ctx, const char *name), void *ctx)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(freep) uint32_t *seen = NULL;
	struct missing m = { &l, fn, ctx };
	int r;

	r = read_list(dir, &l);
	if (r == 0)
		r = list_see_windows(&l, &seen);
	for (size_t i = 0; r == 0 && i < l.n; i++)
		if (l.entries[i].kind == WINDOW && seen[i] < l.entries[i].files)
			r = window_groups_each(l.entries[i].groups, &l.folders, l.entries[i].stamp,
					       look_for, &m);
	return r;
}

/* The first one's name is enough. */
static int take_name(void *ctx, const char *name)
{
	const char *slash = strchr(name, '/');

	snprintf(ctx, NAME_MAX + 1, "%s", slash ? slash + 1 : name);
	return 1;
}

int archive_each_listed(const char *dir, int (*fn)(void *ctx, const struct archive_listed *w),
			void *ctx)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(freep) bool *has = NULL;
	char file[NAME_MAX + 1];
	int r = read_list(dir, &l);

	has = r == 0 ? malloc(l.folders.n + 1ul) : NULL;
	if (r == 0 && !has)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		const struct entry *w = &l.entries[i];
		struct archive_listed one = { w->stamp,
					      file,
					      w->bytes,
					      w->files,
					      (const char *const *)l.folders.names,
					      has,
					      l.folders.n };

		if (w->kind != WINDOW || w->unknown)
			continue;
		memset(has, 0, l.folders.n + 1ul);
		window_groups_mark(w->groups, has);
		window_groups_each(w->groups, &l.folders, w->stamp, take_name, file);
		r = fn(ctx, &one);
	}
	return r;
}

int archive_each_part(const char *dir, int (*fn)(void *ctx, const char *name), void *ctx)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	int r = read_list(dir, &l);

	for (size_t i = 0; r == 0 && i < l.n; i++)
		if (l.entries[i].kind == RUN_PART)
			r = fn(ctx, l.entries[i].name);
	return r;
}

/* Does anybody hold a lock of that file? Asked without taking it: a run that wants it would not get it. */
static bool is_locked(int fd)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/locks", "re");
	char line[256], wanted[64];
	struct stat st;

	if (!f || fstat(fd, &st) < 0)
		return false;
	snprintf(wanted, sizeof(wanted), " %02x:%02x:%" PRIu64 " ", major(st.st_dev),
		 minor(st.st_dev), (uint64_t)st.st_ino);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, wanted))
			return true;
	return false;
}

bool archive_is_at_work(const char *dir)
{
	_cleanup_(closedirp) DIR *d = opendir(dir);

	for (struct dirent *entry; d && (entry = readdir(d));) {
		char lock[512];
		_cleanup_(closep) int fd = -1;

		if (strncmp(entry->d_name, ARCHIVE_MAKING, strlen(ARCHIVE_MAKING)) != 0)
			continue;
		snprintf(lock, sizeof(lock), "%s/" ARCHIVE_LOCK, entry->d_name);
		fd = openat(dirfd(d), lock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && is_locked(fd))
			return true;
	}
	return false;
}
