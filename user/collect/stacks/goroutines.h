/*
 * Goroutines of the Go programs among the targets: looked at now and then while the run goes on, for the kernel sees only
 * the threads that run them (lang/goroutines.h).
 *
 * A look stands for the time since the one before. Looks are made at random times, a few a second, and so seldom that
 * all of them together take no more than GOROUTINES_SHARE of a CPU (and the cells, which know where frames end, what they
 * take for addresses that are new); where a process has many goroutines, a part of them
 * is looked at, each with the same known probability.
 */
#ifndef MEMSCOPE_COLLECT_STACKS_GOROUTINES_H
#define MEMSCOPE_COLLECT_STACKS_GOROUTINES_H

#include "collect/stream/ingest.h"
#include "model/dict.h"
#include "proc/proc_table.h"

#define GOROUTINES_SHARE 0.005

struct goroutines;

/* Both are borrowed. NULL: out of memory. */
struct goroutines *goroutines_new(struct dict *d, struct proc_table *procs);
void goroutines_free(struct goroutines *g);
DEFINE_CLEANUP(struct goroutines *, goroutines_freep, goroutines_free)

/* Who knows of containers: before the first look. */
void goroutines_begin(struct goroutines *g, struct ingest *in);

/* A process is there, or runs another program: is it one of Go's? false: its runtime has not begun, ask again. */
bool goroutines_add(struct goroutines *g, pid_t pid, uint64_t now_ns);
/* Time counts from here. */
void goroutines_start(struct goroutines *g, uint64_t now_ns);
/* What is due. `all`: each once more, for the last time. */
void goroutines_tick(struct goroutines *g, uint64_t now_ns, bool all);

/* Goroutines in one place for one reason. */
struct goroutine_use {
	stack_id stack;
	labels_id labels;       /* of the process; state, peer         */
	const char *reason;     /* the runtime's own word; "runnable", "system call" */
	const char *peer;       /* for whom they wait, "127.0.0.1:5432"; "" */
	bool waits;             /* they wait, and for no processor      */
	int64_t now;            /* at the last look                     */
	int64_t time_ns, waits_n; /* in the run: an estimate; how often they stopped, there or elsewhere */
	int64_t longest_ns;     /* one wait, at least                 */
};

uint32_t goroutines_n_uses(const struct goroutines *g);
/* All of them. */
void goroutines_uses(const struct goroutines *g, struct goroutine_use *ret_uses);

struct goroutines_figures {
	uint32_t processes;          /* Go programs whose goroutines were read   */
	uint32_t version;            /* of the first: 0x011308                  */
	bool untested;               /* one of a version that was never tried   */
	uint32_t refused;            /* Go programs whose goroutines are not read … */
	const char *why;             /* … of the first: a sentence; ""          */
	uint64_t looks, looked;      /* times; goroutines, each time            */
	uint64_t moved, unreadable;  /* of them, without a stack: ran on meanwhile; could not be read */
	uint64_t left_out;           /* for which the table of places had no room */
	uint64_t cut;                /* whose stack was not known to its beginning */
	uint32_t most_part;          /* one in so many was looked at, at the least; 1: all */
	int64_t now, running, system; /* at the last look: all, of them on a thread, of the runtime's own */
	uint64_t took_ns;            /* of CPU time */
};
struct goroutines_figures goroutines_figures(const struct goroutines *g);

#endif
