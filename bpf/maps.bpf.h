/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map: key, value, writer, reader, and what happens when it is full. Defined once here;
 * the copies in the separate objects are folded into one when they are linked (__weak). Sizes
 * marked "set at load" come from collect/session/bpf_session.c and the --mem budget.
 */
#ifndef MEMSCOPE_MAPS_BPF_H
#define MEMSCOPE_MAPS_BPF_H

/* Counters: one slot per row of stats.def and CPU. Written by all, read by collect/stream/drain.c. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, N_STATS);
	__type(key, __u32);
	__type(value, __u64);
} stats __weak SEC(".maps");

/* Verdicts, one count per use of a stack: [source * MS_N_VERDICTS + verdict]. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MS_N_SOURCES * MS_N_VERDICTS);
	__type(key, __u32);
	__type(value, __u64);
} verdicts __weak SEC(".maps");

/* When the on-CPU event last fired, CLOCK_MONOTONIC ns; 0: never. Written and read by on_cpu. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} oncpu_fired __weak SEC(".maps");

/* Watched processes, by tgid. Written by user space and by fork/exit in proc.bpf.c; full: the
 * child is not followed, STAT_TARGETS_FULL. With -a only as_gen is used. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct ms_target);
} targets __weak SEC(".maps");

/* Watched control groups: every process in one of them, or below it, is a target. Written by user
 * space, and by cgroup.bpf.c when one of `cgroup_paths` is made; full: user space finds it some
 * time later. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MS_CGROUPS_MAX);
	__type(key, struct ms_cgroup);
	__type(value, __u8);
} cgroups __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MS_CGROUPS_MAX);
	__type(key, struct ms_cgroup_path);
	__type(value, __u8);
} cgroup_paths __weak SEC(".maps");

/*
 * Totals: for each lane two maps of one shape; programs use the one in totals_live[lane]. User
 * space puts the other one there (the update returns after a grace period, when no program holds
 * the old map any more), then reads and clears the old one: no addition is lost. Full: the event
 * goes to the ring. Preallocated, as perf events demand; size set at load.
 */
struct totals_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ms_total_key);
	__type(value, struct ms_total);
} totals_a __weak SEC(".maps"), totals_b __weak SEC(".maps"), irq_totals_a __weak SEC(".maps"),
	irq_totals_b __weak SEC(".maps");

/* Filled in at load: bpftool gen object drops the initial values of maps in maps. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MS_N_LANES);
	__type(key, __u32);
	__array(values, struct totals_map);
} totals_live __weak SEC(".maps");

/* Stacks that user space has been sent, by hash; one map for each lane. An LRU does no harm here: a
 * forgotten stack is sent once more. Size set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct ms_hash);
	__type(value, __u8);
} seen __weak SEC(".maps"), irq_seen __weak SEC(".maps");

/* Stack records, and additions that the totals had no room for. Full: STAT_STACK_RING_FULL, and the
 * stack is sent when it is next seen; STAT_TOTAL_FULL. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} events __weak SEC(".maps");

/*
 * The unwind tables (rows.h), written by user space through a shared mapping. Pool: spans,
 * directories and rows; sizes set at load.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ms_pool_page);
} unwind_pool __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ms_table);
} unwind_tables __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct ms_rule);
} unwind_rules __weak SEC(".maps");

/* The spans of each process, by tgid. Written by user space, and by proc.bpf.c for children; full:
 * the stacks of the process are walked in user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct ms_space);
} spaces __weak SEC(".maps");

/* The runtime of a language in each process, by tgid. Written by user space, and by proc.bpf.c for children;
 * full: frames of the language are missing. Size set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ms_lang_row);
} langs __weak SEC(".maps");

/*
 * When something executable was last mapped over what `spaces` describes: slot tgid % N_REMAPPED.
 * Written by proc.bpf.c; a time later than mappings_known_ns defers walks to user space. When two
 * processes share a slot, the stacks of both are deferred for some milliseconds.
 */
#define N_REMAPPED 8192
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, N_REMAPPED);
	__type(key, __u32);
	__type(value, __u64);
} remapped __weak SEC(".maps");

/* Threads of targets, by tid. Written by offcpu.bpf.c, read and thinned by drain.c. Not an LRU:
 * it would forget the longest waits. Full: STAT_THREADS_FULL. Size set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct ms_thread);
} threads __weak SEC(".maps");

/* Processes that set labels, by tgid. Written by user space; full: labels of the process are missing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ms_label_source);
} label_sources __weak SEC(".maps");

/* Room to read a thread's context: of on_cpu, which may interrupt the other, and of the program that sees threads leave. */
#define N_CONTEXT_ROOMS 2
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, N_CONTEXT_ROOMS);
	__type(key, __u32);
	__type(value, struct ms_context_rec);
} context_rooms __weak SEC(".maps");

