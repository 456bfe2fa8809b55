#include "elf/elf_plt.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	CHUNK_RELAS = 2048,       /* relocations read at a time                     */
	SLOTS_MAX = 1 << 20,      /* imported functions of one image                */
	STUB_BYTES = 16,          /* of a stub whose section does not say its size  */
	NAME_PART = 128,          /* bytes of a name that are read at a time …     */
	NAME_MAX_BYTES = 1 << 16, /* … and of the longest                       */
};

/* A word of the GOT that is bound to a symbol. */
struct slot {
	uint64_t vaddr;
	uint32_t sym;
};

struct stub {
	uint64_t vaddr;
	uint32_t len, name;
};

struct elf_plt {
	struct stub *stubs; /* by vaddr */
	uint32_t n, cap;
	char *names; /* of the stubs' functions, behind a NUL */
	uint32_t names_len, names_cap;
};

/* What is only needed while the stubs are found. */
struct plt_load {
	struct elf_file *elf;
	struct elf_plt *plt;
	const struct elf_section *dynsym, *dynstr;
	struct slot *slots; /* by vaddr */
	uint32_t n, cap;
};

static void *grow(void *list, uint32_t *cap, size_t size)
{
	uint32_t more = *cap ? *cap * 2 : 256;
	void *grown = reallocarray(list, more, size);

	if (grown)
		*cap = more;
	return grown;
}

