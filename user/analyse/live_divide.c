#include "analyse/live_divide.h"

#include <math.h>
#include <stdbool.h>

enum { ROUNDS = 8 }; /* each takes what rows at their bounds could not give from the others */

static bool is_full(const struct live_share *s, double excess)
{
	return excess < 0 ? s->live >= s->high : s->live <= s->low;
}

/* One round; what is left of it. */
static double take(struct live_share *shares, uint32_t n, double excess, bool chance)
{
	double sum = 0, left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!is_full(&shares[i], excess))
			sum += chance ? shares[i].chance : shares[i].unsure;
	if (sum <= 0)
		return excess;
	for (uint32_t i = 0; i < n; i++) {
		struct live_share *s = &shares[i];
		double to;

		if (is_full(s, excess))
			continue;
		to = s->live - excess * (chance ? s->chance : s->unsure) / sum;
		s->live = fmin(fmax(to, s->low), s->high);
		left += s->live - to;
	}
	return left;
}

static double take_all(struct live_share *shares, uint32_t n, double excess, bool chance)
{
	for (int round = 0; round < ROUNDS && fabs(excess) > 1e-9; round++)
		excess = take(shares, n, excess, chance);
	return excess;
}

void live_divide(struct live_share *shares, uint32_t n, double excess)
{
	for (uint32_t i = 0; i < n; i++) {
		double most = LIVE_DIVIDE_MOST * sqrt(shares[i].unsure);

		shares[i].low = fmax(0, shares[i].live - most);
		shares[i].high = shares[i].live + most;
	}
	excess = take_all(shares, n, excess, false);
	for (uint32_t i = 0; i < n; i++) {
		shares[i].not_reused = shares[i].live;
		shares[i].low = 0;
		shares[i].high = INFINITY;
	}
	take_all(shares, n, excess, true);
}
