/*
 * The list of a directory of windows (base/archive.h has its format), and which runs are at work there.
 * For archive.c and archive_runs.c alone.
 */
#ifndef MEMSCOPE_BASE_ARCHIVE_LIST_H
#define MEMSCOPE_BASE_ARCHIVE_LIST_H

#include "base/archive_files.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/window_name.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define ARCHIVE_LIST   ".memscope"
#define ARCHIVE_MAKING ".memscope-" /* and the stamp of the run: where its windows are made */
#define ARCHIVE_LOCK   "lock"
#define LIST_SLACK     4096 /* bytes behind the list's end that have their place on the disk */

/* The first character of a line says what is listed. */
enum entry_kind {
	WINDOW = '*',
	RUN_FILE = '=',
	MAKING_DIR = '+',
	RUN_PART = ':', /* a file of the run whose directory this is             */
	RUN_DIR = '/',  /* the directory of a run below this one: found, not listed */
};

struct entry {
	enum entry_kind kind;
	char name[256]; /* WINDOW: "" */
	char stamp[32]; /* and what follows it up to the ending: of the window, or of the run */
	bool there;     /* MAKING_DIR: its run is at work; WINDOW: it was not removed          */
	bool held;      /* of a run: it is at work                                            */
	bool unknown;   /* WINDOW, of a list of an older memscope: bytes and time             */
	uint32_t files; /* WINDOW                                                             */
	char *groups;   /* WINDOW: them (base/archive_files.h)                                */
	uint64_t bytes;
	int64_t time_s;  /* when it was written, by the clock of then */
	int64_t time_ns; /* beyond time_s */
	int64_t order_s; /* list_sort(): what is later is newer */
};

struct list {
	int dir_fd, fd;
	struct entry *entries;
	size_t n;
	struct archive_folders folders;
	size_t dead; /* lines that nobody needs: of removed windows, and that say so */
	bool old;    /* it is to be written anew: lines for files, or wrong figures  */
};
#define LIST_INIT                                                                                  \
	{                                                                                          \
		.dir_fd = -1, .fd = -1                                                             \
	}

struct pruned;

void list_fini(struct list *l);
DEFINE_CLEANUP(DIR *, closedirp, closedir)

/* Opens and locks the list of `dir`, which is made if `make`; else -ENOENT where there is none. */
int list_open(const char *dir, bool make, struct list *ret_list, struct err *e);
/* Of a directory in that of `above`, never by a link. */
int list_open_below(const struct list *above, const char *name, struct list *ret_list);
/* For qsort() of entries: those of one kind and stamp are side by side. */
int list_by_kind_and_stamp(const void *a, const void *b);
/* Windows as they are listed; of other files what is there under each name. */
int list_read(struct list *l, const char *dir, struct err *e);
int list_add(struct list *l, const struct entry *entry);
/* A file of a window that is to be listed; what the list has to say of its folder is added to `lines`. -EINVAL: it is none. */
int list_add_file(struct list *l, struct window_files *files, const char *name,
		  struct strbuf *lines);
/* Lists a window (its stamp, bytes and time) with those files, which is on the disk then: all of `lines` or none. */
int list_add_window(struct list *l, const char *dir, const struct entry *window,
		    struct window_files *files, struct strbuf *lines, struct err *e);
/* A directory in another one, never by a link; NULL: it cannot be read. */
DIR *list_open_dir(int dir_fd, const char *name);
/* The directory of a listed file, and its name there. -errno */
int list_open_parent(int dir_fd, const char *name, const char **ret_base);
/* Removes a listed file, by no link. 0; -errno; -ENOENT is none. */
int list_unlink(const struct list *l, const char *name);
/* Adds lines, which are on the disk then: all or none. */
int list_append(struct list *l, const char *dir, const struct strbuf *lines, struct err *e);
/* Takes off the list what is gone and of no run at work; entries of one name, and windows of one stamp, side by side. The list
 * may be another file afterwards. */
int list_save(struct list *l, const char *dir, struct err *e);
/* Which runs are at work; what others have left is put right. */
void list_find_runs(struct list *l);
/* Puts a file of the directory `from_fd` in place under the same name, or `name`; makes its folder. */
int list_place(const struct list *l, int from_fd, const char *from, const char *name);
/* What was done in the directory that has the listed name is on the disk then. */
int list_sync(const struct list *l, const char *name);
/* The folder of a name, when it is empty. */
void list_remove_folder(const struct list *l, const char *name);
/* Is anything there by that name? */
bool list_sees(const struct list *l, const char *name);
/* A list that nothing is in is taken away. */
void list_remove_empty(const struct list *l);

/* --- windows (archive_windows.c) --- */

/* Looks at each of its files: those that are there, their bytes and time. */
int list_look_at_window(struct list *l, struct entry *window);
/* … of those that an older memscope has listed. */
int list_look_at_unknown(struct list *l);
/* Removes its files, and folders that nothing is left in. It stays where one could not be removed. */
void list_remove_window(struct list *l, struct entry *window, struct pruned *pruned);
/* How many files of each window are there, by the names in its directories; no file is looked at. `ret_seen`: by entry,
 * which are in another order now; free() it. */
int list_see_windows(struct list *l, uint32_t **ret_seen);
/* Is it a file of that window? Of any window? */
bool list_window_has(const struct list *l, const struct entry *window, const char *name);
bool list_has(const struct list *l, const char *name);

/* --- what stays (archive_keep.c) --- */

struct keep;
/* On a full disk: the `n` oldest windows go, but never the newest, if `keep` lets any go. false: none did. */
bool keep_makes_room(const char *dir, const struct keep *keep, uint64_t n);
/* The newest first, by when they were written: stamps are local time, of which an hour may come twice. What was written later than now
 * was written while the clock was wrong, and is older than all else. Windows of one stamp, and doubles, side by side. */
void list_sort(struct list *l);
/* What `keep` says may go, of a list that was read, goes, but for the window `but` (NULL: none). The list may be another file
 * afterwards. */
int list_prune(struct list *l, const char *dir, const struct keep *keep, const char *but,
	       struct pruned *pruned, struct err *e);

/* --- runs (archive_runs.c) --- */

/* Adds the runs whose directories lie in that of the list; it need not have a list of its own. */
void list_find_run_dirs(struct list *l);
/* Takes the files of such a run away, and its directory if nothing else is in it. Counts them. Is
 * any of them left? */
bool run_dir_remove(const struct list *l, const struct entry *run, struct pruned *pruned);
/* Is a run at work that writes this directory? */
bool run_dir_is_held(int dir_fd);

#endif
