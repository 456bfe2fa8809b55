#include "elf/elf_syms_parts.h"

#include "base/grow.h"

#include <errno.h>
#include <string.h>

#define NO_ROW UINT32_MAX

static const char *row_name(const struct elf_syms *syms, const struct row *row)
{
	return syms->strings[row->table].bytes + row->name;
}

static uint64_t row_end(const struct row *row)
{
	return row->vaddr + row->size;
}

/* "memcpy@@GLIBC_2.14" is memcpy; a name that begins with '@' keeps it. */
static size_t name_length(const char *name)
{
	return name[0] ? 1 + strcspn(name + 1, "@") : 0;
}

/* --- reading a table --- */

int elf_syms_add(struct elf_syms *syms, const struct row *row)
{
	if (!GROW(syms->rows, syms->n_rows, syms->cap_rows))
		return -ENOMEM;
	syms->rows[syms->n_rows++] = *row;
	return 0;
}

/* Assembler-local labels and the mapping symbols of ARM ($x, $d) name no function. */
static bool is_label(const char *name)
{
	return name[0] == '\0' || name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

uint16_t elf_syms_name(struct strings *strings, const char *name, const struct selection *sel)
{
	size_t len;

	if (is_label(name) || (sel && sel->wanted && !sel->wanted(sel->ctx, name)))
		return 0;
	len = name_length(name);
	if (len > UINT16_MAX || len > strings->budget)
		return 0;
	strings->budget -= len;
	return (uint16_t)len;
}

bool elf_syms_is_info(const char *name, size_t len)
{
	static const char suffix[] = "_info";
	size_t n = sizeof(suffix) - 1;

	return len > n && !memcmp(name + len - n, suffix, n);
}

bool elf_syms_to_row(const struct symbol_table *t, const Elf64_Sym *s, struct row *ret,
		     bool *ret_data)
{
	uint8_t type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	const struct elf_section *sec;
	uint64_t sec_end, size;

	/* GHC's assembler calls code variables which has an info table before it. */
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && type != STT_OBJECT)
		return false;
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= t->n_secs)
		return false;
	sec = &t->secs[s->st_shndx];
	if (!(sec->flags & SHF_EXECINSTR) ||
	    __builtin_add_overflow(sec->vaddr, sec->size, &sec_end) || s->st_value < sec->vaddr ||
	    s->st_value >= sec_end || s->st_name >= t->names->size)
		return false;
	size = sec_end - s->st_value;
	if (s->st_size && s->st_size < size)
		size = s->st_size;
	*ret_data = type == STT_OBJECT;
	*ret = (struct row){
		.vaddr = s->st_value,
		.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
		.name = s->st_name,
		.section = s->st_shndx,
		.table = t->table,
		.untyped = type == STT_NOTYPE,
		.unsized = s->st_size == 0,
		.local = bind == STB_LOCAL,
		.weak = bind == STB_WEAK,
		.ifunc = type == STT_GNU_IFUNC,
	};
	return true;
}

static void to_sym64(const Elf32_Sym *s, Elf64_Sym *ret)
{
	*ret = (Elf64_Sym){ .st_name = s->st_name,
			    .st_info = s->st_info,
			    .st_shndx = s->st_shndx,
			    .st_value = s->st_value,
			    .st_size = s->st_size };
}

int elf_syms_each(const struct symbol_table *t, uint64_t from, uint64_t n,
		  int (*fn)(void *ctx, uint64_t index, const Elf64_Sym *s), void *ctx,
		  struct err *e)
{
	size_t ent = elf_file_is64(t->elf) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t all = t->sec->size / ent, end = n < all - from ? from + n : all;
	_cleanup_(freep) uint8_t *buf = NULL;

