#include "elf/cfi.h"
#include "base/grow.h"
#include "elf/cfi_program.h"
#include "elf/inflate.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NO_ID UINT64_MAX

enum { N_FRAMES = 2, EXEC_RANGES_MAX = 64 };

/* A section of frames in memory. */
struct frames {
	uint8_t *data;
	size_t len;
	struct cfi_bases bases;
	bool eh; /* .eh_frame, else .debug_frame */
	uint32_t first_cie, n_cies;
};

struct cie {
	uint32_t off; /* of the entry in its section */
	uint32_t insns, insns_len;
	uint32_t code_align;
	int32_t data_align;
	uint8_t ra_reg;
	uint8_t enc;        /* of the pointers in its FDEs */
	bool signal, sized; /* sized: FDEs have augmentation data, with its length */
	bool lands;
	bool usable;
};

struct fde {
	uint64_t start, end;
	uint32_t insns, insns_len;
	uint32_t cie;
	uint32_t frames : 1, order : 31; /* order: as in the file */
};

struct range {
	uint64_t start, end;
};

struct cfi {
	struct frames frames[N_FRAMES];
	uint32_t n_frames;
	struct cie *cies;
	uint32_t n_cies, cap_cies;
	struct fde *fdes;
	uint32_t n_fdes, cap_fdes;
	struct range exec[EXEC_RANGES_MAX];
	uint32_t n_exec;
	struct cfi_counts counts;
};

/* One CIE or FDE, its length field read. */
struct entry {
	uint64_t off;      /* of the entry                            */
	uint64_t cie;      /* offset of its CIE; NO_ID: it is one     */
	struct bytes body; /* behind the id                      */
};

/* --- entries --- */

static uint64_t off_of(const struct frames *f, const struct bytes *b)
{
	return (uint64_t)(b->data - f->data);
}

/* 1: an entry; 0: the end, or nothing that could be one follows. */
static int next_entry(const struct frames *f, struct bytes *b, struct entry *ret)
{
	uint64_t len, id, id_off;
	uint32_t u32;
	bool wide;

	do {
		ret->off = off_of(f, b);
		if (bytes_u32(b, &u32) < 0)
			return 0;
		/* A terminator; objects linked by hand have one each. */
	} while (u32 == 0 && b->len);
	len = u32;
	wide = u32 == UINT32_MAX;
	if (wide && bytes_u64(b, &len) < 0)
		return 0;
	if (len == 0 || (!wide && u32 >= 0xfffffff0) || bytes_take(b, len, &ret->body) < 0)
		return 0;
	id_off = off_of(f, &ret->body);
	if (wide && !f->eh) {
		if (bytes_u64(&ret->body, &id) < 0)
			return 0;
		ret->cie = id == UINT64_MAX ? NO_ID : id;
		return 1;
	}
	if (bytes_u32(&ret->body, &u32) < 0)
		return 0;
	if (f->eh)
		ret->cie = u32 == 0 ? NO_ID : u32 <= id_off ? id_off - u32 : NO_ID - 1;
	else
		ret->cie = u32 == UINT32_MAX ? NO_ID : u32;
	return 1;
}

/* The letters behind 'z', with what each has in the augmentation data. */
static int read_augmentation(const struct frames *f, struct bytes letters, struct bytes data,
			     struct cie *cie)
{
	uint8_t letter, enc;

	while (bytes_u8(&letters, &letter) == 0) {
		switch (letter) {
		case 'R':
			if (bytes_u8(&data, &cie->enc) < 0)
				return -EBADMSG;
			break;
		case 'P':
			if (bytes_u8(&data, &enc) < 0 ||
			    cfi_skip_pointer(&data, &f->bases, enc) < 0)
				return -EBADMSG;
			cie->lands = true;
			break;
		case 'L':
			if (bytes_u8(&data, &enc) < 0)
				return -EBADMSG;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: signed with the B key   */
		case 'G': /* arm64: frames with memory tags */
			break;
		default:
			/* What follows cannot be decoded; the data's length is known. */
			return 0;
		}
	}
	return 0;
}

