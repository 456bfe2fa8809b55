#include "elf/elf_objects.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static int find_in(struct elf_file *elf, const struct elf_section *table,
		   const struct elf_section *strings, const char *const *names,
		   struct elf_object *ret_object)
{
	_cleanup_(freep) uint8_t *syms = NULL, *bytes = NULL;
	int r = elf_file_read_section(elf, table, &syms, NULL);

	if (r == 0)
		r = elf_file_read_section(elf, strings, &bytes, NULL);
	if (r < 0)
		return r;
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->size; at += sizeof(Elf64_Sym)) {
		Elf64_Sym s;

		memcpy(&s, syms + at, sizeof(s));
		if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_shndx == SHN_UNDEF ||
		    s.st_shndx >= SHN_LORESERVE || s.st_name >= strings->size ||
		    !is_one_of((const char *)bytes + s.st_name, names))
			continue;
		*ret_object = (struct elf_object){ s.st_value, s.st_size };
		return 0;
	}
	return -ENOENT;
}

/* One that lies about many tables has but one of them read. */
static const struct elf_section *first_of(const struct elf_section *secs, uint32_t n, uint32_t type)
{
	for (uint32_t i = 0; i < n; i++)
		if (secs[i].type == type)
			return secs[i].link < n ? &secs[i] : NULL;
	return NULL;
}

int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	const struct elf_section *secs;
	uint32_t n;
	int r;

	if (!elf_file_is64(elf))
		return -ENOENT;
	r = elf_file_sections(elf, &secs, &n, NULL);
	if (r < 0)
		return r;
	for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
		const struct elf_section *table = first_of(secs, n, types[t]);

		if (!table)
			continue;
		r = find_in(elf, table, &secs[table->link], names, ret_object);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}
