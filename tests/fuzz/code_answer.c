/* What a cell that reads code says, should the image have taken it over: refused, or functions that have the addresses which were wanted. */
#include "symbolize/code_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_that(bool is_so)
{
	if (!is_so)
		abort();
}

static void check_function(const struct code_text *c)
{
	uint64_t at = c->start;

	check_that(c->name && c->n <= CODE_INSTRUCTIONS_MAX);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct code_instruction *in = &c->instructions[i];

		check_that(in->vaddr == at && in->size && at + in->size <= c->end &&
			   in->jump <= c->n && in->n_origins <= CODE_ORIGINS_MAX);
		check_that(in->text && *in->text && (!in->n_origins || in->origins));
		for (uint32_t k = 0; k < in->n_origins; k++)
			check_that(!in->origins[k].file || *in->origins[k].file);
		at += in->size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct code_wanted wanted[] = { { 0x1010, "one" }, { 0x2010, "two" } };
	static const uint64_t vaddrs[] = { 0x1010, 0x2010 };
	static struct code_answer code;
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/opt/app") };
	struct symbolize_opts opts = { 0 };
	struct image_question q = {
		.d = d, .module = dict_module(d, &m), .opts = &opts, .vaddrs = vaddrs, .n = 2
	};
	int r = code_take(&q, wanted, bytes_of(data, size), &code);

	check_that(r <= 0 && code.n <= 2 && (r == 0 || !code.n));
	for (uint32_t i = 0; i < code.n; i++) {
		const struct code_text *c = &code.functions[i];

		check_that((c->start <= 0x1010 && c->end > 0x1010) ||
			   (c->start <= 0x2010 && c->end > 0x2010));
		check_function(c);
	}
	code_answer_fini(&code);
	return 0;
}
