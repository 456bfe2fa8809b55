#include "elf/gopclntab.h"
#include "base/bytes.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	HEADER = 8, /* bytes of magic, zeros, quantum, pointer size */
	SCAN_BYTES = 256 << 20,
	SCAN_WINDOW = 64 << 10,
	SCAN_TRIES =
		4, /* the magic with its zeros behind it is rare; each try reads all that follows */
	SCAN_STEP = 8, /* the table is aligned to 32, its segment at least so much */
};

/* What changed from version to version. */
struct layout {
	uint32_t magic;
	int8_t text, names, pctab, funcs; /* numbers of the header's words; -1: none */
	bool offsets; /* functab has 32-bit offsets from the text's start, not addresses */
};

static const struct layout layouts[] = {
	{ 0xfffffffb, -1, -1, -1, -1, false }, /* Go 1.2 to 1.15: all from the table's start */
	{ 0xfffffffa, -1, 2, 5, 6, false },    /* Go 1.16, 1.17 */
	{ 0xfffffff0, 2, 3, 6, 7, true },      /* Go 1.18, 1.19 */
	{ 0xfffffff1, 2, 3, 6, 7, true },      /* Go 1.20 and later */
};

struct gopclntab {
	uint8_t *data;
	size_t len;
	const struct layout *layout;
	uint8_t quantum;
	uint64_t text;
	uint32_t n;
	struct bytes names, pctab, funcs, functab;
};

/* --- the header --- */

static const struct layout *layout_of(const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p, sizeof(magic));
	if (p[4] || p[5] || (p[6] != 1 && p[6] != 2 && p[6] != 4) || p[7] != 8)
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].magic == magic)
			return &layouts[i];
	return NULL;
}

static uint64_t word_at(struct bytes b, uint64_t off, size_t size)
{
	uint64_t value = 0;

	if (off <= b.len && size <= b.len - off)
		memcpy(&value, b.data + off, size);
	return value;
}

/* The n-th word behind the header. */
static uint64_t header_word(const struct gopclntab *t, int n)
{
	return word_at(bytes_of(t->data, t->len), HEADER + 8 * (uint64_t)n, 8);
}

static bool part(const struct gopclntab *t, int word, struct bytes *ret)
{
	uint64_t off = word < 0 ? 0 : header_word(t, word);

	if (off > t->len)
		return false;
	*ret = bytes_of(t->data + off, t->len - off);
	return true;
}

static size_t functab_field(const struct gopclntab *t)
{
	return t->layout->offsets ? 4 : 8;
}

static int read_header(struct gopclntab *t)
{
	uint64_t n = header_word(t, 0), size;

	t->quantum = t->data[6];
	if (!n || n > GOPCLNTAB_FUNCS_MAX || !part(t, t->layout->names, &t->names) ||
	    !part(t, t->layout->pctab, &t->pctab) || !part(t, t->layout->funcs, &t->funcs))
		return -EBADMSG;
	t->functab = t->funcs;
	if (t->layout->funcs < 0 && bytes_skip(&t->functab, HEADER + 8) < 0)
		return -EBADMSG;
	t->n = (uint32_t)n;
	size = (2 * n + 1) * functab_field(t);
	return size <= t->functab.len ? 0 : -EBADMSG;
}

static uint64_t entry_of(const struct gopclntab *t, uint32_t i)
{
	size_t field = functab_field(t);

	return t->text + word_at(t->functab, 2 * (uint64_t)i * field, field);
}

/* A search by address needs rising addresses. */
static bool sorted(const struct gopclntab *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (entry_of(t, i) > entry_of(t, i + 1))
			return false;
	return true;
}

/* --- where it is --- */

/* A position-independent executable has the address of its text in a relocation. */
static uint64_t relocated(struct elf_file *elf, uint64_t vaddr)
{
	const struct elf_section *secs;
	uint32_t n;

	if (elf_file_sections(elf, &secs, &n, NULL) < 0)
		return 0;
	for (uint32_t i = 1; i < n; i++) {
		_cleanup_(freep) uint8_t *bytes = NULL;
		Elf64_Rela rela;

		if (secs[i].type != SHT_RELA || !(secs[i].flags & SHF_ALLOC) ||
		    elf_file_read_section(elf, &secs[i], &bytes, NULL) < 0)
			continue;
		for (uint64_t at = 0; at + sizeof(rela) <= secs[i].size; at += sizeof(rela)) {
			memcpy(&rela, bytes + at, sizeof(rela));
			if (rela.r_offset == vaddr && ELF64_R_SYM(rela.r_info) == 0)
				return (uint64_t)rela.r_addend;
		}
	}
	return 0;
}

