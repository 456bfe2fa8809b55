/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between the kernel programs and user space: structs, enums and limits, each written
 * once, asserted below, compiled in both worlds.
 *
 *   perf event ──┐                     ┌─ totals  (added up in the kernel, drained by a flip)
 *   sched_switch │                     ├─ threads (times of each thread)
 *   uprobes ─────┼─► stack_capture() ──┼─ alloc_sites, blocks (what each stack allocated; what is live)
 *   rss_stat ────┘         │           └─ memories (resident pages of each address space)
 *                          └─► events ring: each stack once, as struct ms_stack_rec
 *
 * Fixed-width types and explicit padding only: keys are compared byte by byte.
 */
#ifndef MEMSCOPE_ABI_H
#define MEMSCOPE_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "stat_ids.h"
#include "walk/lang.h"
#include "walk/rows.h"

#define MS_MAX_FRAMES 2048 /* of one stack record, user or kernel */
#define MS_GROWTH_PAGES 127 /* represented by one growth stack */
#define MS_PERIOD_MOST_PERCENT 175 /* the longest period between on-CPU samples, of their mean */

/*
 * A frame is a tagged word. The top four bits say what the rest means:
 *   0x0  raw user address, in the address-space generation of the total's key
 *   0x1  raw user address that was interrupted by a signal: not a return address
 *   0x2  a frame of a language, followed by
 *   0x3  where in its code it is (walk/lang.h)
 *   0xf  kernel address, as it is
 * Frames are stored leaf first; all but the first and those of other tags are return addresses. Frames of a
 * language stand before the frame of the interpreter's function that executes them: they are its callees.
 */
#define MS_FRAME_TAG_SHIFT    60
#define MS_FRAME_EXACT        0x1ULL
#define MS_FRAME_LANG         0x2ULL
#define MS_FRAME_LANG_AT      0x3ULL
#define MS_FRAME_ADDR_MASK    ((1ULL << MS_FRAME_TAG_SHIFT) - 1)

enum ms_source {
	MS_ONCPU,
	MS_OFFCPU,
	MS_ALLOC,
	MS_GROWTH,
	MS_SYSCALLS,
	MS_EVENTS,
	MS_N_SOURCES,
	MS_LOCKS = MS_N_SOURCES, /* of totals alone: waits for locks, and what their owners do (below) */
	MS_WAKERS,               /* of totals alone: waits by who ended them: `kernel` is the hash of a struct ms_ended_rec */
	MS_OBJECTS,              /* of totals alone: waits by what they were for: `kernel` is the hash of a struct ms_object_rec */
	MS_RUN_DELAYS,           /* of totals alone: time that threads of a process were runnable, by who ran (below)       */
};

/* What a total of a source means. On-CPU has only MS_STATE_NONE. */
enum ms_state {
	MS_STATE_NONE,
	MS_BLOCKED,   /* off-CPU: waited for something               */
	MS_RUNNABLE,  /* off-CPU: could run, had no CPU              */
	MS_RESIDENT,  /* growth: pages came                          */
	MS_RETURNED,  /* growth: pages went                          */
	MS_LOCK_WAIT, /* locks: a thread waited for one              */
	MS_LOCK_HOLD, /* locks: a thread owned one that others waited for */
	MS_RAN,           /* run delays: a process ran on the CPU in whose queue the thread stood   */
	MS_RAN_UNKNOWN,   /* run delays: longer ago than a CPU remembers                            */
	MS_RAN_ELSEWHERE, /* run delays: the thread stood in the queue of a CPU that it did not get */
};

/* What kind of pages they were. */
enum ms_memory_kind {
	MS_MEMORY_FILE,
	MS_MEMORY_ANON,
	MS_MEMORY_SHARED, /* shmem: tmpfs, memfd, shared anonymous mappings */
	MS_N_MEMORY_KINDS,
};

/* How a stack ended; counted per source. */
enum ms_verdict {
	MS_COMPLETE,   /* the outermost frame was proven                   */
	MS_TRUNCATED,  /* deeper than the walker goes                      */
	MS_NO_TABLE,   /* no unwind rows for a module yet                  */
	MS_UNREADABLE, /* stack memory could not be read                   */
	MS_GUESSED,    /* followed frame pointers that nothing vouches for */
	MS_LOST,       /* no frame at all, or the record did not get out   */
	MS_N_VERDICTS,
};

/* 128-bit seeded hash of a stack's frames. All zero: no stack. */
struct ms_hash {
	__u64 lo, hi;
};

/* An image of a process: one tgid between one fork or exec and the next. */
struct ms_proc {
	__u64 start_ns; /* group leader's start_time, CLOCK_MONOTONIC       */
	__u32 tgid;
	__u32 exec_id;  /* low half of task->self_exec_id: +1 at every exec */
};

struct ms_total_key {
	struct ms_proc proc;
	struct ms_hash user, kernel;
	__u32 tid;
	__u32 as_gen; /* address-space generation of raw user frames */
	__u8 source;  /* enum ms_source */
	__u8 state : 4,  /* enum ms_state  */
	     memory : 4; /* enum ms_memory_kind; only of MS_GROWTH */
	__u16 slot;   /* of on-CPU, off-CPU and growth: when it was, or a wait ended, in slots of time since slots_from_ns;
		       * its low 16 bits, for totals are read in time */
	__u32 bucket; /* of on-CPU and off-CPU: labels of the program's own (labels.bpf.h), 0: none; of
		       * allocations: the burst, 0: none; of system calls: the call, as in struct ms_syscall_key; of
		       * events: the event's number */
};

