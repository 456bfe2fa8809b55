#include "analyse/counts.h"

#include <stdlib.h>
#include <string.h>

int64_t count_unseen(const struct count_row *row)
{
	int64_t known = row->returned + row->left + row->open + row->lost;

	return row->calls > known ? row->calls - known : 0;
}

static int longest_first(const void *a, const void *b)
{
	const struct count_row *x = a, *y = b;

	if (x->outer_ns != y->outer_ns)
		return x->outer_ns < y->outer_ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->function, y->function);
}

void counts_rank(struct count_row *rows, uint32_t n)
{
	if (n)
		qsort(rows, n, sizeof(*rows), longest_first);
}
