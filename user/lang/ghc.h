/*
 * GHC: what is read of its code. Internal to the room, and to tests.
 */
#ifndef MEMSCOPE_LANG_GHC_H
#define MEMSCOPE_LANG_GHC_H

#include "lang/image.h"

#define GHC_TESTED 0x090002 /* the version that memscope was tried with */

/* Is that StgRun()? *ret_saved: how far below its caller's registers it leaves rsp. */
bool ghc_run_read(const uint8_t *code, size_t len, uint32_t *ret_saved);
/* What code that GHC has generated says of threads and stacks. false: nothing, or not one thing. */
bool ghc_offsets_read(const uint8_t *code, size_t len, struct ghc_offsets *ret_offsets);

#endif
