/*
 * A small ELF shared object in memory, for tests that must know every byte of it.
 *
 *   0x0000 header, program headers (PT_LOAD R, PT_LOAD RX, PT_NOTE), build-ID note
 *   0x1000 .text, at vaddr 0x401000     (IMAGE_TEXT_LEN bytes)
 *   then   .text.hot, at vaddr 0x402000 (IMAGE_HOT_LEN bytes), .symtab, .strtab, .shstrtab, headers
 */
#ifndef MEMSCOPE_TESTS_ELF_IMAGE_H
#define MEMSCOPE_TESTS_ELF_IMAGE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	IMAGE_TEXT_OFF = 0x1000,
	IMAGE_TEXT_LEN = 0x1000,
	IMAGE_HOT_OFF = 0x2000,
	IMAGE_HOT_LEN = 0x800,
	IMAGE_TEXT = 0x401000,  /* vaddr of .text, bias 0x400000 against the file */
	IMAGE_HOT = 0x402000,
	IMAGE_TABLES = 0x2800,
	IMAGE_CAP = 1 << 16,
	IMAGE_SECTIONS = 6,
	SEC_TEXT = 1,
	SEC_HOT = 2,
};

struct image {
	uint8_t bytes[IMAGE_CAP];
	size_t len;
	Elf64_Sym syms[512];
	uint32_t n_syms;
	char names[1 << 14];
	uint32_t names_len;
};

static inline Elf64_Ehdr *image_ehdr(struct image *im)
{
	return (Elf64_Ehdr *)(void *)im->bytes;
}

static inline Elf64_Phdr *image_phdr(struct image *im, int i)
{
	return (Elf64_Phdr *)(void *)(im->bytes + sizeof(Elf64_Ehdr)) + i;
}

static inline Elf64_Shdr *image_shdr(struct image *im, int i)
{
	return (Elf64_Shdr *)(void *)(im->bytes + image_ehdr(im)->e_shoff) + i;
}

static inline void image_init(struct image *im)
{
	memset(im, 0, sizeof(*im));
	im->n_syms = 1;
	im->names_len = 1;
}

static inline void image_sym(struct image *im, const char *name, uint8_t bind, uint8_t type,
			     uint16_t section, uint64_t vaddr, uint64_t size)
{
	im->syms[im->n_syms++] = (Elf64_Sym){ .st_name = im->names_len,
					      .st_info = ELF64_ST_INFO(bind, type),
					      .st_shndx = section,
					      .st_value = vaddr,
					      .st_size = size };
	memcpy(im->names + im->names_len, name, strlen(name) + 1);
	im->names_len += (uint32_t)strlen(name) + 1;
}

static inline uint64_t image_append(struct image *im, const void *data, size_t len)
{
	uint64_t off = im->len = (im->len + 7) & ~(size_t)7;

	memcpy(im->bytes + off, data, len);
	im->len += len;
	return off;
}

static inline void image_finish(struct image *im)
{
	static const char sec_names[] = "\0.text\0.text.hot\0.symtab\0.strtab\0.shstrtab";
	static const uint8_t id[8] = { 0xde, 0xad, 0xbe, 0xef, 0x00, 0x01, 0x02, 0xff };
	const Elf64_Nhdr note = { 4, sizeof(id), NT_GNU_BUILD_ID };
	Elf64_Shdr sh[IMAGE_SECTIONS] = { { 0 } };
	uint64_t note_off, sym_off, str_off, names_off, sh_off;

	im->len = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
	note_off = image_append(im, &note, sizeof(note));
	memcpy(im->bytes + im->len, "GNU", 4);
	memcpy(im->bytes + im->len + 4, id, sizeof(id));

	im->len = IMAGE_TABLES;
	sym_off = image_append(im, im->syms, im->n_syms * sizeof(*im->syms));
	str_off = image_append(im, im->names, im->names_len);
	names_off = image_append(im, sec_names, sizeof(sec_names));
	sh[SEC_TEXT] = (Elf64_Shdr){ 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, IMAGE_TEXT,
				     IMAGE_TEXT_OFF, IMAGE_TEXT_LEN };
	sh[SEC_HOT] = (Elf64_Shdr){ 7, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, IMAGE_HOT,
				    IMAGE_HOT_OFF, IMAGE_HOT_LEN };
	sh[3] = (Elf64_Shdr){ 17, SHT_SYMTAB, 0, 0, sym_off, im->n_syms * sizeof(Elf64_Sym), 4, 1, 8,
			      sizeof(Elf64_Sym) };
	sh[4] = (Elf64_Shdr){ 25, SHT_STRTAB, 0, 0, str_off, im->names_len };
	sh[5] = (Elf64_Shdr){ 33, SHT_STRTAB, 0, 0, names_off, sizeof(sec_names) };
	sh_off = image_append(im, sh, sizeof(sh));

	*image_ehdr(im) = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = sh_off,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = IMAGE_SECTIONS,
		.e_shstrndx = 5,
	};
	*image_phdr(im, 0) = (Elf64_Phdr){ PT_LOAD, PF_R, 0, 0x400000, 0, 0x800, 0x800, 0x1000 };
	*image_phdr(im, 1) = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, IMAGE_TEXT_OFF, IMAGE_TEXT, 0,
					   IMAGE_TEXT_LEN + IMAGE_HOT_LEN,
					   IMAGE_TEXT_LEN + IMAGE_HOT_LEN, 0x1000 };
	*image_phdr(im, 2) = (Elf64_Phdr){ PT_NOTE, PF_R, note_off, 0x400000 + note_off, 0, 24, 24, 4 };
}

/* A file that has its bytes, open; -1: it cannot be made. */
static inline int image_memfd(const struct image *im)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, im->bytes, im->len) != (ssize_t)im->len) {
		close(fd);
		fd = -1;
	}
	return fd;
}

#endif
