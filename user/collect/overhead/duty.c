#include "collect/overhead/duty.h"

#include <math.h>

static double sum(const double full[N_DUTIES], const uint32_t shift[N_DUTIES])
{
	double all = 0;

	for (int i = 0; i < N_DUTIES; i++)
		all += ldexp(full[i], -(int)shift[i]);
	return all;
}

/* The smallest shifts that fit into `room`, or the largest that there are of what costs enough to be missed. */
static void fit(const struct duty *d, double room, const double full[N_DUTIES],
		uint32_t ret_shift[N_DUTIES])
{
	for (int i = 0; i < N_DUTIES; i++)
		ret_shift[i] = 0;
	while (sum(full, ret_shift) > room) {
		int costliest = -1;

		for (int i = 0; i < N_DUTIES; i++)
			if (ret_shift[i] < d->shift_max[i] &&
			    ldexp(full[i], -(int)ret_shift[i]) > DUTY_SMALL * room &&
			    (costliest < 0 ||
			     ldexp(full[i], -(int)ret_shift[i]) >
				     ldexp(full[costliest], -(int)ret_shift[costliest])))
				costliest = i;
		if (costliest < 0)
			return;
		ret_shift[costliest]++;
	}
}

static double room_of(const struct duty *d, double use, double fixed, double floor)
{
	return fmax(fmax(d->limit * use - fixed, d->limit * DUTY_LEAST * use) - floor, 0);
}

bool duty_decide(struct duty *d, double fixed, double floor, const double full[N_DUTIES])
{
	uint32_t least[N_DUTIES], back[N_DUTIES];
	bool changed = false;

	fit(d, room_of(d, DUTY_USE, fixed, floor), full, least);
	fit(d, room_of(d, DUTY_BACK, fixed, floor), full, back);
	for (int i = 0; i < N_DUTIES; i++) {
		uint32_t was = d->shift[i];

		if (least[i] > was) {
			d->shift[i] = least[i];
			d->quiet[i] = 0;
		} else if (back[i] >= was) {
			d->quiet[i] = 0;
		} else if (++d->quiet[i] >= DUTY_QUIET) {
			d->shift[i]--;
			d->quiet[i] = 0;
		}
		changed |= d->shift[i] != was;
	}
	return changed;
}

double duty_percent(const struct duty *d, const double full[N_DUTIES])
{
	return sum(full, d->shift);
}
