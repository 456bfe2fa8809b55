#include "unwind/marks.h"

#include <errno.h>

enum { MARKS_MAX = 1 << 26 };

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
	if (list->n && list->m[list->n - 1].vaddr == vaddr)
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

int marks_overlay(struct marks *list, const struct marks *over)
{
	uint32_t low = MARK_HOLE, high = MARK_HOLE, i = 0, j = 0;
	struct marks out = { 0 };
	int r = 0;

	if (!over->n)
		return 0;
	while (r == 0 && (i < list->n || j < over->n)) {
		uint64_t at = i < list->n && (j == over->n || list->m[i].vaddr <= over->m[j].vaddr)
				      ? list->m[i].vaddr
				      : over->m[j].vaddr;

		if (i < list->n && list->m[i].vaddr == at)
			low = list->m[i++].rule;
		if (j < over->n && over->m[j].vaddr == at)
			high = over->m[j++].rule;
		r = marks_add(&out, at, high != MARK_HOLE ? high : low);
	}
	if (r < 0) {
		marks_fini(&out);
		return r;
	}
	marks_fini(list);
	*list = out;
	return 0;
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
