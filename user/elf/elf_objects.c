#include "elf/elf_objects.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
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

static int find_name(const struct object_table *t, const char *const *names,
		     struct elf_object *ret_object)
{
	struct elf_object o;

	for (uint64_t i = 0; i < t->n; i++) {
		const char *name = object_get(t, i, &o);

		if (!name || !is_one_of(name, names))
			continue;
		*ret_object = o;
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

/* fn() for each table, .symtab first, as long as it returns -ENOENT. */
static int each_table(struct elf_file *elf, int (*fn)(void *ctx, struct object_table *t), void *ctx)
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
			r = fn(ctx, &t);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

struct name_query {
	const char *const *names;
	struct elf_object *object;
};

static int on_table_of_name(void *ctx, struct object_table *t)
{
	const struct name_query *q = ctx;

	return find_name(t, q->names, q->object);
}

int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object)
{
	return each_table(elf, on_table_of_name, &(struct name_query){ names, ret_object });
}

/* --- by address --- */

struct variable {
	struct elf_object object;
	uint64_t end; /* of what is covered by it and by those before it */
	const char *name;
};

/* Of one table, by address. */
struct variables {
	struct variable *rows;
	uint64_t n;
	uint8_t *names;
};

struct elf_variables {
	struct variables of[2];
	uint32_t n;
};

void elf_variables_free(struct elf_variables *v)
{
	for (uint32_t i = 0; v && i < v->n; i++) {
		free(v->of[i].rows);
		free(v->of[i].names);
	}
	free(v);
}

static int by_address(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	return (x->object.vaddr > y->object.vaddr) - (x->object.vaddr < y->object.vaddr);
}

/* What covers nothing is left out. */
static uint64_t collect(const struct object_table *t, struct variable *rows)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		struct elf_object o;
		const char *name = object_get(t, i, &o);

		if (name && *name && o.size && o.vaddr + o.size > o.vaddr)
			rows[n++] = (struct variable){ o, 0, name };
	}
	return n;
}

static int on_table_of_addresses(void *ctx, struct object_table *t)
{
	struct elf_variables *v = ctx;
	struct variables *of = &v->of[v->n];
	uint64_t end = 0;

	of->rows = calloc(t->n + 1, sizeof(*of->rows));
	if (!of->rows)
		return -ENOMEM;
	of->n = collect(t, of->rows);
	qsort(of->rows, of->n, sizeof(*of->rows), by_address);
	for (uint64_t i = 0; i < of->n; i++) {
		const struct elf_object *o = &of->rows[i].object;

		end = o->vaddr + o->size > end ? o->vaddr + o->size : end;
		of->rows[i].end = end;
	}
	of->names = t->names;
	t->names = NULL;
	v->n++;
	return -ENOENT; /* and the next table */
}

int elf_variables_new(struct elf_file *elf, struct elf_variables **ret_variables)
{
	_cleanup_(elf_variables_freep) struct elf_variables *v = calloc(1, sizeof(*v));
	int r = v ? each_table(elf, on_table_of_addresses, v) : -ENOMEM;

	if (r < 0 && r != -ENOENT)
		return r;
	*ret_variables = TAKE_PTR(v);
	return 0;
}

static const struct variable *covering(const struct variables *of, uint64_t vaddr)
{
	const struct variable *best = NULL;
	uint64_t low = 0, high = of->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (of->rows[mid].object.vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- && of->rows[low].end > vaddr) {
		const struct variable *v = &of->rows[low];

		if (vaddr - v->object.vaddr < v->object.size &&
		    (!best || v->object.size <= best->object.size))
			best = v;
	}
	return best;
}

int elf_variables_at(const struct elf_variables *v, uint64_t vaddr, const char **ret_name,
		     uint64_t *ret_off)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct variable *found = covering(&v->of[i], vaddr);

		if (!found)
			continue;
		*ret_name = found->name;
		*ret_off = vaddr - found->object.vaddr;
		return 0;
	}
	return -ENOENT;
}