static int compare_slots(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static int compare_stubs(const void *pa, const void *pb)
{
	const struct stub *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* --- relocations --- */

static bool binds_function(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static int read_slots(struct plt_load *l, const struct elf_section *sec)
{
	_cleanup_(freep) Elf64_Rela *buf = malloc(CHUNK_RELAS * sizeof(*buf));
	uint64_t n_relas = sec->size / sizeof(*buf);

	if (!buf)
		return -ENOMEM;
	if (sec->size > ELF_SECTION_BYTES_MAX)
		return -EFBIG;
	for (uint64_t at = 0; at < n_relas; at += CHUNK_RELAS) {
		uint64_t n = n_relas - at < CHUNK_RELAS ? n_relas - at : CHUNK_RELAS;
		int r = elf_file_read(l->elf, sec->off + at * sizeof(*buf), buf, n * sizeof(*buf),
				      NULL);

		if (r < 0)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			uint32_t sym = ELF64_R_SYM(buf[i].r_info);

			if (!sym ||
			    !binds_function(elf_file_machine(l->elf), ELF64_R_TYPE(buf[i].r_info)))
				continue;
			if (l->n == SLOTS_MAX)
				return -EFBIG;
			if (l->n == l->cap) {
				struct slot *slots = grow(l->slots, &l->cap, sizeof(*slots));

				if (!slots)
					return -ENOMEM;
				l->slots = slots;
			}
			l->slots[l->n++] = (struct slot){ buf[i].r_offset, sym };
		}
	}
	return 0;
}

static bool names_room(struct elf_plt *plt, uint32_t bytes)
{
	uint32_t cap = plt->names_cap;
	char *names;

	if (plt->names_len + bytes <= cap)
		return true;
	cap = 2 * cap + bytes;
	names = cap < 1u << 30 ? realloc(plt->names, cap) : NULL;
	if (!names)
		return false;
	plt->names = names;
	plt->names_cap = cap;
	return true;
}

/* The name at `at` in .dynstr, into plt->names; 0: it has none. All of a large program's are not read for the few that it imports. */
static uint32_t keep_name(const struct plt_load *l, uint64_t at)
{
	struct elf_plt *plt = l->plt;
	uint32_t name = plt->names_len, len = 0;

	while (len < NAME_MAX_BYTES && at + len < l->dynstr->size) {
		uint64_t rest = l->dynstr->size - at - len;
		uint32_t part = rest < NAME_PART ? (uint32_t)rest : NAME_PART;
		const char *end;
		char *to;

		plt->names_len = name + len;
		if (!names_room(plt, part))
			break;
		to = plt->names + name + len;
		if (elf_file_read(l->elf, l->dynstr->off + at + len, to, part, NULL) < 0)
			break;
		end = memchr(to, 0, part);
		len += end ? (uint32_t)(end - to) : part;
		if (!end)
			continue;
		plt->names_len = len ? name + len + 1 : name;
		return len ? name : 0;
	}
	plt->names_len = name;
	return 0;
}

/* The name of a symbol as an offset into plt->names; 0 when it has none. */
static uint32_t name_of(const struct plt_load *l, uint32_t sym)
{
	Elf64_Sym s;

	if (sym >= l->dynsym->size / sizeof(s) ||
	    elf_file_read(l->elf, l->dynsym->off + sym * sizeof(s), &s, sizeof(s), NULL) < 0)
		return 0;
	return s.st_name ? keep_name(l, s.st_name) : 0;
}

/* --- stubs --- */

static int add_stub(struct plt_load *l, uint64_t vaddr, uint32_t len, uint64_t slot_vaddr)
{
	struct slot key = { .vaddr = slot_vaddr };
	const struct slot *slot = bsearch(&key, l->slots, l->n, sizeof(key), compare_slots);
	uint32_t name = slot ? name_of(l, slot->sym) : 0;

	if (!name)
		return 0;
	if (l->plt->n == l->plt->cap) {
		struct stub *stubs = grow(l->plt->stubs, &l->plt->cap, sizeof(*stubs));

		if (!stubs)
			return -ENOMEM;
		l->plt->stubs = stubs;
	}
	l->plt->stubs[l->plt->n++] = (struct stub){ vaddr, len, name };
	return 0;
}

/* A stub holds one `jmp *disp32(%rip)` (ff 25), behind an endbr64 and a bnd prefix perhaps. */
static int decode_x86(struct plt_load *l, const struct elf_section *sec, const uint8_t *code)
{
	uint32_t len =
		sec->entsize == 8 || sec->entsize == 16 ? (uint32_t)sec->entsize : STUB_BYTES;

	for (uint64_t at = 0; at + len <= sec->size; at += len) {
		for (uint32_t i = 0; i + 6 <= len; i++) {
			int32_t disp;
			int r;

			if (code[at + i] != 0xff || code[at + i + 1] != 0x25)
				continue;
			memcpy(&disp, code + at + i + 2, sizeof(disp));
			r = add_stub(l, sec->vaddr + at, len,
				     sec->vaddr + at + i + 6 + (uint64_t)(int64_t)disp);
			if (r < 0)
				return r;
			break;
		}
	}
	return 0;
}

/* adrp x16, page; ldr x17, [x16, #offset]; add; br x17: 16 bytes, behind a bti perhaps. */
static int decode_arm64(struct plt_load *l, const struct elf_section *sec, const uint8_t *code)
{
	for (uint64_t at = 0; at + STUB_BYTES <= sec->size; at += 4) {
		uint64_t pc = sec->vaddr + at, page;
		uint32_t adrp, ldr;
		int32_t imm;
		int r;

		memcpy(&adrp, code + at, sizeof(adrp));
		memcpy(&ldr, code + at + 4, sizeof(ldr));
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		/* 21 bits, signed: 19 high ones and 2 low ones. */
		imm = (int32_t)(((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3)) << 11) >> 11;
		page = (pc & ~0xfffull) + (uint64_t)((int64_t)imm * 4096);
		r = add_stub(l, pc, STUB_BYTES, page + (ldr >> 10 & 0xfff) * 8);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_stubs(struct plt_load *l, const struct elf_section *sec)
{
	_cleanup_(freep) uint8_t *code = NULL;
	int r = elf_file_read_section(l->elf, sec, &code, NULL);

	if (r < 0)
		return r;
	return elf_file_machine(l->elf) == EM_X86_64 ? decode_x86(l, sec, code)
						     : decode_arm64(l, sec, code);
}

static int load(struct plt_load *l, const struct elf_section *secs, uint32_t n_secs)
{
	int r;

	for (uint32_t i = 1; i < n_secs && !l->dynsym; i++)
		if (secs[i].type == SHT_DYNSYM && secs[i].link < n_secs)
			l->dynsym = &secs[i];
	if (!l->dynsym)
		return -ENOENT;
	l->dynstr = &secs[l->dynsym->link];
	l->plt->names = calloc(1, NAME_PART);
	if (!l->plt->names)
		return -ENOMEM;
	l->plt->names_len = 1;
	l->plt->names_cap = NAME_PART;
	r = l->dynstr->type == SHT_STRTAB ? 0 : -ENOENT;
	for (uint32_t i = 1; i < n_secs && r >= 0; i++)
		if (secs[i].type == SHT_RELA && (secs[i].flags & SHF_ALLOC))
			r = read_slots(l, &secs[i]);
	if (r < 0 || !l->n)
		return r < 0 ? r : -ENOENT;
	qsort(l->slots, l->n, sizeof(*l->slots), compare_slots);
	for (uint32_t i = 1; i < n_secs && r >= 0; i++)
		if ((secs[i].flags & SHF_EXECINSTR) && !strncmp(secs[i].name, ".plt", 4))
			r = read_stubs(l, &secs[i]);
	if (r < 0 || !l->plt->n)
		return r < 0 ? r : -ENOENT;
	qsort(l->plt->stubs, l->plt->n, sizeof(*l->plt->stubs), compare_stubs);
	return 0;
}

int elf_plt_load(struct elf_file *elf, struct elf_plt **ret_plt, struct err *e)
{
	_cleanup_(elf_plt_freep) struct elf_plt *plt = calloc(1, sizeof(*plt));
	struct plt_load l = { .elf = elf, .plt = plt };
	const struct elf_section *secs;
	uint32_t n_secs;
	int r;

	if (!plt)
		return err_set(e, -ENOMEM, "%s: out of memory", elf_file_name(elf));
	if (!elf_file_is64(elf) ||
	    (elf_file_machine(elf) != EM_X86_64 && elf_file_machine(elf) != EM_AARCH64))
		return err_set(e, -ENOENT, "%s: its PLT is of another machine", elf_file_name(elf));
	r = elf_file_sections(elf, &secs, &n_secs, e);
	if (r < 0)
		return r;
	r = load(&l, secs, n_secs);
	free(l.slots);
	if (r < 0)
		return err_set(e, r, "%s: no PLT stub whose function is known", elf_file_name(elf));
	*ret_plt = TAKE_PTR(plt);
	return 0;
}

void elf_plt_free(struct elf_plt *plt)
{
	if (!plt)
		return;
	free(plt->stubs);
	free(plt->names);
	free(plt);
}

const char *elf_plt_find(const struct elf_plt *plt, uint64_t vaddr)
{
	uint32_t lo = 0, hi = plt->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (plt->stubs[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || vaddr - plt->stubs[lo - 1].vaddr >= plt->stubs[lo - 1].len)
		return NULL;
	return plt->names + plt->stubs[lo - 1].name;
}
