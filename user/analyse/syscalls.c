#include "analyse/syscalls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z_95 1.96

static int longest_first(const void *a, const void *b)
{
	const struct syscall_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	if (strcmp(x->name, y->name) != 0)
		return strcmp(x->name, y->name);
	return (x->pid > y->pid) - (x->pid < y->pid);
}

uint32_t syscalls_rank(struct syscall_row *rows, uint32_t n, uint32_t cap)
{
	if (n)
		qsort(rows, n, sizeof(*rows), longest_first);
	return n < cap ? n : cap;
}

/* Kept in order, most frequent first. */
void syscall_error_add(struct syscall_row *to, uint32_t error, int64_t count)
{
	uint32_t i = 0;

	while (i < to->n_errnos && to->errnos[i].error != error)
		i++;
	if (i == SYSCALL_ERRNOS) {
		i--;
		if (to->errnos[i].count >= count)
			return;
		to->errnos[i].count = 0;
	} else if (i == to->n_errnos) {
		to->errnos[to->n_errnos++].count = 0;
	}
	to->errnos[i].error = error;
	to->errnos[i].count += count;
	for (; i > 0 && to->errnos[i].count > to->errnos[i - 1].count; i--) {
		__typeof__(to->errnos[i]) other = to->errnos[i];

		to->errnos[i] = to->errnos[i - 1];
		to->errnos[i - 1] = other;
	}
}

void syscall_row_add(struct syscall_row *to, const struct syscall_row *from)
{
	to->calls += from->calls;
	to->errors += from->errors;
	to->ns += from->ns;
	to->no_return += from->no_return;
	to->open += from->open;
	to->variance += from->variance;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (int i = 0; i < SYSCALL_HISTOGRAM; i++)
		to->parts[i] += from->parts[i];
	for (uint32_t i = 0; i < from->n_errnos; i++)
		syscall_error_add(to, from->errnos[i].error, from->errnos[i].count);
}

int64_t histogram_quantile(const int64_t parts[SYSCALL_HISTOGRAM], int64_t max_ns, double q)
{
	int64_t before = 0, all = 0, end;

	for (int i = 0; i < SYSCALL_HISTOGRAM; i++)
		all += parts[i];
	for (int i = 0; i < SYSCALL_HISTOGRAM && all; i++) {
		before += parts[i];
		end = i + 1 < SYSCALL_HISTOGRAM ? 128LL << i : max_ns;
		if ((double)before >= q * (double)all)
			return end < max_ns ? end : max_ns;
	}
	return 0;
}

int64_t syscall_quantile(const struct syscall_row *row, double q)
{
	return histogram_quantile(row->parts, row->max_ns, q);
}

int64_t syscall_calls_error(double variance)
{
	return llround(Z_95 * sqrt(variance));
}