static int read_cie(const struct frames *f, struct bytes b, struct cie *cie)
{
	uint64_t code_align, ra, len;
	uint8_t version, u8, segment;
	int64_t data_align;
	struct bytes letters, data;

	if (bytes_u8(&b, &version) < 0 || (version != 1 && version != 3 && version != 4) ||
	    bytes_cstr(&b, &letters) < 0)
		return -EBADMSG;
	if (letters.len >= 2 && !memcmp(letters.data, "eh", 2)) { /* GCC 2: one pointer */
		if (bytes_skip(&b, 8) < 0)
			return -EBADMSG;
		bytes_skip(&letters, 2);
	}
	if (version == 4 &&
	    (bytes_u8(&b, &u8) < 0 || bytes_u8(&b, &segment) < 0 || u8 != 8 || segment != 0))
		return -EBADMSG;
	if (bytes_uleb(&b, &code_align) < 0 || bytes_sleb(&b, &data_align) < 0)
		return -EBADMSG;
	if (version == 1) {
		if (bytes_u8(&b, &u8) < 0)
			return -EBADMSG;
		ra = u8;
	} else if (bytes_uleb(&b, &ra) < 0) {
		return -EBADMSG;
	}
	if (code_align > UINT32_MAX || data_align != (int32_t)data_align || ra >= CFI_N_REGS)
		return -EBADMSG;
	cie->code_align = (uint32_t)code_align;
	cie->data_align = (int32_t)data_align;
	cie->ra_reg = (uint8_t)ra;
	if (letters.len) {
		if (letters.data[0] != 'z' || bytes_uleb(&b, &len) < 0 ||
		    bytes_take(&b, len, &data) < 0)
			return -EBADMSG;
		cie->sized = true;
		bytes_skip(&letters, 1);
		if (read_augmentation(f, letters, data, cie) < 0)
			return -EBADMSG;
	}
	cie->insns = (uint32_t)off_of(f, &b);
	cie->insns_len = (uint32_t)b.len;
	cie->usable = true;
	return 0;
}

static int add_cie(struct cfi *cfi, const struct frames *f, const struct entry *entry)
{
	struct cie cie = { .off = (uint32_t)entry->off, .enc = DW_EH_PE_absptr };

	if (cfi->n_cies == CFI_CIES_MAX)
		return -EFBIG;
	if (!GROW(cfi->cies, cfi->n_cies, cfi->cap_cies))
		return -ENOMEM;
	/* One that cannot be read is kept, so that its FDEs are known to be lost. */
	if (read_cie(f, entry->body, &cie) < 0)
		cfi->counts.bad++;
	cfi->cies[cfi->n_cies++] = cie;
	cfi->counts.cies++;
	return 0;
}

