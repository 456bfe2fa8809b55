/* Windows of a list: their files are looked at, removed, or compared with what is in the directories. */
#include "base/archive.h"
#include "base/archive_list.h"
#include "base/grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of files that follow each other. */
struct parent {
	int dir_fd, fd; /* of the list; of the folder, or -errno */
	char folder[256];
	bool is;
};

static void parent_leave(struct parent *p)
{
	if (p->is && p->fd >= 0)
		close(p->fd);
	p->is = false;
}

/* The name in its directory, which is opened if it is not that of the file before. */
static const char *parent_enter(struct parent *p, const char *name)
{
	const char *slash = strchr(name, '/'), *base = slash ? slash + 1 : name;
	size_t len = (size_t)(base - name);

	if (p->is && strncmp(p->folder, name, len) == 0 && !p->folder[len])
		return base;
	parent_leave(p);
	snprintf(p->folder, sizeof(p->folder), "%.*s", (int)len, name);
	p->fd = list_open_parent(p->dir_fd, name, &base);
	p->is = true;
	return base;
}

/* By no link. */
static bool is_file(const struct parent *p, const char *base, struct stat *ret_st)
{
	return p->fd >= 0 && fstatat(p->fd, base, ret_st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(ret_st->st_mode);
}

/* --- looking --- */

struct looking {
	struct parent at;
	struct archive_folders *folders;
	struct window_files left;
	uint64_t bytes;
	int64_t time_s;
};

static void looking_fini(struct looking *k)
{
	parent_leave(&k->at);
	window_files_fini(&k->left);
}

static int look_at_file(void *ctx, const char *name)
{
	struct looking *k = ctx;
	struct stat st;

	if (!is_file(&k->at, parent_enter(&k->at, name), &st))
		return 0;
	k->bytes += (uint64_t)st.st_size;
	if (st.st_mtim.tv_sec > k->time_s || !k->left.n)
		k->time_s = st.st_mtim.tv_sec;
	return window_files_add(&k->left, k->folders, name);
}

int list_look_at_window(struct list *l, struct entry *window)
{
	_cleanup_(looking_fini) struct looking k = { .at.dir_fd = l->dir_fd,
						     .folders = &l->folders };
	_cleanup_(strbuf_free) struct strbuf groups = { 0 };
	int r = window_groups_each(window->groups, &l->folders, window->stamp, look_at_file, &k);
	char *text;

	if (r < 0)
		return r;
	window->files = (uint32_t)window_files_print(&k.left, &groups);
	window->there = window->files > 0;
	window->bytes = k.bytes;
	window->time_s = k.time_s;
	window->unknown = false;
	if (!window->there)
		return 0;
	text = strbuf_take(&groups);
	if (!text)
		return -ENOMEM;
	free(window->groups);
	window->groups = text;
	return 0;
}

int list_look_at_unknown(struct list *l)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++)
		if (l->entries[i].kind == WINDOW && l->entries[i].unknown)
			r = list_look_at_window(l, &l->entries[i]);
	return r;
}

/* --- removing --- */

struct removing {
	struct parent at;
	const struct list *l;
	struct pruned *pruned;
	uint64_t failed;
};

static void leave_emptied(struct removing *k)
{
	if (k->at.is && *k->at.folder)
		list_remove_folder(k->l, k->at.folder);
	parent_leave(&k->at);
}

static int remove_file(void *ctx, const char *name)
{
	struct removing *k = ctx;
	size_t len = strlen(k->at.folder);
	const char *base;
	struct stat st;

	if (k->at.is && (strncmp(k->at.folder, name, len) != 0 || strchr(name + len, '/')))
		leave_emptied(k);
	base = parent_enter(&k->at, name);
	if (!is_file(&k->at, base, &st))
		return 0;
	if (unlinkat(k->at.fd, base, 0) < 0 && errno != ENOENT) {
		k->failed++;
		k->pruned->error = -errno;
		return 0;
	}
	k->pruned->files++;
	k->pruned->bytes += (uint64_t)st.st_size;
	return 0;
}

