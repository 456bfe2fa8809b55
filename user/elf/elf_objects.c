#include "elf/elf_objects.h"

#include "base/put.h"
#include "elf/demangle.h"

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

/* A defined one. */
static bool is_variable(const Elf64_Sym *s)
{
	return ELF64_ST_TYPE(s->st_info) == STT_OBJECT && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx < SHN_LORESERVE;
}

/* NULL: not a defined variable with a name. */
static const char *object_get(const struct object_table *t, uint64_t i,
			      struct elf_object *ret_object)
{
	Elf64_Sym s;

	memcpy(&s, t->syms + i * sizeof(s), sizeof(s));
	if (!is_variable(&s) || s.st_name >= t->names_size)
		return NULL;
	*ret_object = (struct elf_object){ s.st_value, s.st_size };
	return (const char *)t->names + s.st_name;
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
static int each_table(struct elf_file *elf,
		      int (*fn)(void *ctx, struct elf_file *elf, const struct elf_section *table,
				const struct elf_section *strings),
		      void *ctx)
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

		if (!table)
			continue;
		r = fn(ctx, elf, table, &secs[table->link]);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* --- by name: in pieces, for there may be 37 MB of names and one is looked for --- */

enum { PIECE = 64 << 10 };

/* Offsets of names in a section of strings, ascending. */
struct places {
	uint64_t *all;
	size_t n, cap;
};

static void places_fini(struct places *p)
{
	free(p->all);
}

static int places_add(struct places *p, uint64_t place)
{
	if (p->n == p->cap) {
		size_t cap = p->cap * 2 + 16;
		uint64_t *grown = reallocarray(p->all, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->all = grown;
		p->cap = cap;
	}
	p->all[p->n++] = place;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* All of `name` with its NUL; also at the end of a longer one, which shares its bytes. */
static int add_places(struct places *p, const uint8_t *piece, size_t len, uint64_t at,
		      const char *name)
{
	size_t size = strlen(name) + 1;
	const uint8_t *found = piece;
	int r = 0;

	while (r == 0 && (found = memmem(found, len - (size_t)(found - piece), name, size))) {
		r = places_add(p, at + (uint64_t)(found - piece));
		found++;
	}
	return r;
}

static int find_places(struct elf_file *elf, const struct elf_section *strings,
		       const char *const *names, struct places *ret)
{
	_cleanup_(freep) uint8_t *piece = malloc(PIECE + 1);
	size_t overlap = 0;
	uint64_t at = 0;
	int r = piece ? 0 : -ENOMEM;

	for (const char *const *n = names; *n; n++)
		overlap = strlen(*n) > overlap ? strlen(*n) : overlap;
	if (overlap >= PIECE)
		return -EINVAL;
	while (r == 0 && at < strings->size) {
		size_t len = strings->size - at < PIECE ? (size_t)(strings->size - at) : PIECE;
		bool last = at + len == strings->size;

		r = elf_file_read(elf, strings->off + at, piece, len, NULL);
		piece[len] = '\0'; /* of a section whose last name has none */
		for (const char *const *n = names; r == 0 && *n; n++)
			r = add_places(ret, piece, len + last, at, *n);
		at += last ? len : len - overlap;
	}
	if (r == 0 && ret->n)
		qsort(ret->all, ret->n, sizeof(*ret->all), compare_places);
	return r;
}

static int find_symbol(struct elf_file *elf, const struct elf_section *table,
		       const struct places *places, struct elf_object *ret_object)
{
	Elf64_Sym *piece;
	uint64_t n = table->size / sizeof(*piece), step = PIECE / sizeof(*piece);
	int r = -ENOENT;

	piece = calloc(step, sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	for (uint64_t at = 0; r == -ENOENT && at < n; at += step) {
		uint64_t some = n - at < step ? n - at : step;
		int rc = elf_file_read(elf, table->off + at * sizeof(*piece), piece,
				       some * sizeof(*piece), NULL);

		r = rc < 0 ? rc : r;
		for (uint64_t i = 0; r == -ENOENT && i < some; i++) {
			uint64_t name = piece[i].st_name;

			if (!is_variable(&piece[i]) ||
			    !bsearch(&name, places->all, places->n, sizeof(name), compare_places))
				continue;
			*ret_object = (struct elf_object){ piece[i].st_value, piece[i].st_size };
			r = 0;
		}
	}
	free(piece);
	return r;
}

/* Could elf_file_read_section() read it? Its return value. */
static int readable(struct elf_file *elf, const struct elf_section *s)
{
	if (s->type == SHT_NOBITS || s->type == SHT_NULL)
		return -ENODATA;
	if (s->flags & SHF_COMPRESSED)
		return -EOPNOTSUPP;
	if (s->off > elf_file_size(elf) || s->size > elf_file_size(elf) - s->off)
		return -ENODATA;
	return s->size > ELF_SECTION_BYTES_MAX ? -EFBIG : 0;
}

struct name_query {
	const char *const *names;
	struct elf_object *object;
};

static int look_for_name(void *ctx, struct elf_file *elf, const struct elf_section *table,
			 const struct elf_section *strings)
{
	const struct name_query *q = ctx;
	_cleanup_(places_fini) struct places places = { 0 };
	int r = readable(elf, table);

	if (r == 0)
		r = readable(elf, strings);
	if (r == 0)
		r = find_places(elf, strings, q->names, &places);
	if (r < 0)
		return r;
	return places.n ? find_symbol(elf, table, &places, q->object) : -ENOENT;
}

int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object)
{
	return each_table(elf, look_for_name, &(struct name_query){ names, ret_object });
}

/* --- by address --- */

struct variable {
	struct elf_object object;
	uint64_t end; /* of what is covered by it and by those before it */
	const char *name;
};

struct elf_variables {
	struct variable *rows; /* by address */
	uint32_t n;
	char *names;
};

void elf_variables_free(struct elf_variables *v)
{
	if (!v)
		return;
	free(v->rows);
	free(v->names);
	free(v);
}

static int by_address(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	return (x->object.vaddr > y->object.vaddr) - (x->object.vaddr < y->object.vaddr);
}

static bool covers(const struct elf_object *o)
{
	return o->size && o->vaddr + o->size > o->vaddr;
}

/* What covers nothing is left out. */
static uint32_t collect(const struct object_table *t, struct variable *rows)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < t->n && n < UINT32_MAX; i++) {
		struct elf_object o;
		const char *name = object_get(t, i, &o);

		if (name && *name && covers(&o))
			rows[n++] = (struct variable){ o, 0, name };
	}
	return n;
}

static void put_name(const char *symbol, struct strbuf *b)
{
	char plain[DEMANGLE_OUT_MAX];
	size_t len = strlen(symbol);

	if (len < DEMANGLE_IN_MAX && demangle(symbol, len, plain)) {
		symbol = plain;
		len = strlen(plain);
	}
	strbuf_add(b, symbol, len < ELF_VARIABLE_NAME_MAX ? len : ELF_VARIABLE_NAME_MAX);
	put_u8(b, '\0');
}

static int put_variables(void *ctx, struct elf_file *elf, const struct elf_section *table,
			 const struct elf_section *strings)
{
	_cleanup_(object_table_fini) struct object_table t = { 0 };
	_cleanup_(freep) struct variable *rows = NULL;
	struct strbuf *b = ctx;
	uint32_t n;
	int r = object_table_read(elf, table, strings, &t);

	if (r < 0)
		return r;
	rows = calloc(t.n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	n = collect(&t, rows);
	if (!n)
		return -ENOENT; /* the next table may have some */
	qsort(rows, n, sizeof(*rows), by_address);
	put_u32(b, n);
	for (uint32_t i = 0; i < n; i++) {
		put_u64(b, rows[i].object.vaddr);
		put_u64(b, rows[i].object.size);
	}
	for (uint32_t i = 0; i < n; i++)
		put_name(rows[i].name, b);
	return strbuf_oom(b) ? -ENOMEM : 0;
}

int elf_variables_put(struct elf_file *elf, struct strbuf *ret)
{
	return each_table(elf, put_variables, ret);
}

static int take_rows(struct elf_variables *v, struct bytes *b)
{
	uint64_t before = 0, end = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		struct elf_object *o = &v->rows[i].object;

		if (bytes_u64(b, &o->vaddr) < 0 || bytes_u64(b, &o->size) < 0 ||
		    o->vaddr < before || !covers(o))
			return -EBADMSG;
		before = o->vaddr;
		end = o->vaddr + o->size > end ? o->vaddr + o->size : end;
		v->rows[i].end = end;
	}
	return 0;
}

static int take_names(struct elf_variables *v, struct bytes b)
{
	const uint8_t *from = b.data;

	v->names = malloc(b.len + 1);
	if (!v->names)
		return -ENOMEM;
	memcpy(v->names, b.data, b.len);
	for (uint32_t i = 0; i < v->n; i++) {
		struct bytes name;

		v->rows[i].name = v->names + (b.data - from);
		if (bytes_cstr(&b, &name) < 0 || !name.len || name.len > ELF_VARIABLE_NAME_MAX)
			return -EBADMSG;
	}
	return b.len ? -EBADMSG : 0;
}

int elf_variables_take(struct bytes b, struct elf_variables **ret_variables)
{
	_cleanup_(elf_variables_freep) struct elf_variables *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	if (bytes_u32(&b, &v->n) < 0 || v->n > b.len / 17) /* two numbers and a name of no byte */
		return -EBADMSG;
	v->rows = calloc(v->n + 1ul, sizeof(*v->rows));
	if (!v->rows)
		return -ENOMEM;
	r = take_rows(v, &b);
	if (r == 0)
		r = take_names(v, b);
	if (r == 0)
		*ret_variables = TAKE_PTR(v);
	return r;
}

static const struct variable *covering(const struct elf_variables *of, uint64_t vaddr)
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
	const struct variable *found = covering(v, vaddr);

	if (!found)
		return -ENOENT;
	*ret_name = found->name;
	*ret_off = vaddr - found->object.vaddr;
	return 0;
}
