/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of one walk, and what the walker (walk_cfi.h) assumes of the machine. Shared by the
 * kernel and the host, as rows.h is.
 */
#ifndef MEMSCOPE_WALK_WALK_H
#define MEMSCOPE_WALK_WALK_H

#include "abi.h"

#if defined(__TARGET_ARCH_arm64) || (!defined(__BPF__) && !defined(__bpf__) && defined(__aarch64__))
#define MS_WALK_ARM64   1
#define MS_WALK_SP      MS_A64_SP
#define MS_WALK_FP      MS_A64_FP
#define MS_WALK_N_SAVED MS_N_SAVED_A64
#define MS_WALK_KEPT    (0x7ff80000u | 1u << MS_A64_SP) /* x19 … x30, sp */
#else
#define MS_WALK_ARM64   0
#define MS_WALK_SP      MS_X86_RSP
#define MS_WALK_FP      MS_X86_RBP
#define MS_WALK_N_SAVED MS_N_SAVED_X86
#define MS_WALK_KEPT    (0xf000u | 1u << MS_X86_RBX | 1u << MS_X86_RBP | 1u << MS_X86_RSP)
#endif

/* Frames that a walk goes through, of which it stores MS_MAX_FRAMES: others are hidden (enum ms_walk_managed). */
#define MS_MAX_STEPS (4 * MS_MAX_FRAMES)

/* The stack is copied in windows: a small one first, as most stacks are small, then larger ones. */
#define MS_WINDOW_FIRST 1024
#define MS_WINDOW_BYTES 4096
#define MS_WINDOW_WORDS (MS_WINDOW_BYTES / 8)
#define MS_PAGE_BYTES   4096
#define MS_USER_TOP     (1ULL << 56) /* above all user addresses of every supported machine */

/* Words in a signal's frame from the sigcontext on: x86-64 r8 … rip, arm64 fault address … pc. */
#if MS_WALK_ARM64
#define MS_SIGNAL_WORDS 34
#else
#define MS_SIGNAL_WORDS 17
#endif

/* Keeps clang from inferences that the verifier cannot follow. */
#define WALK_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/*
 * The rule found last for some place of some table: most frames of a stack are where earlier ones
 * were. Kept from walk to walk. `check` is `of` ^ a number made of the table's serial, so that a
 * half-written memo matches nothing.
 */
#define MS_MEMO_BITS 9
#define MS_MEMO_KEY(serial) ((serial) * 0x9e3779b97f4a7c15ULL)
struct ms_memo {
	__u64 of; /* vaddr << MS_ROW_RULE_BITS | rule; not for vaddrs too large for that */
	__u64 check;
};

/*
 * What a walk depended on (walk_cfi.h): its start, and words of the stack with their offsets from
 * its start.
 */
#define MS_NOTES     48
#define MS_FAR_WORDS 64  /* of one more area, beyond a frame that is too large … */
#define MS_FAR_BELOW 128 /* it begins so many bytes below the first word noted there */
struct ms_notes {
	__u64 pc, sp, fp; /* at the start */
	__u64 trampoline;
	__u64 fp_at;      /* where the present frame pointer was read; MS_FP_BEGAN, MS_FP_NOTED */
	__u64 far;        /* where that other area begins, bytes from sp; 0: there is none */
	__u32 n;
	__u16 bytes;      /* from sp, rounded down to 8, to behind the last of the words near it */
	__u8 at_entry;    /* as in struct ms_walk, at the start */
	__u8 needs_fp;    /* it depended on `fp` */
	__u8 kept;        /* it depended on nothing else; 0: notes were given up */
	__u8 pad[7];
	__u64 word[MS_NOTES];
	__u16 at[MS_NOTES]; /* in words; those of the other area from MS_WINDOW_WORDS on */
};

#define MS_FP_BEGAN 0 /* no addresses of saved frame pointers */
#define MS_FP_NOTED 1

/* Is the present frame one of managed code (walk_lang.h)? */
enum ms_walk_managed {
	MS_MANAGED_NO,
	MS_MANAGED_SHOWN,
	MS_MANAGED_HIDDEN, /* … that is not recorded */
};

