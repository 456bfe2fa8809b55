/*
 * Stripped code has no names, but it still has functions: the unwind information says where each
 * one begins and ends. `[basename+0xstart]`, so that all samples of one function are one;
 * but for the few that probe_functions.h knows.
 */
#include "base/arena.h"
#include "elf/cfi.h"
#include "symbolize/probe_functions.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { IMAGE_NAME_MAX = 240 };

struct ranges {
	struct cfi *cfi;
	const char *image;  /* base name; borrowed from the dict */
	struct arena names; /* one for each function asked for */
	uint32_t last;      /* addresses come in order: the function before, and its name */
	const char *last_name;
	struct probe_function known[PROBE_FUNCTIONS_MAX];
	uint32_t n_known;
};

static int open_fde(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct ranges *ranges;
	struct elf_file *elf;
	const char *slash;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r < 0)
		return r;
	ranges = calloc(1, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	r = cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &ranges->cfi, NULL);
	if (r < 0) {
		free(ranges);
		*ret_why = "no unwind information";
		return r;
	}
	ranges->n_known = probe_functions_find(elf, ranges->cfi, ranges->known);
	ranges->image = sym_image_path(img);
	slash = strrchr(ranges->image, '/');
	if (slash && slash[1])
		ranges->image = slash + 1;
	*ret_state = ranges;
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	struct ranges *ranges = state;
	char name[IMAGE_NAME_MAX + 32];
	uint32_t i;

	if (cfi_find(ranges->cfi, vaddr, &i) < 0)
		return false;
	for (uint32_t k = 0; k < ranges->n_known; k++)
		if (ranges->known[k].fde == i)
			return sym_answer_name(ret_answer, ranges->known[k].name,
					       strlen(ranges->known[k].name), NULL);
	if (!ranges->last_name || i != ranges->last) {
		snprintf(name, sizeof(name), "[%.*s+0x%" PRIx64 "]", IMAGE_NAME_MAX, ranges->image,
			 cfi_fde_at(ranges->cfi, i).start);
		ranges->last = i;
		ranges->last_name = arena_strndup(&ranges->names, name, strlen(name));
		if (!ranges->last_name)
			return false;
	}
	return sym_answer_name(ret_answer, ranges->last_name, strlen(ranges->last_name), NULL);
}

static const char *why_not(const void *state)
{
	return "not in the unwind information";
}

static void close_fde(void *state)
{
	struct ranges *ranges = state;

	cfi_free(ranges->cfi);
	arena_free(&ranges->names);
	free(ranges);
}

const struct resolver sym_fde = {
	.name = "fde",
	.kinds = RESOLVES(MODULE_ELF),
	.role = SYM_RANGES,
	.open = open_fde,
	.find = find,
	.why_not = why_not,
	.close = close_fde,
};
