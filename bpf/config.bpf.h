/*
 * Load-time knobs. User space sets them before load; the verifier then removes what is off.
 */
#ifndef MEMSCOPE_CONFIG_BPF_H
#define MEMSCOPE_CONFIG_BPF_H

/* Watch every process (-a); 0: only those in `targets`. */
const volatile __u8 cfg_all __weak = 0;
/* Follow the children of targets. */
const volatile __u8 cfg_children __weak = 1;
/* The members of `cgroups` are watched, and nobody else: 1: all of those are of the unified hierarchy;
 * 2: of any. */
const volatile __u8 cfg_cgroups __weak = 0;
/* Watch this thread only (-t); 0: all threads. */
const volatile __u32 cfg_tid __weak = 0;
/* memscope's own tgid: never watched by -a. */
const volatile __u32 cfg_self __weak = 0;
/* Stacks to keep: -U leaves out the kernel's, -K the user's. */
const volatile __u8 cfg_user_stacks __weak = 1;
const volatile __u8 cfg_kernel_stacks __weak = 1;
/* Unwind tables are kept up by user space, and it walks what is sent to it; 0: frame pointers. */
const volatile __u8 cfg_unwind __weak = 0;
/* Walks that each CPU remembers for each type of program; 0: all are made. */
const volatile __u32 cfg_recalls __weak = 0;
/* Walks that need not be made are made, and compared. */
const volatile __u8 cfg_recall_check __weak = 0;
/* What one on-CPU sample stands for, ns; 0: the event's own period (cpu-clock counts in ns). */
const volatile __u64 cfg_sample_ns __weak = 0;
/* Seed of the stack hash, random for each run: collisions cannot be prepared. */
const volatile __u64 cfg_seed_lo __weak = 1;
const volatile __u64 cfg_seed_hi __weak = 2;
/* Probes have cookies: MS_PLACE_… of where they are. */
const volatile __u8 cfg_places __weak = 0;
/* Length of a time bucket, ns; 0: one bucket. */
const volatile __u64 cfg_bucket_ns __weak = 0;
const volatile __u64 cfg_start_ns __weak = 0;
/* The off-CPU source is on: the task iterator fills in `threads`. */
const volatile __u8 cfg_threads __weak = 0;
/* Waits, blocked and runnable together, that are in the off-CPU totals, ns; others are counted. */
const volatile __u64 cfg_wait_min_ns __weak = 0;
const volatile __u64 cfg_wait_max_ns __weak = ~0ULL;
/* sched_switch has prev_state as its fourth argument (kernel commit fa2c3254d7cf, 5.18). */
const volatile __u8 cfg_switch_has_state __weak = 0;

/*
 * The scheduler's own account is read: when a thread was last queued, how long it waited for a CPU, what
 * time it is (rq.clock). Wake-ups are not traced then.
 */
const volatile __u8 cfg_sched_account __weak = 0;
/* There is storage for threads that switch often. */
const volatile __u8 cfg_busy __weak = 0;

/*
 * Growth. A page's bytes; at how many pages a CPU's part of a counter is folded into the sum
 * (lib/percpu_counter.c); CPUs that there may be.
 */
const volatile __u32 cfg_page_bytes __weak = 4096;
const volatile __s64 cfg_rss_batch __weak = 32;
const volatile __u32 cfg_cpus __weak = 1;

/*
 * The gate: user space opens it when everything is attached and closes it before anything is
 * detached, so that all sources see the same interval.
 */
volatile __u32 gate_open __weak = 0;
/* The same for allocations alone: all of an allocator's functions are watched, or none. */
volatile __u32 gate_alloc_open __weak = 0;

/*
 * Slices: while slice_no is not 0, only the entries of allocating functions are probed, and each call
 * is a total of that slice (its bucket), no more. slice_left: how many calls it may still take; with
 * the last one it closes gate_alloc_open itself, and says when (CLOCK_MONOTONIC). While slice_no is 0 and
 * every call is traced, the same of hits of probes, counted down some at a time.
 */
volatile __u32 slice_no __weak = 0;
volatile __s64 slice_left __weak = 0;
volatile __u64 slice_closed_ns __weak = 0;

/* Of a sampler's allocations one in 2^sample_shift is kept; written by user space (thinner.h). */
volatile __u32 sample_shift __weak = 0;

/*
 * Of the waits of a busy thread at one place, one in so much time is looked at, about, and all that are
 * less frequent; 0: all waits of all threads. busy_switches: what find_busy takes for busy, switches since
 * it last ran; n_busy: how many threads it has so taken, of n_busy_max.
 */
volatile __u64 look_gap_ns __weak = 0;
volatile __u64 busy_switches __weak = 0;
volatile __u32 n_busy __weak = 0;
volatile __u32 n_busy_max __weak = 0;

/* Bit n: groups of hierarchy n are watched, of 63: of those from 63 on. Written by user space. */
volatile __u64 cgroup_hierarchies __weak = 0;

/* Mappings made up to then, CLOCK_MONOTONIC ns, are in `spaces`. */
volatile __u64 mappings_known_ns __weak = 0;

/* CLOCK_MONOTONIC in seconds, kept by user space: when tables are used need not be known better. */
volatile __u32 clock_s __weak = 0;

#endif
