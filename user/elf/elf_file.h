/*
 * An ELF image, read with suspicion: header, loaded segments, sections, build ID, and the way
 * between file offsets and the file's own addresses. Symbols are elf_syms.h.
 *
 * The bytes belong to the file's owner, who may be hostile and may still be writing to it. So
 * the file is read with pread(), never mapped (truncating a mapped file kills its reader with
 * SIGBUS), every offset and size is checked against the file and against a limit below, and what
 * does not add up is an error with a sentence or, for a single segment or section, left out.
 *
 * Both classes (32 and 64 bit) of the machine's own byte order; executables and shared objects.
 * System V ABI, chapters 4 and 5.
 */
#ifndef MEMSCOPE_ELF_ELF_FILE_H
#define MEMSCOPE_ELF_ELF_FILE_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ELF_SEGMENTS_MAX = 1024,
	ELF_SECTIONS_MAX = 40 << 16,
	ELF_SECTION_BYTES_MAX = 256 << 20,  /* of one section read into memory             */
	ELF_BUILD_ID_MAX = 64,              /* bytes; the usual one is 20 (SHA-1)          */
};

struct elf_file;

/* A PT_LOAD segment: file bytes [off, off + filesz) are at [vaddr, vaddr + filesz). */
struct elf_segment {
	uint64_t vaddr, off, filesz, memsz;
	uint32_t flags;  /* PF_R, PF_W, PF_X */
};

struct elf_section {
	const char *name;    /* "" when unknown; lives as long as the elf_file */
	uint32_t type;       /* SHT_…                                          */
	uint32_t link;       /* index of the section this one refers to        */
	uint64_t flags;      /* SHF_…                                          */
	uint64_t vaddr, off, size, entsize;
};

/*
 * `fd` is borrowed and stays open as long as the elf_file; `name` is for error sentences, copied.
 * Reads the header, the program headers and the build ID, a few KiB in all.
 * -ENOEXEC: not an ELF executable or shared object of this byte order; -EBADMSG: one that lies.
 */
int elf_file_open(int fd, const char *name, struct elf_file **ret_elf, struct err *e);
/* The same from memory (a vDSO, a fuzzer); `data` is borrowed as long as the elf_file. */
int elf_file_open_memory(const void *data, size_t len, const char *name, struct elf_file **ret_elf,
			 struct err *e);
/* For separate debug info: program headers may be missing, and whatever they say is fine. */
int elf_file_open_debug(int fd, const char *name, struct elf_file **ret_elf, struct err *e);
void elf_file_close(struct elf_file *elf);
DEFINE_CLEANUP(struct elf_file *, elf_file_closep, elf_file_close)

int elf_file_fd(const struct elf_file *elf);         /* -1 when read from memory */
uint64_t elf_file_size(const struct elf_file *elf);  /* when it was opened       */
const char *elf_file_name(const struct elf_file *elf);
bool elf_file_is64(const struct elf_file *elf);
uint16_t elf_file_machine(const struct elf_file *elf);  /* EM_… */

/* The build ID in lower-case hex (NT_GNU_BUILD_ID), "" when the file has none. */
const char *elf_file_build_id(const struct elf_file *elf);

/* The loaded segments in the file's order. */
const struct elf_segment *elf_file_segments(const struct elf_file *elf, uint32_t *ret_n);

/* vaddr of the first instruction, 0 when there is none. */
uint64_t elf_file_entry(const struct elf_file *elf);
/* vaddr of .eh_frame_hdr as PT_GNU_EH_FRAME has it, 0 when there is none. */
uint64_t elf_file_eh_frame_hdr(const struct elf_file *elf);

/*
 * Between file offsets and the file's own addresses. An offset is looked for in executable
 * segments first, since two segments may share a page of the file; then in the whole pages
 * that the loader maps around a segment. Usable on segments kept after the file was closed.
 */
bool elf_segments_off_to_vaddr(const struct elf_segment *segs, uint32_t n, uint64_t off,
			       uint64_t *ret_vaddr);
bool elf_segments_vaddr_to_off(const struct elf_segment *segs, uint32_t n, uint64_t vaddr,
			       uint64_t *ret_off);

/*
 * The section headers, read on first use. `ret_n` is 0 for a file without any, which is not an
 * error. Index as in the file (0 is the null section).
 */
int elf_file_sections(struct elf_file *elf, const struct elf_section **ret_secs, uint32_t *ret_n,
		      struct err *e);
/* The first section of that name. -ENOENT: none (no sentence is set). */
int elf_file_find_section(struct elf_file *elf, const char *name,
			  const struct elf_section **ret_sec, struct err *e);

/* `len` bytes at file offset `off`. -ENODATA: the file ends before. */
int elf_file_read(const struct elf_file *elf, uint64_t off, void *buf, size_t len, struct err *e);
/* The same at an address of the image, by its segments. false: they, or the file, do not have it. */
bool elf_file_read_vaddr(struct elf_file *elf, uint64_t vaddr, void *buf, size_t len);
/*
 * A copy of a section's bytes with a NUL after the last; free() it.
 * -ENODATA: it has no bytes in the file or reaches past its end; -EFBIG: over the limit;
 * -EOPNOTSUPP: compressed.
 */
int elf_file_read_section(const struct elf_file *elf, const struct elf_section *sec,
			  uint8_t **ret_bytes, struct err *e);

#endif
