/*
 * /proc/PID/maps, one mapping at a time.
 *
 *   start-end perms offset major:minor inode      path
 *   7f3c5e4d2000-7f3c5e628000 r-xp 00026000 fe:00 5769     /usr/lib/x86_64-linux-gnu/libc.so.6
 *
 * (proc(5); all but the inode in hex.) The path is the target's choice: it may hold spaces, and a
 * newline in it is written as \012, which is undone here. " (deleted)" at its end is taken off
 * and told apart.
 */
#ifndef MEMSCOPE_PROC_PROC_MAPS_H
#define MEMSCOPE_PROC_PROC_MAPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum proc_map_perm {
	PROC_MAP_READ = 1,
	PROC_MAP_WRITE = 2,
	PROC_MAP_EXEC = 4,
	PROC_MAP_SHARED = 8,
};

struct proc_map {
	uint64_t start, end, file_off;
	uint64_t dev;        /* makedev(major, minor) */
	uint64_t ino;
	uint32_t perms;      /* PROC_MAP_… */
	const char *path;    /* "" when there is none */
	bool deleted;
};

/* Takes " (deleted)" off the end of a path. True when it was there. */
bool proc_path_undelete(char *path);

/*
 * Parses one line of `len` bytes without its newline. `path` of the result points into `line`,
 * which is changed and must have room for a NUL at line[len]. -EBADMSG: not such a line.
 */
int proc_maps_parse(char *line, size_t len, struct proc_map *ret_map);

/* Returns 0 to go on; anything else ends the reading. */
typedef int (*proc_map_fn)(void *ctx, const struct proc_map *map);

/*
 * Calls `fn` for each mapping of a process, lowest first; its argument lives until it returns.
 * Lines that do not parse are skipped. Returns 0, what `fn` returned, or -errno (-ESRCH: no such
 * process; -EACCES).
 */
int proc_maps_each(pid_t pid, proc_map_fn fn, void *ctx, struct err *e);

#endif