	if (from >= all)
		return 0;
	buf = malloc((end - from < CHUNK_SYMS ? end - from : CHUNK_SYMS) * ent);
	if (!buf)
		return err_set(e, -ENOMEM, "%s: out of memory for symbols", elf_file_name(t->elf));
	for (uint64_t at = from; at < end; at += CHUNK_SYMS) {
		uint64_t part = end - at < CHUNK_SYMS ? end - at : CHUNK_SYMS;
		int r = elf_file_read(t->elf, t->sec->off + at * ent, buf, part * ent, e);

		for (uint64_t i = 0; i < part && r == 0; i++) {
			Elf64_Sym s;
			Elf32_Sym s32;

			if (ent == sizeof(s)) {
				memcpy(&s, buf + i * ent, sizeof(s));
			} else {
				memcpy(&s32, buf + i * ent, sizeof(s32));
				to_sym64(&s32, &s);
			}
			r = fn(ctx, at + i, &s);
		}
		if (r)
			return r;
	}
	return 0;
}

struct all {
	struct elf_syms *syms;
	const struct symbol_table *t;
};

static int add_any(void *ctx, uint64_t index, const Elf64_Sym *s)
{
	struct all *all = ctx;
	struct strings *strings = &all->syms->strings[all->t->table];
	const char *name;
	struct row row;
	bool data;

	if (!elf_syms_to_row(all->t, s, &row, &data))
		return 0;
	name = strings->bytes + row.name;
	row.name_len = elf_syms_name(strings, name, NULL);
	if (!row.name_len || (data && !elf_syms_is_info(name, row.name_len)))
		return 0;
	return elf_syms_add(all->syms, &row);
}

static int read_table(struct elf_syms *syms, const struct symbol_table *t,
		      const struct selection *sel, struct err *e)
{
	struct strings *strings = &syms->strings[t->table];
	struct all all = { syms, t };
	int r;

	if (t->sec->link >= t->n_secs || t->names->type != SHT_STRTAB)
		return err_set(e, -EBADMSG, "%s: section %s has no string table",
			       elf_file_name(t->elf), t->sec->name);
	if (t->sec->size > ELF_SECTION_BYTES_MAX)
		return err_set(e, -EFBIG,
			       "%s: section %s is larger than the %d bytes that are read",
			       elf_file_name(t->elf), t->sec->name, ELF_SECTION_BYTES_MAX);
	if ((t->sec->flags | t->names->flags) & SHF_COMPRESSED)
		return err_set(e, -EOPNOTSUPP, "%s: section %s is compressed",
			       elf_file_name(t->elf), t->sec->name);
	strings->budget = NAME_REUSE_MAX * t->names->size;
	if (sel->wanted || sel->vaddrs)
		return elf_syms_select(syms, t, sel, e);
	r = elf_file_read_section(t->elf, t->names, (uint8_t **)&strings->bytes, e);
	if (r < 0)
		return r;
	strings->size = t->names->size;
	r = elf_syms_each(t, 0, UINT64_MAX, add_any, &all, e);
	return r == -ENOMEM ? err_set(e, r, "%s: out of memory for symbols", elf_file_name(t->elf))
			    : r;
}

static int read_first_table(struct elf_syms *syms, uint8_t table, struct elf_file *elf,
			    const struct elf_section *secs, uint32_t n_secs,
			    const struct selection *sel, struct err *e)
{
	static const uint32_t types[N_TABLES] = { SHT_SYMTAB, SHT_DYNSYM };

	for (uint32_t i = 1; i < n_secs; i++) {
		struct symbol_table t = {
			.elf = elf,
			.sec = &secs[i],
			.names = &secs[secs[i].link < n_secs ? secs[i].link : 0],
			.secs = secs,
			.n_secs = n_secs,
			.table = table,
		};

		if (secs[i].type == types[table])
			return read_table(syms, &t, sel, e);
	}
	return 0;
}

/* --- order --- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Mangled names (C++, Rust, D) begin with an underscore that says nothing. */
static size_t underscores(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "_D", 2)
		       ? 0
		       : strspn(name, "_");
}

/* glibc's own name for calls of itself: __GI_____strtod_l_internal. */
static bool is_internal_alias(const char *name)
{
	return !strncmp(name, "__GI_", 5);
}

