/*
 * The executable bytes of a file, for what is known only from them: padding between functions, and
 * the system call that returns from a signal handler.
 */
#ifndef MEMSCOPE_UNWIND_CODE_H
#define MEMSCOPE_UNWIND_CODE_H

#include "elf/elf_file.h"

enum { CODE_RANGES_MAX = 64, CODE_WINDOW_BYTES = 64 << 10 };

struct code_range {
	uint64_t start, end;  /* vaddr */
};

struct code {
	const struct elf_file *elf;
	struct code_range segments[CODE_RANGES_MAX];  /* executable, by address, joined          */
	struct code_range text[CODE_RANGES_MAX];      /* the executable sections of them; or all */
	uint32_t n_segments, n_text;
	uint64_t window_at;
	size_t window_len;
	uint8_t window[CODE_WINDOW_BYTES];
};

/* -ENOENT: no executable segment. */
int code_init(struct code *code, struct elf_file *elf, struct err *e);

/* `len` bytes at `vaddr`, valid until the next call; NULL: not of the file. */
const uint8_t *code_at(struct code *code, uint64_t vaddr, size_t len);

/* Nothing but nops, traps and zeros, as compilers and linkers put between functions. */
bool code_is_padding(struct code *code, uint64_t start, uint64_t end);

/*
 * The first return from a signal handler in [start, end): the number of rt_sigreturn loaded, and the
 * system call. `*ret_len`: its bytes.
 */
bool code_find_sigreturn(struct code *code, uint64_t start, uint64_t end, uint64_t *ret_vaddr,
			 uint32_t *ret_len);

/* Whether one ends there. */
bool code_sigreturn_ends_at(struct code *code, uint64_t vaddr);

#endif
