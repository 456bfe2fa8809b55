/*
 * Why a lock is held for long, where its owner is not known: who holds it waits for something else.
 *
 * A group commit is one: all transactions wait for a lock but the one that writes, which waits for the disk. The disk is
 * the cause, and the lock hands it on. A function that takes a lock and then waits under it is on the stacks of both:
 * of the waits for the lock as what asked for it, of the others as a caller. What is under a lock happens once at a time, so
 * together such waits last no longer than the run; causes.c holds them against it.
 *
 * Only waits that surely hold up (wait_kind_is_hold_up()): for a socket a thread may wait because nobody asks it anything.
 */
#ifndef MEMSCOPE_ANALYSE_LOCK_CHAIN_H
#define MEMSCOPE_ANALYSE_LOCK_CHAIN_H

#include "analyse/sites.h"

/*
 * The largest wait, of value type `type`, below one of the functions that ask for `lock`, a row of sites_waits(). 1; 0: there
 * is none; -ENOMEM. Its value is that of all such waits of that kind.
 */
int lock_chain_find(const struct profile *p, uint32_t type, const struct site_row *lock, struct site_row *ret_wait);

#endif
