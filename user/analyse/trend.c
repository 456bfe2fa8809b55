#include "analyse/trend.h"

#define BIRTH_POINTS 8

void trend_add(struct trend *t, int64_t value)
{
	if (value < 0)
		return;
	if (!t->stride)
		t->stride = 1;
	if (t->n == TREND_POINTS) {
		for (uint32_t i = 0; i < TREND_POINTS / 2; i++)
			t->points[i] = t->points[2 * i];
		t->n /= 2;
		t->stride *= 2;
	}
	if (t->added++ % t->stride == 0)
		t->points[t->n++] = value;
	t->last = value;
	if (value > t->peak)
		t->peak = value;
}

struct trend_rise trend_rise(const struct trend *t, bool from_birth)
{
	if (t->added < 2 || (from_birth && t->added < BIRTH_POINTS))
		return (struct trend_rise){ .known = false };
	return (struct trend_rise){
		.known = true,
		.from_quarter = from_birth,
		.base = t->points[from_birth ? t->n / 4 : 0],
		.last = t->last,
		.peak = t->peak,
	};
}

uint32_t trend_points(const struct trend *t, double interval_s,
		      struct point ret_points[TREND_POINTS])
{
	for (uint32_t i = 0; i < t->n; i++)
		ret_points[i] =
			(struct point){ i * (double)t->stride * interval_s, (double)t->points[i] };
	return t->n;
}
