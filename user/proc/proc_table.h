/*
 * Which image was at which address, for which process, at which time.
 *
 * The table is fed with the kernel's own records (perf mmap2, comm, task), in time order, and
 * with what /proc says about processes that were there before. It answers for processes that
 * have gone, for addresses that have changed hands (dlclose + dlopen at one place), for exec,
 * and for a pid used twice in one run.
 *
 * A process image is an incarnation: one tgid between one fork or exec and the next. In the kernel's
 * totals it is named by struct proc_id; here it is a struct proc.
 *
 * Address-space generations: every change that lays a new executable mapping over an old one in the same
 * incarnation gives its process a new generation (proc_table_mmap() returns it, and collect/
 * tells the kernel), and an address is resolved in the generation in which it was seen.
 *
 * Times are CLOCK_MONOTONIC ns, as perf (use_clockid) and bpf_ktime_get_ns() give them. An event
 * older than the moment its process was read from /proc is already in what /proc said, and is
 * ignored. Not thread-safe.
 */
#ifndef MEMSCOPE_PROC_PROC_TABLE_H
#define MEMSCOPE_PROC_PROC_TABLE_H

#include "base/err.h"
#include "model/dict.h"

#include <sys/types.h>

struct proc_table;
struct proc;

/* A process as the kernel names it; abi.h's struct ms_proc carries the same facts. */
struct proc_id {
	uint32_t pid;       /* tgid                                                        */
	uint32_t exec_id;   /* low 32 bits of task->self_exec_id                           */
	uint64_t start_ns;  /* task->group_leader->start_time (CLOCK_MONOTONIC)            */
};

struct proc_mmap {
	uint64_t addr, len, file_off;
	uint64_t dev;           /* makedev(maj, min) */
	uint64_t ino;
	const char *path;       /* as the kernel wrote it: a path, [vdso], //anon, "… (deleted)" is stripped by us */
};

struct proc_table *proc_table_new(struct dict *d);
void proc_table_free(struct proc_table *t);
DEFINE_CLEANUP(struct proc_table *, proc_table_freep, proc_table_free)

/*
 * Reads /proc/PID (maps, comm, exe, stat, mount namespace root). -ESRCH when it is gone. `exec_id` is the
 * process's exec id where known from the kernel (task iterator), else 0 and found out later:
 * the first id seen in a total for an image that was there before is taken as its id.
 * `now_ns` is the clock before the read.
 */
int proc_table_scan(struct proc_table *t, pid_t pid, uint32_t exec_id, uint64_t now_ns,
		    struct err *e);

/* The records, in time order. Those of threads (pid == ppid in fork) only name the thread. */
void proc_table_fork(struct proc_table *t, uint64_t ns, pid_t pid, pid_t ppid, pid_t tid);
void proc_table_comm(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid, const char *comm,
		     bool exec);
void proc_table_exit(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid);
/* The generation the process has from now on: it grew by one if an older mapping was covered. */
uint32_t proc_table_mmap(struct proc_table *t, uint64_t ns, pid_t pid, const struct proc_mmap *m);

/*
 * The process that `id` names, NULL when it was never heard of (then: proc_table_scan and ask
 * again). O(incarnations of that pid).
 */
struct proc *proc_table_find(struct proc_table *t, const struct proc_id *id);
/* The live incarnation of a pid, NULL when none is known. */
struct proc *proc_table_live(struct proc_table *t, pid_t pid);

pid_t proc_pid(const struct proc *p);
const char *proc_comm(const struct proc *p);                      /* last known name         */
const char *proc_thread_comm(const struct proc *p, pid_t tid);    /* NULL when same/unknown  */
const char *proc_exe(const struct proc *p);                       /* "" when unknown          */
/* True when an exec replaced this image, so that its memory is gone. */
bool proc_replaced(const struct proc *p);
bool proc_exited(const struct proc *p);
/* Parent image for a process that was forked during the run, else NULL. */
struct proc *proc_parent(const struct proc *p);

/*
 * addr → (module, vaddr) in generation `gen` of `p`. Never fails: an address that no mapping
 * covers comes back as MODULE_NONE with vaddr = addr, and is counted. O(log mappings).
 */
void proc_resolve(struct proc_table *t, struct proc *p, uint32_t gen, uint64_t addr,
		  module_id *ret_module, uint64_t *ret_vaddr);

/* The mapped executable images of `p` now, main binary first; for probe placement. */
struct proc_image {
	module_id module;
	uint64_t addr, len, file_off;
};
uint32_t proc_images(struct proc_table *t, struct proc *p, struct proc_image *out, uint32_t cap);

/*
 * Opens the file behind a module, read-only and close-on-exec, for symbolize/ and probe placement:
 * through /proc/PID/map_files while a process that maps it lives, else through the root of a
 * mount namespace that was seen to map it; a file whose identity (dev, ino) differs is refused with -ESTALE. -ENOENT: no
 * file. Never follows a symlink out of that root; regular files only.
 */
int proc_table_open_module(struct proc_table *t, module_id m, struct err *e);

struct proc_table_stats {
	uint64_t unresolved;    /* proc_resolve() calls that found no mapping */
	uint64_t unknown_procs; /* proc_table_find() that found nothing       */
};
struct proc_table_stats proc_table_stats(const struct proc_table *t);

#endif
