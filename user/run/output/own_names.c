#include "run/output/own_names.h"

#include "base/grow.h"
#include "collect/session/own_functions.h"
#include "run/run.h"

#include <stdlib.h>

struct range {
	uint64_t addr, end;
	string_id name;
};

struct ranges {
	struct dict *d;
	struct range *at;
	uint32_t n, cap;
};

static void add(void *ctx, uint64_t addr, uint64_t len, const char *name)
{
	struct ranges *r = ctx;

	if (!GROW(r->at, r->n, r->cap))
		return; /* /proc/kallsyms has it */
	r->at[r->n++] = (struct range){ addr, addr + len, dict_string(r->d, name) };
}

static int by_addr(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static const struct range *range_at(const struct ranges *r, uint64_t addr)
{
	uint32_t low = 0, high = r->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (r->at[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < r->at[low - 1].end ? &r->at[low - 1] : NULL;
}

void own_names(struct run *run)
{
	struct ranges r = { .d = run->dict };

	if (!run->session)
		return;
	own_functions_each(run->session, add, &r);
	if (r.n)
		qsort(r.at, r.n, sizeof(*r.at), by_addr);
	for (uint32_t i = 1; r.n && i <= dict_location_count(r.d); i++) {
		const struct location *l = dict_location_get(r.d, (location_id){ i });
		const struct range *in;

		if (l->named || dict_module_get(r.d, l->module)->kind != MODULE_KERNEL)
			continue;
		in = range_at(&r, l->vaddr);
		if (in)
			dict_location_name(r.d, (location_id){ i },
					   &(struct line){ .function = in->name }, 1);
	}
	free(r.at);
}
