#include "elf/elf_exports.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SYMS_AT_ONCE = 512 };

struct table {
	const struct elf_section *syms, *strs, *hash; /* hash: NULL when there is none */
	uint64_t n;
};

/* The section of type `type` and, with SHT_GNU_HASH, those that it refers to. */
static const struct elf_section *of_type(const struct elf_section *secs, uint32_t n, uint32_t type)
{
	for (uint32_t i = 0; i < n; i++)
		if (secs[i].type == type)
			return &secs[i];
	return NULL;
}

static int find_table(struct elf_file *elf, uint32_t type, struct table *ret_t, struct err *e)
{
	const struct elf_section *secs, *syms;
	uint32_t n;
	int r = elf_file_is64(elf) ? elf_file_sections(elf, &secs, &n, e) : -ENOENT;

	if (r < 0)
		return r;
	syms = of_type(secs, n, type);
	if (!syms || syms->link >= n || syms->size % sizeof(Elf64_Sym))
		return -ENOENT;
	*ret_t = (struct table){ .syms = syms,
				 .strs = &secs[syms->link],
				 .hash = of_type(secs, n, SHT_GNU_HASH),
				 .n = syms->size / sizeof(Elf64_Sym) };
	if (ret_t->hash &&
	    (type != SHT_DYNSYM || ret_t->hash->link >= n || &secs[ret_t->hash->link] != syms))
		ret_t->hash = NULL;
	return 0;
}

static bool is_defined(const Elf64_Sym *sym, bool tls)
{
	return sym->st_shndx != SHN_UNDEF && (sym->st_value || tls) &&
	       (ELF64_ST_TYPE(sym->st_info) == STT_TLS) == tls;
}

static struct elf_export export_of(const Elf64_Sym *sym, uint64_t ix)
{
	return (struct elf_export){ .vaddr = sym->st_value,
				    .size = sym->st_size,
				    .type = ELF64_ST_TYPE(sym->st_info),
				    .ix = (uint32_t)ix };
}

