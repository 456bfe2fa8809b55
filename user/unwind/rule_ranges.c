#include "unwind/rule_ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { RULE_RANGES_MAX = 1 << 23 }; /* libLLVM-14 needs 835,124 */

void rule_ranges_fini(struct rule_ranges *list)
{
	free(list->m);
	*list = (struct rule_ranges){ 0 };
}

static uint32_t rule_before(const struct rule_ranges *list, uint32_t n)
{
	return n ? list->m[n - 1].rule : RULE_RANGE_HOLE;
}

static int reserve(struct rule_ranges *list, uint32_t n)
{
	uint32_t cap = list->cap ? list->cap : 1024;
	struct rule_range *m;

	if (n <= list->cap)
		return 0;
	if (n > RULE_RANGES_MAX)
		return -EFBIG;
	while (cap < n)
		cap *= 2;
	m = reallocarray(list->m, cap, sizeof(*m));
	if (!m)
		return -ENOMEM;
	list->m = m;
	list->cap = cap;
	return 0;
}

int rule_ranges_add(struct rule_ranges *list, uint64_t vaddr, uint32_t rule)
{
	int r;

	while (list->n && list->m[list->n - 1].vaddr >= vaddr)
		list->n--;
	if (rule_before(list, list->n) == rule)
		return 0;
	r = reserve(list, list->n + 1);
	if (r < 0)
		return r;
	list->m[list->n++] = (struct rule_range){ vaddr, rule };
	return 0;
}

/*
 * Of `list` and `with` what is above, and where that has a hole, the other; in place, since of a large
 * file one list of marks takes as much memory as all else. The list makes way by the length of the
 * other: so far ahead of what is written is what is still to be read.
 */
static int merge(struct rule_ranges *list, const struct rule_ranges *with, bool list_above)
{
	uint32_t n = list->n, ahead = with->n, i = 0, j = 0;
	uint32_t rule = RULE_RANGE_HOLE, with_rule = RULE_RANGE_HOLE;
	int r = reserve(list, n + ahead);
	const struct rule_range *m;

	if (r < 0 || !ahead)
		return r;
	m = list->m + ahead;
	memmove(list->m + ahead, list->m, n * sizeof(*m));
	list->n = 0;
	while (r == 0 && (i < n || j < with->n)) {
		uint64_t at = i < n && (j == with->n || m[i].vaddr <= with->m[j].vaddr)
				      ? m[i].vaddr
				      : with->m[j].vaddr;
		uint32_t above, below;

		if (i < n && m[i].vaddr == at)
			rule = m[i++].rule;
		if (j < with->n && with->m[j].vaddr == at)
			with_rule = with->m[j++].rule;
		above = list_above ? rule : with_rule;
		below = list_above ? with_rule : rule;
		r = rule_ranges_add(list, at, above != RULE_RANGE_HOLE ? above : below);
	}
	return r;
}

int rule_ranges_overlay(struct rule_ranges *list, const struct rule_ranges *over)
{
	return merge(list, over, false);
}

int rule_ranges_underlay(struct rule_ranges *list, const struct rule_ranges *under)
{
	return merge(list, under, true);
}

uint32_t rule_ranges_find(const struct rule_ranges *list, uint64_t vaddr)
{
	uint32_t lo = 0, hi = list->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (list->m[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? list->m[lo - 1].rule : RULE_RANGE_HOLE;
}