struct ms_walk {
	__u64 regs[MS_N_REGS];
	__u64 pc;
	__u32 known;   /* a bit per register whose value is this frame's           */
	__u32 n;       /* frames stored                                            */
	__u8 exact;    /* pc is where the thread was, not a return address         */
	__u8 guessed;  /* a step so far was not proven                             */
	__u8 verdict;  /* enum ms_verdict, once the walk has ended                 */
	__u8 has_rows; /* `span` is one of a table, which is `table`               */
	__u8 at_entry; /* the first pc is a function's entry, or sp and all saved registers are as there */
	struct ms_space space;
	struct ms_span span; /* of the last pc */
	struct ms_table table;
	__u64 window_at, window_len;
	__u32 window_next; /* size of the next one, bytes */
	__u64 trampoline;  /* the return address that return probes put on the stack; 0: none */
	/* Arguments. */
	__u64 look;           /* walk_find_span: a pc; walk_find_rule: a vaddr  */
	__u64 from;           /* walk_window: where to begin the copy        */
	__u64 cfa, ra_at, ra; /* walk_caller                                    */
	__u32 rule;           /* walk_by_rule: a rule's number, from find_rule  */
	__u64 env;     /* the includer's */
	/* Frames of a language (walk_lang.h). */
	struct ms_lang_row lang; /* of MS_LANG_NONE: none are looked for */
	__u64 thread_base;       /* x86-64: fs, arm64: tpidr_el0         */
	__u64 lang_at;           /* the next frame of the chain; 0: there is none (left) */
	__u64 lang_entry;        /* on the stack of the native frame whose run comes next; 0: unknown */
	__u64 lang_low, lang_high; /* the stack of the present native frame */
	__u64 lang_native;       /* its word, which follows its run; walk.bpf.c: of any frame while it is stepped from */
	__u64 lang_words[2];     /* walk_lang: the frame */
	__u64 lang_first;        /* of the present run */
	__u64 lang_reg;          /* ms_ruby.cfp_reg of the present native frame; 0: unknown */
	__u32 lang_n;            /* frames stored before it */
	__u8 lang_part, lang_compiled; /* v8_step() */
	__u8 lang_hidden;        /* walk.bpf.c: the frame that is stepped from is not to be stored */
	__u8 lang_begun;         /* the chain has been looked for */
	__u8 lang_exact;         /* the present native frame was interrupted, it is in no call */
	__u8 lang_running;       /* a run is being emitted; 2: its last frame has been; of Ruby: enum ruby_run */
	__u8 lang_ended;         /* the native walk has ended with that frame */
	__u8 lang_short;         /* native frames and runs did not match */
	__u8 lang_lost;          /* the chain could not be read: 1 + enum ms_lang_lost */
	__u8 lang_nested;        /* the next native frame that executes frames has none of its own (perl.h) */
	__u8 lang_top;           /* the next frame of the chain is the innermost one (perl.h) */
	__u8 lang_entering;      /* a frame is being made by an op whose successor is lang_next (perl.h) */
	__u64 lang_next;
	__u64 lang_place;        /* the statement in force in the next frame of the chain (perl.h) */
	__u64 lang_base, lang_outer; /* the first of the present stack of frames; the stack around it (perl.h) */
	struct {
		__u64 oldcop, retop, cv, kind, name, hek, stash, buf[2];
		__u32 depth, flags;
		__u8 type, top;
	} cx; /* of the present frame (perl.h): in memory, as the kernel's stack is small */
	__u8 lang_inner;         /* of Ruby: a frame of range[0] has just been left, and its caller is to come */
	__u8 managed;            /* enum ms_walk_managed */
	__u8 keeps_fp;           /* walk_by_lang: the present code is known to */
	__u64 lang_info[2];      /* of the present frame of managed code, what its rule needs; php_enter() */
	__u64 lang_maps[2];      /* what walk_by_lang has found objects to be, in this walk */
	__u64 lang_previous;     /* php_load(): as in struct lang_link ... */
	__u8 lang_boundary;      /* ... */
	__u64 lang_after;        /* where the chain goes on behind the next frame, instead of where that says */
	__u64 lang_buf[MS_LANG_BYTES / 8];
	__u64 blob_at;           /* hotspot_blob(): the CodeBlob of a pc, and its first bytes; php_load(); lang_near() */
	__u32 blob_len;          /* lang_near() */
	__u64 blob[MS_HOTSPOT_BYTES / 8];
	__u64 code[4];           /* instructions */
	__u64 signal[MS_SIGNAL_WORDS];
	__u64 window[MS_WINDOW_WORDS];
	__u64 far[MS_FAR_WORDS]; /* directly behind it, as struct ms_notes has it */
	struct ms_memo memo[1 << MS_MEMO_BITS];
	struct ms_notes notes;
};

#endif
