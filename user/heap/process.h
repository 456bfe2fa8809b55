/*
 * The memory of a live process, for heap/census.h: mappings by smaps, bytes by process_vm_readv(),
 * and what is resident by /proc/PID/pagemap. Nothing is stopped, and pages that were never touched
 * stay so; pages that are swapped out come back where they are read.
 */
#ifndef MEMSCOPE_HEAP_PROCESS_H
#define MEMSCOPE_HEAP_PROCESS_H

#include "base/cleanup.h"
#include "base/err.h"
#include "heap/memory.h"

#include <sys/types.h>

/* Bytes resident, by what is mapped. */
struct heap_resident {
	uint64_t anonymous;  /* of no file, but stacks; [heap] and .bss among it */
	uint64_t written;    /* of files, but changed: variables                */
	uint64_t file;       /* of files, as they are                           */
	uint64_t shmem;      /* shared memory without a file, or of tmpfs's      */
	uint64_t stacks;
	uint64_t special;    /* [vdso] and its like                             */
	uint64_t rollup;     /* all of it, by smaps_rollup right afterwards; 0: unknown */
	uint32_t n_stacks;
};

struct heap_process;

/*
 * Reads the mappings of a process. Memory can be read until that and what follows has taken `budget_ns`
 * of the calling thread's CPU time, no longer.
 * -ESRCH: it is gone; -EACCES, -EPERM, -ENOMEM.
 */
int heap_process_open(pid_t pid, int64_t budget_ns, struct heap_process **ret_process,
		      struct err *e);
void heap_process_close(struct heap_process *p);
DEFINE_CLEANUP(struct heap_process *, heap_process_closep, heap_process_close)

/* These live as long as `p`. */
const struct heap_memory *heap_process_memory(const struct heap_process *p);
const struct heap_resident *heap_process_resident(const struct heap_process *p);
/* The same as PSS: of a page that n processes map, an nth. Written pages of a file count as its own. */
const struct heap_resident *heap_process_proportional(const struct heap_process *p);
/* The name of a mapped allocator that no walker knows, or NULL. */
const char *heap_process_unsupported(const struct heap_process *p);

#endif
