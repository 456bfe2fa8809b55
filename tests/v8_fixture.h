/*
 * A process with V8 in it, made of bytes: maps, a function with its names, source and bytecode, code by Sparkplug, and optimized
 * code with one function inlined into another, laid out as in node 20. Tests and the fuzzer change it.
 *
 *   1  // a comment
 *   2  function outer(n) {
 *   3      return inner(n) + 1; }
 *   4  function inner(n) { return nap(n); }
 */
#ifndef MEMSCOPE_TESTS_V8_FIXTURE_H
#define MEMSCOPE_TESTS_V8_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/v8.h"

#include <string.h>

#define V8F_BIAS 0x7e0000000000ULL

enum {
	V8F_LEN = 0x8000,
	/* Instance types, and the maps of them at V8F_MAPS + 0x40 each. */
	V8F_BYTECODES = 191, V8F_SHARED = 262, V8F_SCOPE = 261, V8F_SCRIPT = 167, V8F_CODE = 245, V8F_FUNCTION = 2066,
	V8F_ARRAY = 175, V8F_BYTES = 190, V8F_STREAM = 252, V8F_ONE_BYTE = 40, V8F_TWO_BYTES = 32, V8F_CONS = 41,
	V8F_SLICED = 43, V8F_THIN = 45, V8F_EXTERNAL = 42, V8F_ODDBALL = 131,
	V8F_MAPS = 0x100,
	V8F_OUTER = 0x1000, /* SharedFunctionInfo … */
	V8F_INNER = 0x1080,
	V8F_BUILTIN = 0x1100,
	V8F_OUTER_SCOPE = 0x1200,
	V8F_INNER_SCOPE = 0x1280,
	V8F_SCRIPT_AT = 0x1300,
	V8F_SOURCE = 0x1400,
	V8F_FILE = 0x1600,
	V8F_OUTER_NAME = 0x1680,
	V8F_INNER_NAME = 0x16c0,
	V8F_ENDS = 0x1700,
	V8F_UNDEFINED = 0x1780,
	V8F_BYTECODES_AT = 0x1800,
	V8F_POSITIONS = 0x1880,
	V8F_JS = 0x1900,        /* JSFunction of outer */
	V8F_CLOSURE = 0x1980,   /* … of the builtin   */
	V8F_LITERALS = 0x1a80,
	V8F_INLININGS = 0x1b00,
	V8F_CODE_POSITIONS = 0x1b80,
	V8F_OPTIMIZED = 0x1c00, /* Code */
	V8F_BASELINE = 0x1c80,
	V8F_OFFSETS = 0x1d00,
	V8F_TEXTS = 0x1e00,     /* more strings */
	V8F_DEOPT = 0x2000,     /* DeoptimizationData … */
	V8F_DEOPTS = 3,         /* … with so many */
	V8F_FIRST_DEOPT = V8F_DEOPT + 16 + 8 * 11,
	V8F_TRANSLATIONS = 0x2400,
	V8F_JIT = 0x4000,       /* code, to … */
	V8F_JIT_END = 0x6000,
	V8F_OPTIMIZED_AT = V8F_JIT + 0x230, /* its InstructionStream */
	V8F_SAFEPOINTS = V8F_OPTIMIZED_AT + 16 + 0x200,
	V8F_BASELINE_AT = V8F_JIT + 0x630,
	V8F_NUMBER = 4,         /* of outer in the script */
};

struct v8_process {
	uint8_t bytes[V8F_LEN];
	struct lang_image image;
	struct lang_mapped at;
	struct fake_process memory;
	uint32_t n_maps;
};

static inline uint64_t v8f_addr(uint32_t off)
{
	return V8F_BIAS + off;
}

/* A pointer to the object there. */
static inline uint64_t v8f_ptr(uint32_t off)
{
	return V8F_BIAS + off + 1;
}

