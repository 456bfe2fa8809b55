/*
 * The symbols of a hostile file against libelf: the tables' rows and names are the input's, in an image that is well-formed for the
 * rest. Of the same rows libelf's are sifted by what elf_syms.h calls a function; both then have the same names at the same addresses,
 * an address within a typed, sized symbol is found, and what is found there covers it. Variables (elf_objects.h) and single names
 * (elf_exports.h) are looked up in the same tables.
 *
 * They may differ where names that are parts of each other come to 16 times the bytes of the table: more of them are not read
 * (elf_syms_parts.h), and nothing is compared. A name that no NUL ends, which libelf refuses, is not made.
 *
 *   input:  { name:2  info:1  section:1  value:2  size:2 } … of .symtab and .dynsym in turn, half of the input  names, the other half
 */
#include "base/bytes.h"
#include "base/cleanup.h"
#include "elf/demangle.h"
#include "elf/elf_exports.h"
#include "elf/elf_objects.h"
#include "elf/elf_syms.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NULL_SECTION,
	TEXT,
	INIT, /* code, right behind it */
	DATA,
	SYMTAB,
	DYNSYM,
	STRTAB,
	SHSTRTAB,
	N_SECTIONS
};
enum {
	VADDR = 0x10000,
	TEXT_LEN = 0x400,
	INIT_LEN = 0x100,
	DATA_LEN = 0x200,
	ALL_LEN = TEXT_LEN + INIT_LEN + DATA_LEN,
	NAMES_MAX = 1 << 12,
	SYMS_MAX = 128,
};

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr load;
	uint8_t bytes[ALL_LEN];
	Elf64_Sym syms[2][SYMS_MAX];
	char names[NAMES_MAX], section_names[64];
	Elf64_Shdr sections[N_SECTIONS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Elf64_Sym next_sym(struct bytes *in)
{
	uint16_t name = 0, value = 0, size = 0;
	uint8_t info = 0, section = 0;

	bytes_u16(in, &name);
	bytes_u8(in, &info);
	bytes_u8(in, &section);
	bytes_u16(in, &value);
	bytes_u16(in, &size);
	return (Elf64_Sym){ .st_name = name % (NAMES_MAX + 16),
			    .st_info = info,
			    .st_shndx =
				    section < 0xf0 ? section % (N_SECTIONS + 1) : 0xff00 + section,
			    .st_value = VADDR + value % (ALL_LEN + 64),
			    .st_size = size % (2 * ALL_LEN) };
}

static void make_sections(struct image *im, const uint32_t n[2], uint64_t names_len)
{
	static const char names[] = "\0.text\0.init\0.data\0.symtab\0.dynsym\0.strtab\0.shstrtab";
	static const uint8_t at[N_SECTIONS] = { 0, 1, 7, 13, 19, 27, 35, 43 };
	const uint64_t exec = SHF_ALLOC | SHF_EXECINSTR, bytes = offsetof(struct image, bytes);

	memcpy(im->section_names, names, sizeof(names));
	im->sections[TEXT] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					   .sh_flags = exec,
					   .sh_addr = VADDR,
					   .sh_offset = bytes,
					   .sh_size = TEXT_LEN };
	im->sections[INIT] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					   .sh_flags = exec,
					   .sh_addr = VADDR + TEXT_LEN,
					   .sh_offset = bytes + TEXT_LEN,
					   .sh_size = INIT_LEN };
	im->sections[DATA] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					   .sh_flags = SHF_ALLOC | SHF_WRITE,
					   .sh_addr = VADDR + TEXT_LEN + INIT_LEN,
					   .sh_offset = bytes + TEXT_LEN + INIT_LEN,
					   .sh_size = DATA_LEN };
	for (int t = 0; t < 2; t++)
		im->sections[SYMTAB + t] = (Elf64_Shdr){
			.sh_type = t ? SHT_DYNSYM : SHT_SYMTAB,
			.sh_offset = offsetof(struct image, syms[t]),
			.sh_size = n[t] * sizeof(Elf64_Sym),
			.sh_link = STRTAB,
			.sh_entsize = sizeof(Elf64_Sym),
		};
	im->sections[STRTAB] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					     .sh_offset = offsetof(struct image, names),
					     .sh_size = names_len };
	im->sections[SHSTRTAB] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					       .sh_offset = offsetof(struct image, section_names),
					       .sh_size = sizeof(names) };
	for (int i = 0; i < N_SECTIONS; i++)
		im->sections[i].sh_name = at[i];
}

