/*
 * By what the kernel's programs add events up: a thread of a process image, its stacks, the source. Only
 * files of this room look inside (collect/wire.h); for others it is a name that can be kept, compared and
 * handed back: two keys are one if their bytes are.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_EVENT_KEY_H
#define MEMSCOPE_COLLECT_STREAM_EVENT_KEY_H

#include "proc/proc_table.h"

#include <stdint.h>

struct event_key {
	uint64_t words[8];
};

/* The same of an allocation site (alloc_table.h); it is never kept, only handed on. */
struct site_key;

/* The same without the kernel's part of its stack, and of no thread. */
struct event_key event_user_stack(const struct event_key *key);
/* Whose it is. */
struct proc_id event_proc(const struct event_key *key);

#endif