/* Function entries count from here. */
static uint64_t text_start(struct elf_file *elf, const struct gopclntab *t, uint64_t vaddr)
{
	const struct elf_section *sec;
	uint64_t text;

	if (t->layout->text < 0)
		return 0;
	text = header_word(t, t->layout->text);
	if (!text)
		text = relocated(elf, vaddr + HEADER + 8 * (uint64_t)t->layout->text);
	if (!text && elf_file_find_section(elf, ".text", &sec, NULL) == 0)
		text = sec->vaddr;
	return text;
}

static int load(struct elf_file *elf, uint64_t vaddr, uint64_t off, uint64_t len,
		struct gopclntab **ret_tab)
{
	_cleanup_(gopclntab_freep) struct gopclntab *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	if (len > ELF_SECTION_BYTES_MAX)
		len = ELF_SECTION_BYTES_MAX;
	if (len < HEADER + 8)
		return -EBADMSG;
	t->data = malloc(len);
	if (!t->data)
		return -ENOMEM;
	r = elf_file_read(elf, off, t->data, len, NULL);
	if (r < 0)
		return r;
	t->len = len;
	t->layout = layout_of(t->data);
	if (!t->layout)
		return -EOPNOTSUPP;
	r = read_header(t);
	if (r < 0)
		return r;
	t->text = text_start(elf, t, vaddr);
	if ((t->layout->text >= 0 && !t->text) || !sorted(t))
		return -EBADMSG;
	*ret_tab = TAKE_PTR(t);
	return 0;
}

static const struct elf_section *find_section(struct elf_file *elf)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const struct elf_section *sec;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_file_find_section(elf, names[i], &sec, NULL) == 0 &&
		    sec->type != SHT_NOBITS)
			return sec;
	return NULL;
}

/* The first place in [off, off + len) that reads as a table. */
static int scan(struct elf_file *elf, const struct elf_segment *seg, int *tries,
		struct gopclntab **ret_tab)
{
	_cleanup_(freep) uint8_t *buf = malloc(SCAN_WINDOW);
	uint64_t end = seg->filesz < SCAN_BYTES ? seg->filesz : SCAN_BYTES;

	if (!buf)
		return -ENOMEM;
	for (uint64_t at = 0; at < end; at += SCAN_WINDOW) {
		uint64_t len = end - at < SCAN_WINDOW ? end - at : SCAN_WINDOW;

		if (elf_file_read(elf, seg->off + at, buf, len, NULL) < 0)
			return -ENOENT;
		for (uint64_t i = 0; i + HEADER <= len; i += SCAN_STEP) {
			int r;

			if (buf[i + 3] != 0xff || !layout_of(buf + i))
				continue;
			if (!(*tries)--)
				return -EBADMSG;
			r = load(elf, seg->vaddr + at + i, seg->off + at + i, seg->filesz - at - i,
				 ret_tab);
			if (r == 0 || r == -ENOMEM)
				return r;
		}
	}
	return -ENOENT;
}

/*
 * Without section headers, and where another linker than Go's has made it part of .data.rel.ro (cgo,
 * position-independent).
 */
static int find_by_magic(struct elf_file *elf, struct gopclntab **ret_tab)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(elf, &n);
	int r = -ENOENT, tries = SCAN_TRIES;

	for (uint32_t i = 0; i < n && r == -ENOENT; i++)
		r = scan(elf, &segs[i], &tries, ret_tab);
	return r;
}

