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

static const char *why(int code)
{
	switch (code) {
	case -ENOENT:
		return "file is gone";
	case -ESTALE:
		return "file changed";
	case -EACCES:
	case -EPERM:
		return "not permitted to read the file";
	case -ENOEXEC:
		return "not an ELF file";
	case -EBADMSG:
	case -ENODATA:
		return "file is damaged";
	case -EFBIG:
		return "symbol table is too large";
	case -EOPNOTSUPP:
		return "symbol table is compressed";
	case -ENOMEM:
		return "out of memory";
	case -EMFILE:
	case -ENFILE:
		return "too many open files";
	default:
		return "file cannot be read";
	}
}

static int load(struct elf_file *elf, void **ret_state, const char **ret_why)
{
	struct elf_syms *syms;
	int r = elf_syms_load(elf, &syms, NULL);

	if (r < 0) {
		*ret_why = r == -ENOENT ? "no symbol table" : why(r);
		return r;
	}
	*ret_state = syms;
	return 0;
}

/* The file behind a module, if it is the one whose build ID the module has. */
static int open_image(const struct symbolize_opts *opts, const struct dict *d, module_id m,
		      int *ret_fd, struct elf_file **ret_elf, const char **ret_why)
{
	const struct module *mod = dict_module_get(d, m);
	const char *build_id = dict_str(d, mod->build_id);
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	int r;

	r = fd = opts->open_module ? opts->open_module(opts->ctx, m, NULL) : -ENOENT;
	if (r >= 0)
		r = elf_file_open(fd, dict_str(d, mod->path), &elf, NULL);
	/* Whoever opened it by path may have found its successor. */
	if (r >= 0 && build_id[0] && strcmp(build_id, elf_file_build_id(elf)) != 0)
		r = -ESTALE;
	if (r < 0) {
		*ret_why = why(r);
		return r;
	}
	*ret_elf = TAKE_PTR(elf);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_file(const struct symbolize_opts *opts, const struct dict *d, module_id m,
		     void **ret_state, const char **ret_why)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	int r = open_image(opts, d, m, &fd, &elf, ret_why);

	return r < 0 ? r : load(elf, ret_state, ret_why);
}

static int open_plt(const struct symbolize_opts *opts, const struct dict *d, module_id m,
		    void **ret_state, const char **ret_why)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct elf_plt *plt;
	int r = open_image(opts, d, m, &fd, &elf, ret_why);

	if (r >= 0)
		r = elf_plt_load(elf, &plt, NULL);
	if (r < 0) {
		*ret_why = why(r);
		return r;
	}
	*ret_state = plt;
	return 0;
}

/* All 64-bit processes of one kernel have the same; its section headers are its last bytes. */
static int open_vdso(const struct symbolize_opts *opts, const struct dict *d, module_id m,
		     void **ret_state, const char **ret_why)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const ElfW(Ehdr) *hdr = (const void *)getauxval(AT_SYSINFO_EHDR);
	int r;

	if (!hdr || strcmp(dict_str(d, dict_module_get(d, m)->path), "[vdso]") != 0) {
		*ret_why = "no such vDSO in this process";
		return -ENOENT;
	}
	r = elf_file_open_memory(hdr, hdr->e_shoff + (size_t)hdr->e_shnum * hdr->e_shentsize,
				 "[vdso]", &elf, NULL);
	if (r < 0) {
		*ret_why = why(r);
		return r;
	}
	return load(elf, ret_state, ret_why);
}

static bool find(void *state, uint64_t vaddr, struct sym_name *ret_name)
{
	struct elf_sym sym;

	if (elf_syms_find(state, vaddr, &sym) < 0)
		return false;
	*ret_name = (struct sym_name){ sym.name, sym.name_len, NULL };
	return true;
}

static const char *why_not(const void *state)
{
	return elf_syms_exported_only(state) ? "stripped: only exported functions have names"
					     : "not covered by the symbol table";
}

static bool find_stub(void *state, uint64_t vaddr, struct sym_name *ret_name)
{
	const char *name = elf_plt_find(state, vaddr);

	if (!name)
		return false;
	*ret_name = (struct sym_name){ name, strlen(name), "@plt" };
	return true;
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
