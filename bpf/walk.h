/*
 * The state of one walk, and what the walker (walk_cfi.h) assumes of the machine. Shared by both
 * worlds, as rows.h is.
 */
#ifndef MEMSCOPE_WALK_H
#define MEMSCOPE_WALK_H

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

/* The stack is copied in windows: a small one first, for most stacks are, then larger ones. */
#define MS_WINDOW_FIRST 1024
#define MS_WINDOW_BYTES 4096
#define MS_WINDOW_WORDS (MS_WINDOW_BYTES / 8)
#define MS_PAGE_BYTES   4096
#define MS_USER_TOP     (1ULL << 56) /* no user address is above, on any supported machine */

/* Words in a signal's frame from the sigcontext on: x86-64 r8 … rip, arm64 fault address … pc. */
#if MS_WALK_ARM64
#define MS_SIGNAL_WORDS 34
#else
#define MS_SIGNAL_WORDS 17
#endif

/* Keeps clang from drawing conclusions that the verifier cannot follow. */
#define WALK_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/*
 * The rule found last for some place of some table: most of a stack is where the last ones were.
 * Kept from walk to walk. `check` is `of` ^ a number made of the table's serial, so that one of
 * which only half was written is nobody's.
 */
#define MS_MEMO_BITS 9
#define MS_MEMO_KEY(serial) ((serial) * 0x9e3779b97f4a7c15ULL)
struct ms_memo {
	__u64 of; /* vaddr << MS_ROW_RULE_BITS | rule; vaddrs too large for that are left out */
	__u64 check;
};

/*
 * What a walk has noted of all that it depends on (walk_cfi.h): how it began, and words of the stack, by
 * their places from where it began.
 */
#define MS_NOTES     48
#define MS_FAR_WORDS 64  /* of one other place, beyond a frame that is too large … */
#define MS_FAR_BELOW 128 /* … bytes before the word that was first noted there     */
struct ms_notes {
	__u64 pc, sp, fp; /* with which it began                                                     */
	__u64 trampoline;
	__u64 fp_at;      /* where the present frame pointer was read; MS_FP_BEGAN, MS_FP_NOTED     */
	__u64 far;        /* where that other place begins, bytes from sp; 0: there is none         */
	__u32 n;
	__u16 bytes;      /* from sp, rounded down to 8, to behind the last of the words near it    */
	__u8 at_entry;    /* as in struct ms_walk, at the beginning                                 */
	__u8 needs_fp;    /* it depends on `fp`                                                     */
	__u8 kept;        /* there is nothing else that it depends on; 0: nothing is noted any more */
	__u8 pad[7];
	__u64 word[MS_NOTES];
	__u16 at[MS_NOTES]; /* in words; those of the other place from MS_WINDOW_WORDS on */
};

#define MS_FP_BEGAN 0 /* no addresses of saved frame pointers */
#define MS_FP_NOTED 1

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
	__u32 window_next; /* bytes that the next one is to have */
	__u64 trampoline;  /* what return probes put in place of a return address; 0: there are none */
	/* Arguments. */
	__u64 look;           /* walk_find_span: a pc; walk_find_rule: a vaddr  */
	__u64 from;           /* walk_window: where the copy is to begin        */
	__u64 cfa, ra_at, ra; /* walk_caller                                    */
	__u32 rule;           /* walk_by_rule: a rule's number, from find_rule  */
	__u64 env;     /* the includer's */
	__u64 signal[MS_SIGNAL_WORDS];
	__u64 window[MS_WINDOW_WORDS];
	__u64 far[MS_FAR_WORDS]; /* directly behind it, as struct ms_notes has it */
	struct ms_memo memo[1 << MS_MEMO_BITS];
	struct ms_notes notes;
};

#endif
