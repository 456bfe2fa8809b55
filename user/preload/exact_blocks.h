/*
 * The table of live blocks (exact_area.h). Part of exact.c.
 *
 * Without locks: a key is taken by one exchange, and its value written before the allocation returns,
 * so that nobody can free the block sooner. A free empties the key.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_BLOCKS_H
#define MEMSCOPE_PRELOAD_EXACT_BLOCKS_H

/* Its line is read soon. */
static inline void block_prefetch(struct exact_area *a, uint64_t addr)
{
	const struct exact_line *lines = in_area(a, a->lines);
	const struct exact_line *line = &lines[exact_line_of(addr, a->n_lines - 1)];

	__builtin_prefetch(line->key, 1);
	__builtin_prefetch(line->value, 1);
}

static bool block_take(struct exact_area *a, uint64_t addr, struct exact_block *ret_block)
{
	struct exact_line *lines = in_area(a, a->lines);
	uint32_t mask = a->n_lines - 1;
	uint64_t at = exact_line_of(addr, mask);

	for (uint32_t r = 0; r < EXACT_REACH; r++, at = (at + 1) & mask) {
		struct exact_line *line = &lines[at];

		for (uint32_t i = 0; i < EXACT_WAYS; i++)
			if (__atomic_load_n(&line->key[i], __ATOMIC_ACQUIRE) == addr) {
				*ret_block = line->value[i];
				__atomic_store_n(&line->key[i], 0, __ATOMIC_RELEASE);
				return true;
			}
		if (LIKELY(!__atomic_load_n(&line->value[0].spilled, __ATOMIC_RELAXED)))
			break;
	}
	return false;
}

static void value_put(struct exact_block *to, const struct exact_block *b)
{
	to->size = b->size;
	to->born_ns = b->born_ns;
	to->site = b->site;
}

/* false: there is no room near its place. *ret_old: what was there under this address, or size
 * UINT64_MAX. */
static bool block_put(struct exact_area *a, uint64_t addr, const struct exact_block *block,
		      struct exact_block *ret_old)
{
	struct exact_line *lines = in_area(a, a->lines), *line;
	uint32_t mask = a->n_lines - 1, r, spilled;
	uint64_t first = exact_line_of(addr, mask);
	__u64 *free_key, none;

	ret_old->size = UINT64_MAX;
again:
	free_key = NULL;
	for (r = spilled = 0; r < EXACT_REACH; r++) {
		line = &lines[(first + r) & mask];
		for (uint32_t i = 0; i < EXACT_WAYS; i++) {
			uint64_t key = __atomic_load_n(&line->key[i], __ATOMIC_RELAXED);

			if (UNLIKELY(key == addr)) {
				*ret_old = line->value[i];
				value_put(&line->value[i], block);
				return true;
			}
			if (!key && !free_key) {
				free_key = &line->key[i];
				spilled = r;
			}
		}
		if (free_key && !__atomic_load_n(&line->value[0].spilled, __ATOMIC_RELAXED))
			break;
	}
	for (r = 0; r < (free_key ? spilled : EXACT_REACH); r++) {
		line = &lines[(first + r) & mask];
		if (!line->value[0].spilled)
			__atomic_store_n(&line->value[0].spilled, 1, __ATOMIC_RELAXED);
	}
	if (UNLIKELY(!free_key))
		return false;
	none = 0;
	if (!__atomic_compare_exchange_n(free_key, &none, addr | EXACT_TAKEN, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		goto again; /* another thread has taken it */
	line = &lines[(first + spilled) & mask];
	value_put(&line->value[free_key - line->key], block);
	__atomic_store_n(free_key, addr, __ATOMIC_RELEASE);
	return true;
}

#endif
