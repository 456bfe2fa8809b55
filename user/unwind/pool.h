/*
 * Who has which words of the unwind pool.
 *
 *   0                                                         ceiling        end
 *   │ table │ table │ free │ table │ waiting │ free … … … … …  │ … free │ spans │ spans │
 *
 * One list of extents, by address, covers the whole pool. Tables are placed from the bottom, best
 * fit, below a ceiling; lists of spans from the top: they come and go with processes, and would
 * else keep tables from one another's room. What is released waits until no walk can be reading
 * it any more (MS_POOL_GRACE_NS), and is then joined with its free neighbours.
 *
 * Lengths and places are in units of MS_SPAN_WORDS words, so every extent begins where a span may.
 */
#ifndef MEMSCOPE_UNWIND_POOL_H
#define MEMSCOPE_UNWIND_POOL_H

#include "abi.h"

#include <stdbool.h>
#include <stdint.h>

enum pool_use { POOL_FREE, POOL_WAITS, POOL_TABLE, POOL_SPANS };

struct pool_extent {
	uint64_t ready_ns; /* POOL_WAITS: when it is free                    */
	uint32_t at, len;  /* units                                          */
	uint32_t owner;    /* POOL_TABLE, POOL_SPANS: the caller's number     */
	uint8_t use;       /* enum pool_use                                  */
};

struct pool {
	struct pool_extent *extents;
	uint32_t n, cap;
	uint32_t ceiling;     /* tables lie below */
	uint32_t used[4];     /* units, by use    */
	uint64_t next_ready_ns;
};

/* Words → units, rounded up; as many as a pool can have at most. */
uint32_t pool_units(uint64_t words);

/* -ENOMEM. `n_units` may be 0. */
int pool_init(struct pool *p, uint32_t n_units);
void pool_fini(struct pool *p);

/*
 * `len` > 0 units for a table or a list of spans; the place in units. -ENOSPC: no free extent is
 * that large; -ENOMEM.
 */
int pool_take(struct pool *p, enum pool_use use, uint32_t owner, uint32_t len, uint32_t *ret_at);
/* The extent that begins at `at` waits until `now_ns` + grace, then is free. */
void pool_give_back(struct pool *p, uint32_t at, uint64_t now_ns);
/* Frees what has waited long enough. */
void pool_reap(struct pool *p, uint64_t now_ns);

/* The largest table this pool could ever hold, units. */
uint32_t pool_largest(const struct pool *p);

/*
 * Where tables have to make room for one of `len` units: neighbouring extents below the ceiling
 * with no spans among them, chosen so that the most expensive table in it is as cheap as possible; of
 * equals the one with the fewest words in use. `cost` says what it costs to lose a table.
 * Extents [*ret_from, *ret_to) of p->extents. *ret_waits: they are all free or waiting, and no table
 * has to go. -ENOSPC: there is no such place.
 */
typedef uint64_t (*pool_cost_fn)(void *ctx, uint32_t owner);
int pool_window(const struct pool *p, uint32_t len, pool_cost_fn cost, void *ctx, uint32_t *ret_from,
		uint32_t *ret_to, bool *ret_waits);

#endif