/* CIEs are in the order of the file. */
static const struct cie *find_cie(const struct cfi *cfi, const struct frames *f, uint64_t off)
{
	const struct cie *cies;
	uint32_t lo = 0, hi = f->n_cies;

	if (!hi)
		return NULL;
	cies = cfi->cies + f->first_cie;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (cies[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->n_cies && cies[lo].off == off ? &cies[lo] : NULL;
}

static int read_fde(const struct cfi *cfi, const struct frames *f, const struct entry *entry,
		    struct fde *ret)
{
	const struct cie *cie = find_cie(cfi, f, entry->cie);
	struct bytes b = entry->body;
	uint64_t start, size, len;
	int r;

	if (!cie || !cie->usable)
		return -EBADMSG;
	r = cfi_pointer(&b, &f->bases, cie->enc, &start);
	if (r < 0)
		return r;
	r = cfi_pointer(&b, &f->bases, cie->enc & 0x0f, &size);
	if (r < 0)
		return r;
	if (cie->sized && (bytes_uleb(&b, &len) < 0 || bytes_skip(&b, len) < 0))
		return -EBADMSG;
	if (__builtin_add_overflow(start, size, &ret->end))
		return -EBADMSG;
	ret->start = start;
	ret->insns = (uint32_t)off_of(f, &b);
	ret->insns_len = (uint32_t)b.len;
	ret->cie = (uint32_t)(cie - cfi->cies);
	ret->frames = (uint32_t)(f - cfi->frames);
	return 0;
}

/* --- the index --- */

/* Cut to the executable segment it begins in. */
static bool in_code(const struct cfi *cfi, struct fde *fde)
{
	for (uint32_t i = 0; i < cfi->n_exec; i++) {
		const struct range *x = &cfi->exec[i];

		if (fde->start < x->start || fde->start >= x->end)
			continue;
		if (fde->end > x->end)
			fde->end = x->end;
		return fde->start < fde->end;
	}
	return false;
}

static int add_fde(struct cfi *cfi, const struct fde *fde)
{
	if (cfi->n_fdes == CFI_FDES_MAX)
		return -EFBIG;
	if (!GROW(cfi->fdes, cfi->n_fdes, cfi->cap_fdes))
		return -ENOMEM;
	cfi->fdes[cfi->n_fdes] = *fde;
	cfi->fdes[cfi->n_fdes].order = cfi->n_fdes;
	cfi->n_fdes++;
	return 0;
}

/* CIEs first: nothing says that one comes before the FDEs that use it. */
static int index_cies(struct cfi *cfi, struct frames *f)
{
	struct bytes b = bytes_of(f->data, f->len);
	struct entry entry;
	int r = 0;

	f->first_cie = cfi->n_cies;
	while (r == 0 && next_entry(f, &b, &entry))
		if (entry.cie == NO_ID)
			r = add_cie(cfi, f, &entry);
	f->n_cies = cfi->n_cies - f->first_cie;
	return r;
}

static int index_fdes(struct cfi *cfi, const struct frames *f)
{
	struct bytes b = bytes_of(f->data, f->len);
	struct entry entry;
	int r = 0;

	while (r == 0 && next_entry(f, &b, &entry)) {
		struct fde fde = { 0 };

		if (entry.cie == NO_ID)
			continue;
		cfi->counts.fdes++;
		if (read_fde(cfi, f, &entry, &fde) < 0)
			cfi->counts.bad++;
		else if (!in_code(cfi, &fde))
			cfi->counts.outside++;
		else
			r = add_fde(cfi, &fde);
	}
	return r;
}

static int compare_fdes(const void *pa, const void *pb)
{
	const struct fde *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static void sort_fdes(struct cfi *cfi)
{
	bool sorted = true;

	for (uint32_t i = 1; i < cfi->n_fdes && sorted; i++)
		sorted = compare_fdes(&cfi->fdes[i - 1], &cfi->fdes[i]) < 0;
	if (!sorted)
		qsort(cfi->fdes, cfi->n_fdes, sizeof(*cfi->fdes), compare_fdes);
}

static void cut_overlaps(struct cfi *cfi)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cfi->n_fdes; i++) {
		struct fde *last = n ? &cfi->fdes[n - 1] : NULL;

		if (last && last->start == cfi->fdes[i].start) {
			cfi->counts.overlaps++;
			continue;
		}
		if (last && last->end > cfi->fdes[i].start) {
			cfi->counts.overlaps++;
			last->end = cfi->fdes[i].start;
		}
		cfi->fdes[n++] = cfi->fdes[i];
	}
	cfi->n_fdes = n;
}

/* Of the FDEs behind the first `n`, sorted and without overlaps, those that meet none of these. */
static void drop_covered(struct cfi *cfi, uint32_t n)
{
	uint32_t kept = n;

	for (uint32_t i = n; i < cfi->n_fdes; i++) {
		const struct fde *fde = &cfi->fdes[i];
		uint32_t lo = 0, hi = n;

		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (cfi->fdes[mid].end <= fde->start)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < n && cfi->fdes[lo].start < fde->end)
			continue;
		cfi->fdes[kept++] = *fde;
	}
	cfi->n_fdes = kept;
}

static int add_frames(struct cfi *cfi, struct frames *f)
{
	uint32_t n = cfi->n_fdes;
	int r;

	if (f->len > UINT32_MAX)
		return -EFBIG;
	r = index_cies(cfi, f);
	if (r == 0)
		r = index_fdes(cfi, f);
	if (r < 0)
		return r;
	if (n)
		drop_covered(cfi, n);
	sort_fdes(cfi);
	cut_overlaps(cfi);
	return 0;
}

/* --- where the bytes are --- */

static uint64_t section_vaddr(struct elf_file *elf, const char *name)
{
	const struct elf_section *sec;

	return elf_file_find_section(elf, name, &sec, NULL) == 0 ? sec->vaddr : 0;
}

static void set_bases(struct elf_file *elf, struct frames *f, uint64_t vaddr)
{
	f->bases = (struct cfi_bases){
		.data = f->data,
		.vaddr = vaddr,
		.text = section_vaddr(elf, ".text"),
		.got = section_vaddr(elf, ".got.plt"),
	};
	if (!f->bases.got)
		f->bases.got = section_vaddr(elf, ".got");
}

