#include "base/archive_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_BYTES (256u << 20) /* one of an older memscope had a line for each file */

/* Lines that are no entries. */
enum { FOLDER_LINE = '#', REMOVED_LINE = '-' };

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
	for (size_t i = 0; i < l->n; i++)
		free(l->entries[i].groups);
	free(l->entries);
	archive_folders_fini(&l->folders);
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

/*
 * Room behind the end of the list, for lines about windows that were removed as the disk is full: it may be full again before they are
 * written. Where the file system has no such thing, there is none.
 */
static void keep_slack(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0)
		(void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, LIST_SLACK);
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
	keep_slack(l->fd);
	return r < 0 ? err_set(e, r, "%s/" ARCHIVE_LIST ": %s", dir, strerror(-r)) : 0;
}

/* What is no window. */
static bool parse_entry(const char *line, struct entry *ret_entry)
{
	struct entry entry = { .kind = (enum entry_kind) * line };

	line++;
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

int list_open_parent(int dir_fd, const char *name, const char **ret_base)
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
	source_fd = list_open_parent(from_fd, from, &source);
	if (source_fd < 0)
		return source_fd;
	target_fd = list_open_parent(l->dir_fd, name, &target);
	if (target_fd < 0)
		return target_fd;
	return renameat(source_fd, source, target_fd, target) < 0 ? -errno : 0;
}

int list_sync(const struct list *l, const char *name)
{
	const char *base;
	_cleanup_(closep) int fd = list_open_parent(l->dir_fd, name, &base);

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
	_cleanup_(closep) int fd = list_open_parent(l->dir_fd, name, &base);

	if (fd < 0)
		return fd;
	return unlinkat(fd, base, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* What is there under the name, which is looked at but never followed. */
static void look_at(const struct list *l, struct entry *entry)
{
	const char *base;
	_cleanup_(closep) int fd = list_open_parent(l->dir_fd, entry->name, &base);
	struct stat st;

	entry->there =
		fd >= 0 && fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
	if (!entry->there)
		return;
	entry->bytes = (uint64_t)st.st_size;
	entry->time_s = st.st_mtim.tv_sec;
	entry->time_ns = st.st_mtim.tv_nsec;
}

DIR *list_open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		closep(&fd);
	return d;
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

/* --- reading --- */

struct reading {
	struct list *l;
	bool ours;
	struct window_files files; /* of the window `stamp`, of lines for files */
	char stamp[32];
	size_t first; /* no window before it was not removed */
};

static void reading_fini(struct reading *rd)
{
	window_files_fini(&rd->files);
}

/* "N FOLDER" */
static int read_folder(struct reading *rd, const char *text)
{
	char *rest;
	unsigned long long number = strtoull(text, &rest, 10);
	int r = rd->ours && *rest == ' ' ? archive_folders_set(&rd->l->folders, number, rest + 1)
					 : 0;

	return r == -ENOMEM ? r : 0;
}

/* `w->groups` becomes the list's, or is freed. */
static int add_window(struct list *l, const struct entry *w)
{
	int r = w->groups ? list_add(l, w) : -ENOMEM;

	if (r < 0)
		free(w->groups);
	return r;
}

/* One that was cut by a crash has fewer files than it says. */
static int read_window(struct reading *rd, char *text)
{
	struct entry w = { .kind = WINDOW, .there = true };
	char *at = strchr(text, ' '), *end;
	uint64_t files;

	if (!at || (size_t)(at - text) >= sizeof(w.stamp) || !is_stamp(text, (size_t)(at - text)))
		return 0;
	memcpy(w.stamp, text, (size_t)(at - text));
	w.time_s = strtoll(at, &end, 10);
	w.bytes = strtoull(end, &end, 10);
	files = strtoull(end, &end, 10);
	if (*end != ' ' || !files || files > UINT32_MAX ||
	    window_groups_count(end + 1, &rd->l->folders, w.stamp) != (int64_t)files)
		return 0;
	w.files = (uint32_t)files;
	w.groups = strdup(end + 1);
	return add_window(rd->l, &w);
}

/* "STAMP;": windows that are listed before it are gone; the oldest go first. */
static void read_removed(struct reading *rd, char *text)
{
	char *end = strchr(text, ';');
	struct list *l = rd->l;

	if (!end)
		return;
	*end = '\0';
	l->dead++;
	while (rd->first < l->n && !l->entries[rd->first].there)
		rd->first++;
	for (size_t i = rd->first; i < l->n; i++) {
		struct entry *entry = &l->entries[i];

		if (entry->kind != WINDOW || !entry->there || strcmp(entry->stamp, text) != 0)
			continue;
		entry->there = false;
		l->dead++;
	}
}

/* Lines for files become windows. */
static int end_old_window(struct reading *rd)
{
	_cleanup_(strbuf_free) struct strbuf groups = { 0 };
	struct entry w = { .kind = WINDOW, .there = true, .unknown = true };

	if (!rd->files.n)
		return 0;
	w.files = (uint32_t)window_files_print(&rd->files, &groups);
	memcpy(w.stamp, rd->stamp, sizeof(w.stamp));
	w.groups = strbuf_take(&groups);
	window_files_fini(&rd->files);
	rd->l->old = true;
	return add_window(rd->l, &w);
}

/* An older memscope had a line for each file of a window. */
static int read_old_file(struct reading *rd, const char *name)
{
	char stamp[32];
	int r = 0;

	if (!is_window_name(name, stamp, sizeof(stamp)) || (strchr(name, '/') && !rd->ours))
		return 0;
	if (strcmp(stamp, rd->stamp) != 0)
		r = end_old_window(rd);
	memcpy(rd->stamp, stamp, sizeof(rd->stamp));
	if (r == 0)
		r = window_files_add(&rd->files, &rd->l->folders, name);
	return r == -ENOMEM ? r : 0;
}

static int read_line(struct reading *rd, char *line)
{
	struct entry entry;

	switch (*line) {
	case FOLDER_LINE:
		return read_folder(rd, line + 1);
	case WINDOW:
		return read_window(rd, line + 1);
	case REMOVED_LINE:
		read_removed(rd, line + 1);
		return 0;
	case RUN_FILE:
	case MAKING_DIR:
	case RUN_PART:
		if (!parse_entry(line, &entry) ||
		    ((entry.kind == RUN_PART || strchr(entry.name, '/')) && !rd->ours))
			return 0; /* somebody wrote into it: not ours to remove */
		look_at(rd->l, &entry);
		return list_add(rd->l, &entry);
	default:
		return read_old_file(rd, line);
	}
}

static void take_out_removed(struct list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->entries[i].kind == WINDOW && !l->entries[i].there)
			free(l->entries[i].groups);
		else
			l->entries[kept++] = l->entries[i];
	}
	l->n = kept;
}