/* Sets of labels that were sent to user space, tgid << 32 | set, in slot set % N_LABELS_SENT. An array, since an
 * NMI may interrupt whoever writes to it. */
#define N_LABELS_SENT 4096
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, N_LABELS_SENT);
	__type(key, __u32);
	__type(value, __u64);
} labels_sent __weak SEC(".maps");

/* Threads whose process is in a pid namespace of its own, by the number that they have there: the tid. Written where
 * `threads` is; full: the oldest is forgotten, and is no owner of a lock any more. */
struct ns_thread {
	__u32 tgid, ns_tid;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ns_thread);
	__type(value, __u32);
} ns_threads __weak SEC(".maps");

/* What does not fit on the BPF stack at sched_switch: facts of the thread that leaves, kept while
 * its stacks are captured; the key of a total; a new thread. Its users are not preempted. */
struct wait_begun {
	struct ms_thread fresh;
	struct ms_total_key key;
	struct ms_proc proc;
	struct ms_hash user, kernel;
	struct ms_ended_rec ended;
	struct ms_object_rec object;
	__u64 now_ns;
	/* Of a switch, by the slices' clock (slices.h), where that is not the time of day, else 0; the same by CLOCK_MONOTONIC; and by which
	 * waits of sampled threads are measured. */
	__u64 sliced_ns, real_ns, clock_ns;
	__u32 as_gen;
	__u32 words[7]; /* of a lock (lock_words.h: LOCK_WORDS), and one to fill up */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_begun);
} wait_begun __weak SEC(".maps");

/* The last processes that each CPU switched to (runqueue.bpf.h). */
#define CPU_RUNS 64
struct cpu_run {
	__u64 since_ns, start_ns;
	__u64 comm[2];
	__u32 tgid, kernel;
};
struct cpu_runs {
	__u32 n;     /* switches so far: the newest is runs[n % CPU_RUNS] */
	__u32 slice; /* in which the last of them was (slices.h) */
	struct cpu_run runs[CPU_RUNS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_runs);
} cpu_runs __weak SEC(".maps");

/* Room for the record of a waker; programs at sched_waking are not preempted, nor interrupted by one another. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_waker_rec);
} waker_rooms __weak SEC(".maps");

/*
 * Threads that switch often: thread `tid` is in slot tid % cfg_sampled_slots or in that one's
 * neighbour. Not task storage: a look-up there is a call of 22 ns, here some instructions, and each
 * switch needs two. Written by offcpu.bpf.c, read through list_sampled; free again when the thread
 * exits. No free slot: the stack of every wait of the thread is captured. Sizes set at load.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct ms_sampled_thread);
} sampled_threads __weak SEC(".maps");

/* Taken slots, so that two CPUs cannot take the same one: the tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} sampled_slots __weak SEC(".maps");

/*
 * Sites of exact allocations: the records, the index of each by key, and the free ones. Written by
 * alloc.bpf.c, read by collect/stream/alloc_table.c, which also removes finished ones. Full:
 * STAT_SITES_FULL, and the allocation is counted at its process's root; without a root:
 * STAT_SITES_NONE. Sizes set at load.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ms_alloc_site);
} alloc_sites __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ms_alloc_key);
	__type(value, __u32);
} alloc_index __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1024);
	__type(value, __u32);
} alloc_free __weak SEC(".maps");

/* Allocations by size, one slot per class (abi.h) and CPU. Written by alloc.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MS_SIZE_CLASSES);
	__type(key, __u32);
	__type(value, __u64);
} alloc_sizes __weak SEC(".maps");

/* Live allocations. Written by alloc.bpf.c; full: STAT_BLOCKS_FULL, and the site counts the
 * allocation as untracked. Allocated on demand; bound set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct ms_block_key);
	__type(value, struct ms_block);
} blocks __weak SEC(".maps");

/* Argument positions of samplers' sites that differ from those of a call. Written by user space
 * before it attaches there, read by sampled.bpf.c. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MS_SITES_MAX);
	__type(key, __u32);
	__type(value, struct ms_site);
} sites __weak SEC(".maps");

/* Per thread: the allocator call in flight. Written by alloc.bpf.c, removed at the thread's
 * exit, read when a run ends; full: STAT_INFLIGHT_FULL. An entry stays for the next call, so
 * that a call costs no insertion. Size set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct ms_inflight);
} inflight __weak SEC(".maps");

/* Per thread: the mapping system call in flight. Written and emptied by mappings.bpf.c; full:
 * STAT_MAPPINGS_LOST. Size set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct ms_mapping_call);
} mapping_calls __weak SEC(".maps");

/* Address spaces of targets, and the same on each CPU. Written by growth.bpf.c; removed by it and
 * by drain.c when they end. Full: STAT_MEMORY_FULL. Sizes set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct ms_memory);
} memories __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct ms_memory_cpu);
} memory_cpus __weak SEC(".maps");

#endif
