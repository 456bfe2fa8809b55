/*
 * Wire shape → profiles: a total or a site of allocations becomes a sample.
 *
 * Stacks arrive once and are resolved per process image and address-space
 * generation when they are first used: frame → (module, vaddr) through proc/, one interned stack
 * of kernel frames (leaf side) and user frames. A total whose stack has not arrived waits for it (ingest_waiting(),
 * ingest_finish()); if it never came, its frames are `[stack lost]`, and it is counted.
 *
 * Return addresses are moved back into their call (pc - 1) here, so that nobody who looks up a
 * location needs a flag; leaf frames are not.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_INGEST_H
#define MEMSCOPE_COLLECT_STREAM_INGEST_H

#include "base/cleanup.h"
#include "collect/session/kernel_functions.h"
#include "collect/stream/event_key.h"
#include "model/profile.h"
#include "model/source.h"
#include "proc/proc_table.h"

struct ingest;

/* The profiles of a run; each NULL when its source is off. Value types as in sources.h. */
struct ingest_profiles {
	struct profile *oncpu, *offcpu, *alloc, *heap, *peak, *growth, *mappings, *syscalls;
	struct profile *sites; /* model/alloc_site.h */
};

/*
 * Events that were asked for, by their numbers. `profile` NULL: not known. `leaf`: what stands below the stack, where a profile
 * has several; NULL: nothing. `counts`: each stack stands for a number of events, else for an amount.
 */
struct ingest_event {
	struct profile *profile;
	const char *leaf;
	bool counts;
};
typedef struct ingest_event (*ingest_event_fn)(void *ctx, uint32_t number);

/* `schedule_addr`: where __schedule is, 0 when unknown (kallsyms hidden). */
struct ingest *ingest_new(struct dict *d, struct proc_table *procs,
			  const struct ingest_profiles *profiles, uint64_t schedule_addr);
/* Functions that appear in stacks between our program and the function that changed a count of
 * pages `n` of them, INGEST_TRACERS at most. */
#define INGEST_TRACERS 5
void ingest_tracers(struct ingest *in, const struct kernel_function *functions, uint32_t n);
/* Where stacks of wakers begin: try_to_wake_up(); addr 0: not known. */
void ingest_wakers(struct ingest *in, const struct kernel_function *function);
void ingest_free(struct ingest *in);
/* Called for user stacks that are not complete, `count` events at a time; `frames` and `verdict` as
 * in their record. */
typedef void (*ingest_incomplete_fn)(void *ctx, const struct proc_id *proc, uint32_t as_gen,
				     enum stack_verdict verdict, const uint64_t *frames, uint32_t n,
				     uint64_t count);
void ingest_on_incomplete(struct ingest *in, ingest_incomplete_fn fn, void *ctx);
/*
 * Frames of interpreted languages. `place`: the location of a frame, by its words in a stack record
 * (bpf/walk/lang.h); called for each new stack as soon as it arrives, in the process that it was seen in first,
 * so that what a frame refers to is still there. `internal`: is this the module of the process's interpreter?
 * Frames of it are left out between those of the language, unless `keep_native`. `stub`: is this frame, which `place` has named, code of
 * a runtime between functions? It is left out where it is not the leaf, unless `keep_native`. `native`: `count` events of a user
 * stack without any frame of a language.
 */
struct ingest_langs {
	location_id (*place)(void *ctx, const struct proc_id *proc, const uint64_t words[2]);
	void (*seen)(void *ctx, pid_t pid, const uint64_t words[2]);
	bool (*internal)(void *ctx, const struct proc_id *proc, module_id module);
	bool (*stub)(void *ctx, const struct proc_id *proc, const uint64_t words[2]);
	void (*native)(void *ctx, const struct proc_id *proc, const uint64_t *frames, uint32_t n,
		       uint64_t count);
	void *ctx;
	bool keep_native;
};
void ingest_on_langs(struct ingest *in, const struct ingest_langs *langs);
/*
 * Called for exact allocations as their stacks become known: `blocks` and `bytes` were allocated,
 * or freed (both negative) of what `stack` had allocated. With `born_ns` it is instead one block
 * that is live at the end, reported after the last of its site.
 */
