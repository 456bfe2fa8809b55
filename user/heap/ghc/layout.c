#include "heap/ghc/layout.h"

#include <stddef.h>

const char *ghc_type_name(enum ghc_type type)
{
	static const char *const names[GHC_TYPES] = {
		"INVALID",
		"CONSTR",
		"CONSTR_1_0",
		"CONSTR_0_1",
		"CONSTR_2_0",
		"CONSTR_1_1",
		"CONSTR_0_2",
		"CONSTR_NOCAF",
		"FUN",
		"FUN_1_0",
		"FUN_0_1",
		"FUN_2_0",
		"FUN_1_1",
		"FUN_0_2",
		"FUN_STATIC",
		"THUNK",
		"THUNK_1_0",
		"THUNK_0_1",
		"THUNK_2_0",
		"THUNK_1_1",
		"THUNK_0_2",
		"THUNK_STATIC",
		"THUNK_SELECTOR",
		"BCO",
		"AP",
		"PAP",
		"AP_STACK",
		"IND",
		"IND_STATIC",
		"RET_BCO",
		"RET_SMALL",
		"RET_BIG",
		"RET_FUN",
		"UPDATE_FRAME",
		"CATCH_FRAME",
		"UNDERFLOW_FRAME",
		"STOP_FRAME",
		"BLOCKING_QUEUE",
		"BLACKHOLE",
		"MVAR_CLEAN",
		"MVAR_DIRTY",
		"TVAR",
		"ARR_WORDS",
		"MUT_ARR_PTRS_CLEAN",
		"MUT_ARR_PTRS_DIRTY",
		"MUT_ARR_PTRS_FROZEN_DIRTY",
		"MUT_ARR_PTRS_FROZEN_CLEAN",
		"MUT_VAR_CLEAN",
		"MUT_VAR_DIRTY",
		"WEAK",
		"PRIM",
		"MUT_PRIM",
		"TSO",
		"STACK",
		"TREC_CHUNK",
		"ATOMICALLY_FRAME",
		"CATCH_RETRY_FRAME",
		"CATCH_STM_FRAME",
		"WHITEHOLE",
		"SMALL_MUT_ARR_PTRS_CLEAN",
		"SMALL_MUT_ARR_PTRS_DIRTY",
		"SMALL_MUT_ARR_PTRS_FROZEN_DIRTY",
		"SMALL_MUT_ARR_PTRS_FROZEN_CLEAN",
		"COMPACT_NFDATA",
		"CONTINUATION",
	};

	return type < GHC_TYPES && names[type] ? names[type] : "INVALID";
}

const struct ghc_layout *ghc_layout_of(uint32_t version)
{
	static const struct ghc_layout rows[] = {
		/* Since 9.6 a thread has a label. */
		{ 0x090600, false, GHC_CONTINUATION + 1, 16, { 88, 96, 104 } },
		{ 0x090100, false, GHC_COMPACT_NFDATA + 1, 15, { 88, 96 } },
		{ 0x090000, true, GHC_COMPACT_NFDATA + 1, 15, { 88, 96 } },
		{ 0x080a00, false, GHC_COMPACT_NFDATA + 1, 15, { 88, 96 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (version >= rows[i].from)
			return &rows[i];
	return NULL;
}
