/*
 * Go programs without symbol tables: the runtime's own table of functions is in every one of them.
 */
#include "elf/gopclntab.h"
#include "symbolize/resolver.h"

#include <string.h>

static int open_go(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct gopclntab *tab;
	struct elf_file *elf;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r == 0)
		r = gopclntab_open(elf, &tab, NULL);
	if (r < 0) {
		*ret_why = "no table of Go functions";
		return r;
	}
	*ret_state = tab;
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	struct go_func func;
	uint32_t i;

	if (gopclntab_find(state, vaddr, &i) < 0)
		return false;
	func = gopclntab_func(state, i);
	return *func.name && sym_answer_name(ret_answer, func.name, strlen(func.name), NULL);
}

static const char *why_not(const void *state)
{
	return "not in its table of Go functions";
}

static void close_go(void *state)
{
	gopclntab_free(state);
}

const struct resolver sym_go = {
	.name = "go",
	.kinds = RESOLVES(MODULE_ELF),
	.role = SYM_NAMES,
	.open = open_go,
	.find = find,
	.why_not = why_not,
	.close = close_go,
};
