#include "base/archive.h"

#include "base/archive_list.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAME_NAMES 10000 /* windows of one second in one directory */

struct archive {
	char *dir, *making;
	char stamp[32];
	int lock_fd;
};

/* --- writing --- */

bool archive_is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

/* Behind the folder. */
static const char *file_in(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

/* "trend.csv" of a stamp is trend-STAMP.csv. */
static void put_stamp(char *name, size_t cap, const char *file, const char *stamp)
{
	const char *dot = file_in(file) + strcspn(file_in(file), ".");

	snprintf(name, cap, "%.*s-%s%s", (int)(dot - file), file, stamp, dot);
}

/* `stamp`, made to be the nth of its second. */
static void number_stamp(char *stamp, size_t cap, int nth)
{
	if (nth > 1)
		snprintf(stamp + STAMP_LEN, cap - STAMP_LEN, "-%d", nth);
}

/* The first stamp of that second under which no run has written or is at work. */
static int choose_run_stamp(const struct list *l, const char *const *files, char *stamp, size_t cap)
{
	for (int nth = 1; nth < SAME_NAMES; nth++) {
		bool taken = false;

		number_stamp(stamp, cap, nth);
		for (size_t i = 0; !taken && i < l->n; i++)
			taken = l->entries[i].kind != WINDOW &&
				strcmp(l->entries[i].stamp, stamp) == 0;
		for (int i = 0; !taken && files[i]; i++) {
			char name[256];

			put_stamp(name, sizeof(name), files[i], stamp);
			taken = list_sees(l, name);
		}
		if (!taken)
			return 0;
	}
	return -EEXIST;
}

/* The directory where windows are made, and its lock. */
static int make_making(struct archive *t, struct err *e)
{
	_cleanup_(freep) char *lock = NULL;

	if (mkdir(t->making, 0700) < 0)
		return err_set(e, -errno, "cannot make the directory '%s': %s", t->making,
			       strerror(errno));
	if (asprintf(&lock, "%s/" ARCHIVE_LOCK, t->making) < 0) {
		lock = NULL;
		return err_set(e, -ENOMEM, "out of memory for windows");
	}
	t->lock_fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->lock_fd < 0 || flock(t->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, -errno, "%s: %s", lock, strerror(errno));
	return 0;
}

/* Lists the directory and the files of the run under a stamp that is free, and makes the former. */
static int begin_run(struct archive *t, const char *const *files, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	int r = list_open(t->dir, true, &l, e);

	if (r == 0)
		r = list_read(&l, t->dir, e);
	if (r < 0)
		return r;
	if (choose_run_stamp(&l, files, t->stamp, sizeof(t->stamp)) < 0)
		return err_set(e, -EEXIST, "%s: no name is left for the files of %s", t->dir,
			       t->stamp);
	if (asprintf(&t->making, "%s/" ARCHIVE_MAKING "%s", t->dir, t->stamp) < 0) {
		t->making = NULL;
		return err_set(e, -ENOMEM, "out of memory for windows");
	}
	strbuf_printf(&lines, "+" ARCHIVE_MAKING "%s\n", t->stamp);
	for (int i = 0; files[i]; i++) {
		char name[256];

		put_stamp(name, sizeof(name), files[i], t->stamp);
		strbuf_printf(&lines, "=%s\n", name);
	}
	r = list_append(&l, t->dir, &lines, e);
	return r < 0 ? r : make_making(t, e);
}

/* What killed runs have left is put right, and names of what is gone leave the list. */
static int put_right(const char *dir, bool make, struct err *e)
{
	static const struct keep keep_all = { 0 };
	_cleanup_(list_fini) struct list l = LIST_INIT;
	struct pruned pruned = { 0 };
	int r = list_open(dir, make, &l, e);

	if (r == 0)
		r = list_read(&l, dir, e);
	return r < 0 ? r : list_prune(&l, dir, &keep_all, NULL, &pruned, e);
}

static int begin(struct archive *t, const char *const *files, struct err *e)
{
	int r = put_right(t->dir, true, e);

	free(t->making);
	t->making = NULL;
	return r < 0 ? r : begin_run(t, files, e);
}

int archive_open(const char *dir, const char *stamp, const char *const *files,
		 const struct keep *keep, struct archive **ret_archive, struct err *e)
{
	_cleanup_(archive_closep) struct archive *t = calloc(1, sizeof(*t));
	int r;

	if (t) {
		t->lock_fd = -1;
		t->dir = strdup(dir);
	}
	if (!t || !t->dir)
		return err_set(e, -ENOMEM, "out of memory for windows");
	if (strlen(stamp) != STAMP_LEN || !is_stamp(stamp, STAMP_LEN))
		return err_set(e, -EINVAL, "\"%s\" is no time", stamp);
	memcpy(t->stamp, stamp, STAMP_LEN + 1);
	r = begin(t, files, e);
	for (uint64_t n = 1; archive_is_full(r) && keep_makes_room(dir, keep, n); n *= 2)
		r = begin(t, files, e);
	if (r < 0)
		return r;
	*ret_archive = TAKE_PTR(t);
	return 0;
}

const char *archive_making(const struct archive *t)
{
	return t->making;
}

int archive_add_file(const struct archive *t, const char *file, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(strbuf_free) struct strbuf line = { 0 };
	char name[256];
	int r = list_open(t->dir, true, &l, e);

	if (r < 0)
		return r;
	put_stamp(name, sizeof(name), file, t->stamp);
	strbuf_printf(&line, "=%s\n", name);
	return list_append(&l, t->dir, &line, e);
}

const char *archive_stamp(const struct archive *t)
{
	return t->stamp;
}

/* It was made for a run that came to nothing. */
static void remove_empty_list(const char *dir)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;

	if (list_open(dir, false, &l, NULL) == 0)
		list_remove_empty(&l);
}

