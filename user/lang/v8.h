/*
 * V8: what its files share. Internal to the room.
 *
 * V8 describes its objects for debuggers (tools/gen-postmortem-metadata.py): exported constants, v8dbg_class_Script__name__Object
 * and 500 more. They are incomplete, and their names change with the sources; where one is missing, what all
 * versions from 9.4 to 13.6 have, or a version's, stands in. Pointers to objects have their lowest bit set, small numbers
 * (Smi) are in the upper half of a word.
 */
#ifndef MEMSCOPE_LANG_V8_H
#define MEMSCOPE_LANG_V8_H

#include "lang/image.h"

/* --- v8_layout.c --- */

enum { V8_CANDIDATES = 4, V8_FIRST_NONSTRING = 128 };

/* The layout of `version` (0x000a0002: 10.2), by the constants of the file. -EOPNOTSUPP with a sentence. */
int v8_layout_read(struct elf_file *elf, uint32_t version, struct v8_image *ret_v8, struct err *e);

/* --- v8_objects.c --- */

/* Memory of a process, of which a page is read once: a frame takes hundreds of reads of a few bytes, from a few places. */
enum { V8_PAGE = 1024, V8_PAGES = 64 };

struct v8_pages {
	const struct lang_memory *from;
	struct lang_memory mem; /* what reads through them */
	uint64_t at[V8_PAGES];
	bool has[V8_PAGES];
	uint8_t bytes[V8_PAGES][V8_PAGE];
};

void v8_pages_open(struct v8_pages *p, const struct lang_memory *from);
/* What is read from now on is read anew. */
void v8_pages_forget(struct v8_pages *p);

struct v8_reader {
	const struct v8_rt *rt;
	const struct lang_memory *mem;
	struct v8_pages *pages; /* NULL: mem is not read through any */
};

static inline bool v8_is_pointer(uint64_t word)
{
	return (word & 3) == 1;
}

/* The word at byte `at` of an object, which is read. */
bool v8_word(const struct v8_reader *r, uint64_t object, uint32_t at, uint64_t *ret_word);
/* Its instance type; -1: it is no object, or cannot be read. */
int v8_type(const struct v8_reader *r, uint64_t object);
bool v8_is(const struct v8_reader *r, uint64_t object, uint16_t type);
/* Elements of an array of objects: its `ix`th. */
bool v8_element(const struct v8_reader *r, uint64_t array, uint32_t ix, uint64_t *ret_word);
/* Elements, or bytes, of any array; -1: it cannot be read. */
int64_t v8_length(const struct v8_reader *r, uint64_t array);

/* --- v8_text.c --- */

/*
 * A String as UTF-8: control characters and what is no text become \xNN, \uNNNN. `ret_cut`: it was longer than its room.
 * -EIO: it cannot be read, -EBADMSG: it is none.
 */
int v8_text(const struct v8_reader *r, uint64_t string, char *ret_text, size_t room, bool *ret_cut);

/* Where the characters of a flat string are. */
struct v8_chars {
	uint64_t at;
	uint32_t n;
	bool two_bytes;
};
/* -EBADMSG: it is not flat, or no string. */
int v8_flat(const struct v8_reader *r, uint64_t string, struct v8_chars *ret_chars);

/* --- v8_lines.c --- */

/* A place in source text, and among the functions that were inlined (-1: in none of them). */
struct v8_position {
	int64_t offset;  /* characters; -1: unknown */
	int32_t inlined;
};

/*
 * A table of source positions, of bytecode or compiled code, which is an array of bytes: the last one not behind
 * `at`, and the first behind it. Those that are not there have an offset of -1. -EIO, -EBADMSG.
 */
int v8_positions(const struct v8_reader *r, uint64_t table, int64_t at, struct v8_position *ret_before,
		 struct v8_position *ret_after);
/* Of one word. */
struct v8_position v8_position_of(uint64_t raw);
/* The line of character `offset` in a Script; 0: unknown. */
uint32_t v8_line(const struct v8_reader *r, uint64_t script, int64_t offset);

/* Numbers of 7 bits a byte, read from a process part by part. */
struct v8_stream {
	const struct lang_memory *mem;
	uint64_t at, end;
	uint8_t part[256];
	uint16_t n, next;
	bool lost;
};
/* An array of bytes. */
bool v8_stream_open(const struct v8_reader *r, uint64_t array, struct v8_stream *s);
bool v8_stream_ended(const struct v8_stream *s);
uint64_t v8_stream_number(struct v8_stream *s);
uint8_t v8_stream_byte(struct v8_stream *s);

/* --- v8_code.c --- */

/* A Code object. */
struct v8_code {
	uint64_t object;       /* … as a pointer */
	uint64_t start, size;  /* of the instructions */
	uint32_t kind;
	uint64_t deopt;        /* DeoptimizationData; Sparkplug: the BytecodeArray, or what has it */
	uint64_t positions;    /* a table; Sparkplug: of offsets in bytecode */
};

/* false: it cannot be read, or is none. */
bool v8_code_read(const struct v8_reader *r, uint64_t object, struct v8_code *ret_code);
/* The one that has instructions at `pc`. */
bool v8_code_find(const struct v8_reader *r, uint64_t pc, struct v8_code *ret_code);
enum { V8_ENTRY = -1, V8_NOWHERE = -2 }; /* in place of an offset in bytecode or code: the function's entry; unknown */

/* Of Sparkplug's code: the offset in its bytecode of the instructions that end at `end` or later. */
int64_t v8_baseline_offset(const struct v8_reader *r, const struct v8_code *code, uint64_t bytecodes, uint32_t end);

/* --- v8_deopt.c --- */

/* NULL: it is older than those that are known. */
const struct v8_deopt_layout *v8_deopt_layout(uint32_t version);

/* A function in which optimized code is. */
struct v8_active {
	uint64_t shared;
	int64_t bytecode; /* where in its bytecode, or V8_ENTRY */
	bool builtin;     /* V8's own: it has none */
};

/* Which deoptimization belongs to the call that returns to byte `off` of the code; -1: none. */
int32_t v8_deopt_of_call(const struct v8_reader *r, const struct v8_code *code, uint32_t off);
/* How many there are. */
uint32_t v8_deopts(const struct v8_reader *r, const struct v8_code *code);
/* The functions in which the code is there, the innermost first. 0: it cannot be read, or there are too many. */
uint32_t v8_deopt_frames(const struct v8_reader *r, const struct v8_code *code, uint32_t deopt,
			 struct v8_active frames[LANG_INLINED_MAX]);
/* Has its table of positions more of them than there are calls? */
bool v8_positions_of_all(const struct v8_reader *r, const struct v8_code *code);

#endif
