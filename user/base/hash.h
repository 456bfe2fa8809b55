/*
 * Hash tables: uthash, set up once for the whole program. Include this, not <uthash.h>.
 *
 * Keys are often an attacker's bytes (symbol names, paths), so the hash is XXH3 under a seed drawn
 * at first use. Running out of memory is not fatal: after an add that failed, `elt->hh.tbl` is NULL
 * and the element is not in the table (hash_added()).
 *
 * A handle costs 56 bytes an element, and elements must not move (chunks.h keeps them still).
 */
#ifndef MEMSCOPE_BASE_HASH_H
#define MEMSCOPE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 32 bits of XXH3 under this process's seed. Not stable between runs: never write it anywhere. */
uint32_t hash_bytes(const void *data, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_bytes((keyptr), (keylen)))
#include <uthash.h>

#define hash_added(elt) ((elt)->hh.tbl != NULL)

#endif
