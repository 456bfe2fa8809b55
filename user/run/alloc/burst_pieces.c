#include "run/alloc/burst_pieces.h"

#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PIECE_NS   1000000000ULL
#define PIECES_MAX 64

int burst_pieces_add(struct burst_pieces *p, const struct burst_piece *piece)
{
	struct burst_piece *last = p->n ? &p->list[p->n - 1] : NULL;

	if (last && piece->to_ns >= last->to_ns &&
	    (piece->to_ns - last->from_ns <= PIECE_NS || p->n == PIECES_MAX)) {
		last->to_ns = piece->to_ns;
		last->calls += piece->calls;
		last->bytes += piece->bytes;
		return 0;
	}
	if (!GROW(p->list, p->n, p->cap))
		return -ENOMEM;
	p->list[p->n++] = *piece;
	return 0;
}

/* What of `value` is in the first `n` pieces. */
static int64_t up_to(const struct burst_pieces *p, uint32_t n, int64_t value, int which)
{
	double part = 0, all = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		double has = which ? p->list[i].bytes : p->list[i].calls;

		all += has;
		part += i < n ? has : 0;
	}
	return n >= p->n || all <= 0 ? value : llround((double)value * (part / all));
}

void burst_pieces_part(const struct burst_pieces *p, uint32_t i, const int64_t values[2],
		       int64_t ret_part[2])
{
	for (int k = 0; k < 2; k++)
		ret_part[k] = up_to(p, i + 1, values[k], k) - (i ? up_to(p, i, values[k], k) : 0);
}

int burst_pieces_place(struct burst_pieces *p, struct ingest *in, const struct event_key *key,
		       const int64_t more[2], uint64_t seen, stack_id *ret_stack,
		       labels_id *ret_labels)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && (i < p->n || !i); i++) {
		int64_t values[4] = { more[0], more[1], 0, 0 };

		if (p->n) {
			ingest_between(in, p->list[i].from_ns, p->list[i].to_ns);
			burst_pieces_part(p, i, more, values);
		}
		rc = ingest_estimate(in, key, values, i ? 0 : seen, ret_stack, ret_labels);
	}
	if (rc == 0)
		burst_pieces_clear(p);
	return rc;
}

void burst_pieces_clear(struct burst_pieces *p)
{
	free(p->list);
	*p = (struct burst_pieces){ 0 };
}