/*
 * Totals of MS_LOCKS: `user` is where the thread waited, or what it did while it owned the lock; `kernel` is the lock:
 * its address with its kind in the top bits, and its owner (0: not known) as the process itself numbers threads.
 */
enum ms_lock_kind {
	MS_LOCK_OTHER,  /* of a layout that does not say who owns it */
	MS_LOCK_MUTEX,
	MS_LOCK_RWLOCK, /* owned by a writer                         */
	MS_LOCK_WORD,   /* the futex has the owner: PI, robust       */
	MS_LOCK_GIL,    /* of CPython                                */
	MS_N_LOCK_KINDS,
};
#define MS_LOCK_KIND_SHIFT 60

/*
 * Totals of MS_RUN_DELAYS: `tid` is the process that ran (0: none, the CPU was idle), `as_gen` 1 for a thread of the
 * kernel; user.lo: when it began; `kernel`: its leader's name.
 */
#define MS_LOCK_ADDR_MASK  ((1ULL << MS_LOCK_KIND_SHIFT) - 1)

/* A slot of time; those of on-CPU samples are as long as cfg_oncpu_slot_ns. */
#define MS_SLOT_NS 1000000000ULL

/* Weights are applied to each event before it is added. */
struct ms_total {
	__u64 count;     /* samples, waits, calls                         */
	__u64 value;     /* ns of CPU, ns waited, bytes                   */
	__u64 before;    /* of `value`, the part of a wait that lies before its slot, up to where that begins: one wait of
			  * a thread at most reaches into a slot */
	__u64 cgroup_id; /* when it was first added; v2 directory's inode */
};

/*
 * System calls by process (syscalls.bpf.c). `nr` has a bit for those of 32-bit programs, which have other numbers.
 */
#define MS_SYSCALL_COMPAT (1u << 31)
struct ms_syscall_key {
	struct ms_proc proc;
	__u32 nr;
	__u32 error; /* errno; 0 in totals */
};

/* Counts of durations: part i of [2^(i + MS_SYSCALL_FIRST), twice that) ns; the first has all that were shorter, the
 * last all that were longer. */
#define MS_SYSCALL_FIRST 6
#define MS_SYSCALL_PARTS 32 /* a power of two */

/* Each call that was sampled is in it as many times as it stands for. */
struct ms_syscall_total {
	__u64 count, errors, ns; /* of calls that returned                                        */
	__u64 no_return;         /* exit, exit_group                                              */
	__u64 variance;          /* of `count`: sum of w(w - 1), for calls that stand for w each  */
	__u64 max_ns;            /* of the sampled ones                                           */
	__u64 parts[MS_SYSCALL_PARTS];
};

/*
 * Events that were asked for (events.bpf.c), by their numbers, which are the cookies of their programs. Without cookies
 * (before 5.15) each program serves one event alone, the one whose number cfg_event_alone says.
 *
 * A total of MS_EVENTS has in `before` what the estimate of its value may be wrong by: the sum of w(w - 1) for stacks that
 * stand for w events each.
 */
#define MS_EVENTS_MAX 1024
enum ms_event_program { MS_EVENT_PERF, MS_EVENT_TRACEPOINT, MS_EVENT_SITE, MS_EVENT_RETURN, MS_N_EVENT_PROGRAMS };

struct ms_event {
	__u32 one_in;   /* by chance, one event in so many has its stack captured; 0: none          */
	__u32 at_entry; /* of MS_EVENT_SITE: the stack is as where a function begins              */
	__u32 timed;    /* … whose returns have probes, with the same number                       */
};

/* Per CPU. */
struct ms_event_count {
	__u64 fired;  /* times that the program ran, for whichever process, also while the gate is shut */
	__u64 count;  /* events of those who are watched: a perf event stands for its period   */
	__u64 taken;  /* times that the program ran for them                                    */
	__u64 stacks; /* … and captured the stack                                               */
	__u64 returns; /* times that the program ran at a return, for whichever process          */
	__u64 shortest_ns, longest_ns; /* of the calls that returned; 0: none did                */
};

/*
 * A call of a function that is timed, by where its return address is on the stack: no other call of the process that has not
 * returned has that place, whichever thread or coroutine it is of.
 */
struct ms_call_key {
	__u64 sp;
	__u32 pid, number;
};

struct ms_call {
	__u64 begin_ns;
	__u32 tid;
	__u32 nested; /* within another call of the same function */
};

/* The outermost call of a function that a thread is in: where its return address is, and what that is. */
struct ms_call_thread {
	__u64 id; /* pid_tgid */
	__u64 number;
};

struct ms_call_outermost {
	__u64 sp, back;
};

/* Of each event. Part i of the histogram has durations of [2^(i + MS_SYSCALL_FIRST), twice that) ns, as those of system calls. */
struct ms_call_total {
	__u64 returned, ns;
	__u64 outer, outer_ns; /* of these, those that were not nested   */
	__u64 left;            /* another call came to their place: they will never return */
	__u64 lost;            /* no room                               */
	__u64 parts[MS_SYSCALL_PARTS];
};

/* What a thread is in. */
struct ms_syscall_now {
	__u64 begin_ns; /* CLOCK_MONOTONIC; 0: in no call, or in one that is not counted */
	__u32 nr;
	__u32 weight;   /* what it stands for */
	__u32 tid;
	__u32 pad;
	struct ms_proc proc;
};

