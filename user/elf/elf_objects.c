#include "elf/elf_objects.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* A table of symbols with the bytes of its names, which end with a NUL. */
struct object_table {
	uint8_t *syms, *names;
	uint64_t n, names_size;
};

static void object_table_fini(struct object_table *t)
{
	free(t->syms);
	free(t->names);
}

static int object_table_read(struct elf_file *elf, const struct elf_section *table,
			     const struct elf_section *strings, struct object_table *t)
{
	int r = elf_file_read_section(elf, table, &t->syms, NULL);

	if (r == 0)
		r = elf_file_read_section(elf, strings, &t->names, NULL);
	t->n = table->size / sizeof(Elf64_Sym);
	t->names_size = strings->size;
	return r;
}

/* NULL: not a defined variable with a name. */
static const char *object_get(const struct object_table *t, uint64_t i,
			      struct elf_object *ret_object)
{
	Elf64_Sym s;

	memcpy(&s, t->syms + i * sizeof(s), sizeof(s));
	if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_shndx == SHN_UNDEF ||
	    s.st_shndx >= SHN_LORESERVE || s.st_name >= t->names_size)
		return NULL;
	*ret_object = (struct elf_object){ s.st_value, s.st_size };
	return (const char *)t->names + s.st_name;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* What is looked for: one of `names`, else what covers `vaddr`. */
struct object_query {
	const char *const *names;
	uint64_t vaddr;
	char *name;
	size_t cap;
};

static int find_name(const struct object_table *t, const struct object_query *q,
		     struct elf_object *ret_object)
{
	struct elf_object o;

	for (uint64_t i = 0; i < t->n; i++) {
		const char *name = object_get(t, i, &o);

		if (!name || !is_one_of(name, q->names))
			continue;
		*ret_object = o;
		return 0;
	}
	return -ENOENT;
}

static int find_at(const struct object_table *t, const struct object_query *q,
		   struct elf_object *ret_object)
{
	const char *found = NULL;
	struct elf_object o, best = { 0, 0 };

	for (uint64_t i = 0; i < t->n; i++) {
		const char *name = object_get(t, i, &o);

		if (!name || !*name || q->vaddr - o.vaddr >= o.size ||
		    (found && o.size >= best.size))
			continue;
		found = name;
		best = o;
	}
	if (!found)
		return -ENOENT;
	if (strlen(found) >= q->cap)
		return -ENAMETOOLONG;
	memcpy(q->name, found, strlen(found) + 1);
	*ret_object = best;
	return 0;
}

/* One that lies about many tables has but one of them read. */
static const struct elf_section *first_of(const struct elf_section *secs, uint32_t n, uint32_t type)
{
	for (uint32_t i = 0; i < n; i++)
		if (secs[i].type == type)
			return secs[i].link < n ? &secs[i] : NULL;
	return NULL;
}

static int find(struct elf_file *elf, const struct object_query *q, struct elf_object *ret_object)
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
	for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++) {
		const struct elf_section *table = first_of(secs, n, types[k]);
		_cleanup_(object_table_fini) struct object_table t = { 0 };

		if (!table)
			continue;
		r = object_table_read(elf, table, &secs[table->link], &t);
		if (r == 0)
			r = q->names ? find_name(&t, q, ret_object) : find_at(&t, q, ret_object);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object)
{
	return find(elf, &(struct object_query){ .names = names }, ret_object);
}

int elf_object_at(struct elf_file *elf, uint64_t vaddr, char *ret_name, size_t cap,
		  uint64_t *ret_off)
{
	const struct object_query q = { .vaddr = vaddr, .name = ret_name, .cap = cap };
	struct elf_object o;
	int r = find(elf, &q, &o);

	if (r == 0)
		*ret_off = vaddr - o.vaddr;
	return r;
}
