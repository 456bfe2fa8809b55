#include "collect/overhead/cost_pace.h"

#include <math.h>

void cost_pace_figure(struct cost_pace *p, double expected, double found)
{
	p->any = true;
	p->moved |= fabs(found - expected) > COST_PACE_NEAR * expected;
}

void cost_pace_window(struct cost_pace *p)
{
	if (p->moved)
		p->agreed = 0;
	else if (p->any && p->agreed < COST_PACE_AGREE)
		p->agreed++;
	p->any = p->moved = false;
}

void cost_pace_anew(struct cost_pace *p)
{
	*p = (struct cost_pace){ 0 };
}

uint64_t cost_pace_every_ns(const struct cost_pace *p, uint64_t often_ns)
{
	return p->agreed < COST_PACE_AGREE || often_ns > COST_PACE_RARELY_NS ? often_ns
									     : COST_PACE_RARELY_NS;
}
