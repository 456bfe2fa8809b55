/*
 * GHC's objects as they lie in memory: types of closures, places of fields, and what versions differ in. x86-64, tables next to
 * code, not built for cost-centre profiling. Sources: rts/include/rts/storage/{ClosureTypes,Closures,InfoTables,FunTypes,
 * TSO,GC,Block}.h and stg/Regs.h of GHC 9.0 and of its development branch in 2025, whose figures of these are the same but
 * for the table below.
 */
#ifndef MEMSCOPE_HEAP_GHC_LAYOUT_H
#define MEMSCOPE_HEAP_GHC_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum ghc_type {
	GHC_INVALID,
	GHC_CONSTR, GHC_CONSTR_1_0, GHC_CONSTR_0_1, GHC_CONSTR_2_0, GHC_CONSTR_1_1, GHC_CONSTR_0_2, GHC_CONSTR_NOCAF,
	GHC_FUN, GHC_FUN_1_0, GHC_FUN_0_1, GHC_FUN_2_0, GHC_FUN_1_1, GHC_FUN_0_2, GHC_FUN_STATIC,
	GHC_THUNK, GHC_THUNK_1_0, GHC_THUNK_0_1, GHC_THUNK_2_0, GHC_THUNK_1_1, GHC_THUNK_0_2, GHC_THUNK_STATIC,
	GHC_THUNK_SELECTOR, GHC_BCO, GHC_AP, GHC_PAP, GHC_AP_STACK, GHC_IND, GHC_IND_STATIC,
	GHC_RET_BCO, GHC_RET_SMALL, GHC_RET_BIG, GHC_RET_FUN, GHC_UPDATE_FRAME, GHC_CATCH_FRAME, GHC_UNDERFLOW_FRAME,
	GHC_STOP_FRAME, GHC_BLOCKING_QUEUE, GHC_BLACKHOLE, GHC_MVAR_CLEAN, GHC_MVAR_DIRTY, GHC_TVAR, GHC_ARR_WORDS,
	GHC_MUT_ARR_PTRS_CLEAN, GHC_MUT_ARR_PTRS_DIRTY, GHC_MUT_ARR_PTRS_FROZEN_DIRTY, GHC_MUT_ARR_PTRS_FROZEN_CLEAN,
	GHC_MUT_VAR_CLEAN, GHC_MUT_VAR_DIRTY, GHC_WEAK, GHC_PRIM, GHC_MUT_PRIM, GHC_TSO, GHC_STACK, GHC_TREC_CHUNK,
	GHC_ATOMICALLY_FRAME, GHC_CATCH_RETRY_FRAME, GHC_CATCH_STM_FRAME, GHC_WHITEHOLE,
	GHC_SMALL_MUT_ARR_PTRS_CLEAN, GHC_SMALL_MUT_ARR_PTRS_DIRTY, GHC_SMALL_MUT_ARR_PTRS_FROZEN_DIRTY,
	GHC_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN, GHC_COMPACT_NFDATA,
	GHC_CONTINUATION, /* since 9.6 */
	GHC_TYPES
};

/* The same names as `+RTS -hT` has: "THUNK_1_0". */
const char *ghc_type_name(enum ghc_type type);

static inline bool ghc_is_constr(enum ghc_type t)
{
	return t >= GHC_CONSTR && t <= GHC_CONSTR_NOCAF;
}

static inline bool ghc_is_fun(enum ghc_type t)
{
	return t >= GHC_FUN && t <= GHC_FUN_STATIC;
}

static inline bool ghc_is_thunk(enum ghc_type t)
{
	return t >= GHC_THUNK && t <= GHC_THUNK_STATIC;
}

/* What versions differ in. */
struct ghc_layout {
	uint32_t from;        /* 0x090002: from this version on                     */
	bool tested;
	uint8_t types;        /* types of closures are less than this              */
	uint8_t tso_words;
	uint8_t tso_pointers[4]; /* offsets in a TSO, behind those that all have; 0 ends them */
};

enum { GHC_TESTED_VERSION = 0x090002 };

/* NULL: older than the oldest that is known. */
const struct ghc_layout *ghc_layout_of(uint32_t version);

/* --- offsets in bytes, of all versions --- */

enum {
	GHC_BLOCK = 4096,
	GHC_MBLOCK = 1 << 20,
	GHC_MBLOCK_BLOCKS = 252, /* of 256: the first four are descriptors */
	GHC_FIRST_BLOCK = 4,

	GHC_BD_BYTES = 64,
	GHC_BD_START = 0,
	GHC_BD_FREE = 8,
	GHC_BD_GEN = 32,
	GHC_BD_FLAGS = 46,
	GHC_BD_BLOCKS = 48,

	GHC_GEN_NO = 0,
	GHC_GEN_THREADS = 104,
	GHC_GEN_WEAK = 112,
	GHC_GEN_COLLECTIONS = 128,
	GHC_GENS_MAX = 8,
	GHC_GEN_BYTES = 232,          /* of a run-time system without threads  */
	GHC_GEN_OLD_BLOCKS = 152,
	GHC_GEN_OLD_THREADS = 64, /* from there; then old_weak_ptr_list */
	GHC_GEN_BYTES_THREADED = 384,
	GHC_GEN_OLD_BLOCKS_THREADED = 304,

	GHC_TSO_LINK = 8,
	GHC_TSO_GLOBAL_LINK = 16,
	GHC_TSO_STACK = 24,
	GHC_TSO_BLOCK_INFO = 40,
	GHC_TSO_ID = 48,
	GHC_TSO_CAP = 72,
	GHC_TSO_TREC = 80,

	GHC_STACK_SIZE = 8,
	GHC_STACK_SP = 16,
	GHC_STACK_WORDS = 24,

	/* Of a Capability; the others from its rCurrentTSO on. */
	GHC_CAP_REGS = 24,
	GHC_REG_TSO = 872,
	GHC_CAP_TASK = 952,
	GHC_CAP_IN_HASKELL = 960,
	GHC_CAP_WEAK = 1160,

	GHC_CAF_CODE = 24, /* of one that is evaluated: what it was before */

	GHC_WEAK_CFINALIZERS = 8,
	GHC_WEAK_KEY = 16,
	GHC_WEAK_VALUE = 24,
	GHC_WEAK_FINALIZER = 32,
	GHC_WEAK_LINK = 40,

	GHC_TREC_ENTRIES = 16,
};

enum {
	GHC_BF_LARGE = 2,
	GHC_BF_PINNED = 4,
	GHC_BF_COMPACT = 512,
	GHC_BF_NONMOVING = 1024,
};

#endif
