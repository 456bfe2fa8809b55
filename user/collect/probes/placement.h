/*
 * Where in a function its probe goes.
 *
 * A breakpoint on an instruction that the kernel emulates costs one trap; any other instruction is
 * executed out of line, which adds a single step. Measured on Linux 6.18 in a virtual machine: 0.5
 * µs against 9.2 µs. glibc's free begins with `test`, and three bytes further on is a `je`. So the
 * probe goes to the first instruction that
 *
 *   - the kernel emulates (arch/x86/kernel/uprobes.c): push of a register, nop, jmp, jcc, call,
 *   - every call passes once: on the straight line from the entry, into which nothing jumps,
 *   - finds the arguments still there, in whatever register,
 *   - and, if the return is probed too, has the return address on top of the stack: a return probe
 *     takes the word there for it.
 *
 * Where none fits it is the entry, as on machines other than x86-64.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_PLACEMENT_H
#define MEMSCOPE_COLLECT_PROBES_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACEMENT_MAX_CODE 512 /* bytes of a function that are read, at most */

struct placement_ask {
	const uint8_t *code; /* from the entry on: the function, or as much of it as is known */
	size_t len;
	uint32_t args;  /* bit n: argument n is read (0 to 2)                            */
	uint32_t first; /* 1: those are the second to the fourth of the function. Needs `moved` */
	bool returns;   /* a return probe goes to the same place                         */
	bool moved;     /* the probe's cookie can say where arguments are  */
};

struct placement {
	uint32_t at;    /* bytes behind the entry                              */
	bool emulated;  /* the instruction there is one of the cheap ones      */
	uint64_t place; /* MS_COOKIE_… (abi.h); 0: everything is as at the entry */
};

void placement_find(const struct placement_ask *ask, struct placement *ret_placement);

/* The placement at the entry, whatever its instruction. */
void placement_entry(const struct placement_ask *ask, struct placement *ret_placement);

/*
 * Does a call end right before code[at], by the instructions from the function's beginning on? So nothing
 * that only looks like a return address, and is one of data or of another place, gets a probe.
 */
bool placement_behind_call(const uint8_t *code, size_t len, size_t at);

/*
 * Addresses that must not be jumped to: (from, to], vaddrs. A near jump or call from anywhere in
 * `text`, which is at `vaddr`, to one of them sets `hit`. A byte pattern that only looks like one
 * counts as well: then a probe costs more than necessary, but is never wrong. placement_find()
 * itself handles jumps with a reach of one byte.
 */
struct placement_gap {
	uint64_t from, to;
	bool hit;
};
void placement_jumps(const uint8_t *text, size_t len, uint64_t vaddr, struct placement_gap *gaps,
		     uint32_t n);

#endif
