#include "analyse/frame_table.h"

#include <stdlib.h>
#include <string.h>

static int add_locations(struct frame_table *t, uint32_t most)
{
	uint32_t n = dict_location_count(t->d) + 1, *first;

	n = n > most ? n : most + 1;
	first = reallocarray(t->first, n, sizeof(*first));
	if (!first)
		return -1;
	memset(first + t->n_locations, 0, (n - t->n_locations) * sizeof(*first));
	t->first = first;
	t->n_locations = n;
	return 0;
}

static int add_room(struct frame_table *t, uint32_t n)
{
	uint32_t cap = t->cap ? t->cap : 256;
	struct frame *frames;

	while (cap - t->n < n && cap < UINT32_MAX / 2)
		cap *= 2;
	if (cap - t->n < n)
		return -1;
	if (cap == t->cap)
		return 0;
	frames = reallocarray(t->frames, cap, sizeof(*frames));
	if (!frames)
		return -1;
	t->frames = frames;
	t->cap = cap;
	return 0;
}

const struct frame *frame_table_get(struct frame_table *t, location_id loc, uint32_t *ret_n)
{
	uint32_t n = frame_count(t->d, loc);

	*ret_n = n;
	if (loc.ix >= t->n_locations && add_locations(t, loc.ix) < 0)
		return NULL;
	if (!t->first[loc.ix]) {
		if (add_room(t, n) < 0)
			return NULL;
		for (uint32_t i = 0; i < n; i++)
			t->frames[t->n + i] = frame_get(t->d, loc, n - 1 - i);
		t->first[loc.ix] = t->n + 1;
		t->n += n;
	}
	return &t->frames[t->first[loc.ix] - 1];
}

void frame_table_fini(struct frame_table *t)
{
	free(t->first);
	free(t->frames);
}