void archive_close(struct archive *t)
{
	if (!t)
		return;
	if (t->lock_fd >= 0) {
		close(t->lock_fd);
		put_right(t->dir, false, NULL);
		remove_empty_list(t->dir);
	}
	free(t->making);
	free(t->dir);
	free(t);
}

/* The files of a window that were made whole. */
struct made {
	char (*names)[256];
	size_t n;
	char stamp[32]; /* under which they are put in place */
	bool listed;
	size_t placed; /* so many of them are */
};

static void made_fini(struct made *m)
{
	free(m->names);
}

static int add_made(struct made *made, const char *name)
{
	char(*grown)[256] = reallocarray(made->names, made->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	made->names = grown;
	snprintf(grown[made->n++], sizeof(*grown), "%s", name);
	return 0;
}

/* In `folder` of the directory where windows are made; "": in itself, and then in its folders. */
static int find_made(const struct archive *t, const char *folder, const char *stamp,
		     struct made *ret_made)
{
	_cleanup_(closedirp) DIR *d = NULL;
	char path[4096], of[32];
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s", t->making, folder);
	d = opendir(path);
	if (!d)
		return -errno;
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		char name[256];

		if (snprintf(name, sizeof(name), "%s%s%s", folder, *folder ? "/" : "",
			     entry->d_name) >= (int)sizeof(name))
			continue;
		if (is_window_name(name, of, sizeof(of)))
			r = strcmp(of, stamp) == 0 ? add_made(ret_made, name) : 0;
		else if (!*folder && *name != '.')
			r = find_made(t, name, stamp, ret_made);
		if (r == -ENOTDIR) /* the lock */
			r = 0;
	}
	return r;
}

/* A made file's name with another stamp of the same second. */
static void rename_made(char *name, size_t cap, const char *made, const char *stamp)
{
	size_t len;
	const char *old = window_stamp_in(file_in(made), &len);

	snprintf(name, cap, "%.*s%s%s", (int)(old - made), made, stamp, old + len);
}

static bool same_folder(const char *a, const char *b)
{
	size_t n = (size_t)(file_in(a) - a);

	return n == (size_t)(file_in(b) - b) && strncmp(a, b, n) == 0;
}

/* Each directory that has some of the files, and that which has those: names alone would be lost with the power. */
static int sync_placed(const struct list *l, const struct made *made)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < made->n; i++)
		if (file_in(made->names[i]) != made->names[i] &&
		    (i + 1 == made->n || !same_folder(made->names[i], made->names[i + 1])))
			r = list_sync(l, made->names[i]);
	return r < 0 ? r : list_sync(l, ".");
}

/* Makes the stamp one under which none of the files is there. */
static int choose_stamp(const struct list *l, const char *dir, struct made *made, struct err *e)
{
	char name[256];

	for (int nth = 1; nth < SAME_NAMES; nth++) {
		bool taken = false;

		number_stamp(made->stamp, sizeof(made->stamp), nth);
		for (size_t i = 0; !taken && i < made->n; i++) {
			rename_made(name, sizeof(name), made->names[i], made->stamp);
			taken = list_sees(l, name);
		}
		if (!taken)
			return 0;
	}
	return err_set(e, -EEXIST, "%s: no name is left for the window %s", dir, made->stamp);
}

/* Its files are named, and what they are together. */
static int list_made(struct list *l, const struct archive *t, int making_fd, struct made *made,
		     struct err *e)
{
	_cleanup_(window_files_fini) struct window_files files = { 0 };
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	struct entry window = { .time_s = INT64_MIN };
	int r = 0;

