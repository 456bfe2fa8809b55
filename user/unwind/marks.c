#include "unwind/marks.h"

#include <errno.h>

enum { MARKS_MAX = 1 << 23 }; /* libLLVM-14 needs 835,124 */

void marks_fini(struct marks *list)
{
	free(list->m);
	*list = (struct marks){ 0 };
}

static uint32_t rule_before(const struct marks *list, uint32_t n)
{
	return n ? list->m[n - 1].rule : MARK_HOLE;
}

int marks_add(struct marks *list, uint64_t vaddr, uint32_t rule)
{
	while (list->n && list->m[list->n - 1].vaddr >= vaddr)
		list->n--;
	if (rule_before(list, list->n) == rule)
		return 0;
	if (list->n == list->cap) {
		uint32_t cap = list->cap ? 2 * list->cap : 1024;
		struct mark *m = cap <= MARKS_MAX ? reallocarray(list->m, cap, sizeof(*m)) : NULL;

		if (!m)
			return cap <= MARKS_MAX ? -ENOMEM : -EFBIG;
		list->m = m;
		list->cap = cap;
	}
	list->m[list->n++] = (struct mark){ vaddr, rule };
	return 0;
}

static int merge(const struct marks *low, const struct marks *high, struct marks *ret)
{
	uint32_t low_rule = MARK_HOLE, high_rule = MARK_HOLE, i = 0, j = 0;
	struct marks out = { 0 };
	int r = 0;

	while (r == 0 && (i < low->n || j < high->n)) {
		uint64_t at = i < low->n && (j == high->n || low->m[i].vaddr <= high->m[j].vaddr)
				      ? low->m[i].vaddr
				      : high->m[j].vaddr;

		if (i < low->n && low->m[i].vaddr == at)
			low_rule = low->m[i++].rule;
		if (j < high->n && high->m[j].vaddr == at)
			high_rule = high->m[j++].rule;
		r = marks_add(&out, at, high_rule != MARK_HOLE ? high_rule : low_rule);
	}
	if (r < 0) {
		marks_fini(&out);
		return r;
	}
	*ret = out;
	return 0;
}

static int merge_into(struct marks *list, const struct marks *low, const struct marks *high)
{
	struct marks out;
	int r = merge(low, high, &out);

	if (r < 0)
		return r;
	marks_fini(list);
	*list = out;
	return 0;
}

int marks_overlay(struct marks *list, const struct marks *over)
{
	return over->n ? merge_into(list, list, over) : 0;
}

int marks_underlay(struct marks *list, const struct marks *under)
{
	return under->n ? merge_into(list, under, list) : 0;
}

uint32_t marks_find(const struct marks *list, uint64_t vaddr)
{
	uint32_t lo = 0, hi = list->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (list->m[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? list->m[lo - 1].rule : MARK_HOLE;
}
