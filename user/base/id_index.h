/*
 * Finds elements of an array by content: an open-addressed table from hashes to element numbers.
 * Eight bytes a slot and no handle in the element, where one of uthash takes 56: for tables of millions.
 *
 *	struct id_at at = id_index_begin(&x, hash);
 *
 *	while (id_index_next(&at, &ix))
 *		if (is_it(ix))
 *			return ix;
 *	return id_index_add(&x, hash, new_ix);
 */
#ifndef MEMSCOPE_BASE_ID_INDEX_H
#define MEMSCOPE_BASE_ID_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct id_slot {
	uint32_t hash, ix1; /* the element's number + 1; 0: free */
};

/* Zeroed: empty. */
struct id_index {
	struct id_slot *slots;
	uint32_t n, mask; /* elements; slots − 1, a power of two − 1 */
};

struct id_at {
	const struct id_index *x;
	uint32_t hash, slot;
};

static inline struct id_at id_index_begin(const struct id_index *x, uint32_t hash)
{
	return (struct id_at){ x, hash, hash & x->mask };
}

/* The next element with this hash, which may be another's, too. False: there is none. */
static inline bool id_index_next(struct id_at *at, uint32_t *ret_ix)
{
	const struct id_index *x = at->x;

	while (x->slots && x->slots[at->slot].ix1) {
		const struct id_slot *slot = &x->slots[at->slot];

		at->slot = (at->slot + 1) & x->mask;
		if (slot->hash == at->hash) {
			*ret_ix = slot->ix1 - 1;
			return true;
		}
	}
	return false;
}

/* `ix` is below UINT32_MAX. 0 or -ENOMEM, when the element is not in it. */
int id_index_add(struct id_index *x, uint32_t hash, uint32_t ix);
void id_index_free(struct id_index *x);

#endif
