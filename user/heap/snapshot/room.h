/*
 * Whether what will be written of a process fits on the disk, found out while the process runs: it is not stopped for what cannot be
 * kept. What is counted is the least that it takes; the writers check again when they know more (file.h, core.h).
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_ROOM_H
#define MEMSCOPE_HEAP_SNAPSHOT_ROOM_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct room_plan {
	const char *path;    /* what will be written                    */
	const char *scratch; /* the folder of the copy that it is made of */
	bool core;           /* an ELF core; else a snapshot             */
};

/* -ENOSPC, with both figures; else as new_file_open() and copy_take(). */
int room_check(pid_t pid, const struct room_plan *plan, struct err *e);

#endif
