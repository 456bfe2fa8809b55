/*
 * The kernel's walker, compiled for the host: bpf/walk/walk_cfi.h over the same tables, with a copy of
 * the registers and of the stack. For stacks that could not be walked in place (abi.h: struct
 * ms_deferred_rec), and for the tests that replay recorded ones.
 */
#ifndef MEMSCOPE_UNWIND_HOST_WALK_H
#define MEMSCOPE_UNWIND_HOST_WALK_H

#include "unwind/publish.h"
#include "walk/walk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call whose return is probed: where sp was on entry, and the true return address. */
struct host_return {
	uint64_t at, ra;
};

/* What is walked. */
struct host_stack {
	uint64_t pc;
	const uint64_t *regs;         /* MS_N_REGS, by DWARF number, as in rows.h      */
	uint64_t addr;                /* of the first byte of the copy                 */
	const uint8_t *bytes;
	size_t len;
	const struct ms_space *space; /* its spans are in the pool                     */
	/* Other memory of the process, where it can still be read (NULL: nowhere): the code at
	 * the leaf of a JIT, another stack. */
	bool (*read)(void *ctx, void *dst, size_t size, uint64_t addr);
	void *ctx;
	/* What the kernel has put in place of the return addresses of such calls, innermost first;
	 * 0: nothing. A copy that came without a list keeps it on its stack. */
	uint64_t trampoline;
	const struct host_return *returns;
	size_t n_returns;
	/* Frames of a language: its runtime, and what the thread's variables are found by; NULL: none are
	 * looked for. They are read from memory by read(), so the thread must not have run since. */
	const struct ms_lang_row *lang;
	uint64_t thread_base;
	/* Or they were copied with the stack: then from there alone. NULL: they were not. */
	const struct ms_chain_rec *chain;
	const struct ms_chain_link *links;
};

/*
 * Walks; frames as in a stack record, leaf first, MS_MAX_FRAMES at most. *ret_missing is, with
 * MS_NO_TABLE, the address whose span has none or is not there. Not reentrant: one walk at a time
 * in a process.
 */
enum ms_verdict host_walk(const struct publish_mem *mem, const struct host_stack *stack,
			  uint64_t frames[MS_MAX_FRAMES], uint32_t *ret_n, uint64_t *ret_missing);

/* What the last walk has noted of all that it depended on (bpf/walk/walk.h). Until the next one. */
const struct ms_notes *host_notes(void);

/* Did native frames and those of the language not match in the last walk (walk_lang.h)? */
bool host_lang_misplaced(void);
/* Could frames of the language not be read in it, in whole or in part? */
bool host_lang_lost(void);

/*
 * Of a stack that was walked: the number of the first frame whose caller nothing vouches for; `n` when
 * every step is by a row, or by a frame pointer that is known to be kept.
 */
uint32_t host_first_guess(const struct publish_mem *mem, const struct ms_space *space,
			  const uint64_t *frames, uint32_t n);

#endif