static int prefer(const struct elf_syms *syms, const struct row *a, const struct row *b)
{
	const char *na = row_name(syms, a), *nb = row_name(syms, b);
	int r;

	if ((r = compare(a->untyped, b->untyped)) || (r = compare(a->unsized, b->unsized)) ||
	    (r = compare(a->local, b->local)) ||
	    (r = compare(is_internal_alias(na), is_internal_alias(nb))) ||
	    (r = compare(underscores(na), underscores(nb))) ||
	    (r = compare(a->name_len, b->name_len)) || (r = memcmp(na, nb, a->name_len)) ||
	    (r = compare(a->weak, b->weak)))
		return r;
	return compare(b->size, a->size);
}

static int compare_rows(const void *pa, const void *pb, void *syms)
{
	const struct row *a = pa, *b = pb;
	int r = compare(a->vaddr, b->vaddr);

	return r ? r : prefer(syms, a, b);
}

/* .symtab repeats what .dynsym has. */
static bool same_symbol(const struct elf_syms *syms, const struct row *a, const struct row *b)
{
	return a->vaddr == b->vaddr && a->ifunc == b->ifunc && a->name_len == b->name_len &&
	       !memcmp(row_name(syms, a), row_name(syms, b), a->name_len);
}

static void drop_doubles(struct elf_syms *syms)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < syms->n_rows; i++)
		if (!n || !same_symbol(syms, &syms->rows[n - 1], &syms->rows[i]))
			syms->rows[n++] = syms->rows[i];
	syms->n_rows = n;
}

/*
 * Backwards over the rows, so that the next symbol of each section is known. Rows of different
 * sections do not interleave in honest files; in others an end comes out late, and is cut when
 * the pieces are made.
 */
static void end_unsized(struct elf_syms *syms)
{
	uint64_t next = UINT64_MAX, above = UINT64_MAX;
	uint32_t section = SHN_UNDEF;

	for (uint32_t i = syms->n_rows; i-- > 0;) {
		struct row *row = &syms->rows[i];

		if (row->section != section) {
			section = row->section;
			next = above = UINT64_MAX;
		}
		/* Aliases at one address all reach to the next address. */
		if (row->vaddr != next) {
			above = next;
			next = row->vaddr;
		}
		if (row->unsized && above < row_end(row))
			row->size = (uint32_t)(above - row->vaddr);
	}
}

/* --- pieces --- */

/* The rows that have begun and are not known to have ended, innermost last. */
struct nest {
	uint32_t *rows;
	uint32_t n;
};

static void add_piece(struct elf_syms *syms, uint64_t start, uint32_t row)
{
	struct piece *last = syms->n_pieces ? &syms->pieces[syms->n_pieces - 1] : NULL;

	if (last && last->start == start)
		last->row = row;
	else if (!last || last->row != row)
		syms->pieces[syms->n_pieces++] = (struct piece){ start, row };
}

static uint32_t innermost(const struct nest *nest)
{
	return nest->n ? nest->rows[nest->n - 1] : NO_ROW;
}

/* Ends the rows that end at or before `upto`; what encloses them goes on. */
static void close_rows(struct elf_syms *syms, struct nest *nest, uint64_t upto)
{
	while (nest->n && row_end(&syms->rows[innermost(nest)]) <= upto) {
		uint64_t end = row_end(&syms->rows[innermost(nest)]);

		/* Outer rows that ended before this one have nothing left to own. */
		while (nest->n && row_end(&syms->rows[innermost(nest)]) <= end)
			nest->n--;
		add_piece(syms, end, innermost(nest));
	}
}

/* Rows [first, end) begin at one address: the first is preferred, the longest shows behind it. */
static void open_rows(struct elf_syms *syms, struct nest *nest, uint32_t first, uint32_t end)
{
	uint32_t outer = innermost(nest), longest = first;

	/* A label inside a function does not cut it in two. */
	if (syms->rows[first].untyped && outer != NO_ROW && !syms->rows[outer].untyped)
		return;
	for (uint32_t i = first + 1; i < end; i++)
		if (syms->rows[i].size > syms->rows[longest].size)
			longest = i;
	if (longest != first)
		nest->rows[nest->n++] = longest;
	nest->rows[nest->n++] = first;
	add_piece(syms, syms->rows[first].vaddr, first);
}

