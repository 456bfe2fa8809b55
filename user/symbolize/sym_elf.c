/*
 * Names from .symtab and .dynsym of an image's file, of our own vDSO, and of PLT stubs.
 */
#include "elf/elf_plt.h"
#include "elf/elf_syms.h"
#include "symbolize/resolver.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

/*
 * The tables of one image, in the order in which they are asked: what was put aside is fuller
 * than what is left, but .gnu_debugdata has only what is not exported.
 */
struct tables {
	struct elf_syms *syms[2];
	uint32_t n;
	bool exported_only;
};

static void close_syms(void *state)
{
	struct tables *t = state;

	for (uint32_t i = 0; i < t->n; i++)
		elf_syms_free(t->syms[i]);
	free(t);
}

DEFINE_CLEANUP(struct tables *, tables_freep, close_syms)

/* `img`: whose addresses alone are asked for; NULL: any. */
static int load(struct tables *t, const struct sym_image *img, struct elf_file *elf,
		const char **ret_why)
{
	int r = img ? elf_syms_load_at(elf, img->vaddrs, img->n_vaddrs, &t->syms[t->n], NULL)
		    : elf_syms_load(elf, &t->syms[t->n], NULL);

	if (r < 0)
		*ret_why = r == -ENOENT ? "no symbol table" : sym_image_why(r);
	else
		t->exported_only = elf_syms_exported_only(t->syms[t->n++]);
	return r;
}

static void load_mini_debug_info(struct tables *t, const struct sym_image *img,
				 struct elf_file *elf)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	_cleanup_(elf_file_closep) struct elf_file *mini = NULL;
	const char *why;

	if (debug_data_open(elf, &bytes, &mini, NULL) == 0)
		load(t, img, mini, &why);
}

static int open_file(struct sym_image *img, void **ret_state, const char **ret_why)
{
	_cleanup_(tables_freep) struct tables *t = calloc(1, sizeof(*t));
	struct elf_file *elf, *debug;
	const char *why;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r < 0)
		return r;
	if (!t)
		return -ENOMEM;
	r = load(t, img, elf, ret_why);
	if (r < 0 || t->exported_only) {
		struct elf_syms *own = t->n ? t->syms[0] : NULL;

		t->n = 0;
		if (sym_image_debug(img, &debug, &why) == 0)
			load(t, img, debug, &why);
		if (!t->n)
			load_mini_debug_info(t, img, elf);
		if (own)
			t->syms[t->n++] = own;
	}
	if (!t->n)
		return r;
	*ret_state = TAKE_PTR(t);
	return 0;
}

static int open_plt(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct elf_file *elf;
	struct elf_plt *plt;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r < 0)
		return r;
	r = elf_plt_load(elf, &plt, NULL);
	if (r < 0) {
		*ret_why = sym_image_why(r);
		return r;
	}
	*ret_state = plt;
	return 0;
}

/* All 64-bit processes of one kernel have the same; its section headers are its last bytes. */
static int open_vdso(struct sym_image *img, void **ret_state, const char **ret_why)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const ElfW(Ehdr) *hdr = (const void *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_(tables_freep) struct tables *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;

	if (!hdr || strcmp(sym_image_path(img), "[vdso]") != 0) {
		*ret_why = "no such vDSO in this process";
		return -ENOENT;
	}
	r = elf_file_open_memory(hdr, hdr->e_shoff + (size_t)hdr->e_shnum * hdr->e_shentsize,
				 "[vdso]", &elf, NULL);
	if (r < 0) {
		*ret_why = sym_image_why(r);
		return r;
	}
	r = load(t, NULL, elf, ret_why);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(t);
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	const struct tables *t = state;
	struct elf_sym sym;
	uint32_t i = 0;

	while (i < t->n && elf_syms_find(t->syms[i], vaddr, &sym) < 0)
		i++;
	if (i == t->n)
		return false;
	sym_answer_name(ret_answer, sym.name, sym.name_len, NULL);
	ret_answer->frames[0].label = sym.label;
	return true;
}

static const char *why_not(const void *state)
{
	const struct tables *t = state;

	return t->exported_only ? "stripped: only exported functions have names"
				: "not covered by the symbol table";
}

static bool find_stub(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	const char *name = elf_plt_find(state, vaddr);

	if (!name)
		return false;
	return sym_answer_name(ret_answer, name, strlen(name), "@plt");
}

static const char *why_not_stub(const void *state)
{
	return "no PLT stub";
}

static void close_plt(void *state)
{
	elf_plt_free(state);
}

const struct resolver sym_elf = {
	.name = "elf",
	.kinds = RESOLVES(MODULE_ELF),
	.open = open_file,
	.find = find,
	.why_not = why_not,
	.close = close_syms,
};

const struct resolver sym_vdso = {
	.name = "vdso",
	.kinds = RESOLVES(MODULE_VDSO),
	.open = open_vdso,
	.find = find,
	.why_not = why_not,
	.close = close_syms,
};

const struct resolver sym_plt = {
	.name = "plt",
	.kinds = RESOLVES(MODULE_ELF),
	.open = open_plt,
	.find = find_stub,
	.why_not = why_not_stub,
	.close = close_plt,
};
