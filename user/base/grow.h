/*
 * Arrays that grow by doubling, so that a row costs the same however many there are.
 */
#ifndef MEMSCOPE_BASE_GROW_H
#define MEMSCOPE_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { GROW_FIRST = 64 }; /* rows that the first one makes room for */

/*
 * Room for a row behind the first `n` of `rows`, an array of `cap` rows from malloc() or NULL; both are changed as
 * needed, and evaluated more than once. false: out of memory, or more rows than `cap` can count; nothing has changed.
 */
#define GROW(rows, n, cap) GROW_BY(reallocarray, rows, n, cap)

/* The same of memory that `resize` allocates, with the arguments of reallocarray(): GROW_LARGE of base/large.h. */
#define GROW_BY(resize, rows, n, cap)                                                                      \
	({                                                                                                 \
		bool room_ = (n) < (cap);                                                                  \
                                                                                                           \
		if (!room_) {                                                                              \
			__typeof__(cap) more_ = (cap) ? 2 * (cap) : GROW_FIRST;                            \
			__typeof__(rows) grown_ =                                                          \
				more_ > (cap) ? resize((rows), more_, sizeof(*(rows))) : NULL;             \
                                                                                                           \
			if (grown_) {                                                                      \
				(rows) = grown_;                                                           \
				(cap) = more_;                                                             \
				room_ = true;                                                              \
			}                                                                                  \
		}                                                                                          \
		room_;                                                                                     \
	})

#endif