/*
 * Cuts the address space into pieces, each owned by the innermost row that covers it, so that
 * a lookup is one binary search whatever the symbols' overlaps. Each row begins and ends at most
 * once: at most two pieces a row.
 */
static int build_pieces(struct elf_syms *syms)
{
	_cleanup_(freep) uint32_t *rows = malloc(syms->n_rows * sizeof(*rows));
	struct nest nest = { rows, 0 };
	struct piece *shrunk;

	syms->pieces = malloc((2 * (size_t)syms->n_rows + 1) * sizeof(*syms->pieces));
	if (!rows || !syms->pieces)
		return -ENOMEM;
	for (uint32_t i = 0, end; i < syms->n_rows; i = end) {
		for (end = i + 1; end < syms->n_rows; end++)
			if (syms->rows[end].vaddr != syms->rows[i].vaddr)
				break;
		close_rows(syms, &nest, syms->rows[i].vaddr);
		open_rows(syms, &nest, i, end);
	}
	close_rows(syms, &nest, UINT64_MAX);
	shrunk = realloc(syms->pieces, syms->n_pieces * sizeof(*syms->pieces));
	if (shrunk)
		syms->pieces = shrunk;
	return 0;
}

/* --- interface --- */

static int read_rows(struct elf_file *elf, const struct selection *sel, struct elf_syms **ret_syms,
		     struct err *e)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	const struct elf_section *secs;
	uint32_t n_secs;
	int r, failed = 0;

	r = elf_file_sections(elf, &secs, &n_secs, e);
	if (r < 0)
		return r;
	syms = calloc(1, sizeof(*syms));
	if (!syms)
		return err_set(e, -ENOMEM, "%s: out of memory for symbols", elf_file_name(elf));

	for (uint8_t t = 0; t < N_TABLES; t++) {
		r = read_first_table(syms, t, elf, secs, n_secs, sel, e);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			failed = r;
	}
	/* One bad table does not spoil the other. */
	if (!syms->n_rows && failed)
		return failed;
	if (!syms->n_rows)
		return err_set(e, -ENOENT, "%s: %s", elf_file_name(elf),
			       sel->wanted   ? "no symbol of a name that was looked for"
			       : sel->vaddrs ? "no symbol near any address"
					     : "no symbol table");

	qsort_r(syms->rows, syms->n_rows, sizeof(*syms->rows), compare_rows, syms);
	drop_doubles(syms);
	*ret_syms = TAKE_PTR(syms);
	return 0;
}

static bool any_unsized(const struct elf_syms *syms)
{
	for (uint32_t i = 0; i < syms->n_rows; i++)
		if (syms->rows[i].unsized)
			return true;
	return false;
}

static void drop_unwanted(struct elf_syms *syms, const struct selection *sel)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < syms->n_rows; i++)
		if (sel->wanted(sel->ctx, row_name(syms, &syms->rows[i])))
			syms->rows[n++] = syms->rows[i];
	syms->n_rows = n;
}

static int load(struct elf_file *elf, const struct selection *sel, struct elf_syms **ret_syms,
		struct err *e)
{
	static const struct selection all = { 0 };
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	int r = read_rows(elf, sel, &syms, e);

	/* One without a size ends at its neighbour, whatever that is called. */
	if (r == 0 && sel->wanted && any_unsized(syms)) {
		elf_syms_free(TAKE_PTR(syms));
		r = read_rows(elf, &all, &syms, e);
	}
	if (r < 0)
		return r;
	end_unsized(syms);
	if (sel->wanted)
		drop_unwanted(syms, sel);
	if (build_pieces(syms) < 0)
		return err_set(e, -ENOMEM, "%s: out of memory for symbols", elf_file_name(elf));
	*ret_syms = TAKE_PTR(syms);
	return 0;
}

int elf_syms_load(struct elf_file *elf, struct elf_syms **ret_syms, struct err *e)
{
	return load(elf, &(struct selection){ 0 }, ret_syms, e);
}

static bool is_kept(void *ctx, const char *name)
{
	return (*(elf_syms_keep_fn *)ctx)(name);
}

int elf_syms_load_some(struct elf_file *elf, elf_syms_keep_fn keep, struct elf_syms **ret_syms,
		       struct err *e)
{
	return elf_syms_load_wanted(elf, is_kept, &keep, ret_syms, e);
}

