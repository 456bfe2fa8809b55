#include "elf/elf_syms.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	N_TABLES = 2,      /* .symtab, .dynsym                              */
	CHUNK_SYMS = 4096, /* symbols read at a time                        */
	/*
	 * Honest tables point at each string a few times (aliases, shared tails). One that points
	 * many symbols at one long string would cost their product.
	 */
	NAME_REUSE_MAX = 16,
};

#define NO_ROW UINT32_MAX

/* One symbol; 24 bytes. `name` is an offset into one of the string tables. */
struct row {
	uint64_t vaddr;
	uint32_t size; /* larger ones are cut                           */
	uint32_t name;
	uint16_t name_len; /* without "@VERSION"; longer names are left out */
	uint16_t section;
	uint8_t table;
	uint8_t untyped : 1, unsized : 1, local : 1, weak : 1, ifunc : 1;
};

/* The address range [start, next piece's start) belongs to one row, or to none. */
struct piece {
	uint64_t start;
	uint32_t row;
};

struct strings {
	char *bytes; /* NUL after the last                            */
	uint64_t size;
	uint64_t budget; /* name bytes that may still be looked at        */
};

struct name_row {
	uint32_t hash, row;
};

struct elf_syms {
	struct strings strings[N_TABLES];
	struct row *rows; /* by vaddr, then by preference */
	uint32_t n_rows, cap_rows;
	struct piece *pieces;
	uint32_t n_pieces;
	struct name_row *by_name; /* by hash, then by row; NULL until it is asked for */
};

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