static inline void v8f_put(struct v8_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

static inline void v8f_smi(struct v8_process *p, uint32_t off, int32_t value)
{
	v8f_put(p, off, (uint64_t)(uint32_t)value << 32, 8);
}

/* An object of `type`: its map. */
static inline void v8f_object(struct v8_process *p, uint32_t off, uint16_t type)
{
	uint32_t map = V8F_MAPS;
	uint16_t has;

	for (uint32_t i = 0; i < p->n_maps; i++, map += 0x40) {
		memcpy(&has, p->bytes + map + 12, 2);
		if (has == type)
			break;
	}
	if (map == V8F_MAPS + 0x40 * p->n_maps)
		p->n_maps++;
	v8f_put(p, map, v8f_ptr(V8F_MAPS), 8);
	v8f_put(p, map + 12, type, 2);
	v8f_put(p, off, v8f_ptr(map), 8);
}

static inline void v8f_text(struct v8_process *p, uint32_t off, const char *text)
{
	v8f_object(p, off, V8F_ONE_BYTE);
	v8f_put(p, off + 12, strlen(text), 4);
	memcpy(p->bytes + off + 16, text, strlen(text));
}

static inline void v8f_bytes(struct v8_process *p, uint32_t off, const void *bytes, uint32_t n)
{
	v8f_object(p, off, V8F_BYTES);
	v8f_smi(p, off + 8, (int32_t)n);
	memcpy(p->bytes + off + 16, bytes, n);
}

static inline void v8f_function(struct v8_process *p, uint32_t off, uint32_t name, uint32_t data, uint32_t number)
{
	v8f_object(p, off, V8F_SHARED);
	v8f_put(p, off + 8, v8f_ptr(data), 8);
	v8f_put(p, off + 16, v8f_ptr(name), 8);
	v8f_put(p, off + 32, v8f_ptr(V8F_SCRIPT_AT), 8);
	v8f_put(p, off + 40, 0x0002000100020001ULL, 8);
	v8f_put(p, off + 48, (uint64_t)number << 32 | 0x1080, 8);
}

/* With one local, so that the name is behind that. */
static inline void v8f_scope(struct v8_process *p, uint32_t off, uint32_t name)
{
	v8f_object(p, off, V8F_SCOPE);
	v8f_smi(p, off + 8, 0x4171c2);
	v8f_smi(p, off + 16, 1);
	v8f_smi(p, off + 24, 1);
	v8f_put(p, off + 32, v8f_ptr(V8F_FILE), 8);
	v8f_smi(p, off + 40, 0);
	v8f_put(p, off + 48, v8f_ptr(name), 8);
	v8f_smi(p, off + 56, -1);
}

static inline void v8f_code(struct v8_process *p, uint32_t off, uint32_t stream, uint32_t kind, uint32_t deopt,
			    uint32_t positions, uint32_t size)
{
	v8f_object(p, off, V8F_CODE);
	v8f_put(p, off + 16, v8f_ptr(deopt), 8);
	v8f_put(p, off + 24, v8f_ptr(positions), 8);
	v8f_put(p, off + 32, v8f_ptr(stream), 8);
	v8f_put(p, off + 40, v8f_addr(stream + 16), 8);
	v8f_put(p, off + 48, kind, 4);
	v8f_put(p, off + 56, size, 4);
	v8f_object(p, stream, V8F_STREAM);
	v8f_put(p, stream + 8, v8f_ptr(off), 8);
}

static inline void v8f_source(struct v8_process *p)
{
	static const char text[] = "// a comment\nfunction outer(n) {\n\treturn inner(n) + 1; }\nfunction inner(n) { return nap(n); }\n";
	uint32_t n = 0;

	v8f_text(p, V8F_SOURCE, text);
	v8f_text(p, V8F_FILE, "/srv/app/main.js");
	v8f_text(p, V8F_OUTER_NAME, "outer");
	v8f_text(p, V8F_INNER_NAME, "inner");
	v8f_object(p, V8F_UNDEFINED, V8F_ODDBALL);
	v8f_object(p, V8F_ENDS, V8F_ARRAY);
	for (uint32_t i = 0; text[i]; i++)
		if (text[i] == '\n')
			v8f_smi(p, V8F_ENDS + 16 + 8 * n++, (int32_t)i);
	v8f_smi(p, V8F_ENDS + 8, (int32_t)n);
	v8f_object(p, V8F_SCRIPT_AT, V8F_SCRIPT);
	v8f_put(p, V8F_SCRIPT_AT + 8, v8f_ptr(V8F_SOURCE), 8);
	v8f_put(p, V8F_SCRIPT_AT + 16, v8f_ptr(V8F_FILE), 8);
	v8f_put(p, V8F_SCRIPT_AT + 56, v8f_ptr(V8F_ENDS), 8);
	v8f_scope(p, V8F_OUTER_SCOPE, V8F_OUTER_NAME);
	v8f_scope(p, V8F_INNER_SCOPE, V8F_INNER_NAME);
	v8f_function(p, V8F_OUTER, V8F_OUTER_SCOPE, V8F_BYTECODES_AT, V8F_NUMBER);
	v8f_function(p, V8F_INNER, V8F_INNER_SCOPE, V8F_UNDEFINED, V8F_NUMBER + 1);
	/* Of V8's own: a Smi in place of bytecode, a text in place of a scope, no script. */
	v8f_function(p, V8F_BUILTIN, V8F_INNER_NAME, V8F_UNDEFINED, 0xffffffff);
	v8f_smi(p, V8F_BUILTIN + 8, 700);
	v8f_put(p, V8F_BUILTIN + 32, v8f_ptr(V8F_UNDEFINED), 8);
	for (int i = 0; i < 2; i++) {
		v8f_object(p, i ? V8F_CLOSURE : V8F_JS, V8F_FUNCTION);
		v8f_put(p, (i ? V8F_CLOSURE : V8F_JS) + 24, v8f_ptr(i ? V8F_BUILTIN : V8F_OUTER), 8);
	}
}

/*
 * Calls that may go back to the interpreter: the one that returns to 0x28 is in inner, which the builtin calls that outer has called
 * at bytecode 6; the one to 0x38 at inner's entry, below the same; the one to 0x48 cannot.
 */
static inline void v8f_deopts(struct v8_process *p)
{
	static const uint8_t translations[] = {
		2, 0, 6, 6, 24, 12, 2, 4, 31, 2, 28, 25, 0xf8, 10, 4, 0, 29, 1, 24, 12, 0, 0,
		2, 22, 6, 6, 36 + 5, 24, 3, 0, 0,
		3, 0, 2, 2, 24, 12, 2, 0 };
	static const uint16_t begins[V8F_DEOPTS] = { 0, 22, 31 };
	/* How many, and how wide they are; pc, number of the deoptimization + 1, and where it goes then, + 1. */
	static const uint8_t safepoints[] = { 3, 0, 0, 0, 0xa1, 0, 0, 0, 0x28, 0, 1, 0xe9, 1, 0x38, 0, 2, 0xf1, 1, 0x48, 0, 0, 0, 0 };

	v8f_object(p, V8F_DEOPT, V8F_ARRAY);
	v8f_smi(p, V8F_DEOPT + 8, 11 + 3 * V8F_DEOPTS);
	v8f_put(p, V8F_DEOPT + 16, v8f_ptr(V8F_TRANSLATIONS), 8);
	v8f_smi(p, V8F_DEOPT + 16 + 8, 1);
	v8f_put(p, V8F_DEOPT + 16 + 16, v8f_ptr(V8F_LITERALS), 8);
	v8f_put(p, V8F_DEOPT + 16 + 48, v8f_ptr(V8F_OUTER), 8);
	v8f_put(p, V8F_DEOPT + 16 + 56, v8f_ptr(V8F_INLININGS), 8);
	for (uint32_t i = 0; i < V8F_DEOPTS; i++)
		v8f_smi(p, V8F_FIRST_DEOPT + 24 * i + 8, begins[i]);
	v8f_bytes(p, V8F_TRANSLATIONS, translations, sizeof(translations));
	memcpy(p->bytes + V8F_SAFEPOINTS, safepoints, sizeof(safepoints));
}

/* Bytecodes of 1, 3 and 2 bytes, a wide one of 5, one of 1; calls at offsets 4 (line 3) and 6. */
static inline void v8f_compiled(struct v8_process *p)
{
	/* Entry: -1, character 13; offset 0, statement, 35; 4, expression, 42; 6, expression, 51. */
	static const uint8_t positions[] = { 0x01, 0x38, 0x02, 0x58, 0x09, 0x1c, 0x05, 0x24 };
	static const uint8_t codes[] = { 0x10, 0x20, 1, 2, 0x30, 3, 0x00, 0x20, 1, 0, 2, 0, 0x10 };
	/* Instructions of the entry, then of each bytecode. */
	static const uint8_t offsets[] = { 0x10, 4, 8, 0x20, 0x90, 1, 4 };
	/* At 0x10, character 42 of outer; at 0x20, 82 in inner, which is the first that was inlined; at 0x30, 51 of outer. */
	static const uint8_t optimized[] = { 0x23, 0xac, 0x01, 0x21, 0xa0, 0x81, 0x80, 0x80, 0x10, 0x21, 0xfb, 0x80, 0x80, 0x80, 0x10 };

	v8f_object(p, V8F_BYTECODES_AT, V8F_BYTECODES);
	v8f_smi(p, V8F_BYTECODES_AT + 8, sizeof(codes));
	v8f_put(p, V8F_BYTECODES_AT + 32, v8f_ptr(V8F_POSITIONS), 8);
	memcpy(p->bytes + V8F_BYTECODES_AT + 54, codes, sizeof(codes));
	v8f_bytes(p, V8F_POSITIONS, positions, sizeof(positions));
	v8f_bytes(p, V8F_OFFSETS, offsets, sizeof(offsets));
	v8f_bytes(p, V8F_CODE_POSITIONS, optimized, sizeof(optimized));
	memset(p->bytes + V8F_JIT, 0x90, V8F_JIT_END - V8F_JIT);
	v8f_code(p, V8F_OPTIMIZED, V8F_OPTIMIZED_AT, 13, V8F_DEOPT, V8F_CODE_POSITIONS, 0x200);
	v8f_code(p, V8F_BASELINE, V8F_BASELINE_AT, 11, V8F_BYTECODES_AT, V8F_OFFSETS, 0x200);
	v8f_object(p, V8F_LITERALS, V8F_ARRAY);
	v8f_smi(p, V8F_LITERALS + 8, 4);
	for (int i = 0; i < 4; i++)
		v8f_put(p, V8F_LITERALS + 16 + 8 * (uint32_t)i,
			v8f_ptr(!i ? V8F_INNER : i == 2 ? V8F_BUILTIN : V8F_OUTER) | 2, 8); /* weak */
	v8f_deopts(p);
	v8f_object(p, V8F_INLININGS, V8F_BYTES);
	v8f_smi(p, V8F_INLININGS + 8, 16);
	v8f_put(p, V8F_INLININGS + 16, (42 + 1) << 1, 8); /* where inner is called, in no other */
	v8f_put(p, V8F_INLININGS + 24, 0, 4);
}

static inline void v8f_init(struct v8_process *p)
{
	struct v8_rt rt = {
		.map_type = 12, .type_function = V8F_FUNCTION, .type_function_last = V8F_FUNCTION + 15,
		.type_bytecodes = V8F_BYTECODES, .type_shared = V8F_SHARED, .type_scope = V8F_SCOPE, .type_script = V8F_SCRIPT,
		.type_code = V8F_CODE, .type_array = V8F_ARRAY, .function_shared = 24, .shared_data = 8, .shared_name = 16,
		.shared_script = 32, .shared_numbers = 40, .script_name = 16, .script_source = 8, .script_lines = 56,
		.bytecodes_positions = 32, .bytecodes_data = 54, .array_length = 8, .array_data = 16, .scope_locals = 24,
		.scope_first = 32, .code_stream = 32, .code_start = 40, .code_deopt = 16, .code_positions = 24,
		.code_size = 56, .code_flags = 48, .kind_mask = 15, .kind_baseline = 11, .kind_regexp = 3, .deopt_literals = 2,
		.deopt_shared = 6, .deopt_positions = 7,
		.deopts = v8_deopt_layout(11 << 16 | 3), .frame_regexp = 27, .frame_exit = 25, .n_bytecodes = 200,
	};

	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, V8F_BIAS, p->bytes, V8F_LEN);
	/* By their first half byte. */
	for (int i = 0; i < 3; i++) {
		rt.bytecode_size[i][0x10] = 1;
		rt.bytecode_size[i][0x20] = (uint8_t)(1 + (2 << i));
		rt.bytecode_size[i][0x30] = (uint8_t)(1 + (1 << i));
	}
	v8f_object(p, V8F_MAPS, 255);
	v8f_source(p);
	v8f_compiled(p);
	p->image.lang = MS_LANG_V8;
	p->image.v8 = (struct v8_image){ .version = 0x000b0003, .build = 244, .rt = rt };
	strcpy(p->image.name, "node");
	p->at = (struct lang_mapped){ &p->image, 0 };
}

static inline uint64_t v8f_cookie(uint32_t number)
{
	return ms_v8_cookie(2, number);
}

static inline void v8f_words(uint64_t what, uint64_t cookie, uint32_t at, uint64_t words[2])
{
	words[0] = (what & MS_FRAME_ADDR_MASK) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_V8 << MS_LANG_SHIFT |
		   (cookie & MS_LANG_COOKIE_MASK) << 32 | at;
}

#endif
