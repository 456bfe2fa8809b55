/*
 * What runs have left in directories, and what of it may go. A directory of dated files, windows of runs:
 * DIR/[FOLDER/]SOURCE-YYYYMMDD-HHMMSS[-N].EXT, which are one window with those of the same date in other
 * folders; or the directory of one run, DIR/[FOLDER/]SOURCE.EXT. What memscope wrote
 * there is listed in DIR/.memscope. Nothing that is not in a list is ever removed, whatever its name, and
 * no window is ever written over.
 *
 *   .memscope:  *STAMP TIME BYTES FILES oncpu-.pb.gz:0-1;
 *                                     a window: when the last of its files was written (s since the Epoch), bytes and number of
 *                                     all, and their names (base/archive_files.h): those above
 *               #1 web                the number of a folder, before the first window that has it
 *               -STAMP;               windows of that stamp which are listed before it were removed
 *               oncpu-STAMP.pb.gz     a window's file, as an older memscope listed it; the next run writes windows instead
 *               =trend-STAMP.csv      a file of a whole run, of whose begin the stamp is
 *               +.memscope-STAMP      where a run that is at work makes its windows
 *               :oncpu.pb.gz          a file of the one run whose directory this is
 *               :web/oncpu.pb.gz      … in a directory of its own, one below
 *
 * So adding a window and keeping to limits take as long as there are windows, not files: of files only those that are added
 * or removed are looked at. What was removed by hand counts until archive_check().
 *
 * A window's files are made in DIR/.memscope-STAMP/, listed when all of them are whole, and then put in
 * place: so a window is there as a whole or not at all, no cleaner meets half of one, and a crash leaves
 * names without files, never files without a name. Each step is on the disk before the next: files (whoever
 * wrote them), the list, the directories. A run holds the lock (flock) of
 * DIR/.memscope-STAMP/lock for its life, its writers with it. What one that was killed has left there
 * is put right by the next run: listed files are put in place, others go. The list is locked
 * while it changes: several runs and cleaners may meet in one directory.
 *
 * The files of a run's directory are listed when they are in place, and belong together: they go as a
 * whole, and the directory with them if nothing else is in it. Dated ones among them, for which a signal
 * asked, are of any run that was written there. While the run is at work it holds a lock
 * of the directory itself.
 */
#ifndef MEMSCOPE_BASE_ARCHIVE_H
#define MEMSCOPE_BASE_ARCHIVE_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* What stays: what is within all limits. 0: there is no such limit; {0}: all of it stays. */
struct keep {
	uint64_t age_s;   /* since it was written                                    */
	uint64_t count;   /* of windows and runs                                     */
	uint64_t bytes;   /* of all that stays                                       */
};

/* One or several of these, separated by commas: "30s", "90m", "12h", "7d", an age; "200", a number of
 * windows and runs; "500M", "2G" (K, M, G, T, powers of 1,024), bytes; each at most once. -EINVAL with a
 * sentence that names `option`. */
int keep_parse(const char *text, const char *option, struct keep *ret_keep, struct err *e);
bool keep_is_all(const struct keep *keep);

struct archive;

struct pruned {
	uint64_t files, bytes;
	uint64_t failed; /* could not be removed, for one with `error` (-errno) */
	int error;
};

/*
 * For a run that begins at `stamp` (YYYYMMDD-HHMMSS). `files`: those that the run itself will write
 * into `dir`, "trend.csv" for trend-STAMP.csv, up to a NULL; they are not removed while it is at work. If
 * another run has the same second, its stamp is numbered: archive_stamp(). On a full disk windows make room, 1, 2, 4 … of the
 * oldest, if `keep` lets any go.
 */
int archive_open(const char *dir, const char *stamp, const char *const *files, const struct keep *keep,
		 struct archive **ret_archive, struct err *e);
const char *archive_stamp(const struct archive *t);
/* The directory in which windows are made: files by the names that they are to have, in directories of it
 * those that are to be in directories. */
const char *archive_making(const struct archive *t);
/* One more file of the run itself, "web/trend.csv" for web/trend-STAMP.csv. */
int archive_add_file(const struct archive *t, const char *file, struct err *e);
/*
 * Puts the files of the window `stamp` in place; numbers the stamp if a name is taken. Then removes what
 * `keep` says may go, but not this window; on a full disk before it. Also from a child process.
 */
int archive_commit(const struct archive *t, const char *stamp, const struct keep *keep, struct err *e);
/* Removes what was made of the window `stamp`, which is not to be put in place. */
void archive_discard(const struct archive *t, const char *stamp);
/* No space left, or no quota: where another window may be written when an older one has gone. */
bool archive_is_full(int error);
/* Removes the `n` oldest windows, but never the newest; *pruned is added to, also where the list cannot be written then. */
int archive_make_room(const char *dir, uint64_t n, struct pruned *pruned, struct err *e);
/* After the last window; by the process that opened it. */
void archive_close(struct archive *t);
DEFINE_CLEANUP(struct archive *, archive_closep, archive_close)

/*
 * Removes what `keep` says may go, the oldest first: windows, whose files share their stamp, and the runs
 * whose directories lie in `dir`, each as a whole. Files of a run go by when they were last written, and
 * are no window. A listed name that is no longer a regular file is only taken off the list. What was
 * removed is added to *pruned. -ENOENT: `dir` has no list, and neither has a directory in it.
 */
int archive_prune(const char *dir, const struct keep *keep, struct pruned *pruned, struct err *e);

/*
 * Compares the list with the names in the directories, and corrects it: windows of which files were removed by hand. Only of those
 * files are looked at. Room is made as by archive_open(). 0, also where there is no list; -errno.
 */
int archive_check(const char *dir, const struct keep *keep, struct err *e);

/*
 * Reads the list without waiting for who writes it, for people: each window's file that is listed and not there,
 * "web/oncpu-STAMP.pb.gz". 0 or what `fn` returned; -ENOENT: there is no list.
 */
int archive_each_missing(const char *dir, int (*fn)(void *ctx, const char *name), void *ctx);
/* A window as the list has it; no file was looked at. */
struct archive_listed {
	const char *stamp;
	const char *file; /* one of its files, without the folder: whether a trigger asked for it is in the name */
	uint64_t bytes;
	uint32_t files;
	const char *const *folders; /* all that the list has, by number, some NULL; the same for each window */
	const bool *has;            /* … and those that the window has files in */
	uint32_t n_folders;
};
/* 0 or what `fn` returned; -ENOENT: there is no list; -ENOMEM. */
int archive_each_listed(const char *dir, int (*fn)(void *ctx, const struct archive_listed *w),
			void *ctx);
/* Is a run at work that makes windows there? */
bool archive_is_at_work(const char *dir);

/* Holds the directory of a run that is at work; until the descriptor is closed no cleaner touches it. */
int archive_hold_run(const char *dir, int *ret_fd, struct err *e);
/* Each file that is listed as one of the run whose directory this is; none, if anybody but us can have written the list. 0 or what
 * `fn` returned; -errno. */
int archive_each_part(const char *dir, int (*fn)(void *ctx, const char *name), void *ctx);
/* Lists `names`, n of them, as the files of the run whose directory this is, in place of those before; of
 * which those in folders that are not among `names` are removed. */
int archive_list_run(const char *dir, const char *const *names, uint32_t n, struct err *e);

#endif
