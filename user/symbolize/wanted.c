#include "symbolize/wanted.h"

#include <errno.h>
#include <string.h>

int wanted_init(struct wanted *w, const uint64_t *vaddrs, uint32_t n)
{
	*w = (struct wanted){ .vaddrs = vaddrs, .n = n };
	w->owner = calloc(n + 1ul, sizeof(*w->owner));
	w->next = malloc((n + 1ul) * sizeof(*w->next));
	if (!w->owner || !w->next) {
		wanted_fini(w);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= n; i++)
		w->next[i] = i;
	return 0;
}

void wanted_fini(struct wanted *w)
{
	free(w->owner);
	free(w->next);
	*w = (struct wanted){ 0 };
}

uint32_t wanted_first(const struct wanted *w, uint64_t vaddr)
{
	uint32_t lo = 0, hi = w->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (w->vaddrs[mid] < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is_in(const struct wanted *w, uint32_t i, uint64_t start, uint64_t size)
{
	return i < w->n && w->vaddrs[i] - start < size;
}

bool wanted_any(const struct wanted *w, uint64_t start, uint64_t size)
{
	return is_in(w, wanted_first(w, start), start, size);
}

/* The first free one at or behind `i`; the way there is shortened for later calls. */
static uint32_t free_from(struct wanted *w, uint32_t i)
{
	while (w->next[i] != i) {
		w->next[i] = w->next[w->next[i]];
		i = w->next[i];
	}
	return i;
}

bool wanted_give(struct wanted *w, uint64_t start, uint64_t size, uint32_t owner)
{
	uint32_t i = free_from(w, wanted_first(w, start));
	bool any = false;

	for (; is_in(w, i, start, size); i = free_from(w, i)) {
		w->owner[i] = owner;
		w->next[i] = i + 1;
		any = true;
	}
	return any;
}

uint32_t wanted_owner(const struct wanted *w, uint64_t vaddr)
{
	uint32_t i = wanted_first(w, vaddr);

	return i < w->n && w->vaddrs[i] == vaddr ? w->owner[i] : 0;
}
