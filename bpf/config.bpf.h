/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Load-time knobs. User space sets them before load; the verifier then removes what is off.
 */
#ifndef MEMSCOPE_CONFIG_BPF_H
#define MEMSCOPE_CONFIG_BPF_H

/* Watch every process (-a); 0: only those in `targets`. */
const volatile __u8 cfg_all __weak = 0;
/* Follow the children of targets. */
const volatile __u8 cfg_children __weak = 1;
/* Watch only the members of `cgroups`. 1: all of those are of the unified hierarchy; 2: of any. */
const volatile __u8 cfg_cgroups __weak = 0;
/* Watch this thread only (-t); 0: all threads. */
const volatile __u32 cfg_tid __weak = 0;
/* memscope's own tgid: never watched by -a. */
const volatile __u32 cfg_self __weak = 0;
/* Stacks to keep: -U leaves out the kernel's, -K the user's. */
const volatile __u8 cfg_user_stacks __weak = 1;
const volatile __u8 cfg_kernel_stacks __weak = 1;
/* User space maintains unwind tables and walks deferred stacks; 0: frame pointers. */
const volatile __u8 cfg_unwind __weak = 0;
/* Bytes of deferred stacks that a CPU sends in ten milliseconds, at most (walk/deferred.bpf.h). */
const volatile __u32 cfg_deferred_rate __weak = 512 * 1024;
/* Frames of interpreted languages are looked for (`langs`). */
const volatile __u8 cfg_lang __weak = 0;
/* Entries of the unwind cache, for each CPU and type of program; 0: no cache. */
const volatile __u32 cfg_unwind_caches __weak = 0;
/* Tests: walk despite a cache hit, and compare. */
const volatile __u8 cfg_unwind_cache_check __weak = 0;
/* The event counts time, at periods that change: each sample has a weight of its own. */
const volatile __u8 cfg_sample_dither __weak = 0;
/* Seed of the stack hash, random for each run: nobody can prepare collisions. */
const volatile __u64 cfg_seed_lo __weak = 1;
const volatile __u64 cfg_seed_hi __weak = 2;
/* Probes have cookies, which say where arguments are (abi.h: MS_COOKIE_…). */
const volatile __u8 cfg_cookies __weak = 0;
/* Calls of bursts are probed at their return, too: which block each one made (struct ms_result_rec). */
const volatile __u8 cfg_burst_results __weak = 0;
/* Length of a slot of time of on-CPU samples, ns (--fine). */
const volatile __u64 cfg_oncpu_slot_ns __weak = MS_SLOT_NS;
/* The number of the only event of each program, where there are no cookies (abi.h). */
const volatile __u32 cfg_event_alone[MS_N_EVENT_PROGRAMS] __weak = {};
/* The off-CPU source is on: the task iterator fills in `threads`. */
const volatile __u8 cfg_threads __weak = 0;
/* Only waits of this length, blocked and runnable together, enter the off-CPU totals, ns; others
 * are counted. */
const volatile __u64 cfg_wait_min_ns __weak = 0;
const volatile __u64 cfg_wait_max_ns __weak = ~0ULL;
/* sched_switch has prev_state as its fourth argument (kernel commit fa2c3254d7cf, 5.18). */
const volatile __u8 cfg_switch_has_state __weak = 0;

/*
 * Read the scheduler's own account: when a thread was last queued, how long it waited for a CPU,
 * the present time (rq.clock). Wake-ups are not traced then.
 */
const volatile __u8 cfg_sched_account __weak = 0;
/* System calls whose first argument is a descriptor that they may wait for: a bit each (descriptors.bpf.h). */
const volatile __u64 cfg_fd_calls[MS_FD_CALLS / 64] __weak = {};
/* Files and peers that threads wait for are noted. */
const volatile __u8 cfg_objects __weak = 0;
/* Who runs while threads wait for a CPU is noted (runqueue.bpf.h). */
const volatile __u8 cfg_run_delays __weak = 0;
/* Who wakes threads is noted (wakers.bpf.h). */
const volatile __u8 cfg_wakers __weak = 0;
/* Waits of threads that switch often are sampled (wait_sampler.bpf.h). */
const volatile __u8 cfg_wait_sampler __weak = 0;
/* Slots of `sampled_threads`, a power of two. */
const volatile __u32 cfg_sampled_slots __weak = 256;

/*
 * Growth. Bytes of a page; at how many pages a CPU's part of a counter is folded into the sum
 * (lib/percpu_counter.c); the number of possible CPUs.
 */
