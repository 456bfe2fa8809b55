#include "base/tree.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LIST       ".memscope"
#define STAMP_LEN  15 /* YYYYMMDD-HHMMSS */
#define LIST_BYTES (64u << 20)
#define YOUNG      8 /* windows that may still be in the making */

struct entry {
	char name[256];
	char stamp[32];    /* and what follows it up to the ending */
	bool there, young; /* young: may be about to be written */
	uint64_t bytes;
	int64_t time_s;
};

struct list {
	int dir_fd, fd;
	struct entry *entries;
	size_t n;
};

/* SOURCE-YYYYMMDD-HHMMSS[-N].EXT; *ret_stamp: between the first '-' and the '.'. */
static bool is_window_name(const char *name, char *ret_stamp, size_t cap)
{
	const char *dash = strchr(name, '-'), *dot = dash ? strchr(dash, '.') : NULL;
	size_t len = dot ? (size_t)(dot - dash - 1) : 0;

	if (!dot || dash == name || strchr(name, '/') || len < STAMP_LEN || len >= cap)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = dash[1 + i];

		if (i == 8 || i == STAMP_LEN ? c != '-' : c < '0' || c > '9')
			return false;
	}
	memcpy(ret_stamp, dash + 1, len);
	ret_stamp[len] = '\0';
	return true;
}

