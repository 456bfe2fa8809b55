/*
 * DWARF: from an address to the functions that are there, inlined calls included, and to file and
 * line. Read through libdw, for a list of addresses at once.
 *
 * Debug info is attacker's bytes, and libdw does not promise to survive them (tests/fuzz/dwarf.c
 * says what was found). So a cell reads it (base/cells.h): without our memory, descriptors, rights or
 * privileges, within DWARF_MEMORY_MAX, and killed after DWARF_SECONDS_MAX. Its answers are checked. Where it
 * dies, what it had answered is kept.
 *
 * It reads only the units whose ranges hold an address asked for, each once: what it costs is one
 * pass over the headers of all units, and over the functions of those.
 *
 * Its memory does not grow with the file. libdw's is released between units when it is more than a
 * third of DWARF_MEMORY_MAX, which the kernel enforces (RLIMIT_DATA): a single unit may need that
 * much, and what needs more is left out, and reported. Pages of the file are released whenever
 * DWARF_PAGES_MAX of them are resident. Compressed sections are unpacked to a file without a name in
 * /var/tmp, whose pages are as good as the file's own; where none can be had, or /var/tmp is memory,
 * to half of DWARF_MEMORY_MAX, and larger ones are left out, and reported.
 */
#ifndef MEMSCOPE_ELF_DWARF_H
#define MEMSCOPE_ELF_DWARF_H

#include "elf/elf_file.h"

enum {
	DWARF_MEMORY_MAX = 192 << 20,   /* bytes of the cell's own: libdw's, and ours */
	DWARF_PAGES_MAX = 48 << 20,     /* bytes of files that it has mapped and resident, about */
	DWARF_UNPACKED_MAX = 1 << 30,   /* bytes of sections, unpacked to a file */
	DWARF_SECONDS_MAX = 60,         /* for one file, if the caller gives no less */
	DWARF_ANSWER_MAX = 256 << 20,   /* bytes that come over the pipe */
	DWARF_FRAMES_MAX = 1024,        /* of one address */
};

struct dwarf_frame {
	const char *function;  /* linkage name where there is one; NULL: not known            */
	const char *file;      /* as given to the compiler, made absolute; NULL: not known */
	uint32_t line;         /* of the address; in outer frames that of the call; 0 unknown  */
	uint32_t start_line;   /* where the function is declared; 0 unknown                    */
};

struct dwarf_lines;

/* Does the file have debug info? Compressed counts. */
bool dwarf_present(struct elf_file *elf);

/*
 * Looks up `n` addresses (ascending) in the debug info of `elf`, a file that is open by descriptor.
 * `alt`: the file its .gnu_debugaltlink names, or NULL. Both may be closed afterwards. It takes
 * `max_ms` at most, and no more than DWARF_SECONDS_MAX.
 * -ENOENT: no debug info, or nothing about any of them; -ETIMEDOUT; -EFBIG: it needs more memory;
 * -EBADMSG: damaged (the reader died, or answered nonsense).
 */
int dwarf_lines_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		     int64_t max_ms, struct dwarf_lines **ret_lines, struct err *e);

/* CPU time that reading may take, of one file after the other; what it took is taken off. */
struct dwarf_budget {
	int64_t cpu_ns;
	bool ran_out; /* something was left unread for it */
};

/*
 * The same within a budget, NULL: without. One file gets half of what is left: it ends with the unit that it is in then, without
 * answers of that one, and has what it found before; at all that is left it is killed (sections are still unpacked, or a unit
 * has millions of lines).
 */
int dwarf_lines_read_within(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs,
			    uint32_t n, int64_t max_ms, struct dwarf_budget *budget,
			    struct dwarf_lines **ret_lines, struct err *e);
/* --- in two halves --- */

enum dwarf_cut {
	DWARF_WHOLE,
	DWARF_TOO_LONG,
	DWARF_NO_MEMORY, /* ours */
	DWARF_TOO_MUCH,
	DWARF_UNREADABLE,
	N_DWARF_CUTS,
};

/* All that a cell wrote. */
struct dwarf_raw {
	char *text; /* `len` bytes; free() it */
	size_t len;
	uint32_t cut;   /* enum dwarf_cut: why not all of it is there  */
	int32_t status; /* as waitpid(2) has it, -1: not known         */
	int64_t cpu_ns;
};

/*
 * The two halves of it, for a cell that may not make others and has somebody ask for it: what the reader of `elf` and `alt` (-1: none)
 * says, as it came (dwarf_read.h); and that checked. `max_cpu_ns`: 0 for any. `raw` is used up.
 */
int dwarf_raw_read(int elf, int alt, const char *name, const uint64_t *vaddrs, uint32_t n, int64_t max_ms, int64_t max_cpu_ns,
		   struct dwarf_raw *ret, struct err *e);
int dwarf_lines_of(struct dwarf_raw *raw, const char *name, struct dwarf_lines **ret_lines, bool *ret_ran_out, struct err *e);
/* What one file may take of a budget (NULL: any, 0). */
int64_t dwarf_budget_share(const struct dwarf_budget *budget);

void dwarf_lines_free(struct dwarf_lines *lines);
DEFINE_CLEANUP(struct dwarf_lines *, dwarf_lines_freep, dwarf_lines_free)

/*
 * The frames at an address that was asked for, innermost first; how many, 0 when nothing is known.
 * The last may have no function where only its line is known (hand-written assembly).
 */
uint32_t dwarf_lines_find(const struct dwarf_lines *lines, uint64_t vaddr,
			  const struct dwarf_frame **ret_frames);

/* NULL when the reader came to its end; else why there may be answers missing, static words. */
const char *dwarf_lines_cut_short(const struct dwarf_lines *lines);

#endif