int gopclntab_open(struct elf_file *elf, struct gopclntab **ret_tab, struct err *e)
{
	const struct elf_section *secs, *sec = find_section(elf);
	uint32_t n_secs;
	int r;

	if (sec)
		r = load(elf, sec->vaddr, sec->off, sec->size, ret_tab);
	else if (elf_file_sections(elf, &secs, &n_secs, NULL) < 0 || n_secs <= 1 || elf_is_go(elf))
		r = find_by_magic(elf, ret_tab);
	else
		r = -ENOENT;
	if (r < 0)
		return err_set(e, r, "%s: %s", elf_file_name(elf),
			       r == -ENOENT       ? "no table of Go functions"
			       : r == -ENOMEM     ? "out of memory for Go's functions"
			       : r == -EOPNOTSUPP ? "Go's functions are in a form not known here"
						  : "Go's table of functions does not add up");
	return 0;
}

void gopclntab_free(struct gopclntab *tab)
{
	if (!tab)
		return;
	free(tab->data);
	free(tab);
}

bool elf_is_go(struct elf_file *elf)
{
	const struct elf_section *sec;

	return find_section(elf) || elf_file_find_section(elf, ".go.buildinfo", &sec, NULL) == 0 ||
	       elf_file_find_section(elf, ".note.go.buildid", &sec, NULL) == 0;
}

/* --- functions --- */

/* Its record, from the name's offset on; empty when it is not there. */
static struct bytes record_of(const struct gopclntab *t, uint32_t i)
{
	size_t field = functab_field(t);
	uint64_t off = word_at(t->functab, (2 * (uint64_t)i + 1) * field, field) + field;

	return off <= t->funcs.len ? bytes_of(t->funcs.data + off, t->funcs.len - off)
				   : bytes_of(NULL, 0);
}

uint32_t gopclntab_n_funcs(const struct gopclntab *tab)
{
	return tab->n;
}

struct go_func gopclntab_func(const struct gopclntab *tab, uint32_t i)
{
	struct go_func f = { entry_of(tab, i), entry_of(tab, i + 1), "" };
	struct bytes b = tab->names, name;
	uint64_t off = word_at(record_of(tab, i), 0, 4);

	if (bytes_skip(&b, off) == 0 && bytes_cstr(&b, &name) == 0)
		f.name = (const char *)name.data;
	return f;
}

int gopclntab_find_name(const struct gopclntab *tab, const char *name, uint32_t *ret_i)
{
	for (uint32_t i = 0; i < tab->n; i++)
		if (strcmp(gopclntab_func(tab, i).name, name) == 0) {
			*ret_i = i;
			return 0;
		}
	return -ENOENT;
}

int gopclntab_args(const struct gopclntab *tab, uint32_t i)
{
	struct bytes record = record_of(tab, i);
	uint64_t args;

	if (!tab->layout->offsets)
		return -EOPNOTSUPP;
	args = word_at(record, 4, 4);
	return record.len < 8 || args > INT32_MAX ? -EBADMSG : (int)args;
}

int gopclntab_find(const struct gopclntab *tab, uint64_t vaddr, uint32_t *ret_i)
{
	uint32_t lo = 0, hi = tab->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (entry_of(tab, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= entry_of(tab, lo))
		return -ENOENT;
	*ret_i = lo - 1;
	return 0;
}

int gopclntab_rows(const struct gopclntab *tab, uint32_t i, gopclntab_row_fn fn, void *arg)
{
	uint64_t pc = entry_of(tab, i), end = entry_of(tab, i + 1);
	struct bytes b = tab->pctab;
	int32_t value = -1;
	bool first = true;
	int r = 0;

	/* Records: name, args, deferreturn, pcsp. An offset of 0: no table, the stack is not used. */
	if (bytes_skip(&b, word_at(record_of(tab, i), 12, 4)) < 0)
		return 0;
	while (r == 0 && pc < end) {
		uint64_t delta, pcs;

		if (bytes_uleb(&b, &delta) < 0 || delta > UINT32_MAX || (delta == 0 && !first) ||
		    bytes_uleb(&b, &pcs) < 0 || pcs > UINT32_MAX)
			return 0;
		first = false;
		value = (int32_t)((uint32_t)value +
				  ((uint32_t)(delta >> 1) ^ (uint32_t) - (int32_t)(delta & 1)));
		pcs *= tab->quantum;
		if (pcs > end - pc)
			pcs = end - pc;
		if (pcs)
			r = fn(arg, pc, pc + pcs, value);
		pc += pcs;
	}
	return r;
}
