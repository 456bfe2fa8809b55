#include "elf/elf_tls.h"
#include "elf/elf_exports.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { RELOCATIONS_AT_ONCE = 256, RELOCATIONS_MAX = 1 << 24 };

/* What the kinds are called on each machine. */
struct kinds {
	uint16_t machine;
	uint32_t offset, module, desc;
};

static const struct kinds machines[] = {
	{ EM_X86_64, R_X86_64_TPOFF64, R_X86_64_DTPMOD64, R_X86_64_TLSDESC },
	{ EM_AARCH64, R_AARCH64_TLS_TPREL, R_AARCH64_TLS_DTPMOD, R_AARCH64_TLSDESC },
};

static const struct kinds *kinds_of(const struct elf_file *elf)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == elf_file_machine(elf))
			return &machines[i];
	return NULL;
}

/* The program header of thread-local variables. */
static bool find_segment(const struct elf_file *elf, Elf64_Phdr *ret_segment)
{
	Elf64_Ehdr head;

	if (elf_file_read(elf, 0, &head, sizeof(head), NULL) < 0 ||
	    head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > ELF_SEGMENTS_MAX)
		return false;
	for (uint32_t i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr p;

		if (elf_file_read(elf, head.e_phoff + i * sizeof(p), &p, sizeof(p), NULL) < 0)
			return false;
		if (p.p_type == PT_TLS) {
			*ret_segment = p;
			return p.p_align <= 1 || !(p.p_align & (p.p_align - 1));
		}
	}
	return false;
}

/* From the thread's pointer to the program's own block, which is the first one. */
static bool block_offset(const struct elf_file *elf, int64_t *ret_offset)
{
	Elf64_Phdr p;
	uint64_t mask;

	if (!find_segment(elf, &p) || p.p_memsz > INT32_MAX)
		return false;
	mask = p.p_align > 1 ? p.p_align - 1 : 0;
	if (elf_file_machine(elf) == EM_X86_64)
		*ret_offset = -(int64_t)(p.p_memsz + (-(p.p_vaddr + p.p_memsz) & mask));
	else
		*ret_offset = (int64_t)(16 + ((p.p_vaddr - 16) & mask)); /* behind two words */
	return true;
}

struct search {
	const struct kinds *kinds;
	struct elf_export sym;
	struct elf_tls found;
	int rank; /* of what was found: what names the variable is better than what names the module */
};

static void take(struct search *s, const Elf64_Rela *rel)
{
	uint32_t type = (uint32_t)ELF64_R_TYPE(rel->r_info);
	uint64_t sym = ELF64_R_SYM(rel->r_info);
	int rank = sym ? 2 : 1;
	struct elf_tls tls = { .slot = rel->r_offset, .size = s->sym.size };

	if ((sym && sym != s->sym.ix) || rank <= s->rank)
		return;
	if (type == s->kinds->module && sym) {
		tls.access = ELF_TLS_PAIR;
	} else if (type == s->kinds->module) {
		tls.access = ELF_TLS_MODULE;
		tls.offset = (int64_t)s->sym.vaddr;
	} else if (type == s->kinds->offset && (sym || (uint64_t)rel->r_addend == s->sym.vaddr)) {
		tls.access = ELF_TLS_OFFSET;
	} else if (type == s->kinds->desc) {
		tls.access = ELF_TLS_DESC;
		tls.offset = sym ? -rel->r_addend : (int64_t)s->sym.vaddr - rel->r_addend;
	} else {
		return;
	}
	s->found = tls;
	s->rank = rank;
}

static int search_section(struct search *s, struct elf_file *elf, const struct elf_section *sec,
			  struct err *e)
{
	Elf64_Rela part[RELOCATIONS_AT_ONCE];
	uint64_t n = sec->size / sizeof(*part);

	for (uint64_t i = 0; i < n && i < RELOCATIONS_MAX; i += RELOCATIONS_AT_ONCE) {
		uint64_t have = n - i < RELOCATIONS_AT_ONCE ? n - i : RELOCATIONS_AT_ONCE;
		int r = elf_file_read(elf, sec->off + i * sizeof(*part), part, have * sizeof(*part),
				      e);

		if (r < 0)
			return r;
		for (uint64_t k = 0; k < have; k++)
			take(s, &part[k]);
	}
	return 0;
}

int elf_tls_find(struct elf_file *elf, const char *name, bool main, struct elf_tls *ret_tls,
		 struct err *e)
{
	struct search s = { .kinds = kinds_of(elf) };
	const struct elf_section *secs;
	uint32_t n;
	int r = s.kinds ? elf_export_find_tls(elf, name, &s.sym, e) : -ENOENT;

	if (r < 0)
		return r;
	if (s.sym.vaddr > INT32_MAX)
		return err_set(e, -EBADMSG, "%s: %s is outside of its block", elf_file_name(elf),
			       name);
	r = elf_file_sections(elf, &secs, &n, e);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		if (secs[i].type == SHT_RELA && secs[i].link < n &&
		    secs[secs[i].link].type == SHT_DYNSYM)
			r = search_section(&s, elf, &secs[i], e);
	if (r < 0)
		return r;
	if (main && s.rank < 2 && block_offset(elf, &s.found.offset)) {
		s.found.access = ELF_TLS_FIXED;
		s.found.offset += (int64_t)s.sym.vaddr;
		s.found.size = s.sym.size;
	} else if (!s.rank) {
		return err_set(e, -EOPNOTSUPP,
			       "%s: nothing in it says where threads have %s; its users take it "
			       "from the dynamic linker themselves",
			       elf_file_name(elf), name);
	}
	*ret_tls = s.found;
	return 0;
}

/* x86-64: static blocks are below the thread's pointer. arm64: above it, and programs begin above 1 MiB. */
bool elf_tls_desc_is_address(uint64_t desc)
{
	return (int64_t)desc >= 1 << 20;
}