/* -ENOENT: there is no such section with bytes in it. */
static int read_section(struct elf_file *elf, const char *name, struct frames *f, struct err *e)
{
	const struct elf_section *sec;
	int r = elf_file_find_section(elf, name, &sec, e);

	if (r < 0)
		return r;
	if (sec->type == SHT_NOBITS || !sec->size)
		return -ENOENT;
	r = elf_inflate_section(elf, sec, &f->data, &f->len, e);
	if (r < 0)
		return r;
	set_bases(elf, f, sec->vaddr);
	return 0;
}

/*
 * .eh_frame_hdr: version:1 eh_frame_ptr_enc:1 fde_count_enc:1 table_enc:1 eh_frame_ptr …
 * How long .eh_frame is, it does not say: up to the terminator, at most to the segment's end.
 */
static int read_by_header(struct elf_file *elf, struct frames *f, struct err *e)
{
	const struct elf_segment *segs;
	uint64_t hdr_vaddr, off, start;
	uint8_t hdr[4 + 8];
	struct bytes b = bytes_of(hdr + 4, sizeof(hdr) - 4);
	struct cfi_bases bases = { .data = hdr };
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	hdr_vaddr = elf_file_eh_frame_hdr(elf);
	if (!hdr_vaddr || !elf_segments_vaddr_to_off(segs, n, hdr_vaddr, &off) ||
	    elf_file_read(elf, off, hdr, sizeof(hdr), NULL) < 0 || hdr[0] != 1)
		return -ENOENT;
	bases.vaddr = bases.got = hdr_vaddr;
	if (cfi_pointer(&b, &bases, hdr[1], &start) < 0)
		return -ENOENT;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t len;

		if (start < segs[i].vaddr || start - segs[i].vaddr >= segs[i].filesz)
			continue;
		off = segs[i].off + (start - segs[i].vaddr);
		len = segs[i].filesz - (start - segs[i].vaddr);
		if (len > ELF_SECTION_BYTES_MAX)
			len = ELF_SECTION_BYTES_MAX;
		f->data = malloc(len);
		if (!f->data)
			return err_set(e, -ENOMEM, "%s: out of memory for .eh_frame",
				       elf_file_name(elf));
		f->len = len;
		set_bases(elf, f, start);
		return elf_file_read(elf, off, f->data, len, e);
	}
	return -ENOENT;
}

/* What follows the terminator is something else. */
static void cut_at_terminator(struct frames *f)
{
	struct bytes b = bytes_of(f->data, f->len), body;
	uint64_t len;
	uint32_t u32;

	while (bytes_u32(&b, &u32) == 0 && u32 != 0) {
		len = u32;
		if (u32 == UINT32_MAX && bytes_u64(&b, &len) < 0)
			break;
		if (bytes_take(&b, len, &body) < 0)
			break;
	}
	f->len = off_of(f, &b);
}

static int read_eh_frame(struct elf_file *elf, struct frames *f, struct err *e)
{
	int r = read_section(elf, ".eh_frame", f, e);

	f->eh = true;
	if (r != -ENOENT)
		return r;
	r = read_by_header(elf, f, e);
	if (r == 0)
		cut_at_terminator(f);
	return r;
}

static int read_debug_frame(struct elf_file *elf, struct frames *f, struct err *e)
{
	int r = read_section(elf, ".debug_frame", f, e);

	if (r == -ENOENT)
		r = read_section(elf, ".zdebug_frame", f, e);
	return r;
}

static void note_code(struct cfi *cfi, const struct elf_file *elf)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(elf, &n);

	for (uint32_t i = 0; i < n && cfi->n_exec < EXEC_RANGES_MAX; i++)
		if (segs[i].flags & 1 /* PF_X */)
			cfi->exec[cfi->n_exec++] =
				(struct range){ segs[i].vaddr, segs[i].vaddr + segs[i].memsz };
}

