/*
 * Which image was at which address, for which process, at which time.
 *
 * The table is fed with the kernel's own records (perf mmap2, comm, task), in time order, and with
 * /proc's state of processes that existed before. It also answers for processes that have ended,
 * for addresses that were reused (dlclose + dlopen at one place), for exec, and for a pid used
 * twice in one run.
 *
 * A process image is an incarnation: one tgid between one fork or exec and the next. In the
 * kernel's totals it is identified by struct proc_id; here it is a struct proc.
 *
 * Address-space generations: every change that lays a new executable mapping over an old one in the
 * same incarnation gives its process a new generation (proc_table_mmap() returns it, and collect/
 * passes it to the kernel), and an address is resolved in the generation in which it was seen.
 *
 * Times are CLOCK_MONOTONIC ns, as perf (use_clockid) and bpf_ktime_get_ns() give them. An event
 * older than the reading of its process from /proc is already included in that, and is ignored. Not
 * thread-safe.
 */
#ifndef MEMSCOPE_PROC_PROC_TABLE_H
#define MEMSCOPE_PROC_PROC_TABLE_H

#include "base/err.h"
#include "model/dict.h"

#include <sys/types.h>

struct proc_table;
struct proc;

/* A process as the kernel names it; its programs send the same facts. */
struct proc_id {
	uint32_t pid;       /* tgid                                                        */
	uint32_t exec_id;   /* low 32 bits of task->self_exec_id                           */
	uint64_t start_ns;  /* task->group_leader->start_time (CLOCK_MONOTONIC)            */
};

struct proc_mmap {
	uint64_t addr, len, file_off;
	uint64_t dev;           /* makedev(maj, min) */
	uint64_t ino;
	const char *path;       /* as the kernel wrote it: a path, [vdso], //anon; "… (deleted)" is stripped by us */
};

struct proc_table *proc_table_new(struct dict *d);
void proc_table_free(struct proc_table *t);
DEFINE_CLEANUP(struct proc_table *, proc_table_freep, proc_table_free)

/*
 * Reads /proc/PID (maps, comm, exe, threads, root of its mount namespace). -ESRCH when it is gone.
 * `exec_id` is the process's exec id where known from the kernel (task iterator), else 0 and found
 * out later (proc_table_find).
 * `now_ns` is the clock before the read, and when `exec_id` was seen. A process that is known to
 * live stays as it is, but learns the exec_id of its image at that time if that was unknown (the
 * records up to then have been read), unless /proc shows that its pid has been reused.
 */
int proc_table_scan(struct proc_table *t, pid_t pid, uint32_t exec_id, uint64_t now_ns,
		    struct err *e);

/*
 * The records, in time order. Those of threads (pid == ppid in fork) are only counted. A fork
 * from a process that is not known, or anything but an exec of one, is ignored: scan it. An exec of
 * an unknown process makes it known, since all its mappings follow.
 */
void proc_table_fork(struct proc_table *t, uint64_t ns, pid_t pid, pid_t ppid, pid_t tid);
void proc_table_comm(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid, const char *comm,
		     bool exec);
void proc_table_exit(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid);
/*
 * The generation the process has from now on: it grew by one if an older mapping was covered by
 * one of another file, or of another place in it. An image begins in generation 0; a generation
 * that lies ahead of the table is taken as the newest one.
 */
uint32_t proc_table_mmap(struct proc_table *t, uint64_t ns, pid_t pid, const struct proc_mmap *m);

/*
 * The process that `id` identifies, NULL when it is unknown (then: proc_table_scan and ask again).
 * O(incarnations of that pid).
 *
 * The kernel takes start_ns microseconds before it writes the fork record: of the processes that
 * had this pid it is the one with the smallest fork time >= start_ns, where one found by a scan
 * counts as forked at the scan. Within it, exec_id counts the execs; a forked child begins with its
 * parent's. Where the start of the count is unknown (exec_id 0 in the scan, an exec of an unknown
 * process) the first id asked for is assumed to be that of the newest image. An id before the
 * oldest image or after the newest matches none: its exec record has not been read, or was lost.
 */
struct proc *proc_table_find(struct proc_table *t, const struct proc_id *id);
/* The live incarnation of a pid, NULL when none is known. */
struct proc *proc_table_live(struct proc_table *t, pid_t pid);
/* The newest image of the last process known by that pid, whether it lives or not, NULL if none was. */
struct proc *proc_table_last(struct proc_table *t, pid_t pid);
/* The same of the first process known by that pid, whether it lives or not, NULL if none was. */
struct proc *proc_table_first(struct proc_table *t, pid_t pid);

pid_t proc_pid(const struct proc *p);
const char *proc_comm(const struct proc *p);                      /* last known name         */
const char *proc_thread_comm(const struct proc *p, pid_t tid);    /* NULL when same/unknown  */
/* Does this thread live, since before the last proc_table_drained()? False also when it is not known. */
bool proc_thread_stays(const struct proc_table *t, const struct proc *p, pid_t tid);
/* The same of a process. */
bool proc_stays(const struct proc_table *t, const struct proc *p);
const char *proc_exe(const struct proc *p);                       /* "" when unknown          */
/* True when an exec replaced this image, so that its memory is gone. */
bool proc_replaced(const struct proc *p);
bool proc_exited(const struct proc *p);
/*
 * The image that forked this process, where that happened during the run, else NULL; until it is forgotten (proc_table_retire()).
 */