static void make_image(struct image *im, struct bytes in)
{
	uint32_t n[2] = { 1, 1 };
	struct bytes rows;
	uint64_t len;

	memset(im, 0, sizeof(*im));
	bytes_take(&in, in.len / 2, &rows);
	for (int t = 0; rows.len && n[t] < SYMS_MAX; t = !t)
		im->syms[t][n[t]++] = next_sym(&rows);
	len = in.len < NAMES_MAX - 1 ? in.len : NAMES_MAX - 1;
	memcpy(im->names, in.data, len);
	make_sections(im, n, len + 1);
	im->load = (Elf64_Phdr){ .p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_offset = offsetof(struct image, bytes),
				 .p_vaddr = VADDR,
				 .p_filesz = ALL_LEN,
				 .p_memsz = ALL_LEN };
	im->head = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					      EV_CURRENT },
				 .e_type = ET_DYN,
				 .e_machine = EM_X86_64,
				 .e_version = EV_CURRENT,
				 .e_phoff = offsetof(struct image, load),
				 .e_shoff = offsetof(struct image, sections),
				 .e_ehsize = sizeof(Elf64_Ehdr),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 1,
				 .e_shentsize = sizeof(Elf64_Shdr),
				 .e_shnum = N_SECTIONS,
				 .e_shstrndx = SHSTRTAB };
}

/* --- libelf's --- */

struct row {
	const char *name;
	size_t len; /* without its version */
	uint64_t vaddr, size, end;
	uint8_t type, table;
	uint16_t section;
};

/* What elf_syms.h says a function is. */
static bool is_function(const struct row *r)
{
	bool code = r->section == TEXT || r->section == INIT;
	uint64_t begin = r->section == INIT ? VADDR + TEXT_LEN : VADDR;

	if (!code || r->vaddr < begin || r->vaddr >= r->end || !r->len || r->name[0] == '$' ||
	    (r->name[0] == '.' && r->name[1] == 'L'))
		return false;
	if (r->type == STT_OBJECT)
		return r->len > 5 && !memcmp(r->name + r->len - 5, "_info", 5);
	return r->type == STT_FUNC || r->type == STT_GNU_IFUNC || r->type == STT_NOTYPE;
}

static uint32_t read_rows(Elf *elf, struct row *rows)
{
	uint32_t n = 0;

	for (int t = 0; t < 2; t++) {
		Elf_Data *data = elf_getdata(elf_getscn(elf, (size_t)(SYMTAB + t)), NULL);
		GElf_Sym s;

		for (int i = 0; data && gelf_getsym(data, i, &s); i++) {
			const char *name = elf_strptr(elf, STRTAB, s.st_name);
			struct row *r = &rows[n];

			*r = (struct row){ .name = name,
					   .vaddr = s.st_value,
					   .size = s.st_size,
					   .end = VADDR + TEXT_LEN,
					   .type = GELF_ST_TYPE(s.st_info),
					   .table = (uint8_t)t,
					   .section = s.st_shndx };
			if (!name)
				continue;
			r->len = *name ? 1 + strcspn(name + 1, "@") : 0;
			if (r->section == INIT)
				r->end += INIT_LEN;
			n++;
		}
	}
	return n;
}

static bool are_read(const struct row *rows, uint32_t n, uint64_t names_len)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += rows[i].len;
	return bytes <= 16 * names_len;
}

/* --- the comparison --- */

#define same(is) ((is) ? (void)0 : differs(#is, __LINE__))

static void differs(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	abort();
}

static bool is_among(const struct row *rows, uint32_t n, const struct elf_sym *s)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_function(&rows[i]) && rows[i].vaddr == s->vaddr &&
		    rows[i].len == s->name_len && !memcmp(rows[i].name, s->name, s->name_len))
			return true;
	return false;
}

/* Of several of one name at one address the preferred one counts, whatever the others' sizes. */
static bool is_alone(const struct row *rows, uint32_t n, const struct row *r)
{
	uint32_t same_name = 0;

	for (uint32_t i = 0; i < n; i++)
		same_name += is_function(&rows[i]) && rows[i].vaddr == r->vaddr &&
			     rows[i].len == r->len && !memcmp(rows[i].name, r->name, r->len);
	return same_name == 1;
}