int elf_syms_load_wanted(struct elf_file *elf, elf_syms_wanted_fn wanted, void *ctx,
			 struct elf_syms **ret_syms, struct err *e)
{
	return load(elf, &(struct selection){ .wanted = wanted, .ctx = ctx }, ret_syms, e);
}

int elf_syms_load_at(struct elf_file *elf, const uint64_t *vaddrs, uint32_t n,
		     struct elf_syms **ret_syms, struct err *e)
{
	struct selection at = { .vaddrs = vaddrs, .n_vaddrs = n };

	/* Elsewhere assemblers leave labels for data in code ($d), which cover nothing and are next to everything. */
	return elf_file_machine(elf) == EM_X86_64 && n ? load(elf, &at, ret_syms, e)
						       : elf_syms_load(elf, ret_syms, e);
}

void elf_syms_free(struct elf_syms *syms)
{
	if (!syms)
		return;
	for (int t = 0; t < N_TABLES; t++)
		free(syms->strings[t].bytes);
	free(syms->rows);
	free(syms->pieces);
	free(syms->by_name);
	free(syms);
}

bool elf_syms_exported_only(const struct elf_syms *syms)
{
	return !syms->strings[0].bytes;
}

uint32_t elf_syms_count(const struct elf_syms *syms)
{
	return syms->n_rows;
}

struct elf_sym elf_syms_at(const struct elf_syms *syms, uint32_t i)
{
	const struct row *row = &syms->rows[i];

	return (struct elf_sym){
		.name = row_name(syms, row),
		.name_len = row->name_len,
		.label = row->untyped || row->unsized,
		.ifunc = row->ifunc,
		.vaddr = row->vaddr,
		.size = row->size,
	};
}

int elf_syms_find(const struct elf_syms *syms, uint64_t vaddr, struct elf_sym *ret_sym)
{
	uint32_t lo = 0, hi = syms->n_pieces;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (syms->pieces[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || syms->pieces[lo - 1].row == NO_ROW)
		return -ENOENT;
	*ret_sym = elf_syms_at(syms, syms->pieces[lo - 1].row);
	return 0;
}

/* FNV-1a */
static uint32_t hash_name(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h;
}

static int compare_names(const void *pa, const void *pb)
{
	const struct name_row *a = pa, *b = pb;
	int r = compare(a->hash, b->hash);

	return r ? r : compare(a->row, b->row);
}

static int index_names(struct elf_syms *syms)
{
	syms->by_name = malloc(syms->n_rows * sizeof(*syms->by_name));
	if (!syms->by_name)
		return -ENOMEM;
	for (uint32_t i = 0; i < syms->n_rows; i++)
		syms->by_name[i] = (struct name_row){
			hash_name(row_name(syms, &syms->rows[i]), syms->rows[i].name_len), i
		};
	qsort(syms->by_name, syms->n_rows, sizeof(*syms->by_name), compare_names);
	return 0;
}

static uint32_t first_of_hash(const struct elf_syms *syms, uint32_t hash)
{
	uint32_t lo = 0, hi = syms->n_rows;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (syms->by_name[mid].hash < hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int elf_syms_find_name(struct elf_syms *syms, const char *name, struct elf_sym *ret_syms,
		       uint32_t cap)
{
	size_t len = strlen(name);
	uint32_t hash = hash_name(name, len), n = 0, last = NO_ROW;

	if (!syms->by_name && index_names(syms) < 0)
		return -ENOMEM;
	for (uint32_t i = first_of_hash(syms, hash);
	     i < syms->n_rows && syms->by_name[i].hash == hash; i++) {
		const struct row *row = &syms->rows[syms->by_name[i].row];

		if (row->name_len != len || memcmp(row_name(syms, row), name, len) != 0 ||
		    (last != NO_ROW && syms->rows[last].vaddr == row->vaddr))
			continue;
		last = syms->by_name[i].row;
		if (n < cap)
			ret_syms[n] = elf_syms_at(syms, last);
		n++;
	}
	return (int)n;
}
