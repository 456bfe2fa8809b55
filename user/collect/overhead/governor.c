#include "collect/overhead/governor.h"

double governor_percent(double pairs_per_s, double pair_ns)
{
	return pairs_per_s * pair_ns / 1e9 * 100;
}

uint64_t governor_enough(double pair_ns, double max_percent, uint32_t burst_ms)
{
	/* Four times the budget of the whole burst: too much for chance. */
	double pairs = 4 * max_percent / 100 * burst_ms * 1e6 / pair_ns;

	return pairs < 32 ? 32 : (uint64_t)pairs;
}

void pacer_init(struct pacer *p, double max_percent, double burst_ns, uint64_t now_ns)
{
	*p = (struct pacer){
		.share = max_percent / 100,
		.burst_ns = burst_ns,
		.credit_ns = burst_ns,
		.at_ns = now_ns,
	};
}

void pacer_spend(struct pacer *p, uint64_t now_ns, double cost_ns)
{
	if (now_ns > p->at_ns) {
		p->credit_ns += (double)(now_ns - p->at_ns) * p->share;
		p->at_ns = now_ns;
	}
	if (p->credit_ns > p->burst_ns)
		p->credit_ns = p->burst_ns;
	p->credit_ns -= cost_ns;
	p->spent_ns += cost_ns;
}

uint64_t pacer_due_ns(const struct pacer *p)
{
	double missing = p->burst_ns - p->credit_ns;

	return p->at_ns + (missing > 0 ? (uint64_t)(missing / p->share) : 0);
}