static bool is_named(struct elf_file *elf, const struct table *t, const Elf64_Sym *sym,
		     const char *name)
{
	char found[ELF_EXPORTS_NAME_MAX + 1];
	size_t len = strlen(name) + 1;

	return sym->st_name < t->strs->size && len <= t->strs->size - sym->st_name &&
	       elf_file_read(elf, t->strs->off + sym->st_name, found, len, NULL) == 0 &&
	       memcmp(found, name, len) == 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

/* `len` bytes of a section, at `off` in it. */
static int read_part(struct elf_file *elf, const struct elf_section *sec, uint64_t off, void *buf,
		     size_t len, struct err *e)
{
	if (off > sec->size || len > sec->size - off)
		return err_set(e, -EBADMSG, "%s: %s refers to what is outside of it",
			       elf_file_name(elf), sec->name);
	return elf_file_read(elf, sec->off + off, buf, len, e);
}

static int find_hashed(struct elf_file *elf, const struct table *t, const char *name, bool tls,
		       struct elf_export *ret_sym, struct err *e)
{
	uint32_t head[4], h = gnu_hash(name),
			  bucket; /* buckets, first symbol, bloom words, shift */
	uint64_t bloom, chains;
	int r = read_part(elf, t->hash, 0, head, sizeof(head), e);

	if (r < 0)
		return r;
	if (!head[0] || !head[2])
		return -ENOENT;
	r = read_part(elf, t->hash, sizeof(head) + 8 * (uint64_t)(h / 64 % head[2]), &bloom, 8, e);
	if (r < 0)
		return r;
	if (!(bloom >> h % 64 & bloom >> (h >> (head[3] & 31)) % 64 & 1))
		return -ENOENT;
	chains = sizeof(head) + 8 * (uint64_t)head[2];
	r = read_part(elf, t->hash, chains + 4 * (uint64_t)(h % head[0]), &bucket, 4, e);
	if (r < 0)
		return r;
	if (bucket < head[1])
		return -ENOENT;
	chains += 4 * (uint64_t)head[0];
	for (uint32_t i = 0; i < ELF_EXPORTS_CHAIN_MAX; i++) {
		uint64_t at = (uint64_t)bucket + i;
		Elf64_Sym sym;
		uint32_t hash;

		r = read_part(elf, t->hash, chains + 4 * (at - head[1]), &hash, 4, e);
		if (r < 0)
			return r;
		if ((hash ^ h) < 2) {
			r = read_part(elf, t->syms, at * sizeof(sym), &sym, sizeof(sym), e);
			if (r < 0)
				return r;
			if (is_defined(&sym, tls) && is_named(elf, t, &sym, name)) {
				*ret_sym = export_of(&sym, at);
				return 0;
			}
		}
		if (hash & 1)
			break;
	}
	return -ENOENT;
}

/* All of those names that the table has, by reading it; the others have type and vaddr 0. */
static int find_read(struct elf_file *elf, const struct table *t, const char *const names[],
		     uint32_t n, bool tls, struct elf_export syms[], struct err *e)
{
	_cleanup_(freep) Elf64_Sym *part = malloc(SYMS_AT_ONCE * sizeof(*part));
	_cleanup_(freep) uint8_t *text = NULL;
	uint32_t found = 0;
	int r;

	if (!part)
		return -ENOMEM;
	memset(syms, 0, n * sizeof(*syms));
	r = elf_file_read_section(elf, t->strs, &text, e);
	if (r < 0)
		return r == -ENODATA ? -ENOENT : r;
	for (uint64_t i = 0; i < t->n && found < n; i += SYMS_AT_ONCE) {
		uint64_t have = t->n - i < SYMS_AT_ONCE ? t->n - i : SYMS_AT_ONCE;

		r = read_part(elf, t->syms, i * sizeof(*part), part, have * sizeof(*part), e);
		if (r < 0)
			return r;
		for (uint64_t k = 0; k < have; k++) {
			const char *name = (const char *)text + part[k].st_name;

			if (part[k].st_name >= t->strs->size || !is_defined(&part[k], tls) ||
			    ELF64_ST_TYPE(part[k].st_info) == STT_SECTION)
				continue;
			for (uint32_t w = 0; w < n; w++)
				if (!syms[w].vaddr && !syms[w].type &&
				    strcmp(name, names[w]) == 0) {
					syms[w] = export_of(&part[k], i + k);
					found++;
				}
		}
	}
	return found ? 0 : -ENOENT;
}

static int find(struct elf_file *elf, const char *name, bool tls, struct elf_export *ret_sym,
		struct err *e)
{
	struct elf_export sym;
	struct table t;
	int r = find_table(elf, SHT_DYNSYM, &t, e);

	if (r < 0)
		return r;
	if (strlen(name) > ELF_EXPORTS_NAME_MAX)
		return -ENOENT;
	if (t.hash)
		return find_hashed(elf, &t, name, tls, ret_sym, e);
	if (t.n > ELF_EXPORTS_SYMS_MAX)
		t.n = ELF_EXPORTS_SYMS_MAX;
	r = find_read(elf, &t, &name, 1, tls, &sym, e);
	if (r < 0)
		return r;
	*ret_sym = sym;
	return 0;
}

int elf_export_find(struct elf_file *elf, const char *name, struct elf_export *ret_sym,
		    struct err *e)
{
	return find(elf, name, false, ret_sym, e);
}

int elf_export_find_tls(struct elf_file *elf, const char *name, struct elf_export *ret_sym,
			struct err *e)
{
	return find(elf, name, true, ret_sym, e);
}

int elf_symtab_find(struct elf_file *elf, const char *const names[], uint32_t n,
		    struct elf_export ret_syms[], struct err *e)
{
	struct table t;
	int r = find_table(elf, SHT_SYMTAB, &t, e);

	if (r < 0)
		return r;
	/* A header may claim as much as a file can have, of which there need not be a byte on a disk. */
	if (t.n > ELF_SECTION_BYTES_MAX / sizeof(Elf64_Sym))
		t.n = ELF_SECTION_BYTES_MAX / sizeof(Elf64_Sym);
	return find_read(elf, &t, names, n, false, ret_syms, e);
}
