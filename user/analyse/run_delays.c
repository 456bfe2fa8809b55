#include "analyse/run_delays.h"

#include <stdlib.h>

static int longest_first(const void *a, const void *b)
{
	const struct run_delay_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->by_pid > y->by_pid) - (x->by_pid < y->by_pid);
}

uint32_t run_delays_rank(struct run_delay_row *rows, uint32_t n, uint32_t cap)
{
	if (n)
		qsort(rows, n, sizeof(*rows), longest_first);
	return n < cap ? n : cap;
}
