/*
 * A cell: a process that reads bytes which others wrote, and can do nothing else. A file made to break a reader finds a process that
 * holds open what it was given and nothing more: no right, no file but these, no network, no other process, no new code.
 *
 *   shared memory what the process could write into with others is gone from it: a child has its parent's
 *   limits        memory, CPU time, sizes of files, as the reader needs; no new descriptor, no new process, no core
 *   descriptors   those that are named; all others are closed
 *   user          one that nobody else is, where we may become it, else nobody; capabilities go in any case, and none come back over
 *                 execve()
 *   files         Landlock (Linux 5.13): none can be opened, made or removed
 *   system calls  seccomp: what a reader and its C library need; all else fails with EPERM, and does not end it, as libraries try things
 *
 * The order is that of the list: rights are needed for the first, and each wall stands before the next needs it. What a kernel or
 * container refuses is left out: the other walls stand. cell_walls() says which there are.
 */
#ifndef MEMSCOPE_BASE_CELL_H
#define MEMSCOPE_BASE_CELL_H

#include <stdbool.h>
#include <stdint.h>

struct cell {
	const int *keep; /* descriptors that stay open; -1: none */
	uint32_t n_keep;
	uint64_t data_bytes; /* beyond what the process has now: RLIMIT_DATA */
	uint64_t file_bytes; /* what it may write into one: RLIMIT_FSIZE, whose signal is ignored */
	uint32_t cpu_s;
	uint32_t files; /* descriptors that it may be sent (SCM_RIGHTS): their numbers are below this. 0: none, and no messages */
};

enum cell_wall {
	CELL_USER = 1 << 0,
	CELL_FILES = 1 << 1,
	CELL_CALLS = 1 << 2,
};

/*
 * From now on this process is a cell: a child that has just been forked, with one thread. It ends with its parent.
 */
void cell_enter(const struct cell *c);
/* For a process that makes many: what is the same for all of them is worked out once, here, and its children have it. */
void cell_prepare(void);
/* Those that would stand here. */
uint32_t cell_walls(void);

#endif
