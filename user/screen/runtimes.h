/*
 * Which runtime a process has, and whose heap structures it has that `memscope heap` reads: by the files that it maps.
 * Each file is looked at once, whoever maps it.
 */
#ifndef MEMSCOPE_SCREEN_RUNTIMES_H
#define MEMSCOPE_SCREEN_RUNTIMES_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct runtimes;

struct runtime_of {
	const char *runtime; /* "CPython", …, "native"; "-": its files cannot be read */
	const char *heap;    /* "glibc", "CPython", …; "": none that is known         */
};

/* NULL when out of memory. */
struct runtimes *runtimes_new(void);
void runtimes_free(struct runtimes *r);

/* Looks now, which takes some ms for a file that was not seen before. */
struct runtime_of runtimes_look(struct runtimes *r, pid_t pid);

/* The same in a thread of its own. False: it cannot be started. */
bool runtimes_start(struct runtimes *r);
/* Asks for a process, known by what `start` says. False: too many are asked for already. */
bool runtimes_ask(struct runtimes *r, pid_t pid, uint64_t start);
/* An answer, if there is one. */
bool runtimes_answer(struct runtimes *r, pid_t *ret_pid, uint64_t *ret_start, struct runtime_of *ret);

#endif
