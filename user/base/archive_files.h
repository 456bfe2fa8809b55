/*
 * The files of a window in few bytes, for the list of a directory of windows (base/archive.h): names without their
 * stamp, once for all folders that have the same ones; folders by number, as they come again in each window.
 *
 *   offcpu-.pb.gz,oncpu-.pb.gz:0-3,7;growth-.pb.gz:0;
 *
 * 0 is the directory itself. The stamp stands between "-" and ".". What separates has no place in a name: there it is %2C.
 */
#ifndef MEMSCOPE_BASE_ARCHIVE_FILES_H
#define MEMSCOPE_BASE_ARCHIVE_FILES_H

#include "base/cleanup.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Folders by number, from 1 on. A zeroed struct has none. */
struct archive_folders {
	char **names; /* NULL: nobody has that number */
	uint32_t n, count; /* numbers that there is room for; names */
};

void archive_folders_fini(struct archive_folders *f);
/* As a line says. -EINVAL: it is no folder's name, the number is out of bounds or another folder's; -ENOMEM. */
int archive_folders_set(struct archive_folders *f, uint64_t number, const char *name);
/* Its number; -ENOENT. */
int64_t archive_folders_find(const struct archive_folders *f, const char *name);
/* The number of `name`, the first that is free if it has none yet; -ENOMEM, -ENOSPC. */
int64_t archive_folders_add(struct archive_folders *f, const char *name);

/* Files to be written down. A zeroed struct has none. */
struct window_files {
	struct window_file {
		uint32_t folder;
		char *name; /* without its stamp */
	} *list;
	size_t n, cap;
};

void window_files_fini(struct window_files *w);
/* `name`: [FOLDER/]SOURCE-STAMP.EXT. -EINVAL: it is none of these; -ENOMEM, -ENOSPC. */
int window_files_add(struct window_files *w, struct archive_folders *f, const char *name);
/* Sorts them, takes out doubles, and adds the groups to `out`. How many files these are. */
size_t window_files_print(struct window_files *w, struct strbuf *out);

/*
 * How many files the groups at `text` are, of a window with that stamp; -EINVAL: it is not made of whole groups, or they
 * have folders that have no number here, or names that no file of a window has.
 */
int64_t window_groups_count(const char *text, const struct archive_folders *f, const char *stamp);
/* Each of them by its name, of groups that have been counted; those of one folder and group follow each other. 0 or what `fn`
 * returned. */
int window_groups_each(const char *text, const struct archive_folders *f, const char *stamp,
		       int (*fn)(void *ctx, const char *name), void *ctx);
/* Is `file` among those in the folder of that number? */
bool window_groups_have(const char *text, uint32_t folder, const char *file);
/* Marks the numbers of the folders in the groups: `used` has a place for each. */
void window_groups_mark(const char *text, bool *used);

#endif
