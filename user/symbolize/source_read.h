/*
 * A source file as debug info, or an interpreter, names it. That name is chosen by whoever wrote the program, who may have
 * written the name of any file that only root may read, in the hope that its lines get into a report that is handed on. So a file is
 * opened with the rights of the user that `reader` says, not with ours: who owns the program's file, or runs the process.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SOURCE_READ_H
#define MEMSCOPE_SYMBOLIZE_SOURCE_READ_H

#include "model/code_text.h"
#include "symbolize/symbolize.h"

#include <sys/types.h>

enum { SOURCE_BYTES_MAX = 8 << 20, SOURCE_READER_NOBODY = 65534 };

/*
 * Opens the regular file `path` below the root of the processes that map the module or, with `host`, below our own, like
 * symbolize_opts' open_debug().
 */
typedef int (*source_open_fn)(void *ctx, module_id m, const char *path, bool host);

/*
 * As the program sees it, else on this machine. `built_s`: when the program's file was changed last, 0: not known. `reader` counts
 * where we are root. ret->problem says why its lines are not there. 0 or -ENOMEM.
 */
int source_read(source_open_fn open_source, void *ctx, module_id m, const char *path, uid_t reader, int64_t built_s,
		struct source_text *ret);

#endif
