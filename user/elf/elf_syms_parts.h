/* The functions of an ELF image: what the files of elf_syms.h share. Internal to the room. */
#ifndef MEMSCOPE_ELF_ELF_SYMS_PARTS_H
#define MEMSCOPE_ELF_ELF_SYMS_PARTS_H

#include "elf/elf_syms.h"

#include <elf.h>

enum {
	N_TABLES = 2,      /* .symtab, .dynsym                              */
	CHUNK_SYMS = 4096, /* symbols read at a time                        */
	/*
	 * Honest tables point at each string a few times (aliases, shared tails). One that points
	 * many symbols at one long string would cost their product.
	 */
	NAME_REUSE_MAX = 16,
};

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

/* Which symbols are kept: of names, or around addresses. Neither: all. */
struct selection {
	elf_syms_wanted_fn wanted;
	void *ctx; /* of it */
	const uint64_t *vaddrs; /* ascending */
	uint32_t n_vaddrs;
};

/* A table of symbols, and what it refers to. */
struct symbol_table {
	struct elf_file *elf;
	const struct elf_section *sec, *names, *secs;
	uint32_t n_secs;
	uint8_t table;
};

/* A symbol of a function, without its name; *ret_data: one of data in code, which only GHC's assembler makes of functions. */
bool elf_syms_to_row(const struct symbol_table *t, const Elf64_Sym *s, struct row *ret, bool *ret_data);
/* 0 or -ENOMEM. */
int elf_syms_add(struct elf_syms *syms, const struct row *row);
/* Is it of use, and how long? 0: no. `name` ends with NUL. `sel` NULL: any name. */
uint16_t elf_syms_name(struct strings *strings, const char *name, const struct selection *sel);
/* Is that a name of GHC's code? */
bool elf_syms_is_info(const char *name, size_t len);
/* Calls `fn` for symbols `from` to `from` + `n` - 1; stops at the first that is not 0 and returns that. -errno. */
int elf_syms_each(const struct symbol_table *t, uint64_t from, uint64_t n,
		  int (*fn)(void *ctx, uint64_t index, const Elf64_Sym *s), void *ctx, struct err *e);

/*
 * Adds the rows of a table that the selection wants, with their names. Neither all symbols nor all names are in memory at once: of
 * a program of 170 MB these are 37 MB of names and 10 MB of symbols, for a handful of functions.
 */
int elf_syms_select(struct elf_syms *syms, const struct symbol_table *t, const struct selection *sel, struct err *e);

#endif
