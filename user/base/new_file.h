/*
 * A file that appears under its name when it is complete and on disk, and not at all otherwise: until then it has no name,
 * so that nothing is left behind however its writer ends. Where the file system has no such files, and for the moment in which
 * it takes the place of another, it is called .NAME.XXXXXX: no reader of ours takes a hidden file. For what is written at places
 * and large; sink.h is for what is written from begin to end. Mode 0600. A symbolic link that has the name is replaced, not followed.
 */
#ifndef MEMSCOPE_BASE_NEW_FILE_H
#define MEMSCOPE_BASE_NEW_FILE_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdint.h>

struct new_file {
	int fd;
	char *path;
	char *temporary; /* its name meanwhile; NULL: it has none */
};

/* -EEXIST: what has the name is no regular file; else as open(2). Zeroed or after an error it may be closed. */
int new_file_open(const char *path, struct new_file *ret_file, struct err *e);
/* Whether `bytes` fit; `what` is written, "a snapshot". -ENOSPC, with both figures. */
int new_file_check_room(const struct new_file *f, const char *what, uint64_t bytes, struct err *e);
/* All of it at that place. -ENOSPC, -EIO, … */
int new_file_put(const struct new_file *f, uint64_t at, const void *bytes, uint64_t len);
/* Gives it its name; what had it before is replaced. Nothing is written afterwards. */
int new_file_commit(struct new_file *f, struct err *e);
void new_file_close(struct new_file *f);

#endif