void list_remove_window(struct list *l, struct entry *window, struct pruned *pruned)
{
	struct removing k = { .at.dir_fd = l->dir_fd, .l = l, .pruned = pruned };

	window_groups_each(window->groups, &l->folders, window->stamp, remove_file, &k);
	leave_emptied(&k);
	pruned->failed += k.failed;
	window->there = k.failed > 0;
}

/* --- comparing --- */

int list_by_kind_and_stamp(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->stamp, y->stamp);
}

/* The first window with that stamp; NULL. */
static const struct entry *find_window(const struct list *l, const char *stamp)
{
	struct entry key = { .kind = WINDOW };
	const struct entry *found;

	snprintf(key.stamp, sizeof(key.stamp), "%s", stamp);
	found = l->n ? bsearch(&key, l->entries, l->n, sizeof(key), list_by_kind_and_stamp) : NULL;
	while (found && found > l->entries && list_by_kind_and_stamp(found - 1, &key) == 0)
		found--;
	return found;
}

static bool is_regular(int dir_fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_REG;
	return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* In the folder of that number. */
static void see_folder(const struct list *l, uint32_t number, uint32_t *seen)
{
	_cleanup_(closedirp) DIR *d =
		list_open_dir(l->dir_fd, number ? l->folders.names[number] : ".");

	for (struct dirent *entry; d && (entry = readdir(d));) {
		const struct entry *w, *end = l->entries + l->n;
		char stamp[32];

		if (!is_window_name(entry->d_name, stamp, sizeof(stamp)) ||
		    !is_regular(dirfd(d), entry))
			continue;
		for (w = find_window(l, stamp);
		     w && w < end && w->kind == WINDOW && strcmp(w->stamp, stamp) == 0; w++)
			seen[w - l->entries] +=
				window_groups_have(w->groups, number, entry->d_name);
	}
}

int list_see_windows(struct list *l, uint32_t **ret_seen)
{
	uint32_t *seen = calloc(l->n + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	if (l->n)
		qsort(l->entries, l->n, sizeof(*l->entries), list_by_kind_and_stamp);
	see_folder(l, 0, seen);
	for (uint32_t i = 1; i < l->folders.n; i++)
		if (l->folders.names[i])
			see_folder(l, i, seen);
	*ret_seen = seen;
	return 0;
}

bool list_window_has(const struct list *l, const struct entry *window, const char *name)
{
	const char *slash = strchr(name, '/');
	char folder[256], stamp[32];
	int64_t number = 0;

	if (!is_window_name(name, stamp, sizeof(stamp)) || strcmp(stamp, window->stamp) != 0)
		return false;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - name) : 0, name);
	if (slash)
		number = archive_folders_find(&l->folders, folder);
	return number >= 0 &&
	       window_groups_have(window->groups, (uint32_t)number, slash ? slash + 1 : name);
}

bool list_has(const struct list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->entries[i].kind == WINDOW && list_window_has(l, &l->entries[i], name))
			return true;
	return false;
}

static int check_once(const char *dir, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(freep) uint32_t *seen = NULL;
	struct err why = { 0 };
	int r = list_open(dir, false, &l, &why);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = list_read(&l, dir, &why);
	if (r == 0)
		list_find_runs(&l); /* what a killed one has listed is put in place first */
	if (r == 0)
		r = list_see_windows(&l, &seen);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		struct entry *w = &l.entries[i];

		if (w->kind != WINDOW || seen[i] >= w->files || w->unknown)
			continue;
		r = list_look_at_window(&l, w);
		l.old = true;
	}
	if (r < 0)
		return err_set(e, r, "%s", *why.msg ? why.msg : strerror(-r));
	return list_save(&l, dir, e);
}

int archive_check(const char *dir, const struct keep *keep, struct err *e)
{
	int r = check_once(dir, e);

	for (uint64_t n = 1; archive_is_full(r) && keep_makes_room(dir, keep, n); n *= 2)
		r = check_once(dir, e);
	return r;
}
