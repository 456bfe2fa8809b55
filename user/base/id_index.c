#include "base/id_index.h"

#include <errno.h>
#include <stdlib.h>

enum { LEAST_SLOTS = 64 };

static void put(struct id_index *x, struct id_slot slot)
{
	uint32_t at = slot.hash & x->mask;

	while (x->slots[at].ix1)
		at = (at + 1) & x->mask;
	x->slots[at] = slot;
}

static int grow(struct id_index *x)
{
	struct id_index old = *x;
	uint64_t n_slots = old.slots ? 2 * (old.mask + 1ull) : LEAST_SLOTS;

	if (n_slots > UINT32_MAX)
		return -ENOMEM;
	x->slots = calloc(n_slots, sizeof(*x->slots));
	if (!x->slots) {
		*x = old;
		return -ENOMEM;
	}
	x->mask = (uint32_t)(n_slots - 1);
	for (uint64_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].ix1)
			put(x, old.slots[i]);
	free(old.slots);
	return 0;
}

/* At most five eighths of the slots are taken. */
int id_index_add(struct id_index *x, uint32_t hash, uint32_t ix)
{
	if (!x->slots || x->n >= (x->mask + 1ull) / 8 * 5) {
		int r = grow(x);

		if (r < 0)
			return r;
	}
	put(x, (struct id_slot){ hash, ix + 1 });
	x->n++;
	return 0;
}

void id_index_free(struct id_index *x)
{
	free(x->slots);
	*x = (struct id_index){ 0 };
}