static int add_source(struct cfi *cfi, struct elf_file *elf,
		      int (*read)(struct elf_file *, struct frames *, struct err *), struct err *e)
{
	struct frames *f = &cfi->frames[cfi->n_frames];
	int r = read(elf, f, e);

	if (r < 0) {
		free(f->data);
		*f = (struct frames){ 0 };
		return r == -ENOENT ? 0 : r;
	}
	cfi->n_frames++;
	r = add_frames(cfi, f);
	if (r == -ENOMEM)
		return err_set(e, r, "%s: out of memory for call frame information",
			       elf_file_name(elf));
	if (r < 0)
		return err_set(e, r, "%s: more than %d functions in its call frame information",
			       elf_file_name(elf), CFI_FDES_MAX);
	return 0;
}

/* --- interface --- */

uint8_t cfi_frame_pointer(uint16_t machine)
{
	return machine == EM_AARCH64 ? 29 : 6;
}

int cfi_open(struct elf_file *elf, unsigned from, struct cfi **ret_cfi, struct err *e)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	int r;

	if (!elf_file_is64(elf) ||
	    (elf_file_machine(elf) != EM_X86_64 && elf_file_machine(elf) != EM_AARCH64))
		return err_set(e, -EOPNOTSUPP,
			       "%s: its code is neither x86-64 nor arm64, whose stacks are walked",
			       elf_file_name(elf));
	cfi = calloc(1, sizeof(*cfi));
	if (!cfi)
		return err_set(e, -ENOMEM, "%s: out of memory for call frame information",
			       elf_file_name(elf));
	note_code(cfi, elf);
	if (from & CFI_EH_FRAME) {
		r = add_source(cfi, elf, read_eh_frame, e);
		if (r < 0)
			return r;
	}
	if (from & CFI_DEBUG_FRAME) {
		/* What is not needed when there is .eh_frame must not spoil it. */
		r = add_source(cfi, elf, read_debug_frame, e);
		if (r < 0 && (r == -ENOMEM || !cfi->n_fdes))
			return r;
	}
	if (!cfi->n_fdes)
		return err_set(e, -ENOENT, "%s: no call frame information (.eh_frame)",
			       elf_file_name(elf));
	*ret_cfi = TAKE_PTR(cfi);
	return 0;
}

void cfi_free(struct cfi *cfi)
{
	if (!cfi)
		return;
	for (uint32_t i = 0; i < N_FRAMES; i++)
		free(cfi->frames[i].data);
	free(cfi->cies);
	free(cfi->fdes);
	free(cfi);
}

uint32_t cfi_n_fdes(const struct cfi *cfi)
{
	return cfi->n_fdes;
}

struct cfi_fde cfi_fde_at(const struct cfi *cfi, uint32_t i)
{
	const struct fde *fde = &cfi->fdes[i];
	const struct cie *cie = &cfi->cies[fde->cie];

	return (struct cfi_fde){ fde->start, fde->end, cie->signal, cie->lands, cie->ra_reg };
}

int cfi_find(const struct cfi *cfi, uint64_t vaddr, uint32_t *ret_i)
{
	uint32_t lo = 0, hi = cfi->n_fdes;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (cfi->fdes[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= cfi->fdes[lo - 1].end)
		return -ENOENT;
	*ret_i = lo - 1;
	return 0;
}

int cfi_rows(const struct cfi *cfi, uint32_t i, cfi_row_fn fn, void *arg)
{
	const struct fde *fde = &cfi->fdes[i];
	const struct cie *cie = &cfi->cies[fde->cie];
	const struct frames *f = &cfi->frames[fde->frames];
	struct cfi_rules initial = { .why = CFI_WHY_NO_CFA }, rules;
	struct cfi_program p = {
		.bases = &f->bases,
		.enc = cie->enc,
		.code_align = cie->code_align,
		.data_align = cie->data_align,
		.end = 1,
	};
	int r;

	rules = initial;
	r = cfi_run(&p, bytes_of(f->data + cie->insns, cie->insns_len), &rules, &initial);
	p.loc = fde->start;
	p.end = fde->end;
	p.fn = fn;
	p.arg = arg;
	rules = initial;
	if (r == 0)
		r = cfi_run(&p, bytes_of(f->data + fde->insns, fde->insns_len), &initial, &rules);
	if (r != -EBADMSG)
		return r;
	rules = (struct cfi_rules){ .why = CFI_WHY_PROGRAM };
	return p.loc < p.end ? fn(arg, p.loc, p.end, &rules) : 0;
}

struct cfi_counts cfi_counts(const struct cfi *cfi)
{
	return cfi->counts;
}
