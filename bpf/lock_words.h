/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who owns the lock that a thread waits for in futex(2): by the words around the futex, in the memory of the process.
 * One source for the kernel and the host.
 *
 *   mutex       +0 lock: 2 while others wait  +4 count  +8 owner  +12 nusers  +16 kind   glibc, struct_mutex.h
 *   rwlock      +0 readers  +4 writers  +8 wrphase_futex  +12 writers_futex  +16 0  +20 0  +24 cur_writer
 *                                                                                        glibc, struct_rwlock.h
 *   PI, robust  the futex itself is the owner, with bits above it                        futex(2)
 *
 * (pthread_mutex_t and pthread_rwlock_t of 64-bit programs, unchanged since glibc 2.25.) Locks of Go, Rust, musl and
 * Java do not say who owns them: an owner is believed if it is a thread of the same process. Owners are numbered as
 * their process's own pid namespace does.
 *
 * futex_wait(2) and futex_waitv(2) wait as FUTEX_WAIT does; who waits for several at a time, waits for no lock of them. FUTEX_WAIT_REQUEUE_PI
 * waits for a condition, and then for a lock, and nobody says from when on: it is no wait for a lock here.
 */
#ifndef MEMSCOPE_LOCK_WORDS_H
#define MEMSCOPE_LOCK_WORDS_H

#include "abi.h"

#define LOCK_FN static inline __attribute__((always_inline))

/* linux/futex.h */
#define FUTEX_OP_WAIT        0u
#define FUTEX_OP_LOCK_PI     6u
#define FUTEX_OP_WAIT_BITSET 9u
#define FUTEX_OP_LOCK_PI2    13u
#define FUTEX_OP_FLAGS       (128u | 256u) /* private; by the realtime clock */
#define FUTEX_TIDS           0x3fffffffu
#define FUTEX_HAS_WAITERS    0x80000000u

#define LOCK_KINDS  0xfffu /* of a mutex: its type, PI, robust, elision, protection, shared: bits 0 … 8 */
#define LOCK_TID_MIN 4     /* where a mutex that changes hands looks like a rwlock, its kind is at the writer's place */

#define LOCK_TID_MAX (1u << 22) /* PID_MAX_LIMIT */

#define LOCK_WORDS 6

/* Linux 5.16 and 6.7, on every architecture. */
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAIT  455

/* An element of what futex_waitv(2) waits for; linux/futex.h. */
struct lock_waitv {
	__u64 expected, futex;
	__u32 flags, reserved;
};

/* Where LOCK_WORDS words of 4 bytes are to be read, for a futex. */
LOCK_FN __u64 lock_words_of_futex(__u64 futex)
{
	return futex & ~7ULL;
}

/* 1: it may be an owner with a bit above it. Rust's parked threads expect all bits, which is no thread's number. */
LOCK_FN int lock_names_owner(__u32 expected)
{
	return expected & FUTEX_HAS_WAITERS && (expected & FUTEX_TIDS) - 1 < LOCK_TID_MAX;
}

/* 1: a call of futex(2) with these arguments waits for a lock that may say who owns it. */
LOCK_FN int lock_is_wanted(__u32 op, __u32 expected)
{
	__u32 command = op & ~FUTEX_OP_FLAGS;

	if (command == FUTEX_OP_LOCK_PI || command == FUTEX_OP_LOCK_PI2)
		return 1;
	return (command == FUTEX_OP_WAIT || command == FUTEX_OP_WAIT_BITSET) &&
	       (expected == 2 || expected == 3 || lock_names_owner(expected));
}

LOCK_FN __u64 lock_make(__u64 addr, enum ms_lock_kind kind)
{
	return (addr & MS_LOCK_ADDR_MASK) | (__u64)kind << MS_LOCK_KIND_SHIFT;
}

LOCK_FN __u32 lock_kind(__u64 lock)
{
	return (__u32)(lock >> MS_LOCK_KIND_SHIFT);
}

/*
 * The lock, as lock_make() has it, and its owner; 0: not known. What is not recognized is MS_LOCK_OTHER, at the
 * futex.
 */
LOCK_FN __u64 lock_recognize(__u64 futex, __u32 op, __u32 expected, const __u32 words[LOCK_WORDS],
			     __u32 *ret_owner)
{
	__u32 command = op & ~FUTEX_OP_FLAGS;

	*ret_owner = 0;
	if (command == FUTEX_OP_LOCK_PI || command == FUTEX_OP_LOCK_PI2 ||
	    lock_names_owner(expected)) {
		*ret_owner = (futex & 4 ? words[1] : words[0]) & FUTEX_TIDS;
		return lock_make(futex, MS_LOCK_WORD);
	}
	if (!(futex & 7) && expected == 2 && words[2] && words[3] && words[4] <= LOCK_KINDS) {
		*ret_owner = words[2];
		return lock_make(futex, MS_LOCK_MUTEX);
	}
	if (!words[2] && !words[3] && words[4] >= LOCK_TID_MIN) {
		*ret_owner = words[4];
		return lock_make((futex & ~7ULL) - 8, MS_LOCK_RWLOCK);
	}
	return lock_make(futex, MS_LOCK_OTHER);
}

/* Where the words of a recognized lock are. */
LOCK_FN __u64 lock_words_at(__u64 lock)
{
	return (lock & MS_LOCK_ADDR_MASK & ~7ULL) + (lock_kind(lock) == MS_LOCK_RWLOCK ? 8 : 0);
}

/* Does `owner` own the lock, and do others wait for it? Not of MS_LOCK_GIL. */
LOCK_FN int lock_is_owned(__u64 lock, const __u32 words[LOCK_WORDS], __u32 owner)
{
	__u32 word = lock & 4 ? words[1] : words[0];

	switch (lock_kind(lock)) {
	case MS_LOCK_MUTEX:
		return words[0] == 2 && words[2] == owner;
	case MS_LOCK_RWLOCK:
		return (words[0] | words[1]) & 2 && words[4] == owner;
	case MS_LOCK_WORD:
		return word & FUTEX_HAS_WAITERS && (word & FUTEX_TIDS) == owner;
	}
	return 0;
}

/*
 * CPython's GIL. Who waits for it waits for its condition variable (pthread_cond_timedwait(), until glibc 2.40 for one of
 * its two __g_signals, which are 0 then), which follows the rest in all versions from 3.8 to 3.14 (pycore_gil.h):
 *
 *   +0 interval  +8 last_holder  +16 locked  +24 switch_number  +32 cond: +40 __g_signals[2]
 *
 * last_holder is the PyThreadState of the thread that has it, or had it last.
 */
#define GIL_SIGNALS_BEHIND 64

struct gil_head {
	__u64 tstate; /* last_holder */
	__u32 locked, pad;
};

/* 1: such a call may wait for a condition variable. */
LOCK_FN int gil_is_wanted(__u32 op, __u32 expected)
{
	return (op & ~FUTEX_OP_FLAGS) == FUTEX_OP_WAIT_BITSET && expected == 0;
}

/* Where the struct gil_head of a GIL would be. */
LOCK_FN __u64 gil_of_futex(__u64 futex)
{
	return (futex & ~7ULL) - GIL_SIGNALS_BEHIND;
}

/* In what pthread_self() points to: the thread's number (glibc's struct pthread, nptl/descr.h). */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define PTHREAD_TID 208
#else
#define PTHREAD_TID 720
#endif

#endif
