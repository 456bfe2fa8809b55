/*
 * What the process table is made of; for the files that implement proc_table.h only.
 *
 *   life      one process, from fork to exit          pid ─► newest ─► older ─► …
 *   proc      one image of it, from fork or exec on   life ─► newest ─► older ─► …
 *   lineage   processes whose exec ids are counted from one number, not yet known perhaps
 */
#ifndef MEMSCOPE_PROC_LIFE_H
#define MEMSCOPE_PROC_LIFE_H

#include "base/hash.h"
#include "proc/image.h"
#include "proc/namespace.h"
#include "proc/proc_table.h"
#include "proc/space.h"

enum {
	COMM_BYTES = 16,               /* the kernel's TASK_COMM_LEN          */
	THREAD_NAMES_MAX = 1 << 16,    /* kept for one image …                */
	ENDED_NAMES_MAX = 1 << 12,     /* … of threads that have ended        */
};

/*
 * start_time is taken inside the fork, the record written at its end: only a fork that was held
 * up between the two for longer is missed, and no process is taken for one long before it.
 */
#define FORK_TAKES_NS 1000000000ull

struct lineage {
	uint32_t refs;
	bool known;
	uint32_t base;                 /* the exec id that offset 0 stands for                */
	uint32_t slack;                /* how far a guessed base may turn out too low …       */
	const struct life *guessed;    /* … by an id of the life it was guessed from          */
};

struct thread_name {
	UT_hash_handle hh;
	pid_t tid;
	bool ended;
	uint32_t began;                /* proc_table.drains then; 0: by /proc          */
	char comm[COMM_BYTES];         /* "": as the process's                 */
};

/* A thread that has ended. */
struct ended_thread {
	pid_t pid, tid;
};

struct ended_threads {
	struct ended_thread *at;
	uint32_t n, cap;
};

enum { PROC_GENS = 8 }; /* newest generations whose beginning is known */

struct proc {
	struct proc *older;            /* the image before the last exec                      */
	struct life *life;
	uint32_t refs;                 /* the life, and lives it forked                       */
	uint32_t nth;                  /* execs since the life began                          */
	uint64_t end_ns;               /* exec or exit; 0 while it runs                       */
	uint64_t gen_ns[PROC_GENS];    /* when generation i, i + PROC_GENS … last began       */
	struct space *space;           /* NULL once retired                                   */
	char *exe;                     /* NULL: unknown                                       */
	int root;                      /* in ns_roots, or -1                                  */
	uint32_t full, full_for;       /* no room in `space` was found: so many mappings more pass before … another look */
	char comm[COMM_BYTES];
	struct thread_name *threads;
	uint32_t n_threads, n_ended;   /* … of which so many have ended and have a name       */
};

struct life {
	struct life *older;            /* the process that had this pid before                */
	struct proc *parent;           /* who forked it; NULL: unknown, or retired           */
	pid_t pid;
	bool fork_seen;                /* forked_ns is that of a fork record                  */
	uint64_t forked_ns;            /* latest start_ns it can have                         */
	uint64_t start_ns;             /* the kernel's, once it was named; 0 before           */
	uint64_t scanned_ns;           /* events before are in what /proc said; 0: not read   */
	uint32_t began;                /* proc_table.drains then; 0: by /proc                 */
	bool leader_exited, exited, retired;
	int threads;                   /* that are known to live                              */
	struct lineage *lineage;
	uint32_t offset;               /* exec id of the first image: lineage->base + offset  */
	struct proc *newest;
	uint32_t refs;                 /* its images, and the table                           */
};

struct pid_entry {
	UT_hash_handle hh;
	pid_t pid;
	struct life *newest;
};

struct proc_table {
	struct dict *d;
	struct ns_roots roots;
	struct images images;
	struct pid_entry *pids;
	struct ended_threads ended, ended_before; /* since the last proc_table_drained(), and the one before */
	uint32_t drains;                          /* of these, and one                                      */
	struct proc_table_stats stats;
};

/* The newest life of a pid, if it lives; NULL. */
struct life *life_running(const struct proc_table *t, pid_t pid);
/*
 * A new life with one image in an empty space, over any that the pid had. `parent` as in
 * struct proc; NULL begins a lineage of its own. NULL: out of memory, counted.
 */
struct life *life_begin(struct proc_table *t, pid_t pid, uint64_t forked_ns, struct proc *parent);
void life_end(struct life *l, uint64_t ns);
/* A new image after an exec, in an empty space. NULL: out of memory, counted. */
struct proc *life_exec(struct proc_table *t, struct life *l, uint64_t ns, const char *comm);

void proc_set_comm(struct proc *p, pid_t tid, const char *comm);
/* False: nothing is known of it, or it had ended. */
bool proc_thread_ends(struct proc *p, pid_t tid);
/* A thread; its number may have been another's. */
void proc_thread_begins(const struct proc_table *t, struct proc *p, pid_t tid);
/* Forgets it, but for a name that it had, of which so many are kept. */
void proc_thread_forget(struct proc *p, pid_t tid);
void proc_set_exe(struct proc *p, const char *path);
/* Adds a mapping to an image. */
void proc_map_add(struct proc_table *t, struct proc *p, const struct proc_mmap *m);

#endif
