/*
 * Which objects are meant, as a user names them:
 *
 *   type:NAME     of that type; "Session" also means "web.Session" and "web::Session"
 *   size:BYTES    in blocks of that many bytes, as the allocator rounds them
 *   0xADDRESS     the block that has the byte at this address
 *   NAME          type:NAME
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_SELECT_H
#define MEMSCOPE_HEAP_SNAPSHOT_SELECT_H

#include "base/err.h"
#include "heap/snapshot/snapshot.h"

/* *ret_objects is the caller's. -EINVAL: it cannot be read; -ENOENT: there is none; -ENOMEM. */
int select_objects(const struct snapshot *s, const char *what, uint32_t **ret_objects, uint64_t *ret_n, struct err *e);

#endif
