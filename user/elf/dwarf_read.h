/*
 * The part of dwarf.h that runs in the child: libdw on one side, a pipe on the other.
 *
 *   'S' len:4 bytes                                     a string; they are numbered from 1
 *   'A' vaddr:8 n:4 { function:4 file:4 line:4 start:4 }×n   frames, innermost first; 0: unknown
 *   'E' code:4                                          the end: 0 or -errno
 */
#ifndef MEMSCOPE_ELF_DWARF_READ_H
#define MEMSCOPE_ELF_DWARF_READ_H

#include "elf/elf_file.h"

#include <elfutils/libdw.h>

/*
 * Writes the answers to `out`, up to its 'E' (-ETIMEDOUT: units are left unread). `max_cpu_ns`: CPU time of this process, 0: any;
 * `spill`: a file without a name for unpacked sections, or -1; `statm`: /proc/self/statm, or -1.
 */
void dwarf_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		int64_t max_cpu_ns, int spill, int statm, int out);

/* --- a child that reads debug info (dwarf.c) --- */

/* What the child does, with libdw: it writes into `out`, and its return is its end. */
typedef void (*dwarf_work)(const void *ctx, struct elf_file *elf, struct elf_file *alt, int spill, int statm, int out);

/*
 * All that it wrote, at most DWARF_ANSWER_MAX bytes: *ret_text is the caller's to free. *ret_cut_short: why not all of it is there,
 * static words, or NULL; *ret_status: how it ended. -ENOENT: there is no debug info; -ENOMEM, or as fork().
 */
int dwarf_child_ask(struct elf_file *elf, struct elf_file *alt, dwarf_work work, const void *ctx, int64_t max_ms, char **ret_text,
		    size_t *ret_len, int *ret_status, const char **ret_cut_short, struct err *e);

/* Strings of the answers, in place: each ends in a NUL. */
struct bytes;
struct dwarf_strings {
	char **at;
	uint32_t n, cap;
};

/* The next one, behind its 'S'. -EBADMSG, -ENOMEM. */
int dwarf_strings_take(struct bytes *b, struct dwarf_strings *s);
/* NULL for number 0. false: there is no such one. */
bool dwarf_string_at(const struct dwarf_strings *s, uint32_t number, const char **ret);

/*
 * The answers as they came, up to their 'E', whose code is given (0 when it is missing: they are
 * cut short then). Takes `text` over. -ENOMEM. Nonsense ends them.
 */
struct dwarf_lines;
int dwarf_answers_parse(char *text, size_t len, struct dwarf_lines **ret_lines, int32_t *ret_code);

/* --- where libdw finds the sections (dwarf_image.c) --- */

/* A file for what is unpacked, and how much of it is taken. */
struct dwarf_room {
	int fd; /* -1: there is none */
	uint64_t used;
};

struct dwarf_source {
	Elf *elf;
	void *image;
	size_t len;
	bool in_file; /* its pages can be had again */
};

/* `locations`: where variables are is needed, too. -ENOENT: no .debug_info; -EFBIG: it needs more memory than it may have; -EBADMSG, -ENODATA. */
int dwarf_source_open(struct elf_file *elf, struct dwarf_room *room, bool locations, struct dwarf_source *ret);
/* Takes its pages out of our memory; reading brings back what is needed. Borrowed pointers stay good. */
void dwarf_source_forget(const struct dwarf_source *src);
void dwarf_source_close(struct dwarf_source *src);

/* Is any section that is needed compressed? -ENOENT: there is no .debug_info. */
int dwarf_is_packed(struct elf_file *elf);

#endif