typedef void (*ingest_alloc_fn)(void *ctx, const struct proc_id *proc, stack_id stack,
				int64_t blocks, int64_t bytes, uint64_t born_ns);
/* INGEST_ALLOC_LISTENERS at most. */
#define INGEST_ALLOC_LISTENERS 4
void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx);
/* The container of a process, its pod and namespace of Kubernetes, and its pid there; the control group that was
 * asked for. None: NULL, 0. `unsure`: it may be in one all the same, its group is not known yet. */
struct ingest_container {
	const char *name, *id, *cgroup, *pod, *namespace; /* copied */
	pid_t ns_pid;
	bool unsure;
};
/* Called for each thread, for labels. `cgroup_id`: of its first event, 0 if unknown. */
typedef void (*ingest_container_fn)(void *ctx, const struct proc_id *proc, uint64_t cgroup_id,
				    struct ingest_container *ret_container);
void ingest_container_lookup(struct ingest *in, ingest_container_fn fn, void *ctx);
/* Of any process: the name alone, until the next call; NULL: it is in none, or has gone unseen. */
const char *ingest_container_name(struct ingest *in, const struct proc_id *proc);
/*
 * Labels that a program sets itself: those of set `set` of a process, as totals have it. None: 0. They live as long
 * as the dict.
 */
enum { INGEST_OWN_LABELS = 16 };
typedef uint32_t (*ingest_own_labels_fn)(void *ctx, const struct proc_id *proc, uint32_t set,
					 struct label ret_labels[INGEST_OWN_LABELS]);
void ingest_on_own_labels(struct ingest *in, ingest_own_labels_fn fn, void *ctx);
void ingest_on_events(struct ingest *in, ingest_event_fn fn, void *ctx);
DEFINE_CLEANUP(struct ingest *, ingest_freep, ingest_free)

struct drain;
/*
 * What `d` hands over and nobody has taken before goes into the profiles: call it after all other drain_on().
 * Threads that have not ended stay in their present state up to *end_ns, up to now while that is 0. *oom is set
 * when memory runs out. All are borrowed.
 */
void ingest_listen(struct ingest *in, struct drain *d, const uint64_t *end_ns, bool *oom);

/*
 * When what is handed over from now on came: since the exchange of totals before this one, or between two moments that are
 * known better (CLOCK_MONOTONIC). Profiles that have times (profile_times()) have what has no time of its own in that stretch;
 * on-CPU samples, waits and growth have their own.
 */
struct ingest_stretch {
	uint64_t begin_ns; /* of the run: of bin 0 */
	uint64_t from_ns, to_ns;
	uint64_t oncpu_slot_ns; /* session_opts */
};
void ingest_stretch(struct ingest *in, const struct ingest_stretch *stretch);
void ingest_between(struct ingest *in, uint64_t from_ns, uint64_t to_ns);

/* All return 0 or -ENOMEM. */

/*
 * Exact allocations, as in alloc_table.h: what a site did, and its last report. Blocks live at the
 * end of an image ended with it, and are counted apart. Images of processes passed to ingest_keep()
 * stay: their blocks were live at the end of the run.
 */
int ingest_site(struct ingest *in, const struct site_key *key, uint64_t cgroup_id,
		const int64_t *values, int64_t untracked, int64_t untracked_bytes, bool lost);
int ingest_site_end(struct ingest *in, const struct site_key *key, uint64_t cgroup_id,
		    const int64_t *values);
/* A block that is live at the end; `site`: its site's key. Only its age is new. */
int ingest_block(struct ingest *in, const struct site_key *site, int64_t bytes, uint64_t born_ns);
/* The stack of a site, once all stacks have come (ingest_finish()). false: its process has gone, or its stack never came. */
bool ingest_site_stack(struct ingest *in, const struct site_key *site, stack_id *ret_stack);
/* If `pid` ends, that ends the run: its last state is kept. */
void ingest_keep(struct ingest *in, pid_t pid);
/* Has the memory of this image gone, without being kept? */
bool ingest_gone(struct ingest *in, const struct proc_id *proc);
/*
 * A sampler's estimate for a stack: `values` are those of the heap profile, of which the first two
 * are the alloc profile's; of one that grows, what came since the last call. `samples`: their number.
 * *ret_stack and *ret_labels are what it was added under. -EAGAIN: its stack has not arrived, and nothing
 * was added; not after ingest_finish().
 */
