/* What a cell that names an image says, should the image have taken it over: each address has at most one turn, in order, with a name. */
#include "symbolize/image_names.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t next;

static void take(void *ctx, const struct image_place *p)
{
	const struct dict *d = ctx;

	if (p->ix < next || !p->n_lines || p->found > FOUND_NOTHING)
		abort();
	next = p->ix + 1;
	for (uint32_t i = 0; i < p->n_lines; i++)
		if (!dict_str(d, p->lines[i].function)[0])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t vaddrs[] = { 0x1000, 0x2000, 0x3000, 0x4000 };
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/opt/app") };
	struct symbolize_opts opts = { 0 };
	struct image_question q = {
		.d = d, .module = dict_module(d, &m), .opts = &opts, .vaddrs = vaddrs, .n = 4
	};
	struct image_end end = { 0 };
	uint32_t n;

	next = 0;
	n = image_names_take(&q, bytes_of(data, size), take, d, &end);
	if (n > 4 || next > n)
		abort();
	for (const char *c = end.why_unnamed; c && *c; c++)
		if (*c < ' ' || *c > '~')
			abort();
	return 0;
}