/* Records of the events ring begin with their kind. */
enum ms_event_kind {
	MS_EV_STACK = 1,
	MS_EV_DEFERRED, /* struct ms_deferred_rec */
	MS_EV_SAMPLE,  /* struct ms_sample_rec  */
	MS_EV_TOTAL,   /* struct ms_total_rec   */
	MS_EV_CGROUP,  /* struct ms_cgroup_rec  */
	MS_EV_MAPPING, /* struct ms_mapping_rec */
	MS_EV_REASSIGNED,   /* struct ms_reassigned_rec   */
	MS_EV_RESULT,  /* struct ms_result_rec  */
	MS_EV_CALL,    /* struct ms_call_rec    */
	MS_EV_CHAIN,   /* struct ms_chain_rec   */
	MS_EV_LABELS,  /* struct ms_labels_rec  */
	MS_EV_CONTEXT, /* struct ms_context_rec */
	MS_EV_WAKER,   /* struct ms_waker_rec   */
	MS_EV_ENDED,   /* struct ms_ended_rec   */
	MS_EV_OBJECT,  /* struct ms_object_rec  */
};

/* Go's runtime in a process. Offsets in bytes. */
struct ms_go {
	__s32 tls;    /* from the thread's base to the address of its g */
	__u16 g_m, m_curg, g_labels;
	__u16 pad;
};

/*
 * Where a thread has its word otel_thread_ctx_v1, a thread-local variable. Offsets in bytes. A variable of a library that
 * was loaded later is in a block that each thread makes when it first needs it: its dtv has their addresses, by module.
 */
struct ms_otel {
	__s64 off;      /* from the thread's base, or in the module's block                */
	__u32 module;   /* 0: it is at a fixed distance of the thread's base                 */
	__s16 dtv;      /* from the thread's base to the address of its dtv …              */
	__s16 dtv_last; /* … from there to the number of its last entry …                */
	__u8 dtv_bytes; /* … and of an entry, which begins with the address of the block */
	__u8 ids;       /* samples (1) and waits (2) get the numbers of trace and span      */
	__u8 pad[6];
};

enum ms_label_kind { MS_LABELS_GO, MS_LABELS_OTEL };

/* Where a process has the labels that it sets itself. */
struct ms_label_source {
	__u64 start_ns;
	__u32 exec_id;
	__u32 kind; /* enum ms_label_kind */
	union {
		struct ms_go go;
		struct ms_otel otel;
	};
};

/* Labels that a program has set for what it does, when first seen: user space reads them. */
struct ms_labels_rec {
	__u32 kind; /* MS_EV_LABELS */
	__u32 set;  /* as in totals */
	struct ms_proc proc;
	__u64 at;     /* a map of Go's                                   */
	__u64 cookie; /* its second word: flags, size and hash seed      */
};

/* A record of a thread's context as the thread had published it (user/lang/otel.h), when first seen; the part before
 * `bytes`, and `len` bytes. */
#define MS_CONTEXT_HEAD  28
#define MS_CONTEXT_BYTES 640
struct ms_context_rec {
	__u32 kind; /* MS_EV_CONTEXT */
	__u32 set;  /* as in totals */
	struct ms_proc proc;
	__u32 len;
	__u8 of_wait; /* seen when the thread began to wait, else in a sample   */
	__u8 cut;     /* it is longer                                          */
	__u8 pad[2];
	__u8 bytes[MS_CONTEXT_BYTES];
};

/* An addition that the totals had no room for. */
struct ms_total_rec {
	__u32 kind; /* MS_EV_TOTAL */
	__u32 pad;
	struct ms_total_key key;
	struct ms_total total;
};

