/*
 * Where output goes: a file, standard output, memory; gzipped or not.
 *
 * A file sink writes to a file that gets its name on sink_commit() (new_file.h), so a
 * reader never sees half a file, and nothing is left of one that was not committed. A symbolic link
 * at the target is replaced, not followed. What is not a regular file (a pipe, /dev/null,
 * /dev/stdout) is written in place. Errors stick: write calls may go unchecked, sink_commit()
 * reports the first one (a full disk is -ENOSPC) with a sentence.
 */
#ifndef MEMSCOPE_BASE_SINK_H
#define MEMSCOPE_BASE_SINK_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct sink;

/* A path that the user named; "-" is standard output, a device or a pipe is written in place. The file gets mode 0600 & ~umask. */
int sink_open_file(const char *path, struct sink **ret_sink, struct err *e);
/*
 * One of the files of an output directory, in which others may have put a link or a pipe of that name: a link is replaced and not followed.
 * -EEXIST: it is no regular file.
 */
int sink_open_new(const char *path, struct sink **ret_sink, struct err *e);
int sink_open_memory(struct sink **ret_sink, struct err *e);
/*
 * From here on, what is written is compressed; call once, before the first write. The gzip header
 * carries neither time nor name, so equal input gives equal bytes.
 */
int sink_gzip(struct sink *s, struct err *e);

void sink_write(struct sink *s, const void *data, size_t len);
void sink_puts(struct sink *s, const char *str);
void sink_printf(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Flushes, syncs the file to its disk (where late errors show), names it. 0 or the first error
 * with its sentence; nothing may be written afterwards.
 */
int sink_commit(struct sink *s, struct err *e);
/* Memory sinks, after sink_commit(): what was written; valid until sink_close(). NUL-terminated. `ret_len` must
 * not be NULL. */
const char *sink_memory(struct sink *s, size_t *ret_len);
void sink_close(struct sink *s);
DEFINE_CLEANUP(struct sink *, sink_closep, sink_close)

#endif
