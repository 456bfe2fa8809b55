/*
 * Wire shape → profiles: a total or a site of allocations becomes a sample.
 *
 * Stacks arrive once (struct ms_stack_rec) and are resolved per process image and address-space
 * generation when they are first used: frame → (module, vaddr) through proc/, one interned stack
 * of kernel frames (leaf side) and user frames. A total whose stack has not arrived waits until
 * ingest_finish(); if it never came, its frames are `[stack lost]`, and it is counted.
 *
 * Return addresses are moved back into their call (pc - 1) here, so that whoever looks a location
 * up needs no flag; leaf frames are not.
 */
#ifndef MEMSCOPE_COLLECT_INGEST_H
#define MEMSCOPE_COLLECT_INGEST_H

#include "abi.h"
#include "base/cleanup.h"
#include "collect/kernel_functions.h"
#include "model/profile.h"
#include "proc/proc_table.h"

struct ingest;

/* The profiles of a run; each NULL when its source is off. Value types as in sources.h. */
struct ingest_profiles {
	struct profile *oncpu, *offcpu, *alloc, *heap, *peak, *growth, *mappings;
	struct profile *sites; /* model/alloc_site.h */
};

/* `schedule_addr`: where __schedule is, 0 when unknown (kallsyms hidden). */
struct ingest *ingest_new(struct dict *d, struct proc_table *procs,
			  const struct ingest_profiles *profiles, uint64_t schedule_addr);
/* Functions that stand in stacks between our program and the function that changed a count of pages
 * (MS_STACK_AT_RSS), `n` of them, INGEST_TRACERS at most. */
#define INGEST_TRACERS 5
void ingest_tracers(struct ingest *in, const struct kernel_function *functions, uint32_t n);
void ingest_free(struct ingest *in);
/* Called for user stacks that are not complete, `count` events at a time; `frames` and `verdict` as
 * in their record. */
typedef void (*ingest_gap_fn)(void *ctx, const struct ms_total_key *key, enum ms_verdict verdict,
			      const uint64_t *frames, uint32_t n, uint64_t count);
void ingest_on_gap(struct ingest *in, ingest_gap_fn fn, void *ctx);
/*
 * Called for exact allocations as their stacks become known: `blocks` and `bytes` were allocated, or
 * given back (both negative) of what `stack` had allocated. With `born_ns` it is one block instead that
 * is still there at the end: tell it after the last of its site.
 */
typedef void (*ingest_alloc_fn)(void *ctx, const struct ms_proc *proc, stack_id stack,
				int64_t blocks, int64_t bytes, uint64_t born_ns);
void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx);
/* What container a process is in, and under which pid it knows itself; nothing: NULL, 0. */
struct ingest_container {
	const char *name, *id; /* copied */
	pid_t ns_pid;
};
/* Asked for each thread, for labels. `cgroup_id`: of ms_total or ms_alloc_site, 0 where that is not known. */
typedef void (*ingest_whose_fn)(void *ctx, const struct ms_proc *proc, uint64_t cgroup_id,
				struct ingest_container *ret_container);
void ingest_on_whose(struct ingest *in, ingest_whose_fn fn, void *ctx);
DEFINE_CLEANUP(struct ingest *, ingest_freep, ingest_free)

/* All return 0 or -ENOMEM. */
int ingest_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames);
/* The same of a stack that was walked here: the generation of its addresses, whatever the totals say. */
int ingest_stack_placed(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
			uint32_t as_gen);
int ingest_total(struct ingest *in, const struct ms_total_key *key, const struct ms_total *total);
/*
 * Exact allocations, as in alloc_table.h: what a site did, and the last that is told of it. What is live
 * at the end of an image that has gone went with it, and is counted apart. Images of processes that were
 * to be kept stay: what was live at the end.
 */
int ingest_site(struct ingest *in, const struct ms_alloc_key *key, uint64_t cgroup_id,
		const int64_t *values, int64_t untracked, int64_t untracked_bytes, bool lost);
