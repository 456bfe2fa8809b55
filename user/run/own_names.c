#include "run/own_names.h"

#include "base/grow.h"
#include "base/strbuf.h"
#include "collect/session/own_functions.h"
#include "run/run.h"

#include <stdlib.h>

struct range {
	uint64_t addr, end;
	uint32_t name; /* where it begins in the names */
};

struct own_names {
	struct range *at; /* by address */
	uint32_t n, cap;
	struct strbuf names; /* each with its end */
};

static void add(void *ctx, uint64_t addr, uint64_t len, const char *name)
{
	struct own_names *own = ctx;
	size_t at = own->names.len;

	if (!GROW(own->at, own->n, own->cap))
		return; /* /proc/kallsyms has it */
	strbuf_puts(&own->names, name);
	strbuf_putc(&own->names, '\0');
	own->at[own->n++] = (struct range){ addr, addr + len, (uint32_t)at };
}

static int by_addr(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

struct own_names *own_names_read(const struct session *s)
{
	struct own_names *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	own_functions_each(s, add, own);
	if (strbuf_oom(&own->names))
		own->n = 0;
	if (own->n)
		qsort(own->at, own->n, sizeof(*own->at), by_addr);
	return own;
}

void own_names_free(struct own_names *own)
{
	if (!own)
		return;
	strbuf_free(&own->names);
	free(own->at);
	free(own);
}

static const struct range *range_at(const struct own_names *own, uint64_t addr)
{
	uint32_t low = 0, high = own->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (own->at[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < own->at[low - 1].end ? &own->at[low - 1] : NULL;
}

void own_names(const struct own_names *own, struct dict *d)
{
	for (uint32_t i = 1; own && own->n && i <= dict_location_count(d); i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });
		const struct range *in;
		struct line line = { 0 };

		if (l->named || dict_module_get(d, l->module)->kind != MODULE_KERNEL)
			continue;
		in = range_at(own, l->vaddr);
		if (!in)
			continue;
		line.function = dict_string(d, own->names.s + in->name);
		dict_location_name(d, (location_id){ i }, &line, 1);
	}
}
