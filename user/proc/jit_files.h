/*
 * The files in which a process describes code that it generated.
 *
 *   perf map   /tmp/perf-PID.map
 *   jitdump    …/jit-PID.dump, wherever it put it: it maps the file once, executable, so that
 *              whoever watches mappings hears of it
 *
 * PID as the process sees it, paths below the root that it sees. They are taken only as regular
 * files that the process's own user owned when it mapped that memory, or root, if all may read them: anyone
 * can write to /tmp, and what is in there ends up as names in a report.
 */
#ifndef MEMSCOPE_PROC_JIT_FILES_H
#define MEMSCOPE_PROC_JIT_FILES_H

#include "proc/image.h"

/* Who makes an image of memory without a file: called once for each. */
void jit_owner_read(pid_t pid, struct jit_owner *ret_owner);

/* A descriptor, or -errno. -EPERM: it belongs to somebody else; -ENOENT: there is none. */
int jit_open_perf_map(struct images *set, const struct image *img);
int jit_open_dump(struct images *set, const struct image *img);

#endif
