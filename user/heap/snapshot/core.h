/*
 * The copy of a stopped process as an ELF core file (core(5)), for gdb and other readers of cores: its threads with their registers, and
 * its memory.
 *
 *   ELF header   e_phnum is PN_XNUM where there are 65,535 segments or more; their number is in section 0 then (gABI)
 *   PT_NOTE      for each thread NT_PRSTATUS and NT_FPREGSET, the main thread first; NT_PRPSINFO, NT_AUXV, NT_FILE
 *   PT_LOAD      each mapping: what the copy has of it; of what is not written by anybody (variables that the dynamic linker has
 *                made read-only, [vdso]) what the process has now; of an image's other mappings the first page alone, which has
 *                its build ID. Readers have the rest of those from the file itself.
 *
 * Mappings without any rights are left out: the terabyte that GHC reserves, guard pages. Pages that were never touched are holes in
 * the file. Shared memory is left out.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_CORE_H
#define MEMSCOPE_HEAP_SNAPSHOT_CORE_H

#include "base/new_file.h"
#include "heap/snapshot/copy.h"
#include "proc/proc_maps.h"

/* Writes into `f`, which is the caller's to commit. -ESRCH: the process is gone; -ENOSPC, with both figures. */
int core_write(const struct copy *copy, pid_t pid, const struct new_file *f, uint64_t *ret_bytes, struct err *e);
/* The same of the mappings that `each_map` has, as proc_maps_each() does; for tests. */
int core_write_of(int (*each_map)(pid_t pid, proc_map_fn fn, void *ctx, struct err *e), const struct copy *copy, pid_t pid, const struct new_file *f, uint64_t *ret_bytes, struct err *e);

#endif