static int add_row(struct elf_syms *syms, const struct row *row)
{
	if (syms->n_rows == syms->cap_rows) {
		uint32_t cap = syms->cap_rows ? syms->cap_rows * 2 : 1024;
		struct row *rows = reallocarray(syms->rows, cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		syms->rows = rows;
		syms->cap_rows = cap;
	}
	syms->rows[syms->n_rows++] = *row;
	return 0;
}

/* Assembler-local labels and the mapping symbols of ARM ($x, $d) name no function. */
static bool is_label(const char *name)
{
	return name[0] == '\0' || name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

/* The name's length, 0 when it has none that can be used. `wanted`: which names are; NULL: all. */
static uint16_t usable_name(struct strings *strings, uint32_t name, elf_syms_keep_fn wanted)
{
	size_t len;

	if (name >= strings->size || is_label(strings->bytes + name) ||
	    (wanted && !wanted(strings->bytes + name)))
		return 0;
	len = name_length(strings->bytes + name);
	if (len > UINT16_MAX || len > strings->budget)
		return 0;
	strings->budget -= len;
	return (uint16_t)len;
}

static bool is_info(const char *name, size_t len)
{
	static const char suffix[] = "_info";
	size_t n = sizeof(suffix) - 1;

	return len > n && !memcmp(name + len - n, suffix, n);
}

static bool to_row(struct elf_syms *syms, uint8_t table, const Elf64_Sym *s,
		   const struct elf_section *secs, uint32_t n_secs, elf_syms_keep_fn wanted,
		   struct row *ret)
{
	uint8_t type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	const struct elf_section *sec;
	uint64_t sec_end, size;
	uint16_t name_len;

	/* GHC's assembler calls code variables which has an info table before it. */
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && type != STT_OBJECT)
		return false;
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= n_secs)
		return false;
	sec = &secs[s->st_shndx];
	if (!(sec->flags & SHF_EXECINSTR) ||
	    __builtin_add_overflow(sec->vaddr, sec->size, &sec_end) || s->st_value < sec->vaddr ||
	    s->st_value >= sec_end)
		return false;
	name_len = usable_name(&syms->strings[table], s->st_name, wanted);
	if (!name_len ||
	    (type == STT_OBJECT && !is_info(syms->strings[table].bytes + s->st_name, name_len)))
		return false;
	size = sec_end - s->st_value;
	if (s->st_size && s->st_size < size)
		size = s->st_size;
	*ret = (struct row){
		.vaddr = s->st_value,
		.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
		.name = s->st_name,
		.name_len = name_len,
		.section = s->st_shndx,
		.table = table,
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

static int read_symbols(struct elf_syms *syms, uint8_t table, struct elf_file *elf,
			const struct elf_section *sec, const struct elf_section *secs,
			uint32_t n_secs, elf_syms_keep_fn wanted, struct err *e)
{
	size_t ent = elf_file_is64(elf) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	_cleanup_(freep) uint8_t *buf = malloc(CHUNK_SYMS * ent);
	uint64_t n_syms = sec->size / ent;

	if (!buf)
		return err_set(e, -ENOMEM, "%s: out of memory for symbols", elf_file_name(elf));
	for (uint64_t at = 0; at < n_syms; at += CHUNK_SYMS) {
		uint64_t n = n_syms - at < CHUNK_SYMS ? n_syms - at : CHUNK_SYMS;
		int r = elf_file_read(elf, sec->off + at * ent, buf, n * ent, e);

		if (r < 0)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			Elf64_Sym s;
			Elf32_Sym s32;
			struct row row;

			if (ent == sizeof(s)) {
				memcpy(&s, buf + i * ent, sizeof(s));
			} else {
				memcpy(&s32, buf + i * ent, sizeof(s32));
				to_sym64(&s32, &s);
			}
			if (to_row(syms, table, &s, secs, n_secs, wanted, &row) &&
			    add_row(syms, &row) < 0)
				return err_set(e, -ENOMEM, "%s: out of memory for symbols",
					       elf_file_name(elf));
		}
	}
	return 0;
}

static int read_table(struct elf_syms *syms, uint8_t table, struct elf_file *elf,
		      const struct elf_section *sec, const struct elf_section *secs,
		      uint32_t n_secs, elf_syms_keep_fn wanted, struct err *e)
{
	int r;

	if (sec->link >= n_secs || secs[sec->link].type != SHT_STRTAB)
		return err_set(e, -EBADMSG, "%s: section %s has no string table",
			       elf_file_name(elf), sec->name);
	if (sec->size > ELF_SECTION_BYTES_MAX)
		return err_set(e, -EFBIG,
			       "%s: section %s is larger than the %d bytes that are read",
			       elf_file_name(elf), sec->name, ELF_SECTION_BYTES_MAX);
	if (sec->flags & SHF_COMPRESSED)
		return err_set(e, -EOPNOTSUPP, "%s: section %s is compressed", elf_file_name(elf),
			       sec->name);
	r = elf_file_read_section(elf, &secs[sec->link], (uint8_t **)&syms->strings[table].bytes,
				  e);
	if (r < 0)
		return r;
	syms->strings[table].size = secs[sec->link].size;
	syms->strings[table].budget = NAME_REUSE_MAX * syms->strings[table].size;
	return read_symbols(syms, table, elf, sec, secs, n_secs, wanted, e);
}

static int read_first_table(struct elf_syms *syms, uint8_t table, struct elf_file *elf,
			    const struct elf_section *secs, uint32_t n_secs,
			    elf_syms_keep_fn wanted, struct err *e)
{
	static const uint32_t types[N_TABLES] = { SHT_SYMTAB, SHT_DYNSYM };

	for (uint32_t i = 1; i < n_secs; i++)
		if (secs[i].type == types[table])
			return read_table(syms, table, elf, &secs[i], secs, n_secs, wanted, e);
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

static int read_rows(struct elf_file *elf, elf_syms_keep_fn wanted, struct elf_syms **ret_syms,
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
		r = read_first_table(syms, t, elf, secs, n_secs, wanted, e);
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
			       wanted ? "no symbol of a name that was looked for"
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

static void drop_unwanted(struct elf_syms *syms, elf_syms_keep_fn wanted)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < syms->n_rows; i++)
		if (wanted(row_name(syms, &syms->rows[i])))
			syms->rows[n++] = syms->rows[i];
	syms->n_rows = n;
}

static int load(struct elf_file *elf, elf_syms_keep_fn wanted, struct elf_syms **ret_syms,
		struct err *e)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	int r = read_rows(elf, wanted, &syms, e);

	/* One without a size ends at its neighbour, whatever that is called. */
	if (r == 0 && wanted && any_unsized(syms)) {
		elf_syms_free(TAKE_PTR(syms));
		r = read_rows(elf, NULL, &syms, e);
	}
	if (r < 0)
		return r;
	end_unsized(syms);
	if (wanted)
		drop_unwanted(syms, wanted);
	if (build_pieces(syms) < 0)
		return err_set(e, -ENOMEM, "%s: out of memory for symbols", elf_file_name(elf));
	*ret_syms = TAKE_PTR(syms);
	return 0;
}

int elf_syms_load(struct elf_file *elf, struct elf_syms **ret_syms, struct err *e)
{
	return load(elf, NULL, ret_syms, e);
}

int elf_syms_load_some(struct elf_file *elf, elf_syms_keep_fn keep, struct elf_syms **ret_syms,
		       struct err *e)
{
	return load(elf, keep, ret_syms, e);
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
