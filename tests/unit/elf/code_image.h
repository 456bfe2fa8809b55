/*
 * A small ELF executable in memory whose code and call frame information a test writes itself.
 *
 *   0x1000 .text, at vaddr 0x401000 (0x1000 bytes, of int3 until written)
 *   0x2000 the frames, at vaddr 0x402000 (at most 0x3000 bytes)
 *   0x5000 .eh_frame_hdr, at vaddr 0x405000
 *   then   .symtab, .strtab, .shstrtab, headers
 */
#ifndef MEMSCOPE_TESTS_CODE_IMAGE_H
#define MEMSCOPE_TESTS_CODE_IMAGE_H

#include <dwarf.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	CODE_TEXT = 0x401000,
	CODE_TEXT_OFF = 0x1000,
	CODE_TEXT_LEN = 0x1000,
	CODE_FRAMES = 0x402000,
	CODE_FRAMES_OFF = 0x2000,
	CODE_FRAMES_LEN = 0x3000,
	CODE_HDR = 0x405000,
	CODE_HDR_OFF = 0x5000,
	CODE_GOT = 0x700000,
	CODE_TABLES = 0x6000,
	CODE_CAP = 1 << 16,
};

struct code_image {
	uint8_t bytes[CODE_CAP];
	size_t len;
	uint8_t frames[CODE_FRAMES_LEN]; /* as written; `packed` may replace them in the file */
	size_t frames_len;
	const uint8_t *packed;
	size_t packed_len;
	const char *frames_name;
	uint64_t frames_flags;
	uint16_t machine;
	uint64_t entry;
	bool no_sections, no_build_id;
	Elf64_Sym syms[16];
	uint32_t n_syms;
	char names[256];
	uint32_t names_len;
	/* of the CIE written last */
	size_t cie;
	uint8_t enc;
	bool sized;
};

static inline void code_init(struct code_image *im)
{
	memset(im, 0, sizeof(*im));
	memset(im->bytes + CODE_TEXT_OFF, 0xcc, CODE_TEXT_LEN);
	im->frames_name = ".eh_frame";
	im->frames_flags = SHF_ALLOC;
	im->machine = EM_X86_64;
	im->n_syms = 1;
	im->names_len = 1;
}

static inline uint8_t *code_text(struct code_image *im, uint64_t vaddr)
{
	return im->bytes + CODE_TEXT_OFF + (vaddr - CODE_TEXT);
}

static inline void code_sym(struct code_image *im, const char *name, uint64_t vaddr, uint64_t size)
{
	im->syms[im->n_syms++] = (Elf64_Sym){ .st_name = im->names_len,
					      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					      .st_shndx = 1,
					      .st_value = vaddr,
					      .st_size = size };
	memcpy(im->names + im->names_len, name, strlen(name) + 1);
	im->names_len += (uint32_t)strlen(name) + 1;
}

/* --- writing frames --- */

static inline void put(struct code_image *im, const void *data, size_t len)
{
	memcpy(im->frames + im->frames_len, data, len);
	im->frames_len += len;
}

static inline void put8(struct code_image *im, uint8_t v)
{
	put(im, &v, 1);
}

static inline void put32(struct code_image *im, uint32_t v)
{
	put(im, &v, 4);
}

static inline void put64(struct code_image *im, uint64_t v)
{
	put(im, &v, 8);
}

/* A pointer of encoding `enc` to `vaddr`, written where the frames end. */
static inline void put_pointer(struct code_image *im, uint8_t enc, uint64_t vaddr)
{
	uint64_t v = vaddr;

	if ((enc & 0x70) == DW_EH_PE_pcrel)
		v -= CODE_FRAMES + im->frames_len;
	else if ((enc & 0x70) == DW_EH_PE_textrel)
		v -= CODE_TEXT;
	else if ((enc & 0x70) == DW_EH_PE_datarel)
		v -= CODE_GOT;
	switch (enc & 0x07) {
	case DW_EH_PE_udata2:
		put(im, &v, 2);
		break;
	case DW_EH_PE_udata4:
		put(im, &v, 4);
		break;
	case DW_EH_PE_uleb128: /* enough for small ones */
		put8(im, (uint8_t)(v | 0x80));
		put8(im, (uint8_t)(v >> 7 | 0x80));
		put8(im, (uint8_t)(v >> 14 | 0x80));
		put8(im, (uint8_t)(v >> 21 & 0x7f));
		break;
	default:
		put(im, &v, 8);
	}
}

static inline size_t begin_entry(struct code_image *im)
{
	put32(im, 0);
	return im->frames_len;
}

static inline void end_entry(struct code_image *im, size_t begin)
{
	uint32_t len;

	while (im->frames_len & 7)
		put8(im, DW_CFA_nop);
	len = (uint32_t)(im->frames_len - begin);
	memcpy(im->frames + begin - 4, &len, 4);
}

/* A CIE of the usual kind: "zR", factors 1 and -8, return address in column 16 (arm64: 4, 30). */
static inline void put_cie(struct code_image *im, uint8_t enc, const char *aug, const void *insns,
			   size_t len)
{
	size_t begin = begin_entry(im);
	bool a64 = im->machine == EM_AARCH64;

	im->cie = begin - 4;
	im->enc = enc;
	im->sized = aug[0] == 'z';
	put32(im, 0);
	put8(im, 1);
	put(im, aug, strlen(aug) + 1);
	put8(im, a64 ? 4 : 1);
	put8(im, 0x78);
	put8(im, a64 ? 30 : 16);
	if (im->sized) {
		put8(im, 1);
		put8(im, enc);
	}
	put(im, insns, len);
	end_entry(im, begin);
}

