/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwind tables: unwind/ makes them from .eh_frame, the walker (walk_cfi.h) reads them in the
 * kernel and, compiled for the host, in user space. Shared by both like abi.h, which includes it.
 *
 *   process ─► spans      which table covers which part of its address space; sorted by address
 *   span    ─► table      one per file, whoever maps it; addresses are the ELF's own
 *   table   ─► directory  for each 4 KiB of code, the number of its first row; one more at the end
 *           ─► rows       4 bytes each: where in its 4 KiB a rule begins, and which rule
 *   row     ─► rule       how to get from a frame to its caller; equal rules are stored once
 *
 * A row holds from its address to the next row's. Spans, directories and rows live in one pool of
 * 32-bit words, which user space writes through a shared mapping: one budget, and no system call
 * for a change. Words that a walk in progress may be reading are not reused for MS_POOL_GRACE_NS.
 */
#ifndef MEMSCOPE_WALK_ROWS_H
#define MEMSCOPE_WALK_ROWS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define MS_POOL_GRACE_NS 1000000000ULL

/* --- rows --- */

#define MS_ROW_PAGE_SHIFT 12 /* code covered by one directory entry: 4 KiB */
#define MS_ROW_RULE_BITS  20
#define MS_ROW_RULE_MASK  ((1u << MS_ROW_RULE_BITS) - 1)

/* A row: offset within its 4 KiB in the top 12 bits, so that rows of a page sort as numbers. */
static inline __attribute__((always_inline)) __u32 ms_row(__u64 vaddr, __u32 rule)
{
	return (__u32)(vaddr & ((1u << MS_ROW_PAGE_SHIFT) - 1)) << MS_ROW_RULE_BITS | rule;
}

/* --- rules --- */

/*
 * Registers by their DWARF numbers. x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp,
 * 8 to 15. arm64: 0 to 30 x0 to x30 (29 frame pointer, 30 link), 31 sp. The pc is kept apart.
 */
#define MS_N_REGS 32

#define MS_X86_RBX 3
#define MS_X86_RBP 6
#define MS_X86_RSP 7
#define MS_A64_FP  29
#define MS_A64_LR  30
#define MS_A64_SP  31

/*
 * Callee-saved registers, in the order of ms_rule.save. x86-64: rbx, rbp, r12 … r15. arm64: x19 …
 * x30.
 */
#define MS_N_SAVED_X86 6
#define MS_N_SAVED_A64 12
#define MS_N_SAVED     12

enum ms_rule_kind {
	MS_RULE_NONE,   /* no CFI covers this code: follow the frame pointer, and the stack is guessed */
	MS_RULE_REG,    /* CFA = reg + off                                                   */
	MS_RULE_DEREF,  /* CFA = *(reg + off) + off2                                         */
	MS_RULE_PLT,    /* CFA = reg + off + ((pc & 15) >= off2 ? 8 : 0): x86 PLT stubs      */
	MS_RULE_SIGNAL, /* a signal's return: all registers are in the frame at reg + off
			 * (struct sigcontext of the architecture); the frame above was
			 * interrupted, not called                                            */
	MS_RULE_END,    /* the return address is undefined: nobody called this               */
	MS_RULE_FP,     /* code known to keep frame pointers (Go, a JIT's stubs)             */
	MS_RULE_BAD,    /* CFI that none of these can express: as MS_RULE_NONE, counted apart */
	MS_N_RULE_KINDS,
};

#define MS_RULE_RA_REG (1u << 0) /* the return address is in register `ra_reg`, as it is in this
				  * frame (x86: vfork; arm64: leaf functions, x30)        */
#define MS_RULE_RA_BASE (1u << 1) /* … is `ra_off` bytes from the value of `base_reg` instead (arm64:
				  * the low end of a frame of more than 32 KiB)           */

/* The rules that every set begins with. */
#define MS_RULE_IX_NONE  0
#define MS_RULE_IX_END   1
#define MS_RULE_IX_FP    2
#define MS_RULE_IX_BAD   3
#define MS_RULE_FIRST    4

/*
 * save[i]: where the caller's value of the i-th saved register is, in bytes from the CFA; 0: still
 * in the register (no slot is at the CFA itself). A bit in `from_reg`: bytes from this frame's
 * value of `base_reg` instead, any number (GCC's realigned stacks: from rbp); with MS_RULE_SIGNAL
 * nothing is saved apart. A bit in `lost`: the caller's value cannot be recovered, and the register
 * is unknown from there outwards (save[i] is 0).
 */
struct ms_rule {
	__u8 kind; /* enum ms_rule_kind */
	__u8 reg;  /* of the CFA */
	__u8 flags;
	__u8 ra_reg;
	__s32 off, off2;
	__s16 ra_off;    /* return address: bytes from the CFA (x86: -8) */
	__u16 from_reg;
	__u8 base_reg;
	__u8 pad;
	__u16 lost;
	__s16 save[MS_N_SAVED];
};

/* --- tables --- */

struct ms_table {
	__u64 first_page; /* vaddr >> MS_ROW_PAGE_SHIFT of directory entry 0                      */
	__u32 n_pages;    /* the directory has one entry more; 0: this table is not resident      */
	__u32 dir;        /* pool word of the directory                                           */
	__u32 rows;       /* pool word of row 0                                                   */
	__u32 used;       /* written by walks: time of the last use, CLOCK_MONOTONIC seconds      */
	__u32 serial;     /* never the same for two tables, nor for one that was away in between  */
	__u32 pad;
};

/* --- spans --- */

enum ms_span_kind {
	MS_SPAN_TABLE,    /* rows of `table`                                                     */
	MS_SPAN_FP,       /* no rows; known to keep frame pointers (Go's and V8's code)          */
	MS_SPAN_GUESS,    /* no rows, and nothing known: frame pointers, and the stack is guessed */
	MS_SPAN_PENDING,  /* its table is not resident (yet): user space finishes the stack      */
};

/* 8 pool words; first word a multiple of 8. */
struct ms_span {
	__u64 start, end; /* [start, end)                        */
	__u64 bias;       /* address - vaddr                     */
	__u32 table;
	__u32 kind;       /* enum ms_span_kind                   */
};

#define MS_SPAN_WORDS 8
#define MS_MAX_SPANS  8192 /* of one process */

/* The spans of a process: value of map `spaces`, key tgid. After an exec, or when its pid is
 * reused, it has none until user space has read the new mappings. */
struct ms_space {
	__u64 start_ns; /* as in struct ms_proc */
	__u32 exec_id;
	__u32 spans;    /* pool word of the first */
	__u32 n_spans;
	__u32 as_gen;   /* address-space generation they describe */
};

/* --- the pool --- */

#define MS_POOL_PAGE_WORDS 1024
struct ms_pool_page {
	__u32 word[MS_POOL_PAGE_WORDS];
};

_Static_assert(sizeof(struct ms_rule) == 44, "ms_rule");
_Static_assert(sizeof(struct ms_table) == 32, "ms_table");
_Static_assert(sizeof(struct ms_space) == 24, "ms_space");
_Static_assert(sizeof(struct ms_span) == 4 * MS_SPAN_WORDS, "ms_span");

#endif
