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
#include <stdlib.h>
#include <string.h>

/* 32 bits of XXH3 under this process's seed. Not stable between runs: never write it anywhere. */
uint32_t hash_bytes(const void *data, size_t len);

/*
 * 64 bits of XXH3 without a seed: the same everywhere, for checksums and names of files. Not inlined on purpose:
 * where gcc knows how long the bytes are, it takes XXH3's prefetches for reads behind their end.
 */
uint64_t content_hash(const void *data, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_bytes((keyptr), (keylen)))
#include <uthash.h>

#define hash_added(elt) ((elt)->hh.tbl != NULL)

/*
 * For elements that are one piece of memory each, with a handle `hh`:
 *
 *   hash_new(table, field, key)   one whose `field` is *key, zeroed otherwise; NULL: out of memory.
 *                                 There is none of that key yet.
 *   hash_get(table, field, key)   the same, unless there is one: then that
 *   hash_free(table)              frees them all; what they point to is the caller's
 */
#define hash_new(table, field, keyptr)                                               \
	({                                                                           \
		__typeof__(table) new_ = calloc(1, sizeof(*new_));                   \
		_Static_assert(sizeof(*(keyptr)) == sizeof(new_->field), "its key"); \
		if (new_) {                                                          \
			memcpy(&new_->field, keyptr, sizeof(new_->field));           \
			HASH_ADD(hh, table, field, sizeof(new_->field), new_);       \
			if (!hash_added(new_)) {                                     \
				free(new_);                                          \
				new_ = NULL;                                         \
			}                                                            \
		}                                                                    \
		new_;                                                                \
	})

#define hash_get(table, field, keyptr)                                       \
	({                                                                   \
		__typeof__(table) got_;                                      \
		HASH_FIND(hh, table, keyptr, sizeof(got_->field), got_);     \
		got_ ? got_ : hash_new(table, field, keyptr);                \
	})

#define hash_free(table)                                         \
	do {                                                     \
		__typeof__(table) each_, next_;                  \
		HASH_ITER (hh, table, each_, next_) {            \
			HASH_DEL(table, each_);                  \
			free(each_);                             \
		}                                                \
	} while (0)

#endif
