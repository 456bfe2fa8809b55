/* Regular files as a whole. */
#ifndef MEMSCOPE_BASE_WHOLE_FILE_H
#define MEMSCOPE_BASE_WHOLE_FILE_H

#include "base/err.h"

#include <stddef.h>

/*
 * The bytes of the file at `path`, at most `most`, with a null byte behind them; free() them. -EBADMSG: it is larger, or no
 * regular file, "not `what`"; -ENOMEM; -errno; all with a sentence.
 */
int whole_file_read(const char *path, size_t most, const char *what, char **ret_bytes,
		    size_t *ret_len, struct err *e);

/* All of it at where `fd` is; 0 or -errno. Signals do not cut it short. */
int whole_file_write(int fd, const void *data, size_t len);

#endif