struct proc *proc_parent(const struct proc *p);
/* Does [addr, addr + len) of the live incarnation of a pid overlap a known mapping? */
bool proc_table_meets(struct proc_table *t, pid_t pid, uint64_t addr, uint64_t len);
/*
 * Is a mapping nothing new: memory without a file, all of it known as such? Whoever generates code makes it writable and
 * executable again and again (V8: for each function), and the kernel reports each time.
 */
bool proc_table_knows(struct proc_table *t, pid_t pid, const struct proc_mmap *m);
/* Is a mapping with this name memory without a file? */
bool proc_table_is_anon(const char *path);
/* The present generation (see proc_table_mmap). */
uint32_t proc_generation(const struct proc *p);
/*
 * The generation of something seen at `ns`, when the kernel assumed `gen`: it learns of a new one a
 * little late. The records up to `ns` have been read.
 */
uint32_t proc_generation_at(const struct proc *p, uint32_t gen, uint64_t ns);

/*
 * addr → (module, vaddr) in generation `gen` of `p`. Never fails: an address that no mapping covers
 * becomes MODULE_NONE with vaddr = addr, and is counted. A NULL `p` (an unknown process) has no
 * mappings. O(log mappings).
 */
void proc_resolve(struct proc_table *t, struct proc *p, uint32_t gen, uint64_t addr,
		  module_id *ret_module, uint64_t *ret_vaddr);

/* The mapped executable images of `p` now, main binary first; for probe placement. */
struct proc_image {
	module_id module;
	uint64_t addr, len, file_off;
};
/* Each image once, at its lowest mapping. Writes up to `cap`, returns how many there are. */
uint32_t proc_images(struct proc_table *t, struct proc *p, struct proc_image *out, uint32_t cap);

/* An executable mapping of `p` as it is now. */
struct proc_mapping {
	uint64_t addr, end;
	uint64_t bias;            /* addr - vaddr; 0 where there is no file                     */
	module_id module;
	enum module_kind kind;
	bool readable;            /* MODULE_ELF: its program headers were read, so `bias` is so */
};
/*
 * All of them, by address, disjoint; some may have been unmapped since. Reads the program headers
 * of files that have not been read. Writes up to `cap`, returns how many there are.
 */
uint32_t proc_mappings(struct proc_table *t, struct proc *p, struct proc_mapping *out, uint32_t cap);

/*
 * The kernel's identity of this process image, once known (proc_table_find() was asked for an id of
 * its life); false before.
 */
bool proc_id_of(const struct proc *p, struct proc_id *ret_id);

/*
 * Opens the file behind a module, read-only and close-on-exec, for symbolize/ and probe placement.
 *
 * In order: the descriptor kept from when the module was first resolved; its path below the root of
 * the mount namespace that was seen to map it, if device and inode are those of the mapping;
 * /proc/PID/map_files of a process that maps it and lives (a deleted file, a path mounted over,
 * overlayfs and btrfs, which show one file under two devices); the path again, if the inode is the
 * same on one of those file systems, or the build ID is. Another file there: -ESTALE. No file:
 * -ENOENT. Never follows a symlink out of that root; what is not a regular file is not opened at
 * all.
 */
int proc_table_open_module(struct proc_table *t, module_id m, struct err *e);

/*
 * The same for a regular file `path` as seen by processes that map `m`, or by us (`host`): separate
 * debug info. No symlink leads out of that root. -errno; -ENOENT, too, where several see it in roots of their own (image.h).
 */
int proc_table_open_beside(struct proc_table *t, module_id m, const char *path, bool host);

/* The same of a process, by its pid as label of samples; also when it is gone. -ENOENT: it is not known. */
int proc_table_open_in(struct proc_table *t, pid_t pid, const char *path);

/* Opens a process's file about code it generated into the memory `m` (jit_files.h). -errno. */
int proc_table_open_perf_map(struct proc_table *t, module_id m);
int proc_table_open_jitdump(struct proc_table *t, module_id m);

/* Is the path of `m` one that we see as well: mapped by a process of our own root? */
bool proc_table_in_own_root(const struct proc_table *t, module_id m);
/* The same of a process, as proc_table_open_in() finds it. */
bool proc_table_sees_own_root(struct proc_table *t, pid_t pid);

/*
 * What the kernel counted up to now has been read: forgets threads that had ended by the last call. Their names
 * stay, some thousands for a process.
 */
void proc_table_drained(struct proc_table *t);

/*
 * Forgets images that ended (exit, exec) before `ns`: call it once the totals of that time have
 * been drained and no pointer to them is kept. Their children have no parent then.
 */
void proc_table_retire(struct proc_table *t, uint64_t ns);

struct proc_table_stats {
	uint64_t unresolved;    /* proc_resolve() calls that found no mapping */
	uint64_t unknown_procs; /* proc_table_find() that found nothing       */
	uint64_t lost_maps;     /* mappings not recorded: table full, or out of memory */
	uint64_t lost_procs;    /* processes not recorded: out of memory      */
};
struct proc_table_stats proc_table_stats(const struct proc_table *t);

#endif
