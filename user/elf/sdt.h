/*
 * USDT sites: the places that a program offers to who wants to listen, from .note.stapsdt (the
 * notes of SystemTap's sys/sdt.h, version 3).
 *
 *   note:   namesz:4 descsz:4 type:4=3  "stapsdt\0"  desc, padded to 4
 *   desc:   place:word  base:word  semaphore:word  provider\0 name\0 arguments\0
 *
 * `base` is where .stapsdt.base was when the note was made: if that section is elsewhere now
 * (prelink), the place has moved by as much. A place that does not lie in a loaded segment is left
 * out, as is a note that does not hold together; the rest of the section is still read.
 */
#ifndef MEMSCOPE_ELF_SDT_H
#define MEMSCOPE_ELF_SDT_H

#include "elf/elf_file.h"

#define SDT_NOTES_MAX 65536
#define SDT_ARGS_MAX  12

struct sdt_note {
	uint64_t off;           /* of the place in the file                                  */
	uint64_t semaphore_off; /* in the file, of its 2 bytes; 0: it has none               */
	const char *provider, *name;
	const char *args;       /* "8@%rdi -4@16(%rsp)": see sdt_arg_parse()                 */
};

struct sdt_notes;

/* -ENOENT: the file has no such section (no sentence is set). Strings live as long as the notes. */
int sdt_notes_load(struct elf_file *elf, struct sdt_notes **ret_notes, struct err *e);
void sdt_notes_free(struct sdt_notes *notes);
DEFINE_CLEANUP(struct sdt_notes *, sdt_notes_freep, sdt_notes_free)

uint32_t sdt_notes_count(const struct sdt_notes *notes);
const struct sdt_note *sdt_notes_at(const struct sdt_notes *notes, uint32_t i);

enum sdt_arg_kind {
	SDT_ARG_REG,    /* the register's value                         */
	SDT_ARG_MEMORY, /* what is at register + value                  */
	SDT_ARG_CONST,  /* value                                        */
};

struct sdt_arg {
	enum sdt_arg_kind kind;
	uint8_t size;   /* bytes: 1, 2, 4, 8                            */
	bool is_signed;
	uint8_t reg;    /* its DWARF number on this machine (sp: 7, 31) */
	int64_t value;
};

/*
 * Argument `ix` (from 0) of a note's `args`, as the assembler of `machine` (EM_X86_64, EM_AARCH64)
 * wrote it. -ENOENT: there are fewer; -EOPNOTSUPP: a form that needs more than a register and a
 * number (an index, a symbol), or is not understood.
 */
int sdt_arg_parse(uint16_t machine, const char *args, uint32_t ix, struct sdt_arg *ret_arg);

#endif
