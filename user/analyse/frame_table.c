#include "analyse/frame_table.h"

#include <stdlib.h>
#include <string.h>

static int add_locations(struct frame_table *t, uint32_t most)
{
	uint32_t n = dict_location_count(t->d) + 1;
	struct frame_span *spans;

	n = n > most ? n : most + 1;
	spans = reallocarray(t->spans, n, sizeof(*spans));
	if (!spans)
		return -1;
	memset(spans + t->n_locations, 0, (n - t->n_locations) * sizeof(*spans));
	t->spans = spans;
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
	struct frame_span *span;

	if (loc.ix >= t->n_locations && add_locations(t, loc.ix) < 0)
		return NULL;
	span = &t->spans[loc.ix];
	if (!span->n) {
		uint32_t n = frame_count(t->d, loc);

		if (add_room(t, n) < 0)
			return NULL;
		for (uint32_t i = 0; i < n; i++)
			t->frames[t->n + i] = frame_get(t->d, loc, n - 1 - i);
		*span = (struct frame_span){ t->n, n };
		t->n += n;
	}
	*ret_n = span->n;
	return &t->frames[span->first];
}

void frame_table_fini(struct frame_table *t)
{
	free(t->spans);
	free(t->frames);
}