int ingest_site_end(struct ingest *in, const struct ms_alloc_key *key, uint64_t cgroup_id,
		    const int64_t *values);
/* A block that is there at the end; `site`: its site's key. Only its age is new. */
int ingest_block(struct ingest *in, const struct ms_alloc_key *site, const struct ms_block *block);
/* The end of `pid` is the end of the run: its last picture is kept. */
void ingest_keep(struct ingest *in, pid_t pid);
/* Has the memory of this image gone, and is not to be kept? */
bool ingest_gone(struct ingest *in, const struct ms_proc *proc);
/*
 * What samples say of a stack: `values` are those of the heap profile, of which the first two are
 * the alloc profile's. `samples`: how many that is. Once, after ingest_finish(). *ret_stack and
 * *ret_labels are what it was added under.
 */
int ingest_estimate(struct ingest *in, const struct ms_total_key *key, const int64_t values[4],
		    uint64_t samples, stack_id *ret_stack, labels_id *ret_labels);
/*
 * What a stack has mapped (mappings.h): `values` are those of the mappings profile, with a label for the
 * kind of memory. Once, after ingest_finish().
 */
int ingest_mapping(struct ingest *in, const struct ms_total_key *key, uint64_t cgroup_id,
		   const int64_t values[4]);
/* What a total of `key` is added under. false: its stack has not arrived, and may still. */
bool ingest_place(struct ingest *in, const struct ms_total_key *key, stack_id *ret_stack,
		  labels_id *ret_labels);
/* Live bytes by what sites told so far, of images that have not gone. */
int64_t ingest_live_bytes(struct ingest *in);
/*
 * The scheduler's times of a thread. One that has not gone is taken to be in its present state up
 * to `end_ns`, and a wait that is still open becomes a sample of that length.
 */
int ingest_thread(struct ingest *in, uint32_t tid, const struct ms_thread *t, uint64_t end_ns);
/* Open waits beyond these are left out, as the kernel leaves out those that have ended; max 0: no bound. */
void ingest_waits(struct ingest *in, uint64_t min_ns, uint64_t max_ns);
/* The wait that a thread is in at `now_ns`, if it is in one, as a sample of `to`; nothing else. Of its
 * blocked and its runnable part it is never more than will be told when it ends. One
 * whose stack has not arrived is left out: it will be in a total when it ends. */
int ingest_open_wait(struct ingest *in, struct profile *to, uint32_t tid, const struct ms_thread *t,
		     uint64_t now_ns);
/* The same for waits of a busy thread that are in no total yet. */
int ingest_rest(struct ingest *in, struct profile *to, const struct ms_total_key *key,
		const struct ms_total *total);
/* What was waiting for its stack is added without it. */
int ingest_finish(struct ingest *in);

/* Drops what is remembered about processes, so that proc_table_retire() may forget those that
 * ended. */
void ingest_forget(struct ingest *in);

struct ingest_times {
	uint64_t oncpu_ns, blocked_ns, runnable_ns, wall_ns;
	uint64_t held_ns;  /* stopped by ourselves at the start of a command: not in wall_ns */
	uint64_t left_out, left_out_ns; /* open waits that ingest_waits() leaves out        */
	uint32_t threads;
};
struct ingest_stats {
	struct ingest_times times;   /* summed over threads                                */
	uint64_t lost_stacks;        /* events whose stack record never arrived            */
	uint64_t unknown_process;    /* events of a process that nothing was known of      */
	uint64_t allocated, allocated_bytes, freed, freed_bytes, untracked, untracked_bytes;
	uint64_t live, live_bytes;   /* blocks handed in, of images that still exist        */
	uint64_t ended, ended_bytes; /* blocks that went with their process or an exec      */
	uint64_t oncpu_samples;
	uint64_t resident_bytes, returned_bytes; /* that stacks stand for                */
};
void ingest_stats(const struct ingest *in, struct ingest_stats *ret_stats);

#endif
