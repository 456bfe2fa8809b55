/*
 * Puts the allocation probes where a process's allocator is.
 *
 * Every executable file that a target maps is looked into once, for the functions of allocators.c;
 * what is found is probed per process (perf_event uprobes with a pid: one address space), or with
 * `file_scope` once for all processes that map the file, now and later: then a child is covered
 * from its first call, and every other process on the host that maps the file traps too, and is
 * filtered out in BPF.
 *
 * Files are named by an open descriptor of what is really mapped, so that a replaced or deleted
 * library and one inside a container are found too. Return probes are put before entry probes,
 * so a call that began in between is not half seen.
 */
#ifndef MEMSCOPE_COLLECT_ALLOC_PROBES_H
#define MEMSCOPE_COLLECT_ALLOC_PROBES_H

#include "collect/bpf_session.h"
#include "proc/proc_table.h"

struct alloc_probes;

/* `objects`: CPython's functions for objects as well. */
int alloc_probes_new(struct session *s, struct dict *d, struct proc_table *procs, bool file_scope,
		     bool objects, struct alloc_probes **ret_probes, struct err *e);
/* Begins to detach and returns; uprobes_wait() returns when it is done. */
void alloc_probes_free(struct alloc_probes *ap);
DEFINE_CLEANUP(struct alloc_probes *, alloc_probes_freep, alloc_probes_free)

/*
 * Probes what `pid` maps and has not been probed in it. Cheap when there is nothing new. Returns
 * how many functions were newly probed, or -errno with a sentence (some may have been).
 */
int alloc_probes_add(struct alloc_probes *ap, pid_t pid, struct err *e);
/* A process has ended: its probes go with it; ours are given back. */
void alloc_probes_drop(struct alloc_probes *ap, pid_t pid);

/*
 * From now on probes come and go in slices (slicer.h): what is attached is taken away, and where
 * probes belong is only remembered, by alloc_probes_add() as before. May be called by another thread.
 */
void alloc_probes_slice(struct alloc_probes *ap);
/*
 * Attaches probes to the entries of allocating functions, wherever they belong. May be called by
 * another thread than the others. The descriptors, `cap` at most, are the caller's, to detach.
 * Returns how many.
 */
uint32_t alloc_probes_attach(struct alloc_probes *ap, int *ret_fds, uint32_t cap);
/* What a hit costs at the dearest of the functions that a program lives in, where one on an emulated
 * instruction costs `trap_ns`. */
double alloc_probes_trap_ns(const struct alloc_probes *ap, double trap_ns);

/* The same of one hit in the three of an allocation and its free, on average. */
double alloc_probes_hit_ns(const struct alloc_probes *ap, double trap_ns);

/*
 * The call rate of `pids`, by counting probes on the allocating functions alone, for at most
 * `slice_ms`; less when `enough` calls have been seen. Calls per second; -errno.
 */
int alloc_probes_rate(struct alloc_probes *ap, const pid_t *pids, uint32_t n, uint32_t slice_ms,
		      uint64_t enough, double *ret_per_s, struct err *e);

/* What one allocation and its free will cost in the probes of the files found so far, ns. */
double alloc_probes_pair_ns(const struct alloc_probes *ap);

struct alloc_probes_stats {
	uint32_t files, functions, attached;
	bool own_new;                /* an allocator whose operator new does not call its malloc */
	char nameless[256];          /* the path of a program without symbols, "": none  */
	char hidden[256];            /* … in which an allocator is: its path; "": none */
	const char *hidden_name;     /* that allocator                              */
	bool objects;                /* asked for, and found                        */
	char objects_hidden[256];    /* the path of a CPython whose objects are not traced; "": none */
	uint32_t failed;             /* functions that could not be probed          */
	char failed_why[160];
};
void alloc_probes_stats(const struct alloc_probes *ap, struct alloc_probes_stats *ret_stats);

#endif
