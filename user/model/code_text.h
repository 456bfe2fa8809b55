/*
 * What is shown of code: a function's instructions, each with the lines it was compiled from, and the lines of source files.
 * Read by symbolize/ (code_read.h, source_read.h), shown by render/.
 */
#ifndef MEMSCOPE_MODEL_CODE_TEXT_H
#define MEMSCOPE_MODEL_CODE_TEXT_H

#include "base/arena.h"
#include "model/ids.h"

#include <stdbool.h>
#include <stdint.h>

enum { CODE_INSTRUCTIONS_MAX = 20000 }; /* of one function; larger ones are cut, and say so */

/* Where an instruction comes from: innermost inlined call first, the function itself last. */
struct code_origin {
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;        /* 0: not known    */
};

struct code_instruction {
	uint64_t vaddr;
	uint32_t size;
	uint32_t n_origins;
	const struct code_origin *origins; /* the same pointer as the instruction before has, where they are the same */
	const char *text;
	const char *target_name; /* of a call or jump that leaves the function; NULL: none */
	uint32_t jump; /* the number of the instruction of this function that it jumps to, counted from 1; 0: none */
};

struct code_text {
	module_id module;
	const char *name;
	uint64_t start, end;     /* vaddrs; `end` is that of the function, of which `cut` says that not all is here */
	bool cut;
	const char *no_lines;    /* why no instruction has a line, static words; NULL: some have, or may have */
	uint32_t n;
	struct code_instruction *instructions;
	struct arena memory;
};

/* Why there is no text of a file is a static sentence's part: "no such file". */
struct source_text {
	char *path;              /* as the debug info, or the interpreter, has it */
	const char *problem;     /* NULL: its lines are here */
	bool newer;              /* it was changed after the image was built: its lines may be others */
	uint32_t n;
	const char **lines;      /* [0] is line 1; without the newline, any bytes otherwise but NUL */
	char *bytes;
};

/* All that was read for some functions. */
struct code_sources {
	struct code_text *codes;         /* by module and address */
	struct source_text *texts;       /* by path               */
	struct code_problem {
		module_id module;
		const char *why;         /* its code is not here, static words */
	} *problems;
	uint32_t n_codes, n_texts, n_problems;
	uint32_t left_out;               /* functions with self cost that were not read, for there were too many */
};

/* The function's code that has this address in it; NULL: none was read. O(log n). */
const struct code_text *code_sources_code(const struct code_sources *s, module_id m, uint64_t vaddr);
/* NULL: it was not asked for. O(log n). */
const struct source_text *code_sources_text(const struct code_sources *s, const char *path);
void code_sources_fini(struct code_sources *s);

/* The number of the instruction that has this address in it, counted from 1; 0: none. O(log n). */
uint32_t code_text_find(const struct code_text *code, uint64_t vaddr);
void code_text_fini(struct code_text *code);

/* Takes over `bytes`, `len` of them with a NUL behind, and splits them into lines in place. 0 or -ENOMEM. */
int source_text_split(struct source_text *source, char *bytes, size_t len);
void source_text_fini(struct source_text *source);

#endif
