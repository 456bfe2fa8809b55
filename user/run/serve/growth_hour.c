#include "run/serve/growth_hour.h"

void growth_hour_add(struct growth_hour *g, double t_s, int64_t bytes)
{
	struct point in_order[GROWTH_POINTS];
	uint32_t newest = (g->at + g->n + GROWTH_POINTS - 1) % GROWTH_POINTS;

	if (bytes < 0 || (g->n && t_s < g->points[newest].t + GROWTH_EVERY_S))
		return;
	if (g->n == GROWTH_POINTS)
		g->at = (g->at + 1) % GROWTH_POINTS;
	else
		g->n++;
	newest = (g->at + g->n - 1) % GROWTH_POINTS;
	g->points[newest] = (struct point){ t_s, (double)bytes / 1024 };
	for (uint32_t i = 0; i < g->n; i++)
		in_order[i] = g->points[(g->at + i) % GROWTH_POINTS];
	trend_shape_of(in_order, g->n, &g->shape);
}

bool growth_hour_known(const struct growth_hour *g)
{
	return g->n && g->shape.kind != TREND_SHAPE_SHORT;
}

double growth_hour_slope(const struct growth_hour *g)
{
	bool goes_on =
		g->shape.kind == TREND_SHAPE_GROWING || g->shape.kind == TREND_SHAPE_SHRINKING;

	return 1024 * (goes_on ? g->shape.tail.slope : g->shape.all.slope);
}
