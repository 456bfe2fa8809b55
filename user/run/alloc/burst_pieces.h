/*
 * When what bursts stand for came: of one row, what is settled and in no profile yet, in pieces of about a second, at most
 * 64: the last of these takes what comes after it. A block of bursts is settled as a whole, long after its first.
 */
#ifndef MEMSCOPE_RUN_ALLOC_BURST_PIECES_H
#define MEMSCOPE_RUN_ALLOC_BURST_PIECES_H

#include "collect/stream/ingest.h"

#include <stdint.h>

/* CLOCK_MONOTONIC. */
struct burst_piece {
	uint64_t from_ns, to_ns;
	double calls, bytes;
};

/* Zeroed: there are none. */
struct burst_pieces {
	struct burst_piece *list; /* in the order of time */
	uint32_t n, cap;
};

/* What one burst stands for; those of a row come in the order of time. 0 or -ENOMEM. */
int burst_pieces_add(struct burst_pieces *p, const struct burst_piece *piece);
/*
 * Piece i's part of `values` (calls, bytes), which all pieces together came to, rounded in one way or another: the
 * parts add up to it.
 */
void burst_pieces_part(const struct burst_pieces *p, uint32_t i, const int64_t values[2],
		       int64_t ret_part[2]);
/*
 * Into the profiles: so many calls and bytes, each piece's part at its time, of which `seen` calls were in bursts. Then there are
 * none. As ingest_estimate().
 */
int burst_pieces_place(struct burst_pieces *p, struct ingest *in, const struct event_key *key,
		       const int64_t more[2], uint64_t seen, stack_id *ret_stack,
		       labels_id *ret_labels);
void burst_pieces_clear(struct burst_pieces *p);

#endif
