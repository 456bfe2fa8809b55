/*
 * Stacks that nobody has used for a while, forgotten by both sides.
 *
 * The kernel sends a stack when it first sees its hash, and names it by that from then on; user space keeps it. Addresses differ from
 * process to process, so each one brings stacks of its own, and a service among compilers would keep those of every process that there
 * ever was. So now and then a stack that no total has named for some minutes is taken from the kernel's list of what it has sent: when it
 * is seen again it is sent again. At the next call it is forgotten here, unless it was named meanwhile, or is still kept in the kernel: as
 * the stack of a wait that has not ended, or of a site of waits.
 *
 * Not while allocations are followed, whose sites name stacks until the end.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_OLD_STACKS_H
#define MEMSCOPE_COLLECT_STREAM_OLD_STACKS_H

#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"
#include "collect/stream/wakers.h"

/* Calls for which a stack may be unused before it goes. */
#define OLD_STACKS_CALLS 10

/*
 * One call; between two of them totals are drained. `wakers` NULL: none are gathered. Where the kernel's tables cannot be read nothing
 * is forgotten. Returns how many were.
 */
uint32_t old_stacks_forget(struct drain *d, struct ingest *in, struct wakers *wakers);

#endif
