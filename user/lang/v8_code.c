/*
 * V8's code that is compiled at run time (src/objects/code.tq). Up to V8 10 a Code object has its instructions behind
 * its head; since V8 11 they are an object of their own, in a space that has nothing else:
 *
 *   InstructionStream: map, ─► Code, …, instructions         Code: …, ─► InstructionStream, address and size of the instructions
 *
 * The object that a pc is in is looked for downwards, by words that are the head of one, and then by what it says of
 * itself: pointers both ways, or a map of that type, and instructions that the pc is among.
 */
#include "lang/v8.h"

#include <string.h>

enum {
	BACK_MAX = 4 << 20, /* bytes of one function's code that are looked through */
	PART = 4096,
	SIZE_MAX_CODE = 256 << 20,
};

bool v8_code_read(const struct v8_reader *r, uint64_t object, struct v8_code *ret_code)
{
	const struct v8_rt *rt = r->rt;
	struct v8_code c = { .object = object };
	uint32_t size, flags;

	if (!v8_is_pointer(object) || !v8_is(r, object, rt->type_code) ||
	    !lang_read(r->mem, object - 1 + rt->code_size, &size, sizeof(size)) ||
	    !lang_read(r->mem, object - 1 + rt->code_flags, &flags, sizeof(flags)) ||
	    !v8_word(r, object, rt->code_deopt, &c.deopt) ||
	    !v8_word(r, object, rt->code_positions, &c.positions))
		return false;
	c.start = object - 1 + rt->code_header;
	if (!rt->code_header && !v8_word(r, object, rt->code_start, &c.start))
		return false;
	c.size = size;
	c.kind = flags & rt->kind_mask;
	if (size > SIZE_MAX_CODE)
		return false;
	*ret_code = c;
	return true;
}

/* Is there the head of an object with code at `at`, of which these are the first two words? */
static bool is_head(const struct v8_reader *r, uint64_t at, const uint64_t words[2], uint64_t pc,
		    struct v8_code *ret_code)
{
	uint64_t stream;

	if (!v8_is_pointer(words[0]) || !v8_is_pointer(words[1]) || words[0] >> 47 ||
	    words[1] >> 47)
		return false;
	if (r->rt->code_header) {
		if (!v8_code_read(r, at + 1, ret_code))
			return false;
	} else if (!v8_word(r, words[1], r->rt->code_stream, &stream) || stream != at + 1 ||
		   !v8_code_read(r, words[1], ret_code)) {
		return false;
	}
	return ret_code->start > at && pc >= ret_code->start &&
	       pc < ret_code->start + ret_code->size;
}

bool v8_code_find(const struct v8_reader *r, uint64_t pc, struct v8_code *ret_code)
{
	uint64_t words[PART / 8 + 1], high = pc & ~7ULL, behind = 0;

	for (uint64_t low = high & ~(uint64_t)(PART - 1); pc - low < BACK_MAX; low -= PART) {
		uint32_t n = (uint32_t)(high - low) / 8;

		if (low < PART || !lang_read(r->mem, low, words, n * 8))
			return false;
		words[n] = behind; /* what follows the part */
		for (uint32_t i = n; i-- > 0;)
			if (is_head(r, low + 8 * i, &words[i], pc, ret_code))
				return true;
		behind = words[0];
		high = low;
	}
	return false;
}

int64_t v8_baseline_offset(const struct v8_reader *r, const struct v8_code *code,
			   uint64_t bytecodes, uint32_t end)
{
	const struct v8_rt *rt = r->rt;
	struct v8_stream pcs, codes;
	uint32_t offset = 0;
	uint64_t at;

	if (!rt->n_bytecodes || !v8_stream_open(r, code->positions, &pcs) ||
	    !v8_stream_open(r, bytecodes, &codes))
		return V8_NOWHERE;
	codes.at += rt->bytecodes_data - rt->array_data;
	codes.end += rt->bytecodes_data - rt->array_data;
	at = v8_stream_number(&pcs);
	if (at >= end)
		return V8_ENTRY;
	while (!v8_stream_ended(&pcs) && !v8_stream_ended(&codes)) {
		uint8_t scale = 0, op = v8_stream_byte(&codes), size;

		at += v8_stream_number(&pcs);
		if (pcs.lost)
			return V8_NOWHERE;
		if (at >= end)
			return offset;
		if (op < 4) { /* Wide, ExtraWide, and the same with a breakpoint */
			scale = (op & 1) + 1;
			op = v8_stream_byte(&codes);
		}
		if (op >= rt->n_bytecodes)
			return V8_NOWHERE;
		size = rt->bytecode_size[scale][op];
		for (uint8_t i = 1; i < size; i++)
			v8_stream_byte(&codes);
		if (codes.lost || !size)
			return V8_NOWHERE;
		offset += size + (scale ? 1u : 0u);
	}
	return V8_NOWHERE;
}
