/*
 * Attaches the allocation probes to a process's allocator.
 *
 * Every executable file that a target maps is searched once for the functions of allocators.c.
 * Those found are probed per process (perf_event uprobes with a pid: one address space), or with
 * `file_scope` once for all processes that map the file, now and later: then a child is covered
 * from its first call, and every other process on the host that maps the file traps too, and is
 * filtered out in BPF.
 *
 * Files are identified by an open descriptor of what is really mapped, so replaced or deleted
 * libraries and those inside a container are found too. Return probes are attached before entry
 * probes, so a call that began in between is not half seen.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_ALLOC_PROBES_H
#define MEMSCOPE_COLLECT_PROBES_ALLOC_PROBES_H

#include "collect/session/bpf_session.h"
#include "proc/proc_table.h"

struct alloc_probes;

/* `objects`: CPython's functions for objects as well. */
int alloc_probes_new(struct session *s, struct dict *d, struct proc_table *procs, bool file_scope,
		     bool objects, struct alloc_probes **ret_probes, struct err *e);
/* Begins to detach and returns; uprobes_wait() returns when it is done. */
void alloc_probes_free(struct alloc_probes *ap);
DEFINE_CLEANUP(struct alloc_probes *, alloc_probes_freep, alloc_probes_free)

/*
 * Probes whatever `pid` maps that has not been probed in it. Cheap when there is nothing new.
 * Returns how many functions were newly probed, or -errno with a sentence (some may have been).
 */
int alloc_probes_add(struct alloc_probes *ap, pid_t pid, struct err *e);
/* A process has ended, and its probes with it; their descriptors are closed. */
void alloc_probes_drop(struct alloc_probes *ap, pid_t pid);

/* A file that `pid` maps and that contains an allocator whose functions have no names. */
struct alloc_hidden {
	module_id module;
	const char *path, *allocator; /* "jemalloc" */
	uint64_t bias;                /* addr - vaddr in that process */
	int fd;                       /* the caller's to close */
};
/* false: it maps none. -errno is no reason to give up: false. */
bool alloc_probes_hidden(struct alloc_probes *ap, pid_t pid, struct alloc_hidden *ret_hidden);

/* A function that is known to allocate otherwise than by its name. */
enum alloc_way {
	ALLOC_WAY_MALLOC, ALLOC_WAY_CALLOC, ALLOC_WAY_ALIGNED, ALLOC_WAY_REALLOC,
	ALLOC_WAY_NEW, /* malloc that may throw: which block it made is never looked for */
};
struct alloc_known {
	uint64_t vaddr, size;
	enum alloc_way way;
	uint64_t probed; /* set: where its probe is, a vaddr; 0: nowhere */
};
/*
 * Those of such a file: from now on it is probed as others are, wherever it is mapped. Which functions free
 * is not known: only in bursts. Returns how many are probed; -errno.
 */
int alloc_probes_known(struct alloc_probes *ap, module_id module, struct alloc_known *known,
		       uint32_t n);

/*
 * From now on probes are attached in bursts (burst_timer.h): attached ones are removed, and
 * alloc_probes_add() only records where probes belong. May be called by another thread.
 */
void alloc_probes_burst(struct alloc_probes *ap);
/*
 * Attaches probes to the entries of allocating functions, wherever they belong; with `results`, also to the
 * return instructions of an allocator's own operator new, whose return cannot be probed. May be called by
 * another thread than the others. The descriptors, `cap` at most, are the caller's, to detach.
 * Returns how many.
 */
uint32_t alloc_probes_attach(struct alloc_probes *ap, bool results, int *ret_fds, uint32_t cap);
/* Are there such? A hit on one is single-stepped. */
bool alloc_probes_new_exits(struct alloc_probes *ap);
/* The cost of a hit at the most expensive of malloc and free, given that one on an emulated
 * instruction costs `trap_ns`. */
double alloc_probes_trap_ns(const struct alloc_probes *ap, double trap_ns);
/* The same of a hit at the most expensive return. */
double alloc_probes_exit_ns(struct alloc_probes *ap, double trap_ns);

/* The average cost of the three hits of an allocation and its free. */
double alloc_probes_hit_ns(const struct alloc_probes *ap, double trap_ns);

/*
 * The call rate of `pids`, measured by counting probes on the allocating functions for at most
 * `burst_ms`; it stops after `enough` calls. Calls per second; -errno.
 */
int alloc_probes_rate(struct alloc_probes *ap, const pid_t *pids, uint32_t n, uint32_t burst_ms,
		      uint64_t enough, double *ret_per_s, struct err *e);

/* The cost of one allocation and its free in the probes of the files found so far, ns. */
double alloc_probes_pair_ns(const struct alloc_probes *ap);

struct elf_syms;
/* How many functions of allocators `syms` has, of those that are probed. */
uint32_t alloc_probes_functions(struct elf_syms *syms);

struct alloc_probes_stats {
	uint32_t files, functions, attached;
	bool own_new;                /* an allocator whose operator new does not call its malloc */
	char nameless[256];          /* the path of a program without symbols, "": none  */
	char hidden[256];            /* … that contains an allocator: its path; "": none */
	const char *hidden_name;     /* that allocator                              */
	bool objects;                /* asked for, and found                        */
	char objects_hidden[256];    /* the path of a CPython whose objects are not traced; "": none */
	uint32_t failed;             /* functions that could not be probed          */
	char failed_why[160];
	uint32_t unread;             /* files whose reading failed, not counting those that are none of ELF */
	char unread_why[256];
};
void alloc_probes_stats(const struct alloc_probes *ap, struct alloc_probes_stats *ret_stats);

#endif
