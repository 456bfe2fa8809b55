#include "collect/overhead/budget.h"

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double rest(const struct budget *b)
{
	return larger(b->limit - b->fixed, BUDGET_REST_LEAST * b->limit);
}

double budget_for_allocs(const struct budget *b)
{
	return larger(rest(b) - b->looks, rest(b) / 2);
}

double budget_for_stack_samples(const struct budget *b)
{
	return larger(rest(b) - b->allocs, rest(b) / 2);
}
