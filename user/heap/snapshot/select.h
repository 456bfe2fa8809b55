/*
 * The objects that a user means, as a list: `type:Session`, `size:4096`, `0x7f…`, `Session`, or any condition of query.h.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_SELECT_H
#define MEMSCOPE_HEAP_SNAPSHOT_SELECT_H

#include "base/err.h"
#include "heap/snapshot/snapshot.h"

/* *ret_objects is the caller's. *ret_n may be 0. -EINVAL: it cannot be read; -ENOENT: no block has the address; -ENOMEM. */
int select_objects(const struct snapshot *s, const char *what, uint32_t **ret_objects, uint64_t *ret_n, struct err *e);

#endif