static void check_row(struct elf_syms *syms, const struct row *rows, uint32_t n_rows,
		      const struct row *r)
{
	struct elf_sym found[2 * SYMS_MAX], at;
	uint64_t size = r->end - r->vaddr;
	char name[NAMES_MAX];
	bool has = false;
	int n;

	memcpy(name, r->name, r->len);
	name[r->len] = '\0';
	n = elf_syms_find_name(syms, name, found, 2 * SYMS_MAX);
	for (int i = 0; i < n; i++) {
		has |= found[i].vaddr == r->vaddr;
		same(!i || found[i].vaddr > found[i - 1].vaddr);
	}
	same(has);
	if (r->type == STT_NOTYPE || !r->size)
		return;
	same(elf_syms_find(syms, r->vaddr, &at) == 0 && at.vaddr == r->vaddr);
	if (r->size < size)
		size = r->size;
	if (is_alone(rows, n_rows, r))
		same(elf_syms_find(syms, r->vaddr + size - 1, &at) == 0);
}

static void check_functions(struct elf_file *elf, const struct row *rows, uint32_t n)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	uint32_t functions = 0;
	int r = elf_syms_load(elf, &syms, NULL);

	for (uint32_t i = 0; i < n; i++)
		functions += is_function(&rows[i]);
	same((r == 0) == (functions > 0));
	for (uint32_t i = 0; r == 0 && i < n; i++)
		if (is_function(&rows[i]))
			check_row(syms, rows, n, &rows[i]);
	for (uint32_t i = 0; r == 0 && i < elf_syms_count(syms); i++) {
		struct elf_sym s = elf_syms_at(syms, i);

		same(is_among(rows, n, &s));
	}
	for (uint64_t vaddr = VADDR - 8; r == 0 && vaddr < VADDR + ALL_LEN; vaddr += 8) {
		struct elf_sym s;

		same(elf_syms_find(syms, vaddr, &s) < 0 ||
		     (s.vaddr <= vaddr && vaddr - s.vaddr < s.size && is_among(rows, n, &s)));
	}
}

/* The first row of .dynsym that defines the name. */
static const struct row *first_export(const struct row *rows, uint32_t n, const char *name,
				      bool tls)
{
	for (uint32_t i = 0; i < n; i++)
		if (rows[i].table == 1 && rows[i].section != SHN_UNDEF &&
		    (rows[i].type == STT_TLS) == tls && (tls || rows[i].vaddr) &&
		    rows[i].type != STT_SECTION && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static void check_exports(struct elf_file *elf, const struct row *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < 16; i++) {
		const char *name = rows[i].name;
		const struct row *first, *tls;
		struct elf_export sym;

		if (strlen(name) > ELF_EXPORTS_NAME_MAX)
			continue;
		first = first_export(rows, n, name, false);
		tls = first_export(rows, n, name, true);
		same(elf_export_find(elf, name, &sym, NULL) == (first ? 0 : -ENOENT));
		same(!first || (sym.vaddr == first->vaddr && sym.size == first->size &&
				sym.type == first->type));
		same(elf_export_find_tls(elf, name, &sym, NULL) == (tls ? 0 : -ENOENT));
		same(!tls || sym.vaddr == tls->vaddr);
	}
}

/* As people have it: its plain name, or its begin. */
static bool is_shown_as(const char *symbol, const char *name)
{
	char plain[DEMANGLE_OUT_MAX];
	size_t len = strlen(symbol);

	if (len < DEMANGLE_IN_MAX && demangle(symbol, len, plain))
		symbol = plain;
	return strncmp(symbol, name, ELF_VARIABLE_NAME_MAX) == 0 &&
	       strlen(name) <= ELF_VARIABLE_NAME_MAX;
}

static void check_variables(struct elf_file *elf, const struct row *rows, uint32_t n)
{
	_cleanup_(elf_variables_freep) struct elf_variables *v = NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (elf_variables_put(elf, &b) < 0)
		return;
	same(elf_variables_take(bytes_of(b.s, b.len), &v) == 0);
	for (uint64_t vaddr = VADDR; vaddr < VADDR + ALL_LEN; vaddr += 16) {
		const char *name;
		bool is = false;
		uint64_t off;

		if (elf_variables_at(v, vaddr, &name, &off) < 0)
			continue;
		for (uint32_t i = 0; i < n && !is; i++)
			is = rows[i].vaddr == vaddr - off && off < rows[i].size &&
			     is_shown_as(rows[i].name, name);
		same(is);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static struct row rows[2 * SYMS_MAX];
	static struct image im;
	uint32_t n;
	Elf *other;

	make_image(&im, bytes_of(data, size));
	if (elf_file_open_memory(&im, sizeof(im), "input", &elf, NULL) < 0)
		abort();
	elf_version(EV_CURRENT);
	other = elf_memory((char *)&im, sizeof(im));
	n = read_rows(other, rows);
	if (are_read(rows, n, im.sections[STRTAB].sh_size))
		check_functions(elf, rows, n);
	check_exports(elf, rows, n);
	check_variables(elf, rows, n);
	elf_end(other);
	return 0;
}