	memcpy(window.stamp, made->stamp, sizeof(window.stamp));
	for (size_t i = 0; r == 0 && i < made->n; i++) {
		char name[256];
		struct stat st;

		rename_made(name, sizeof(name), made->names[i], made->stamp);
		r = list_add_file(l, &files, name, &lines);
		if (r < 0 || fstatat(making_fd, made->names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_set(e, r ?: -errno, "%s/%s: cannot be listed: %s", t->making,
				       made->names[i], strerror(r ? -r : errno));
		window.bytes += (uint64_t)st.st_size;
		if (st.st_mtim.tv_sec > window.time_s)
			window.time_s = st.st_mtim.tv_sec;
	}
	r = list_add_window(l, t->dir, &window, &files, &lines, e);
	made->listed = r == 0;
	return r;
}

/* Lists a window, and puts its files in place. On a full disk it may be called again, and goes on where it was. */
static int place(const struct archive *t, struct list *l, struct made *made, struct err *e)
{
	_cleanup_(closep) int making_fd = open(t->making, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = made->listed ? 0 : choose_stamp(l, t->dir, made, e);

	if (r == 0 && !made->listed)
		r = list_made(l, t, making_fd, made, e);
	if (r < 0)
		return r;
	for (; made->placed < made->n; made->placed++) {
		const char *from = made->names[made->placed];
		char name[256];

		rename_made(name, sizeof(name), from, made->stamp);
		r = list_place(l, making_fd, from, name);
		if (r < 0)
			return err_set(e, r, "%s/%s: cannot be put in place: %s", t->making, from,
				       strerror(-r));
	}
	r = sync_placed(l, made);
	return r < 0 ? err_set(e, r, "%s: %s", t->dir, strerror(-r)) : 0;
}

static void remove_made(const struct archive *t, const struct made *made)
{
	char path[4096];

	for (size_t i = 0; i < made->n; i++) {
		snprintf(path, sizeof(path), "%s/%s", t->making, made->names[i]);
		unlink(path);
	}
}

/* What came of a window: of its files, and of those before it. */
struct outcome {
	int placed, pruned;
	struct err why_placed, why_pruned;
};

/* Puts the files in place, and then removes what `keep` says may go. */
static void commit(const struct archive *t, struct made *made, const struct keep *keep,
		   struct pruned *pruned, struct outcome *o)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	int r = list_open(t->dir, true, &l, &o->why_placed);

	if (r == 0)
		r = list_read(&l, t->dir, &o->why_placed);
	o->placed = r == 0 && made->n ? place(t, &l, made, &o->why_placed) : r;
	if (r == 0 && !keep_is_all(keep))
		o->pruned = list_prune(&l, t->dir, keep, made->stamp, pruned, &o->why_pruned);
}

/* A window is there as a whole, or not at all. */
static void take_back(const struct archive *t, const struct made *made)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	char first[256];

	if (!made->listed || list_open(t->dir, true, &l, NULL) < 0 ||
	    list_read(&l, t->dir, NULL) < 0)
		return;
	rename_made(first, sizeof(first), made->names[0], made->stamp);
	list_sort(&l);
	for (size_t i = 0; i < l.n; i++)
		if (l.entries[i].kind == WINDOW && list_window_has(&l, &l.entries[i], first))
			list_remove_window(&l, &l.entries[i], &(struct pruned){ 0 });
	list_save(&l, t->dir, NULL);
}

int archive_commit(const struct archive *t, const char *stamp, const struct keep *keep,
		   struct err *e)
{
	static const struct keep keep_all = { 0 };
	_cleanup_(made_fini) struct made made = { 0 };
	struct pruned pruned = { 0 };
	struct outcome o = { 0 };
	int r = find_made(t, "", stamp, &made);

	if (r < 0)
		return err_set(e, r, "%s: %s", t->making, strerror(-r));
	snprintf(made.stamp, sizeof(made.stamp), "%s", stamp);
	commit(t, &made, keep, &pruned, &o);
	if (archive_is_full(o.placed) && !pruned.files && !keep_is_all(keep))
		archive_make_room(t->dir, 1, &pruned, NULL);
	if (o.placed < 0 && pruned.files) /* the disk was full, and may have room now */
		commit(t, &made, &keep_all, &pruned, &o);
	if (o.placed < 0)
		take_back(t, &made);
	remove_made(t, &made);
	if (o.placed < 0 || o.pruned < 0)
		return err_set(e, o.placed < 0 ? o.placed : o.pruned, "%s",
			       o.placed < 0 ? o.why_placed.msg : o.why_pruned.msg);
	return 0;
}

void archive_discard(const struct archive *t, const char *stamp)
{
	_cleanup_(made_fini) struct made made = { 0 };

	if (find_made(t, "", stamp, &made) == 0)
		remove_made(t, &made);
}
