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

static int load(struct elf_file *elf, void **ret_state, const char **ret_why)
{
	struct elf_syms *syms;
	int r = elf_syms_load(elf, &syms, NULL);

	if (r < 0) {
		*ret_why = r == -ENOENT ? "no symbol table" : sym_image_why(r);
		return r;
	}
	*ret_state = syms;
	return 0;
}

static int open_file(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct elf_file *elf;
	int r = sym_image_elf(img, &elf, ret_why);

	return r < 0 ? r : load(elf, ret_state, ret_why);
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
	int r;

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
	return load(elf, ret_state, ret_why);
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	struct elf_sym sym;

	if (elf_syms_find(state, vaddr, &sym) < 0)
		return false;
	sym_answer_name(ret_answer, sym.name, sym.name_len, NULL);
	ret_answer->frames[0].label = sym.label;
	return true;
}

static const char *why_not(const void *state)
{
	return elf_syms_exported_only(state) ? "stripped: only exported functions have names"
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

static void close_syms(void *state)
{
	elf_syms_free(state);
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