/* What a call of a burst returned, where that is asked for (cfg_burst_results). */
struct ms_result_rec {
	__u32 kind; /* MS_EV_RESULT */
	__u32 pad;
	struct ms_total_key key; /* of the call's total: its bucket is the burst */
	__u64 addr;    /* 0: there is no block, but `old` has gone           */
	__u64 old;     /* realloc: the block that it took, else 0            */
	__u64 size;    /* asked for */
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

/* Registers at the entry of a function, or behind a call of it, and jemalloc's extent around `addr`. */
struct ms_call_rec {
	__u32 kind; /* MS_EV_CALL */
	__u32 tid;
	__u64 pc, sp;
	__u64 arg[2];  /* the first two, at an entry                                     */
	__u64 word;    /* at sp: at an entry the return address; 0: not known            */
	__u64 addr;    /* at an entry the first argument, behind a call what it returned */
	__u64 entry;   /* of the map of pages, for that; 0: there is none                */
	__u32 behind;  /* a call                                                         */
	__u32 known;   /* edata is                                                       */
	__u64 edata[16];
};

/* The cookie of a probe behind a call; that of one at an entry is 0. */
#define MS_COOKIE_BEHIND 1

/*
 * Who woke a thread, sent when its hash is first seen. In an interrupt nobody did: the CPU was taken from whoever ran, and
 * the record has neither a process nor a user stack, and of the kernel's frames those of the interrupt alone.
 */
struct ms_waker_rec {
	__u32 kind; /* MS_EV_WAKER */
	__u32 interrupt;
	struct ms_hash hash; /* of what follows */
	struct ms_proc proc;
	struct ms_hash user, kernel; /* `user` is empty where its process is no target */
	__u64 as_gen;
	char comm[16]; /* of the thread */
};

/* Where a thread waited in the kernel, and who woke it: sent when its hash is first seen. */
struct ms_ended_rec {
	__u32 kind; /* MS_EV_ENDED */
	__u32 pad;
	struct ms_hash hash;   /* of what follows */
	struct ms_hash kernel; /* where it waited */
	struct ms_hash waker;  /* of struct ms_waker_rec; empty: not known */
	__u64 lock;            /* … and for which lock, as in totals of MS_LOCKS; 0: none that is known */
};

/*
 * A file or socket that a thread waited for, sent when its hash is first seen. Numbers of devices are the kernel's own: 12 bits of the major
 * one, 20 of the minor one.
 */
#define MS_FD_CALLS 512 /* numbers of system calls below that may have a descriptor */
#define MS_AF_INET  2
#define MS_AF_INET6 10
struct ms_object_rec {
	__u32 kind; /* MS_EV_OBJECT */
	__u32 fd;
	struct ms_hash hash; /* of what follows */
	struct ms_proc proc; /* that has the descriptor */
	__u64 ino;
	__u32 dev;
	__u16 mode;   /* its format: regular, a directory, blocks, a socket */
	__u16 family; /* of a socket                                        */
	__u16 local_port, remote_port; /* the latter in network order; 0: none */
	__u32 pad;
	__u32 remote[4]; /* address, in network order; of IPv4 the first word */
};

/* Of a stack record. */
#define MS_STACK_KERNEL    (1u << 0)
#define MS_STACK_AT_SWITCH (1u << 1) /* leaf: our program and its caller, then __schedule */
#define MS_STACK_AT_ENTRY  (1u << 2) /* user: at a function's first instruction */
#define MS_STACK_AT_RSS    (1u << 3) /* leaf: our program and its callers, then who changed the count */
#define MS_STACK_AT_WAKING (1u << 4) /* leaf: our program and its callers, then try_to_wake_up */

/* A stack, sent when its hash is first seen. Variable length: n_frames words follow the struct. */
struct ms_stack_rec {
	__u32 kind; /* MS_EV_STACK */
	__u16 n_frames;
	__u8 verdict; /* enum ms_verdict */
	__u8 flags;   /* MS_STACK_… */
	struct ms_hash hash;
	__u64 time_ns; /* CLOCK_MONOTONIC, when it was first seen */
	__u32 tgid;    /* in this process: frames of a language are read there */
	__u32 pad;
};

/*
 * A user stack that could not be walked in place: its process, or a file that the process maps, has
 * no unwind table in the kernel yet. User space walks it and stores it under `hash`, which no other
 * stack has. Variable length: the stack's bytes from sp on follow the struct. There are none for a
 * thread that was blocked before the run: user space reads its stack itself, while it is still
 * blocked.
 */
struct ms_deferred_rec {
	__u32 kind; /* MS_EV_DEFERRED */
	__u32 stack_bytes;
	struct ms_hash hash;
	struct ms_proc proc;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 as_gen;
	__u32 tid;
	__u32 source; /* enum ms_source */
	__u32 switches; /* of a blocked thread: how often it had left a CPU, voluntarily or not */
	__u64 pc;
	__u64 thread_base; /* as in struct ms_walk */
	__u64 regs[MS_N_REGS]; /* rows.h; the architecture's sp among them */
};

/* Stack bytes of a deferred record. Small ones copy no more than is needed; large ones are for main
 * threads, whose stack is known to end further away. */
#define MS_DEFERRED_SMALL (16 * 1024)
#define MS_DEFERRED_LARGE (64 * 1024)

/*
 * The frames of a language of a deferred stack's thread, read in the moment in which its stack is copied: later
 * the thread has gone on. Sent right before the deferred record. Variable length: the links of the chain follow
 * the struct, innermost first.
 */
struct ms_chain_rec {
	__u32 kind; /* MS_EV_CHAIN */
	__u16 n_links;
	__u8 lost;  /* the head of the chain could not be read: 1 + enum ms_lang_lost */
	__u8 pad;
	struct ms_hash hash; /* of the deferred record                                    */
	struct ms_proc proc;
	__u64 entry; /* lang_entry of struct ms_walk, at the start                        */
	__u64 next;  /* what follows the last link; 0: nothing, else it was not read      */
};

struct ms_chain_link {
	__u64 at;       /* address of the frame, and above it its boundary (walk/lang.h) */
	__u64 words[2]; /* 0: a frame without code, which ends a run                     */
};

#define MS_CHAIN_LINKS 512 /* at most, a power of two */
#define MS_CHAIN_SHIFT 56  /* of the boundary         */

/*
 * One event of a sampler that runs in the target, at one of the sampler's sites (sampled.bpf.c).
 * The ring keeps their order: a free is recorded before the allocator hands out the address again.
 */
enum ms_sample_what {
	MS_SAMPLE_ALLOC,
	MS_SAMPLE_UNTRACKED, /* an allocation whose free is not reported */
	MS_SAMPLE_FREE,
	MS_N_SAMPLE_WHATS,
};

/* How a sampler states the weight of a sample. */
enum ms_weigh {
	MS_WEIGH_BYTES,     /* the bytes                                           */
	MS_WEIGH_RATE,      /* mean bytes between samples: user space reckons       */
	MS_WEIGH_RATE_LOG2, /* the same, as its logarithm; in no record             */
	MS_WEIGH_COUNTER,   /* all bytes that its thread has allocated so far: user space takes what came since the
			     * thread's last sample, so none is lost with samples that are dropped            */
};

struct ms_sample_rec {
	__u32 kind;    /* MS_EV_SAMPLE */
	__u8 what;     /* enum ms_sample_what */
	__u8 weigh;    /* enum ms_weigh */
	__u8 shift;    /* weight is times 2^shift: others were dropped. Only with MS_WEIGH_BYTES */
	__u8 source;   /* whose site it was: as user space has numbered it; 0: of otel_memory */
	struct ms_proc proc;
	struct ms_hash user;
	__u64 addr;   /* ms_site.by_class: of whatever identifies the class of blocks; MS_WEIGH_COUNTER: bytes of the
		       * buffer that the thread allocates from now on; 1: the one before                  */
	__u64 size;   /* asked for                       */
	__u64 weight; /* by `weigh`; a free by class: when its block was allocated, CLOCK_MONOTONIC */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 tid;
	__u32 as_gen;
};

/* Where a site's argument is. A probe's cookie says which site it is: 1 + its index in the map.
 * Cookie 0: the arguments are where those of a call are. */
enum ms_arg_kind {
	MS_ARG_REG,
	MS_ARG_MEMORY, /* at register + value */
	MS_ARG_CONST,
	MS_ARG_CODE,   /* at the site's own address + value: a variable of its file */
};

struct ms_site_arg {
	__u64 value;
	__u16 reg_off;  /* of the register in struct pt_regs */
	__u8 kind;      /* enum ms_arg_kind */
	__u8 size;      /* 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 pad[3];
};

struct ms_site {
	struct ms_site_arg args[5]; /* address, size, weight; MS_WEIGH_COUNTER: the weight is plus the 4th, less the 5th */
	__u8 weigh, source;
	__u8 by_class; /* blocks have no address here: those of one class and size are alike, and a free
			* has a size and a time too */
	__u8 pad[5];
};

#define MS_SITES_MAX 256

/*
 * A system call outside the allocator that changed what a process maps (mappings.bpf.c). All
 * addresses and lengths are of whole pages. In the ring they are in the order in which the calls
 * returned; when calls of two threads overlap in time, began_ns shows which mappings a call cannot
 * have referred to.
 */
enum ms_mapping_what {
	MS_MAPPING_MADE,  /* [addr, + len) is new; whatever was there is gone                       */
	MS_MAPPING_GONE,  /* [old_addr, + old_len) is gone                                          */
	MS_MAPPING_MOVED, /* [old_addr, + old_len) is [addr, + len) now, cut or grown at its end     */
	MS_MAPPING_TWICE, /* [addr, + len) is new, by mremap() of what stays mapped where it is too  */
	MS_N_MAPPING_WHATS,
};

struct ms_mapping_rec {
	__u32 kind;   /* MS_EV_MAPPING */
	__u8 what;    /* enum ms_mapping_what */
	__u8 memory;  /* enum ms_memory_kind; of MADE: MS_MEMORY_FILE says that a descriptor was given */
	__u8 pad[2];
	struct ms_proc proc;
	struct ms_hash user; /* not of GONE */
	__u64 began_ns, time_ns; /* CLOCK_MONOTONIC */
	__u64 addr, len, old_addr, old_len;
	__u64 cgroup_id; /* as in ms_total */
	__u32 tid;
	__u32 as_gen;
};

/* A call that has begun. */
struct ms_mapping_call {
	__u64 began_ns;
	__u64 arg[5];
	__u64 brk;  /* the end of the heap before */
	__u32 nr;   /* of the system call; 0: none */
	__u32 as_gen;
	struct ms_proc proc;
};

/* One live allocation. */
struct ms_block_key {
	struct ms_proc proc;
	__u64 addr;
};

struct ms_block {
	__u64 size; /* bytes asked for */
	__u64 born_ns;
	__u32 site; /* index in alloc_sites */
	__u32 pad;
};

/*
 * An allocation site: one thread's stack, and the fate of its blocks. A record of the array
 * alloc_sites, found by its key through alloc_index, and by a block through its index. Record 0 is
 * unused.
 *
 * Each process image also has a root record, with stack MS_ROOT_STACK and thread 0. It counts the
 * live bytes of the image, and whatever finds no room for a record of its own.
 *
 * Only the thread itself adds to the counts of its own blocks, without atomic operations; counts of
 * other threads' actions have separate fields.
 *
 * Keeping what was live at the process's peak costs each event one comparison. `peaks` of the root
 * counts new peaks; before a site changes for the first time after a peak, its live amount is
 * saved. A site whose peaks_seen differs from the root's has not changed since: what is live in it
 * now was live then. With several threads the saved amount may be off by events in progress on
 * other CPUs.
 */
struct ms_alloc_key {
	struct ms_proc proc;
	struct ms_hash user;
	__u32 tid;
	__u32 as_gen;
};

#define MS_ROOT_STACK ((struct ms_hash){ 0, 1 }) /* no stack's hash: their lo is odd */

#define MS_LIFE_CLASSES 8  /* shorter than 10 us, 100 us … 10 s; all others */
#define MS_SIZE_CLASSES 32 /* at most 8 bytes, 16, 32 …; all others          */

struct ms_alloc_site {
	struct ms_alloc_key key; /* tgid 0: the record is not in use */
	__u32 root;              /* index */
	__u32 closed;            /* no allocation may be added: it is about to be used again */
	__u64 peaks_seen;
	__u64 allocs, bytes;
	__u64 frees, freed_bytes; /* by the thread itself                                  */
	__u64 temporary;          /* of those: it had not allocated again in between       */
	__u64 cross_frees, cross_bytes; /* by other threads; of the root: by any           */
	__u64 life_ns;            /* sum over all frees                                    */
	__u64 cgroup_id;          /* of the thread, when the record was made; as in ms_total */
	__u64 untracked, untracked_bytes; /* of allocs: not in the full table of blocks    */
	__u64 peak_objects, peak_bytes;   /* live at the last peak that was saved         */
	__u64 lives[MS_LIFE_CLASSES];     /* frees by how long the blocks were there       */
	/* Of the root: bytes live in the process; the most that was, and when. */
	__s64 live, highest;
	__u64 highest_ns; /* CLOCK_MONOTONIC */
	__u64 peaks;
};

/*
 * One thread, as the scheduler sees it. Kept from its first event to its exit, so that a switch
 * costs look-ups and no insertion. Finished intervals are added to the four sums; the present one
 * began at since_ns.
 */
enum ms_run_state {
	MS_RUN_ON_CPU,
	MS_RUN_BLOCKED,
	MS_RUN_RUNNABLE,
	MS_RUN_HELD, /* stopped by memscope itself, until its probes are in place */
	MS_RUN_GONE, /* exited; kept for its sums until the next drain */
	MS_RUN_SAMPLED, /* its present state and newest sums are in its struct ms_sampled_thread */
};

struct ms_thread {
	struct ms_proc proc;
	struct ms_hash user, kernel; /* where it left the CPU */
	struct ms_hash waker;        /* who woke it since: of struct ms_waker_rec; empty: not known */
	struct ms_hash object;       /* blocked: what it waits for, of struct ms_object_rec; empty: nothing that is known */
	__u64 first_ns;              /* when it was first seen: its start, or our attach     */
	__u64 since_ns;              /* when the present state began                         */
	__u64 wake_ns;               /* woken while blocked, not on a CPU yet; 0: not woken  */
	__u64 oncpu_ns, blocked_ns, runnable_ns, held_ns;
	__u64 switches;              /* times it left the CPU */
	__u64 noted;                 /* … when find_sampled last ran */
	__u64 near_ns;               /* since when `near` counts     */
	__u64 delay_ns;              /* the scheduler's run_delay when it left the CPU */
	__u64 ahead_ns;              /* CLOCK_MONOTONIC less the scheduler's clock, then; 0: not known */
	__u64 lock;                  /* blocked: the lock that it waits for, 0: none that is known */
	__u64 owned;                 /* a lock that it owns, or did, while others wait; 0: none … */
	__u64 owned_ns;              /* … and since when that is so                          */
	__u32 owner;                 /* of `lock`; 0: not known                              */
	__u32 ns_tid;                /* its number in its own pid namespace; 0: not asked for */
	__u32 labels;                /* when it left the CPU: as in struct ms_labels_rec; 0: none */
	__u32 slice;                 /* when it was last seen (slices.h)                     */
	__u32 as_gen;
	__u8 state; /* enum ms_run_state */
	__u8 often; /* it switches often: sampled when it next comes to a CPU */
	__u16 near; /* switches since near_ns, MS_OFTEN_NS at most            */
	__u32 csw;   /* its switches by the kernel's count, when it was last seen */
	__u32 where; /* where in user space it left the CPU, a hash; 0: not known */
};

/*
 * A thread that switches so often that only some of its waits have their stack sampled
 * (wait_sampler.bpf.h). Its clock is the scheduler's: CLOCK_MONOTONIC less `ahead_ns`.
 *
 * A wait site identifies where waits begin as far as that is known without reading memory. All
 * waits at a site are attributed to the stack last seen there. When a sampled stack differs from
 * it, user space gets a struct ms_reassigned_rec.
 */
struct ms_wait_site {
	__u64 where;                 /* 0: not in use */
	struct ms_hash user, kernel; /* the stack that waits here are expected to have */
	__u64 sampled_ns;            /* when a wait was last sampled */
	__u64 blocked, blocked_ns, runnable, runnable_ns; /* waits that are in no total yet */
	__u32 as_gen;
	__u8 shift; /* one wait in 2^shift is sampled */
	__u8 sure;  /* about: how often the stack was the expected one, less how often not */
	__u8 pad[2];
};

#define MS_WAIT_SITES 8
#define MS_OFTEN_NS   10000000ULL
#define MS_SAMPLE_GAP_LEAST_NS 1000000ULL /* by the time of day */

/*
 * A slice of a duty cycle (slices.h). Of each source there are two, and the number of the present one says which is in force: the other
 * one is written meanwhile.
 */
struct ms_slice {
	__u64 from_ns, until_ns; /* CLOCK_MONOTONIC */
	__u64 at_ns;             /* by the slices' clock, at from_ns */
	__u32 shift;             /* 2^shift: what an event in it stands for */
	__u32 pad;
};

struct ms_sampled_thread {
	struct ms_proc proc;
	__u32 tid;   /* 0: the slot is free                                                  */
	__u8 state;  /* enum ms_run_state: on CPU, blocked or runnable                       */
	__u8 site;   /* of the present wait                                                  */
	__u8 reassigned; /* its sampled stack, `user` and `kernel`, is not the expected one      */
	__u8 weight; /* log2 of how many waits it then represents                            */
	__u64 since_ns, ahead_ns;
	__u64 delay_ns; /* run_delay when it left the CPU */
	__u64 where; /* … it did so */
	__u64 random;
	__u64 oncpu_ns, blocked_ns, runnable_ns;
	__u64 switches, waits, left_out, left_out_ns; /* not added to the counters yet */
	__u64 replaced_ns; /* when a site was last replaced by another */
	__u32 replaced;    /* how many were within a gap of that       */
	__u32 coarse;      /* what distinguishes sites; 0: all of it, 1: all but sp, 2: nothing */
	__u32 on;          /* 0: not sampled (yet, or any more) */
	__u32 drawn;       /* the stack of the present wait was sampled: how many waits it represents; 0: was not */
	struct ms_hash user, kernel;
	/* Waits at its sites that are in no total yet ended in this slot of time (struct ms_total_key), which ends at
	 * until_ns by the scheduler's clock; one of them, at site `reached`, was before the slot for so long. */
	__u64 until_ns, blocked_before, runnable_before;
	__u32 reached;
	__u16 slot;
	__u8 shift; /* of the slice in which it was found to switch often */
	__u8 pad;
	__u32 slice; /* … and that one's number: it ends with it */
	__u32 csw;   /* as in struct ms_thread */
	struct ms_wait_site sites[MS_WAIT_SITES];
};

/*
 * A wait whose stack was sampled and was not the one its site expected. 2^shift waits of this
 * length belong to `key`, and not to `from`.
 */
struct ms_reassigned_rec {
	__u32 kind; /* MS_EV_REASSIGNED */
	__u32 shift;
	struct ms_total_key key; /* its state: as what it began */
	struct ms_hash from_user, from_kernel;
	__u64 blocked_ns, runnable_ns;
	__u32 from_as_gen;
	__u32 slice_shift; /* each of the waits stands for 2^slice_shift; their lengths have that in them */
};

/*
 * The allocator call that a thread is in: between the entry and the return probe. Meanwhile a
 * realloc's old block is kept here, not in the table.
 */
struct ms_inflight {
	struct ms_proc proc;
	__u64 sp; /* at the entry; 0: in none */
	__u64 size;
	__u64 arg;           /* realloc: the old address; MS_SHAPE_OUT_PTR: where the pointer will be */
	struct ms_hash user;
	struct ms_block old; /* realloc: the block taken out of the table … */
	__u32 has_old;       /* … if there was one */
	__u32 shape;         /* enum ms_shape */
	__u32 as_gen;
	__u32 site;          /* of its last allocation, 0: none */
	__u64 ra;            /* MS_SHAPE_NEW: the word at sp while the call is in flight */
	__u64 freed;         /* the block that this thread freed last, until it has it again */
	__u64 last;          /* the block that it allocated last */
};

/*
 * On-CPU samples have maps of their own. With hardware cycles they come as NMIs, which may
 * interrupt another program inside a map's lock: an LRU then deadlocks (kernel commit
 * 89edbdfc5d03), and a hash of 5.10 does too.
 */
enum ms_lane {
	MS_LANE_TASK, /* programs of sched_switch and of uprobes */
	MS_LANE_IRQ,  /* on_cpu */
	MS_N_LANES,
};

/*
 * An address space, by the address of its mm_struct: the sums of its counters as last seen (in
 * pages; indexed as the kernel numbers them).
 */
#define MS_MEMORY_MADE  (1u << 0) /* a fork or an exec is making it: no task runs in it yet */
#define MS_MEMORY_WHOLE (1u << 1) /* known since it was made: all began with 0              */

struct ms_memory {
	struct ms_proc proc;
	__u64 owner;   /* the task it is charged to, an address */
	__u64 born_ns; /* when it was first seen; distinguishes a later one at this address */
	__s64 sum[4];
	__s64 base;    /* pages it had when first seen, about */
	__u32 flags;   /* MS_MEMORY_… */
	__u32 slice;   /* in which sum[] was last seen (slices.h) */
};

/* The same on one CPU; all zero: not seen there yet. */
struct ms_memory_cpu {
	__u64 owner, born_ns; /* as above, when last read */
	__u64 part_at[4];     /* where the CPU's parts of the counters are */
	__s64 net;            /* pages that came less those that went */
	__s32 part[4];        /* as last seen */
	__u32 waiting[2];     /* pages that came, that went, since the last stack */
	__u32 flags;
	__u32 slice;          /* in which part[] was last seen */
};

/* Why a process is watched. */
#define MS_TARGET_ASKED  (1u << 0) /* named by the user, or launched                            */
#define MS_TARGET_FORKED (1u << 1) /* forked by a target during the run: its blocks are inherited */
#define MS_TARGET_JOINED (1u << 3) /* was found in a watched control group, or came there by itself */
#define MS_TARGET_OOM    (1u << 2) /* picked by the kernel to be killed, because memory ran out */

struct ms_target {
	__u32 flags;
	__u32 as_gen;  /* written by user space when an address changed hands */
	__u64 start_ns; /* of its leader, learned from its first event: another process that gets its pid later is not it */
	__u32 exec_id; /* MS_TARGET_FORKED: its image then; another one inherited nothing. _JOINED: the same */
	__u32 ns_pid;  /* of a member of a control group: its pid in its own namespace; 0: not known */
};

/*
 * A control group: its directory's inode, and its hierarchy (the first number of a line of
 * /proc/PID/cgroup; 0: the unified one). Ids are unique only within a hierarchy.
 */
struct ms_cgroup {
	__u64 id;
	__u32 hierarchy;
	__u32 pad;
};

#define MS_CGROUPS_MAX   64  /* watched */
#define MS_CGROUP_DEPTH  32  /* directories above one another */
#define MS_HIERARCHIES   32  /* of one task at most: 14 controllers, and named ones */
#define MS_CGROUP_PATH   248 /* bytes, with the final 0 */

/* A control group to be watched as soon as it is made. Padded with zeros. */
struct ms_cgroup_path {
	__u32 hierarchy;
	__u32 pad;
	char path[MS_CGROUP_PATH];
};

/* What the task iterator writes for each watched thread, when a run begins. */
struct ms_task {
	struct ms_proc proc;
	__u64 seen_ns; /* CLOCK_MONOTONIC, when all this was so */
	__u32 tid;
	__u32 pad;
};

/* A blocked thread that was woken and has not run since. `threads` shows that only once it runs. */
struct ms_queued {
	__u64 since_ns; /* of struct ms_thread: which wait */
	__u64 wake_ns;
	__u32 tid;
	__u32 pad;
};

/* Argument shapes of allocator functions: one program pair each (alloc.bpf.c, allocators.c). */
enum ms_shape {
	MS_SHAPE_SIZE,       /* (size) → ptr                */
	MS_SHAPE_COUNT_SIZE, /* (n, size) → ptr             */
	MS_SHAPE_ALIGN_SIZE, /* (align, size) → ptr         */
	MS_SHAPE_OUT_PTR,    /* (&ptr, align, size) → errno */
	MS_SHAPE_REALLOC,    /* (ptr, size) → ptr           */
	MS_SHAPE_REALLOC_N,  /* (ptr, n, size) → ptr        */
	MS_SHAPE_FREE,       /* (ptr)                       */
	MS_SHAPE_XALLOC,     /* (ptr, size, …) → size: grows or shrinks in place, or not */
	MS_SHAPE_NEW,        /* (size) → ptr, or throws: no return probe …               */
	MS_SHAPE_NEW_EXIT,   /* … but one on each of its return instructions             */
	MS_N_SHAPES,
};

/*
 * A probe's cookie: where it finds sp and the arguments when it is not at its function's entry. 0:
 * everything is as at the entry.
 *
 *   bit   0  4 for each of three arguments: the register that holds it, as x86 numbers them
 *         16 16: by how many bytes sp is below its value at the entry
 *         32  4: enum ms_shape, for the one program that serves all
 *         63 set if something is not where it is at the entry
 */
#define MS_COOKIE_ARG_BITS 4
#define MS_COOKIE_SP_SHIFT 16
#define MS_COOKIE_SHAPE_SHIFT 32
#define MS_COOKIE_MOVED    (1ULL << 63)

/*
 * One round of the stack hash: two lanes of multiply and rotate (the constants are large odd
 * numbers; mixing is finished by ms_hash_end). User space repeats it over every record it receives,
 * so a record torn by a preempted walk is thrown away, never shown.
 */
static inline __attribute__((always_inline)) void ms_hash_step(struct ms_hash *h, __u64 word)
{
	__u64 a = (h->lo ^ word) * 0x9e3779b185ebca87ULL;
	__u64 b = (h->hi + word) * 0xc2b2ae3d27d4eb4fULL;

	h->lo = (a << 31 | a >> 33) + h->hi;
	h->hi = (b << 29 | b >> 35) ^ h->lo;
}

/* `n`: how many words. */
static inline __attribute__((always_inline)) void ms_hash_end(struct ms_hash *h, __u64 n)
{
	h->hi += n;
	h->lo ^= h->lo >> 29;
	h->lo *= 0x165667b19e3779f9ULL;
	h->hi ^= h->hi >> 32;
	h->hi *= 0x85ebca77c2b2ae63ULL;
	h->lo ^= h->hi >> 31;
	h->hi ^= h->lo >> 29;
	h->lo |= 1; /* never the empty hash */
}

/* A control group was made. */
struct ms_cgroup_rec {
	__u32 kind; /* MS_EV_CGROUP */
	__u32 pad;
	__u64 id;
	struct ms_cgroup_path at;
};

#define MS_ASSERT(what) _Static_assert(what, #what)
MS_ASSERT(sizeof(struct ms_hash) == 16);
MS_ASSERT(sizeof(struct ms_proc) == 16);
MS_ASSERT(sizeof(struct ms_total_key) == 64);
MS_ASSERT(sizeof(struct ms_total) == 32);
MS_ASSERT(sizeof(struct ms_total_rec) == 8 + sizeof(struct ms_total_key) + sizeof(struct ms_total));
MS_ASSERT(sizeof(struct ms_result_rec) == 40 + sizeof(struct ms_total_key));
MS_ASSERT(sizeof(struct ms_call_rec) == 200);
MS_ASSERT(sizeof(struct ms_stack_rec) == 40);
MS_ASSERT(sizeof(struct ms_deferred_rec) == 336);
MS_ASSERT(sizeof(struct ms_chain_rec) == 56);
MS_ASSERT(sizeof(struct ms_chain_link) == 24);
MS_ASSERT(sizeof(struct ms_sample_rec) == 80);
MS_ASSERT(sizeof(struct ms_site) == 88);
MS_ASSERT(sizeof(struct ms_mapping_rec) == 104);
MS_ASSERT(sizeof(struct ms_mapping_call) == 80);
MS_ASSERT(sizeof(struct ms_block_key) == 24);
MS_ASSERT(sizeof(struct ms_block) == 24);
MS_ASSERT(sizeof(struct ms_alloc_key) == 40);
MS_ASSERT(sizeof(struct ms_alloc_site) == 256);
MS_ASSERT(sizeof(struct ms_thread) == 232);
MS_ASSERT(sizeof(struct ms_object_rec) == 80);
MS_ASSERT(sizeof(struct ms_waker_rec) == 96);
MS_ASSERT(sizeof(struct ms_ended_rec) == 64);
MS_ASSERT(sizeof(struct ms_label_source) == 40);
MS_ASSERT(sizeof(struct ms_context_rec) == 32 + MS_CONTEXT_BYTES);
MS_ASSERT(sizeof(struct ms_labels_rec) == 40);
MS_ASSERT(sizeof(struct ms_wait_site) == 88);
MS_ASSERT(sizeof(struct ms_slice) == 32);
MS_ASSERT(sizeof(struct ms_sampled_thread) == 216 + MS_WAIT_SITES * sizeof(struct ms_wait_site));
MS_ASSERT(sizeof(struct ms_reassigned_rec) == 128);
MS_ASSERT(sizeof(struct ms_inflight) == 120);
MS_ASSERT(sizeof(struct ms_memory) == 80);
MS_ASSERT(sizeof(struct ms_memory_cpu) == 88);
MS_ASSERT(sizeof(struct ms_target) == 24);
MS_ASSERT(sizeof(struct ms_cgroup) == 16);
MS_ASSERT(sizeof(struct ms_cgroup_path) == 256);
MS_ASSERT(sizeof(struct ms_cgroup_rec) == 272);
MS_ASSERT(sizeof(struct ms_task) == 32);

#endif
