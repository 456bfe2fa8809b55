#include "analyse/io_waits.h"

#include "analyse/sites.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_object(const void *a, const void *b)
{
	const struct io_wait *x = a, *y = b;

	return (x->object > y->object) - (x->object < y->object);
}

static int longest_first(const void *a, const void *b)
{
	const struct io_wait_row *x = a, *y = b;

	if (x->blocked_ns != y->blocked_ns)
		return x->blocked_ns < y->blocked_ns ? 1 : -1;
	return (x->object > y->object) - (x->object < y->object);
}

/* The function that most of the `n` waits for one object were in. */
static int find_function(struct dict *d, const struct io_wait *waits, uint32_t n,
			 struct io_wait_row *row)
{
	struct part {
		string_id function, module;
		int64_t ns;
	} *parts = NULL;
	uint32_t n_parts = 0, cap = 0, k;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		string_id function, module;
		struct site_row site;

		r = site_of_wait_stack(d, waits[i].stack, &site);
		if (r < 0)
			break;
		function = dict_string(d, site.function);
		module = dict_string(d, site.module);
		for (k = 0; k < n_parts; k++)
			if (parts[k].function.ix == function.ix && parts[k].module.ix == module.ix)
				break;
		if (k == n_parts) {
			if (!GROW(parts, n_parts, cap)) {
				r = -ENOMEM;
				break;
			}
			parts[n_parts++] = (struct part){ function, module, 0 };
		}
		parts[k].ns += waits[i].ns;
		if (parts[k].ns <= row->function_ns)
			continue;
		row->function = dict_str(d, parts[k].function);
		row->module = dict_str(d, parts[k].module);
		row->function_ns = parts[k].ns;
	}
	free(parts);
	return r;
}

int io_waits_rank(struct dict *d, struct io_wait *waits, uint32_t n, struct io_wait_row *out,
		  uint32_t cap)
{
	_cleanup_(freep) struct io_wait_row *rows = calloc(n + 1ul, sizeof(*rows));
	uint32_t n_rows = 0, n_out;
	int r = 0;

	if (!rows)
		return -ENOMEM;
	if (n)
		qsort(waits, n, sizeof(*waits), by_object);
	for (uint32_t i = 0, end; i < n && r == 0; i = end) {
		struct io_wait_row *row = &rows[n_rows];

		*row = (struct io_wait_row){ .kind = "",
					     .name = "",
					     .device = "",
					     .object = waits[i].object,
					     .function = "",
					     .module = "" };
		for (end = i; end < n && waits[end].object == waits[i].object; end++) {
			row->blocked_ns += waits[end].ns;
			row->count += waits[end].count;
		}
		r = find_function(d, waits + i, end - i, row);
		n_rows += row->blocked_ns > 0;
	}
	if (n_rows)
		qsort(rows, n_rows, sizeof(*rows), longest_first);
	n_out = n_rows < cap ? n_rows : cap;
	memcpy(out, rows, n_out * sizeof(*rows));
	return r < 0 ? r : (int)n_out;
}
