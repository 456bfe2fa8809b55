/*
 * A directory of dated files, windows of runs: DIR/SOURCE-YYYYMMDD-HHMMSS[-N].EXT, and a list of what
 * memscope wrote there in DIR/.memscope. Nothing that is not in the list is ever removed, whatever its
 * name, and nothing that is there is ever written over.
 *
 *   .memscope:  oncpu-STAMP.pb.gz     a window's file
 *               =trend-STAMP.csv      a file of a whole run, of whose begin the stamp is
 *               +.memscope-STAMP      where a run that is at work makes its windows
 *
 * A window's files are made in DIR/.memscope-STAMP/, listed when all of them are whole, and then put in
 * place: so a window is there as a whole or not at all, no cleaner meets half of one, and a crash leaves
 * names without files, never files without a name. A run holds the lock (flock) of
 * DIR/.memscope-STAMP/lock for its life, its writers with it. What one that was killed has left there
 * is put right by whoever comes next: listed files are put in place, others go. The list is locked
 * while it changes: several runs and cleaners may meet in one directory.
 */
#ifndef MEMSCOPE_BASE_TREE_H
#define MEMSCOPE_BASE_TREE_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdint.h>

enum keep_kind { KEEP_ALL, KEEP_SECONDS, KEEP_WINDOWS, KEEP_BYTES };

struct keep {
	enum keep_kind kind;
	uint64_t n;
};

/* "30s", "90m", "12h", "7d": an age; "200": a number of windows; "500M", "2G" (K, M, G, T, powers of
 * 1,024): bytes. -EINVAL with a sentence that names `option`. */
int keep_parse(const char *text, const char *option, struct keep *ret_keep, struct err *e);

struct tree;

/*
 * For a run that begins at `stamp` (YYYYMMDD-HHMMSS). `files`: those that the run itself will write
 * into `dir`, "trend.csv" for trend-STAMP.csv, up to a NULL; they are not removed while it is at work. If
 * another run has the same second, its stamp is numbered: tree_stamp().
 */
int tree_open(const char *dir, const char *stamp, const char *const *files, struct tree **ret_tree,
	      struct err *e);
const char *tree_stamp(const struct tree *t);
/* The directory in which windows are made: files by the names that they are to have. */
const char *tree_making(const struct tree *t);
/*
 * Puts the files of the window `stamp` in place; numbers the stamp if a name is taken. Then removes what
 * `keep` says may go, but not this window; on a full disk before it. Also from a child process.
 */
int tree_commit(const struct tree *t, const char *stamp, const struct keep *keep, struct err *e);
/* After the last window; by the process that opened it. */
void tree_close(struct tree *t);
DEFINE_CLEANUP(struct tree *, tree_closep, tree_close)

struct pruned {
	uint64_t files, bytes;
	uint64_t failed; /* could not be removed, for one with `error` (-errno) */
	int error;
};

/*
 * Removes listed files that `keep` says may go, the oldest first; files of one window, which share
 * their stamp, go together. Files of a run go by when they were last written, and are no window. A listed
 * name that is no longer a regular file is only taken off the list. What was removed is added to
 * *pruned. -ENOENT: `dir` has no list.
 */
int tree_prune(const char *dir, const struct keep *keep, struct pruned *pruned, struct err *e);

#endif
