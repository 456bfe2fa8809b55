/*
 * What a short function gets at, found by following its instructions: pthread_getspecific() of a C
 * library that says nothing of where it keeps values, PyGILState_GetThisThreadState() of a runtime whose
 * key has no symbol.
 *
 * Values are followed as far as they are a number, an address of the image, or the thread's pointer (x86-64:
 * fs, arm64: tpidr_el0), plus a distance, and what is read from there, several times over. All else is
 * unknown. Where a branch depends on what is unknown both ways are followed. x86-64 and arm64; the code is
 * foreign and may be anything: what is followed is bounded.
 */
#ifndef MEMSCOPE_LANG_ACCESSOR_H
#define MEMSCOPE_LANG_ACCESSOR_H

#include "elf/elf_file.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	ACCESSOR_BYTES_MAX = 512,
	ACCESSOR_STEPS_MAX = 400, /* instructions that are followed, all ways together */
	ACCESSOR_READS_MAX = 3,
};

/* The code of a function. */
struct accessor {
	uint16_t machine;  /* EM_… */
	uint16_t len;      /* 0: there is none */
	uint64_t vaddr;
	uint8_t bytes[ACCESSOR_BYTES_MAX];
};

enum place_base {
	PLACE_UNKNOWN,
	PLACE_NUMBER,  /* off[0] is all */
	PLACE_IMAGE,   /* off[0] is a vaddr */
	PLACE_THREAD,  /* off[0] is a distance from the thread's pointer */
};

/* base + off[0]; read there, + off[1]; read there, + off[2] … */
struct place {
	uint8_t base;       /* enum place_base */
	uint8_t reads;
	uint8_t last_bytes; /* of the last read: 4 or 8 */
	int64_t off[ACCESSOR_READS_MAX + 1];
};

/* Copies the code of a function out of a file. */
int accessor_load(struct elf_file *elf, uint64_t vaddr, uint64_t size, struct accessor *ret_code,
		  struct err *e);

struct accessor_fn {
	/* It returns `value`. */
	void (*returns)(void *ctx, const struct place *value);
	/* It calls or jumps to another function, with `value` as first argument. May be NULL. */
	void (*calls)(void *ctx, const struct place *value);
	/* Every value that an instruction makes; may be NULL. */
	void (*makes)(void *ctx, const struct place *value);
	void *ctx;
};

/* Follows it from its start, its first argument being `arg`. */
void accessor_follow(const struct accessor *code, uint64_t arg, const struct accessor_fn *fn);

/* --- for the machines' decoders (accessor_x86.c, accessor_arm64.c) --- */

enum { ACCESSOR_REGS = 32 };

enum accessor_flow {
	FLOW_NEXT,
	FLOW_RETURN,
	FLOW_JUMP,    /* to `target`              */
	FLOW_BRANCH,  /* to `target` or the next  */
	FLOW_CALL,    /* what registers have is lost, but for those that functions keep */
	FLOW_END,     /* where to is not known    */
};

struct accessor_state {
	struct place reg[ACCESSOR_REGS];
	struct place left, right;  /* of the last comparison; PLACE_UNKNOWN: there is none */
	bool narrow;               /* it compared 32 bits */
};

struct accessor_insn {
	uint8_t len;
	uint8_t flow;   /* enum accessor_flow */
	int8_t taken;   /* of FLOW_BRANCH: 1, 0; -1: not known */
	uint64_t target;
};

/* One instruction at `at`, of which `len` bytes are there. false: that is no instruction. */
typedef bool accessor_step(struct accessor_state *s, const uint8_t *bytes, size_t len, uint64_t at,
			   struct accessor_insn *ret_insn);
accessor_step accessor_step_x86, accessor_step_arm64;

/* Registers: the first argument, the result, and those that functions keep, a bit each. */
enum { X86_ARG = 7, X86_RESULT = 0, X86_KEPT = 0xf028, ARM64_ARG = 0, ARM64_RESULT = 0 };
#define ARM64_KEPT 0x3ff80000u

struct place place_number(uint64_t n);
struct place place_add(struct place p, uint64_t n);
/* Sum of two, one of which is a number; else unknown. */
struct place place_sum(struct place a, struct place b);
/* What is read at `p`. */
struct place place_read(struct place p, unsigned bytes);

#endif
