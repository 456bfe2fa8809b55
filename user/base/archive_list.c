#include "base/archive_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_BYTES (64u << 20)

static bool is_making_name(const char *name, char *ret_stamp, size_t cap)
{
	const char *stamp = name + strlen(ARCHIVE_MAKING);

	if (strncmp(name, ARCHIVE_MAKING, strlen(ARCHIVE_MAKING)) != 0 || strlen(stamp) >= cap ||
	    !is_stamp(stamp, strlen(stamp)))
		return false;
	memcpy(ret_stamp, stamp, strlen(stamp) + 1);
	return true;
}

/* --- the list --- */

/* Opens and locks the list in `dir_fd`; a cleaner may have replaced it while we waited. */
static int open_list(int dir_fd, const char *dir, bool make, int *ret_fd, struct err *e)
{
	struct stat mine, there;

	for (;;) {
		_cleanup_(closep) int fd = openat(dir_fd, ARCHIVE_LIST,
						  O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
							  O_NONBLOCK | (make ? O_CREAT : 0),
						  0600);

		if (fd < 0)
			return err_set(e, -errno, "%s/" ARCHIVE_LIST ": %s", dir, strerror(errno));
		if (flock(fd, LOCK_EX) < 0 || fstat(fd, &mine) < 0)
			return err_set(e, -errno, "%s/" ARCHIVE_LIST ": %s", dir, strerror(errno));
		if (fstatat(dir_fd, ARCHIVE_LIST, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		    mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)
			continue;
		if (!S_ISREG(mine.st_mode))
			return err_set(e, -EINVAL, "%s/" ARCHIVE_LIST " is not a regular file",
				       dir);
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
}

int list_open(const char *dir, bool make, struct list *ret_list, struct err *e)
{
	_cleanup_(closep) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir_fd < 0)
		return err_set(e, -errno, "%s: %s", dir, strerror(errno));
	r = open_list(dir_fd, dir, make, &ret_list->fd, e);
	if (r == 0)
		ret_list->dir_fd = TAKE_FD(dir_fd);
	return r;
}

int list_open_below(const struct list *above, const char *name, struct list *ret_list)
{
	_cleanup_(closep) int dir_fd =
		openat(above->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir_fd < 0)
		return -errno;
	r = open_list(dir_fd, name, false, &ret_list->fd, NULL);
	if (r == 0)
		ret_list->dir_fd = TAKE_FD(dir_fd);
	return r;
}

void list_fini(struct list *l)
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

/* Some file systems have nothing to write down for a directory. */
static int sync_fd(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* All lines or none: half a line would hide the one behind it. */
int list_append(struct list *l, const char *dir, const struct strbuf *lines, struct err *e)
{
	struct stat st;
	char last = '\n';
	int r = strbuf_oom(lines) ? -ENOMEM : fstat(l->fd, &st) < 0 ? -errno : 0;

	/* A machine may have gone down in the middle of a line. */
	if (r == 0 && st.st_size && pread(l->fd, &last, 1, st.st_size - 1) != 1)
		r = -EIO;
	if (r == 0 && last != '\n')
		r = write_all(l->fd, "\n", 1);
	if (r == 0)
		r = write_all(l->fd, lines->s ? lines->s : "", lines->len);
	if (r == 0)
		r = sync_fd(l->fd);
	if (r < 0 && r != -ENOMEM)
		(void)!ftruncate(l->fd, st.st_size);
	return r < 0 ? err_set(e, r, "%s/" ARCHIVE_LIST ": %s", dir, strerror(-r)) : 0;
}

static bool parse_entry(char *line, struct entry *ret_entry)
{
	struct entry entry = { .kind = WINDOW_FILE };

	if (*line == RUN_FILE || *line == MAKING_DIR || *line == RUN_PART)
		entry.kind = (enum entry_kind)(*line++);
	if (strlen(line) >= sizeof(entry.name))
		return false;
	if (entry.kind == RUN_PART) {
		if (!is_part_name(line))
			return false;
	} else if (entry.kind == MAKING_DIR
			   ? !is_making_name(line, entry.stamp, sizeof(entry.stamp))
			   : !is_window_name(line, entry.stamp, sizeof(entry.stamp))) {
		return false;
	}
	memcpy(entry.name, line, strlen(line) + 1);
	*ret_entry = entry;
	return true;
}

/* The directory of a listed file, and its name there. -errno */
static int open_parent(int dir_fd, const char *name, const char **ret_base)
{
	const char *slash = strchr(name, '/');
	char dir[256];
	int fd;

	*ret_base = slash ? slash + 1 : name;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
	fd = openat(dir_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The folder that a name is in; false: it is in none. */
static bool folder_of(const char *name, char *ret_folder, size_t cap)
{
	const char *slash = strchr(name, '/');

	if (slash)
		snprintf(ret_folder, cap, "%.*s", (int)(slash - name), name);
	return slash;
}

int list_place(const struct list *l, int from_fd, const char *from, const char *name)
{
	_cleanup_(closep) int source_fd = -1, target_fd = -1;
	const char *source, *target;
	char folder[256];

	if (folder_of(name, folder, sizeof(folder)) && mkdirat(l->dir_fd, folder, 0700) < 0 &&
	    errno != EEXIST)
		return -errno;
	source_fd = open_parent(from_fd, from, &source);
	if (source_fd < 0)
		return source_fd;
	target_fd = open_parent(l->dir_fd, name, &target);
	if (target_fd < 0)
		return target_fd;
	return renameat(source_fd, source, target_fd, target) < 0 ? -errno : 0;
}

int list_sync(const struct list *l, const char *name)
{
	const char *base;
	_cleanup_(closep) int fd = open_parent(l->dir_fd, name, &base);

	return fd < 0 ? fd : sync_fd(fd);
}

void list_remove_folder(const struct list *l, const char *name)
{
	char folder[256];

	if (folder_of(name, folder, sizeof(folder)))
		unlinkat(l->dir_fd, folder, AT_REMOVEDIR);
}

int list_unlink(const struct list *l, const char *name)
{
	const char *base;
	_cleanup_(closep) int fd = open_parent(l->dir_fd, name, &base);

	if (fd < 0)
		return fd;
	return unlinkat(fd, base, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* What is there under the name, which is looked at but never followed. */
static void look_at(const struct list *l, struct entry *entry)
{
	const char *base;
	_cleanup_(closep) int fd = open_parent(l->dir_fd, entry->name, &base);
	struct stat st;

	memcpy(entry->when, entry->stamp, sizeof(entry->when));
	entry->there =
		fd >= 0 && fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
	if (!entry->there)
		return;
	entry->bytes = (uint64_t)st.st_size;
	entry->time_s = st.st_mtim.tv_sec;
	entry->time_ns = st.st_mtim.tv_nsec;
	if (entry->kind == RUN_FILE || entry->kind == RUN_PART)
		stamp_make(entry->time_s, entry->when, sizeof(entry->when));
}

int list_add(struct list *l, const struct entry *entry)
{
	/* Grown at powers of 2 from 64. */
	if (l->n == 0 || (l->n >= 64 && (l->n & (l->n - 1)) == 0)) {
		struct entry *grown =
			reallocarray(l->entries, l->n ? 2 * l->n : 64, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->entries = grown;
	}
	l->entries[l->n++] = *entry;
	return 0;
}

/* Parts of a run are removed under any name, and in folders: the list must be one that only we can have
 * written. */
static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int list_read(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t cap = 0;
	struct stat st;
	ssize_t len;
	int fd;

	if (fstat(l->fd, &st) < 0 || st.st_size > LIST_BYTES)
		return err_set(e, -EFBIG, "%s/" ARCHIVE_LIST " is too large", dir);
	fd = openat(l->dir_fd, ARCHIVE_LIST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return err_set(e, -errno, "%s/" ARCHIVE_LIST ": %s", dir, strerror(errno));
	while ((len = getline(&line, &cap, f)) > 0) {
		struct entry entry;

		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (!parse_entry(line, &entry) ||
		    ((entry.kind == RUN_PART || strchr(entry.name, '/')) && !is_ours(&st)))
			continue; /* somebody wrote into it: not ours to remove */
		look_at(l, &entry);
		if (list_add(l, &entry) < 0)
			return err_set(e, -ENOMEM, "out of memory for the list of %s", dir);
	}
	return 0;
}

static bool is_listed(const struct list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->entries[i].name, name) == 0)
			return true;
	return false;
}

bool list_sees(const struct list *l, const char *name)
{
	return faccessat(l->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Names of what is gone leave the list, but for those that a run at work is yet to write. */
int list_rewrite(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	_cleanup_(closep) int fd = -1;
	size_t left = 0, listed = 0;
	int r;

	for (size_t i = 0; i < l->n; i++) {
		const struct entry *entry = &l->entries[i];

		if (entry->kind == RUN_DIR)
			continue;
		listed++;
		if ((!entry->there && !entry->held) ||
		    (i && strcmp(entry->name, l->entries[i - 1].name) == 0))
			continue;
		left++;
		if (entry->kind != WINDOW_FILE)
			strbuf_add(&lines, &(char){ (char)entry->kind }, 1);
		strbuf_puts(&lines, entry->name);
		strbuf_puts(&lines, "\n");
	}
	if (left == listed)
		return 0;
	fd = openat(l->dir_fd, ARCHIVE_LIST ".new",
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : strbuf_oom(&lines) ? -ENOMEM : 0;
	if (r == 0)
		r = write_all(fd, lines.s ? lines.s : "", lines.len);
	if (r == 0)
		r = sync_fd(fd);
	if (r == 0 && renameat(l->dir_fd, ARCHIVE_LIST ".new", l->dir_fd, ARCHIVE_LIST) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(l->dir_fd, ARCHIVE_LIST ".new", 0);
	return r < 0 ? err_set(e, r, "%s/" ARCHIVE_LIST ": %s", dir, strerror(-r)) : 0;
}

/* --- runs that are at work, and what is left of others --- */

/* A killed run may have left windows that it had listed, but not yet put in place; and parts of one. In
 * `folder` of where they are made, "": in itself, and then in its folders. */
static void finish_for(const struct list *l, int making_fd, const char *folder)
{
	_cleanup_(closedirp) DIR *d =
		fdopendir(openat(making_fd, *folder ? folder : ".",
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));

	for (struct dirent *entry; d && (entry = readdir(d));) {
		char name[600], stamp[32];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", folder, *folder ? "/" : "", entry->d_name);
		if (is_window_name(name, stamp, sizeof(stamp)) && is_listed(l, name) &&
		    !list_sees(l, name) && list_place(l, making_fd, name, name) == 0)
			continue;
		if (unlinkat(making_fd, name, 0) < 0 && errno == EISDIR && !*folder)
			finish_for(l, making_fd, name);
	}
	if (*folder)
		unlinkat(making_fd, folder, AT_REMOVEDIR);
}

/* Is a run at work in the directory `name`? Else it is taken away, if it is one of ours. */
static bool is_at_work(const struct list *l, const char *name)
{
	_cleanup_(closep) int making_fd =
		openat(l->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closep) int lock_fd =
		making_fd < 0 ? -1
			      : openat(making_fd, ARCHIVE_LOCK,
				       O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (lock_fd < 0)
		return false;
	if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	finish_for(l, making_fd, "");
	unlinkat(l->dir_fd, name, AT_REMOVEDIR);
	return false;
}

void list_find_runs(struct list *l)
{
	bool is_held = run_dir_is_held(l->dir_fd);

	for (size_t i = 0; i < l->n; i++) {
		struct entry *run = &l->entries[i];

		if (run->kind == RUN_PART)
			run->held = is_held;
		if (run->kind != MAKING_DIR)
			continue;
		run->there = is_at_work(l, run->name);
		for (size_t j = 0; run->there && j < l->n; j++)
			if (l->entries[j].kind == RUN_FILE &&
			    strcmp(l->entries[j].stamp, run->stamp) == 0)
				l->entries[j].held = true;
	}
	for (size_t i = 0; i < l->n; i++) /* some may be in place now */
		if (l->entries[i].kind != MAKING_DIR && l->entries[i].kind != RUN_DIR &&
		    !l->entries[i].there)
			look_at(l, &l->entries[i]);
}

void list_remove_empty(const struct list *l)
{
	struct stat st;

	if (fstat(l->fd, &st) == 0 && st.st_size == 0)
		unlinkat(l->dir_fd, ARCHIVE_LIST, 0);
}