/* Opens and locks the list of `dir`; a cleaner may have replaced it while we waited. */
static int open_list(const char *dir, bool make, struct list *ret_list, struct err *e)
{
	_cleanup_(closep) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat mine, there;

	if (dir_fd < 0)
		return err_set(e, -errno, "%s: %s", dir, strerror(errno));
	for (;;) {
		_cleanup_(closep) int fd = openat(
			dir_fd, LIST,
			O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);

		if (fd < 0)
			return err_set(e, -errno, "%s/" LIST ": %s", dir, strerror(errno));
		if (flock(fd, LOCK_EX) < 0 || fstat(fd, &mine) < 0)
			return err_set(e, -errno, "%s/" LIST ": %s", dir, strerror(errno));
		if (fstatat(dir_fd, LIST, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		    mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)
			continue;
		if (!S_ISREG(mine.st_mode))
			return err_set(e, -EINVAL, "%s/" LIST " is not a regular file", dir);
		ret_list->dir_fd = TAKE_FD(dir_fd);
		ret_list->fd = TAKE_FD(fd);
		return 0;
	}
}

static void list_fini(struct list *l)
{
	closep(&l->fd);
	closep(&l->dir_fd);
	free(l->entries);
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int tree_note(const char *dir, const char *file, struct err *e)
{
	_cleanup_(list_fini) struct list l = { -1, -1, NULL, 0 };
	char line[300], stamp[32];
	int r;

	if (!is_window_name(file, stamp, sizeof(stamp)) || strlen(file) >= sizeof(l.entries->name))
		return err_set(e, -EINVAL, "%s is no name of a window's file", file);
	r = open_list(dir, true, &l, e);
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%s\n", file);
	r = write_all(l.fd, line, strlen(line));
	return r < 0 ? err_set(e, r, "%s/" LIST ": %s", dir, strerror(-r)) : 0;
}

/* --- what to keep --- */

int keep_parse(const char *text, const char *option, struct keep *ret_keep, struct err *e)
{
	static const struct {
		char unit;
		enum keep_kind kind;
		uint64_t factor;
	} units[] = {
		{ '\0', KEEP_WINDOWS, 1 },       { 's', KEEP_SECONDS, 1 },
		{ 'm', KEEP_SECONDS, 60 },       { 'h', KEEP_SECONDS, 3600 },
		{ 'd', KEEP_SECONDS, 86400 },    { 'K', KEEP_BYTES, 1ull << 10 },
		{ 'M', KEEP_BYTES, 1ull << 20 }, { 'G', KEEP_BYTES, 1ull << 30 },
		{ 'T', KEEP_BYTES, 1ull << 40 },
	};
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !errno && n && n < 1ull << 40 && (!*end || !end[1]))
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
			if (units[i].unit == *end && n <= UINT64_MAX / units[i].factor) {
				*ret_keep = (struct keep){ units[i].kind, n * units[i].factor };
				return 0;
			}
	return err_set(e, -EINVAL,
		       "%s takes an age (30s, 90m, 12h, 7d), a number of windows (200) or a size "
		       "(500M, 2G), not \"%.32s\"",
		       option, text);
}

/* --- removing --- */

static int read_list(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t cap = 0, room = 0;
	struct stat st;
	ssize_t len;
	int fd;

	if (fstat(l->fd, &st) < 0 || st.st_size > LIST_BYTES)
		return err_set(e, -EFBIG, "%s/" LIST " is too large", dir);
	fd = openat(l->dir_fd, LIST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return err_set(e, -errno, "%s/" LIST ": %s", dir, strerror(errno));
	while ((len = getline(&line, &cap, f)) > 0) {
		struct entry entry = { .there = false };

		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if ((size_t)len >= sizeof(entry.name) ||
		    !is_window_name(line, entry.stamp, sizeof(entry.stamp)))
			continue; /* somebody wrote into it: not ours to remove */
		memcpy(entry.name, line, (size_t)len + 1);
		if (fstatat(l->dir_fd, entry.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode)) {
			entry.there = true;
			entry.bytes = (uint64_t)st.st_size;
			entry.time_s = st.st_mtim.tv_sec;
		}
		if (l->n == room) {
			struct entry *grown;

			room = room ? 2 * room : 64;
			grown = reallocarray(l->entries, room, sizeof(*grown));
			if (!grown)
				return err_set(e, -ENOMEM, "out of memory for the list of %s", dir);
			l->entries = grown;
		}
		l->entries[l->n++] = entry;
	}
	return 0;
}

/* By window, the newest first; names of one window and doubles side by side. */
static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by_stamp = strcmp(y->stamp, x->stamp);

	return by_stamp ? by_stamp : strcmp(x->name, y->name);
}

/* Of the window at [i, end): may it go? */
static bool may_go(const struct list *l, size_t i, size_t end, const struct keep *keep,
		   uint64_t nth, uint64_t bytes_newer, time_t now)
{
	uint64_t bytes = 0;
	int64_t newest = INT64_MIN;

	for (size_t j = i; j < end; j++) {
		bytes += l->entries[j].bytes;
		if (l->entries[j].there && l->entries[j].time_s > newest)
			newest = l->entries[j].time_s;
	}
	switch (keep->kind) {
	case KEEP_SECONDS:
		return newest != INT64_MIN && (int64_t)now - newest > (int64_t)keep->n;
	case KEEP_WINDOWS:
		return nth >= keep->n;
	case KEEP_BYTES:
		return bytes_newer + bytes > keep->n;
	default:
		return false;
	}
}

static void remove_window(struct list *l, size_t i, size_t end, struct pruned *pruned)
{
	for (size_t j = i; j < end; j++) {
		struct entry *entry = &l->entries[j];

		if (!entry->there || unlinkat(l->dir_fd, entry->name, 0) < 0)
			continue;
		entry->there = false;
		pruned->files++;
		pruned->bytes += entry->bytes;
	}
}

/* Files that are gone leave the list; those that may not be written yet stay. */
static int rewrite_list(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(closep) int fd =
		openat(l->dir_fd, LIST ".new",
		       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		const struct entry *entry = &l->entries[i];

		if ((!entry->there && !entry->young) ||
		    (i && strcmp(entry->name, l->entries[i - 1].name) == 0))
			continue;
		r = write_all(fd, entry->name, strlen(entry->name));
		if (r == 0)
			r = write_all(fd, "\n", 1);
	}
	if (r == 0 && renameat(l->dir_fd, LIST ".new", l->dir_fd, LIST) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(l->dir_fd, LIST ".new", 0);
	return r < 0 ? err_set(e, r, "%s/" LIST ": %s", dir, strerror(-r)) : 0;
}

int tree_prune(const char *dir, const struct keep *keep, const char *but, struct pruned *pruned,
	       struct err *e)
{
	_cleanup_(list_fini) struct list l = { -1, -1, NULL, 0 };
	uint64_t nth = 0, listed = 0, bytes_newer = 0;
	time_t now = time(NULL);
	int r = open_list(dir, false, &l, e);

	if (r == 0)
		r = read_list(&l, dir, e);
	if (r < 0)
		return r;
	qsort(l.entries, l.n, sizeof(*l.entries), newest_first);
	for (size_t i = 0, end; i < l.n; i = end) {
		bool is_but = but && strcmp(l.entries[i].stamp, but) == 0, any = false;

		for (end = i; end < l.n && strcmp(l.entries[end].stamp, l.entries[i].stamp) == 0;
		     end++)
			any |= l.entries[end].there;
		if (!is_but && may_go(&l, i, end, keep, nth, bytes_newer, now))
			remove_window(&l, i, end, pruned);
		for (size_t j = i; j < end; j++) {
			bytes_newer += l.entries[j].there ? l.entries[j].bytes : 0;
			l.entries[j].young = listed < YOUNG;
		}
		nth += any || is_but;
		listed++;
	}
	return rewrite_list(&l, dir, e);
}