static inline void put_fde(struct code_image *im, uint64_t start, uint64_t size, const void *insns,
			   size_t len)
{
	size_t begin = begin_entry(im);

	put32(im, (uint32_t)(im->frames_len - im->cie));
	put_pointer(im, im->enc, start);
	put_pointer(im, im->enc & 0x0f, size);
	if (im->sized)
		put8(im, 0);
	put(im, insns, len);
	end_entry(im, begin);
}

#define INSNS(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* CFA = rsp + 8, return address at CFA - 8. */
static inline void put_usual_cie(struct code_image *im)
{
	put_cie(im, DW_EH_PE_pcrel | DW_EH_PE_sdata4, "zR",
		INSNS(DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1));
}

/* --- the file around it --- */

static inline uint64_t code_append(struct code_image *im, const void *data, size_t len)
{
	uint64_t off = im->len = (im->len + 7) & ~(size_t)7;

	memcpy(im->bytes + off, data, len);
	im->len += len;
	return off;
}

static inline void code_finish(struct code_image *im)
{
	static const uint8_t id[8] = { 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5 };
	const Elf64_Nhdr note = { 4, sizeof(id), NT_GNU_BUILD_ID };
	const uint8_t *frames = im->packed ? im->packed : im->frames;
	size_t frames_len = im->packed ? im->packed_len : im->frames_len;
	char names[64] = "\0.text\0.got.plt\0.symtab\0.strtab\0";
	uint32_t name_at = 31;
	Elf64_Shdr sh[7] = { { 0 } };
	Elf64_Phdr *ph;
	uint64_t sym_off, str_off, names_off, sh_off = 0;
	int32_t to_frames = CODE_FRAMES - (CODE_HDR + 4);

	memcpy(names + name_at, im->frames_name, strlen(im->frames_name) + 1);
	memcpy(im->bytes + CODE_FRAMES_OFF, frames, frames_len);
	/* Behind the terminator, something that is no frame. */
	if (im->no_sections)
		memset(im->bytes + CODE_FRAMES_OFF + frames_len, 0x11,
		       CODE_FRAMES_LEN - frames_len);
	memcpy(im->bytes + CODE_HDR_OFF, "\1\x1b\xff\xff", 4);
	memcpy(im->bytes + CODE_HDR_OFF + 4, &to_frames, 4);
	memcpy(im->bytes + 0x400, &note, sizeof(note));
	memcpy(im->bytes + 0x400 + sizeof(note), "GNU", 4);
	memcpy(im->bytes + 0x400 + sizeof(note) + 4, id, sizeof(id));

	im->len = CODE_TABLES;
	sym_off = code_append(im, im->syms, im->n_syms * sizeof(*im->syms));
	str_off = code_append(im, im->names, im->names_len);
	names_off = code_append(im, names, sizeof(names));
	sh[1] = (Elf64_Shdr){ 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE_TEXT, CODE_TEXT_OFF,
			      CODE_TEXT_LEN };
	sh[2] = (Elf64_Shdr){ name_at, SHT_PROGBITS, im->frames_flags, CODE_FRAMES, CODE_FRAMES_OFF,
			      frames_len };
	sh[3] = (Elf64_Shdr){ 7, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, CODE_GOT, 0, 8 };
	sh[4] = (Elf64_Shdr){ 16, SHT_SYMTAB, 0, 0, sym_off, im->n_syms * sizeof(Elf64_Sym), 5, 1, 8,
			      sizeof(Elf64_Sym) };
	sh[5] = (Elf64_Shdr){ 24, SHT_STRTAB, 0, 0, str_off, im->names_len };
	sh[6] = (Elf64_Shdr){ 0, SHT_STRTAB, 0, 0, names_off, sizeof(names) };
	if (!im->no_sections)
		sh_off = code_append(im, sh, sizeof(sh));

	*(Elf64_Ehdr *)(void *)im->bytes = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = im->machine,
		.e_version = EV_CURRENT,
		.e_entry = im->entry,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = sh_off,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 4,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = sh_off ? 7 : 0,
		.e_shstrndx = sh_off ? 6 : 0,
	};
	ph = (Elf64_Phdr *)(void *)(im->bytes + sizeof(Elf64_Ehdr));
	ph[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, CODE_TEXT_OFF, CODE_TEXT, 0, CODE_TEXT_LEN,
			      CODE_TEXT_LEN, 0x1000 };
	ph[1] = (Elf64_Phdr){ PT_LOAD, PF_R, CODE_FRAMES_OFF, CODE_FRAMES, 0,
			      CODE_HDR_OFF + 0x100 - CODE_FRAMES_OFF,
			      CODE_HDR_OFF + 0x100 - CODE_FRAMES_OFF, 0x1000 };
	ph[2] = (Elf64_Phdr){ PT_GNU_EH_FRAME, PF_R, CODE_HDR_OFF, CODE_HDR, 0, 0x100, 0x100, 4 };
	ph[3] = (Elf64_Phdr){ im->no_build_id ? PT_NULL : PT_NOTE, PF_R, 0x400, 0, 0, 24, 24, 4 };
}

#endif
