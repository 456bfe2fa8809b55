/*
 * Memory of another process, which lives and goes on.
 *
 * A page of it that is not in memory is fetched for whoever reads it: of a file that is served (served.h) from a server that may never
 * answer, and then not even SIGKILL ends the wait. A process that sees such file systems is read where its pages are (proc(5),
 * pagemap), present or swapped out, and nowhere else: what it uses is there. One way is left to hold us: a process that drops a page
 * between that look and the read.
 */
#ifndef MEMSCOPE_PROC_PEEK_H
#define MEMSCOPE_PROC_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it, or false: it is not mapped, may not be read, or would have to be fetched from who may not answer. */
bool peek(pid_t pid, uint64_t addr, void *buf, size_t len);
/* Would nobody be asked for it? For who reads many pieces at once. */
bool peek_may(pid_t pid, uint64_t addr, size_t len);

#endif
