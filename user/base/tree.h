/*
 * A directory of dated files, windows of a run: DIR/SOURCE-YYYYMMDD-HHMMSS.EXT, and a list of what memscope wrote there in
 * DIR/.memscope. Nothing that is not in the list is ever removed, whatever its name.
 *
 * A file is listed before it is written, so a crash leaves names without files, never files
 * without a name. The list is locked (flock) while it changes: a cleaner and a writer may meet.
 */
#ifndef MEMSCOPE_BASE_TREE_H
#define MEMSCOPE_BASE_TREE_H

#include "base/err.h"

#include <stdint.h>

/* Lists `file` (a name in `dir`, without a slash) as ours. */
int tree_note(const char *dir, const char *file, struct err *e);

enum keep_kind { KEEP_ALL, KEEP_SECONDS, KEEP_WINDOWS, KEEP_BYTES };

struct keep {
	enum keep_kind kind;
	uint64_t n;
};

/* "30s", "90m", "12h", "7d": an age; "200": a number of windows; "500M", "2G" (K, M, G, T, powers of
 * 1,024): bytes. -EINVAL with a sentence that names `option`. */
int keep_parse(const char *text, const char *option, struct keep *ret_keep, struct err *e);

struct pruned {
	uint64_t files, bytes;
};

/*
 * Removes listed files that `keep` says may go, the oldest first (by when they were last written);
 * files of one window, which share their stamp, go together. The window of `but` (a stamp, or NULL)
 * stays. A listed name that is no longer a regular file is only taken off the list. What was removed
 * is added to *pruned. -ENOENT: `dir` has no list.
 */
int tree_prune(const char *dir, const struct keep *keep, const char *but, struct pruned *pruned,
	       struct err *e);

#endif
