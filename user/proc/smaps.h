/*
 * /proc/PID/smaps: how much of each mapping is in memory, and how (proc(5), "smaps"). Reading it
 * walks the target's page tables with its mmap lock held, as smaps_rollup does (proc_mem.h).
 */
#ifndef MEMSCOPE_PROC_SMAPS_H
#define MEMSCOPE_PROC_SMAPS_H

#include "base/err.h"
#include "model/mem_sample.h"
#include "proc/proc_maps.h"

#include <stdio.h>

/* Sizes in kB; MEM_UNKNOWN where this kernel does not say. */
struct smaps_entry {
	struct proc_map map;    /* its path lives until the callback returns */
	int64_t size_kb, rss_kb, pss_kb;
	int64_t shared_kb;      /* mapped by others too, clean and dirty     */
	int64_t private_kb;
	int64_t dirty_kb;       /* of both                                   */
	int64_t anonymous_kb;   /* belongs to no file: also written pages of a private file mapping */
	int64_t swap_kb;
};

/* Returns 0 to go on; anything else ends the reading. */
typedef int (*smaps_fn)(void *ctx, const struct smaps_entry *entry);

/*
 * Calls `fn` for each mapping of a process, lowest first. What does not parse is skipped. Returns 0,
 * what `fn` returned, or -errno (-ESRCH: no such process; -EACCES).
 */
int smaps_each(pid_t pid, smaps_fn fn, void *ctx, struct err *e);
/* The same from an open file. */
int smaps_read(FILE *f, smaps_fn fn, void *ctx);

#endif
