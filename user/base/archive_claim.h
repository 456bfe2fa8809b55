/*
 * One service for a directory of windows: two would gather everything twice, and each moment would be in two windows.
 *
 * DIR/.memscope.serve is locked by the process (fcntl(2), F_SETLK), not by its children: what a service that was killed has still
 * to write keeps the next one from nothing.
 */
#ifndef MEMSCOPE_BASE_ARCHIVE_CLAIM_H
#define MEMSCOPE_BASE_ARCHIVE_CLAIM_H

#include "base/err.h"

/*
 * `dir` is this process' until it ends, or takes another. 1; 0: it was already. -EBUSY with a sentence that names the process that has it; -errno. Where
 * the file system knows no locks there is nothing to take, and 1.
 */
int archive_claim(const char *dir, struct err *e);

#endif
