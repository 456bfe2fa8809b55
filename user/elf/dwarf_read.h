/*
 * The part of dwarf.h that runs in a cell: libdw on one side, a socket on the other.
 *
 *   'S' len:4 bytes                                     a string; they are numbered from 1
 *   'A' vaddr:8 n:4 { function:4 file:4 line:4 start:4 }×n   frames, innermost first; 0: unknown
 *   'E' code:4                                          the end: 0 or -errno
 */
#ifndef MEMSCOPE_ELF_DWARF_READ_H
#define MEMSCOPE_ELF_DWARF_READ_H

#include "base/bytes.h"
#include "base/cells.h"
#include "elf/dwarf.h"

#include <elfutils/libdw.h>

/*
 * Writes the answers to `out`, up to its 'E' (-ETIMEDOUT: units are left unread). `max_cpu_ns`: CPU time of this process, 0: any;
 * `spill`: a file without a name for unpacked sections, or -1; `statm`: /proc/self/statm, or -1.
 */
void dwarf_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		int64_t max_cpu_ns, int spill, int statm, int out);

/* --- a cell that reads debug info (dwarf_cell.c) --- */

/* What the cell does, with libdw: it writes into `out`, and its return is its end. `question`: the bytes of who asks. */
typedef void (*dwarf_work)(struct bytes question, struct elf_file *elf, struct elf_file *alt, int spill, int statm, int out);

/* The work of such a kind: the files that are sent to it are opened, and `work` done. */
void dwarf_cell_work(const struct cell_given *given, dwarf_work work);
#define DWARF_CELL(what, fn)                                                                                         \
	.name = (what), .work = (fn), .data_bytes = DWARF_MEMORY_MAX, .file_bytes = DWARF_UNPACKED_MAX,              \
	.cpu_s = DWARF_SECONDS_MAX, .files = 8, .statm = true

/*
 * Asks a new cell of that kind about a file, and the one that it shares (-1: none): at most DWARF_ANSWER_MAX bytes, and DWARF_SECONDS_MAX.
 * 0, also where something is missing; -ENOMEM, or as cell_open().
 */
int dwarf_cell_ask(const struct cell_kind *kind, int elf, int alt, const char *name, const void *question, size_t len, int64_t max_ms,
		   struct dwarf_raw *ret, struct err *e);
/* The same for files that are open: -ENOENT: it has no debug info. */
int dwarf_file_ask(const struct cell_kind *kind, struct elf_file *elf, struct elf_file *alt, const void *question, size_t len,
		   int64_t max_ms, struct dwarf_raw *ret, struct err *e);

/* Strings of the answers, in place: each ends in a NUL. */
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