int list_read(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(reading_fini) struct reading rd = { .l = l };
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t cap = 0;
	struct stat st;
	ssize_t len;
	int fd, r = 0;

	if (fstat(l->fd, &st) < 0 || st.st_size > LIST_BYTES)
		return err_set(e, -EFBIG, "%s/" ARCHIVE_LIST " is too large", dir);
	rd.ours = is_ours(&st);
	fd = openat(l->dir_fd, ARCHIVE_LIST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		r = err_set(e, -errno, "%s/" ARCHIVE_LIST ": %s", dir, strerror(errno));
		closep(&fd);
		return r;
	}
	while (r == 0 && (len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		r = read_line(&rd, line);
	}
	/* A list that was read in part must not be written back as the whole. */
	if (r == 0 && !feof(f))
		r = ferror(f) ? -EIO : -ENOMEM;
	if (r == 0)
		r = end_old_window(&rd);
	take_out_removed(l);
	if (r == -EIO)
		return err_set(e, r, "%s/" ARCHIVE_LIST " cannot be read", dir);
	return r < 0 ? err_set(e, -ENOMEM, "out of memory for the list of %s", dir) : 0;
}

bool list_sees(const struct list *l, const char *name)
{
	return faccessat(l->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- writing --- */

static void print_window(const struct entry *w, struct strbuf *out)
{
	strbuf_printf(out, "%c%s %lld %llu %u %s\n", WINDOW, w->stamp, (long long)w->time_s,
		      (unsigned long long)w->bytes, w->files, w->groups);
}

static void print_folder(const struct list *l, uint32_t number, struct strbuf *out)
{
	strbuf_printf(out, "%c%u %s\n", FOLDER_LINE, number, l->folders.names[number]);
}

int list_add_file(struct list *l, struct window_files *files, const char *name,
		  struct strbuf *lines)
{
	uint32_t before = l->folders.count;
	int r = window_files_add(files, &l->folders, name);

	if (r == 0 && l->folders.count > before)
		print_folder(l, files->list[files->n - 1].folder, lines);
	return r;
}

int list_add_window(struct list *l, const char *dir, const struct entry *window,
		    struct window_files *files, struct strbuf *lines, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf groups = { 0 };
	struct entry w = *window;
	int r;

	w.kind = WINDOW;
	w.there = true;
	w.files = (uint32_t)window_files_print(files, &groups);
	w.groups = strbuf_take(&groups);
	if (!w.groups)
		return err_set(e, -ENOMEM, "out of memory for the list of %s", dir);
	print_window(&w, lines);
	r = list_append(l, dir, lines, e);
	if (r == 0 && list_add(l, &w) < 0)
		r = err_set(e, -ENOMEM, "out of memory for the list of %s", dir);
	if (r < 0)
		free(w.groups);
	return r;
}

/* The numbers that windows have, and the windows, the oldest first: so they go. */
static void print_windows(const struct list *l, struct strbuf *out)
{
	_cleanup_(freep) bool *used = calloc(l->folders.n + 1ul, sizeof(*used));

	if (!used) {
		out->oom = true;
		return;
	}
	for (size_t i = 0; i < l->n; i++)
		if (l->entries[i].kind == WINDOW && l->entries[i].there)
			window_groups_mark(l->entries[i].groups, used);
	for (uint32_t i = 1; i < l->folders.n; i++)
		if (used[i])
			print_folder(l, i, out);
	for (size_t i = l->n; i-- > 0;)
		if (l->entries[i].kind == WINDOW && l->entries[i].there)
			print_window(&l->entries[i], out);
}

/* Of no run at work, and gone; or the same as the entry before it. */
static bool is_gone(const struct list *l, size_t i)
{
	const struct entry *entry = &l->entries[i];

	return (!entry->there && !entry->held) ||
	       (i && entry->kind != WINDOW && strcmp(entry->name, entry[-1].name) == 0);
}

static int rewrite(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	_cleanup_(closep) int fd = -1;
	int r;

	for (size_t i = 0; i < l->n; i++)
		if (l->entries[i].kind != RUN_DIR && l->entries[i].kind != WINDOW && !is_gone(l, i))
			strbuf_printf(&lines, "%c%s\n", l->entries[i].kind, l->entries[i].name);
	print_windows(l, &lines);
	unlinkat(l->dir_fd, ARCHIVE_LIST ".new", 0); /* of one that was killed, or whatever it is */
	fd = openat(l->dir_fd, ARCHIVE_LIST ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : strbuf_oom(&lines) ? -ENOMEM : 0;
	if (r == 0)
		r = write_all(fd, lines.s ? lines.s : "", lines.len);
	if (r == 0)
		r = sync_fd(fd);
	if (r == 0)
		keep_slack(fd);
	if (r == 0 && renameat(l->dir_fd, ARCHIVE_LIST ".new", l->dir_fd, ARCHIVE_LIST) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(l->dir_fd, ARCHIVE_LIST ".new", 0);
	if (r == 0) /* what is added to it later has to be found */
		r = list_sync(l, ".");
	return r < 0 ? err_set(e, r, "%s/" ARCHIVE_LIST ": %s", dir, strerror(-r)) : 0;
}

enum said {
	SAID_NOT, /* one of a stamp stays */
	SAID_AT_LAST, /* more than half of the list would be of what is gone: it is better written anew */
	SAID,
};

/* Lines that say which windows are gone. */
static enum said print_removed(const struct list *l, struct strbuf *out)
{
	size_t left = 0, dead = l->dead;

	for (size_t i = 0; i < l->n; i++) {
		const struct entry *w = &l->entries[i];
		bool goes_on = i && w[-1].kind == WINDOW && w->kind == WINDOW &&
			       strcmp(w[-1].stamp, w->stamp) == 0;

		if (w->kind != WINDOW)
			continue;
		if (goes_on && w[-1].there != w->there)
			return SAID_NOT;
		left += w->there;
		dead += w->there ? 0 : 2;
		if (!w->there && !goes_on)
			strbuf_printf(out, "%c%s;\n", REMOVED_LINE, w->stamp);
	}
	return dead <= left ? SAID : SAID_AT_LAST;
}

int list_save(struct list *l, const char *dir, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	bool windows_gone = false, others_gone = false;
	int r = list_look_at_unknown(l);
	enum said said = SAID_NOT;

	if (r < 0)
		return err_set(e, r, "out of memory for the list of %s", dir);
	for (size_t i = 0; i < l->n; i++) {
		if (l->entries[i].kind == WINDOW)
			windows_gone |= is_gone(l, i);
		else if (l->entries[i].kind != RUN_DIR)
			others_gone |= is_gone(l, i);
	}
	if (!windows_gone && !others_gone && !l->old)
		return 0;
	if (!others_gone && !l->old)
		said = print_removed(l, &lines);
	if (said == SAID)
		return list_append(l, dir, &lines, e);
	r = rewrite(l, dir, e);
	/* A whole list takes room that a full disk has not. */
	return r < 0 && r != -ENOMEM && said != SAID_NOT ? list_append(l, dir, &lines, e) : r;
}

/* --- runs that are at work, and what is left of others --- */

/* A killed run may have left windows that it had listed, but not yet put in place; and parts of one. In
 * `folder` of where they are made, "": in itself, and then in its folders. */
static void finish_for(const struct list *l, int making_fd, const char *folder)
{
	_cleanup_(closedirp) DIR *d = list_open_dir(making_fd, *folder ? folder : ".");

	for (struct dirent *entry; d && (entry = readdir(d));) {
		char name[600], stamp[32];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", folder, *folder ? "/" : "", entry->d_name);
		if (is_window_name(name, stamp, sizeof(stamp)) && list_has(l, name) &&
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
		if ((l->entries[i].kind == RUN_FILE || l->entries[i].kind == RUN_PART) &&
		    !l->entries[i].there)
			look_at(l, &l->entries[i]);
}

void list_remove_empty(const struct list *l)
{
	struct stat st;

	if (fstat(l->fd, &st) == 0 && st.st_size == 0)
		unlinkat(l->dir_fd, ARCHIVE_LIST, 0);
}