int ingest_estimate(struct ingest *in, const struct event_key *key, const int64_t values[4],
		    uint64_t samples, stack_id *ret_stack, labels_id *ret_labels);
/*
 * What a stack has mapped (mappings.h): `values` are those of the mappings profile, with a label
 * for the kind of memory. Once, after ingest_finish().
 */
int ingest_mapping(struct ingest *in, const struct event_key *key, uint64_t cgroup_id,
		   const int64_t values[4]);
/* The key under which a thread's allocations are kept: without its number, where a process has had many threads. */
struct event_key ingest_event(struct ingest *in, const struct event_key *of);
/* The stack and labels of a total with this key. false: its stack has not arrived, and may still. */
bool ingest_place(struct ingest *in, const struct event_key *key, stack_id *ret_stack,
		  labels_id *ret_labels);
/* The stack alone. */
bool ingest_place_stack(struct ingest *in, const struct event_key *key, stack_id *ret_stack);
/* How its user part ended; STACK_LOST where it has not arrived, or there is none. */
enum stack_verdict ingest_place_verdict(struct ingest *in, const struct event_key *key);
/* Labels of a process as its totals have them, without a thread's: "pid", "comm", its container. */
labels_id ingest_process_labels(struct ingest *in, const struct proc_id *id);
/* Live bytes by the sites reported so far, of images that have not gone. */
int64_t ingest_live_bytes(struct ingest *in);
/* Open waits outside these bounds are dropped, as the kernel drops finished ones; max 0: no bound. */
void ingest_waits(struct ingest *in, uint64_t min_ns, uint64_t max_ns);
/*
 * Totals that waited for a stack which has come since are added; without it, counted as lost, those that are too many, and those that have
 * waited since before `until_ns` where their process has ended, else since 100 s before that. UINT64_MAX: all. 0 or -ENOMEM.
 */
int ingest_waiting(struct ingest *in, uint64_t until_ns);
/* All that wait are added. */
int ingest_finish(struct ingest *in);

/*
 * Of processes that have ended when their totals are read, or have just begun, `max` have labels with their number, and the
 * others share those of their name: a service among compilers would fill memory with samples that differ in that number only.
 */
void ingest_few_processes(struct ingest *in, uint32_t max);
/* Has it, or would it have, if it had a sample now? */
bool ingest_shows_process(struct ingest *in, const struct proc_id *id);

/* Drops what is remembered about processes, so that proc_table_retire() may forget those that
 * ended. */
void ingest_forget(struct ingest *in);

struct ingest_times {
	uint64_t oncpu_ns, blocked_ns, runnable_ns, wall_ns;
	uint64_t held_ns; /* stopped by ourselves at the start of a command: not in wall_ns */
	uint64_t left_out, left_out_ns; /* open waits that ingest_waits() leaves out        */
	uint32_t threads;
};
/* Threads of a process that are shown by their number even when they have ended, and in any case. */
enum { INGEST_SHOWN_ENDED = 512, INGEST_SHOWN_MAX = 8192 };
/* Processes of a service that are shown by their number though they come and go. */
#define INGEST_SHOWN_PROCESSES 4096

struct ingest_stats {
	struct ingest_times times; /* summed over threads                                */
	uint64_t lost_stacks;      /* events whose stack record never arrived            */
	uint64_t unknown_process;  /* events of a process that nothing was known of      */
	uint64_t allocated, allocated_bytes, freed, freed_bytes, untracked, untracked_bytes;
	uint64_t live, live_bytes;   /* blocks handed in, of images that still exist        */
	uint64_t ended, ended_bytes; /* blocks that went with their process or an exec      */
	uint64_t oncpu_samples;
	uint64_t resident_bytes, returned_bytes; /* that stacks stand for                */
	uint64_t numberless; /* totals of threads that are not shown by their number         */
	uint64_t numberless_processes; /* … of processes                                    */
};
void ingest_stats(const struct ingest *in, struct ingest_stats *ret_stats);

#endif