const volatile __u32 cfg_page_bytes __weak = 4096;
const volatile __s64 cfg_rss_batch __weak = 32;
const volatile __u32 cfg_cpus __weak = 1;

/*
 * The gate: user space opens it when everything is attached and closes it before anything is
 * detached, so that all sources see the same interval.
 */
volatile __u32 gate_open __weak = 0;
/* When it opened, CLOCK_MONOTONIC: slots of time begin there. Set before. */
volatile __u64 slots_from_ns __weak = 0;
/* The same for allocations: all functions of an allocator are watched, or none. */
volatile __u32 gate_alloc_open __weak = 0;

/*
 * Bursts: while burst_no is not 0, only entries of allocating functions are probed, and each call
 * only adds to the burst's totals (burst_no is their bucket). burst_left: how many calls the burst
 * may still count; the last one closes gate_alloc_open and sets burst_closed_ns (CLOCK_MONOTONIC).
 * While burst_no is 0 and every call is traced, burst_left does the same for probe hits, counted
 * down in batches. Returns, with cfg_burst_results, count as calls do; burst_results_off: no more of
 * them from the next call on.
 */
volatile __u32 burst_no __weak = 0;
volatile __u32 burst_results_off __weak = 0;
volatile __s64 burst_left __weak = 0;
volatile __u64 burst_closed_ns __weak = 0;

/*
 * System calls: 1 in 2^syscall_shift is counted; of those that are short, 1 in 2^syscall_stack_shift has its stack
 * captured. Set by user space.
 */
volatile __u32 syscall_shift __weak = 0;
volatile __u32 syscall_stack_shift __weak = 0;

/* How many calls see_call may still send; where jemalloc's map of pages begins in the process whose calls
 * they are; the bits of an entry of it that are the address of an edata. */
volatile __s64 calls_left __weak = 0;
volatile __u64 calls_root __weak = 0;
volatile __u64 calls_edata __weak = 0;

/* Keep one in 2^sample_shift of a sampler's allocations; set by user space (sample_throttle.h). */
volatile __u32 sample_shift __weak = 0;

/*
 * Wait sampling. At each wait site of a sampled thread, about one wait in sample_gap_ns has its
 * stack sampled, and every wait at rarer sites. A thread becomes sampled when it comes to a CPU
 * after often_switches switches within MS_OFTEN_NS, or after find_switches since find_sampled last
 * ran. n_sampled: how many are sampled now.
 */
volatile __u64 sample_gap_ns __weak = 0;
volatile __u32 often_switches __weak = 0;
volatile __u64 find_switches __weak = 0;
volatile __u32 n_sampled __weak = 0;

/*
 * Duty cycles (slices.h), of waits and of growth: the slice in force is that of the number's lowest bit. By user space, before the
 * gate opens. resume_looks: how many stacks resume_threads may still send. waits_rest, growth_rest: between two slices the programs that run
 * at each event stay attached, and return at once.
 */
volatile struct ms_slice wait_slices[2] __weak = {};
volatile __u32 wait_slice_no __weak = 0;
volatile struct ms_slice growth_slices[2] __weak = {};
volatile __u32 growth_slice_no __weak = 0;
volatile __s32 resume_looks __weak = 0;
volatile __u32 waits_rest __weak = 0;
volatile __u32 growth_rest __weak = 0;

/* Mean weight of an on-CPU sample, ns. */
volatile __u64 sample_ns __weak = 0;

/* Bit n: groups of hierarchy n are watched; bit 63: of any hierarchy from 63 on. By user space. */
volatile __u64 cgroup_hierarchies __weak = 0;

/* Where the kernel's code begins and ends into which interrupts lead (wakers.bpf.h). By user space, before the gate opens. */
volatile __u64 interrupts_from __weak = 0;
volatile __u64 interrupts_to __weak = 0;

/* `spaces` contains all mappings made up to then, CLOCK_MONOTONIC ns. */
volatile __u64 mappings_known_ns __weak = 0;

/* There are rows in `label_sources`. */
volatile __u32 has_label_sources __weak = 0;

/* When user space was last woken for a stack with frames of a language, CLOCK_MONOTONIC ns. */
volatile __u64 lang_woken_ns __weak = 0;
#define LANG_WAKE_NS 10000000

/* CLOCK_MONOTONIC in seconds, kept by user space: exact enough for a table's time of last use. */
volatile __u32 clock_s __weak = 0;

#endif
