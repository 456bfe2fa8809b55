/*
 * A frame of CPython's as the walk recorded it, its code object's address, a cookie of three of its fields, and the
 * place in it, to function, file and line. The object may have been freed meanwhile and its memory be anything:
 * its type, the cookie, and every string are checked, and the object is read once more at the end.
 */
#include "abi.h"
#include "lang/python.h"

#include <errno.h>
#include <string.h>

enum { CODE_BYTES_MAX = 256, INT_SIGN_BIT = 31 };

struct code {
	uint64_t freed; /* it has no count of references */
	uint64_t type, name, filename, qualname, linetable, first_line;
};

/*
 * The first word of an object is the count of its references. In free memory it is a pointer to the next free block
 * or 0 (pymalloc, malloc), while most of what was there still is. From 3.14 on the word has other things in it.
 */
static bool is_freed(const struct lang_runtime *rt, uint64_t first_word)
{
	return rt->ob_type == 8 && rt->version < 0x030e00 && (!first_word || first_word >> 40);
}

static bool read_code(const struct lang_runtime *rt, const struct lang_memory *mem, uint64_t at,
		      struct code *ret_code)
{
	const struct ms_python *p = &rt->row.python;
	uint8_t buf[CODE_BYTES_MAX];
	size_t len = p->code_linetable;
	uint64_t first_word;

	len = rt->code_filename > len ? rt->code_filename : len;
	len = rt->code_qualname > len ? rt->code_qualname : len;
	len += 8;
	if (len > sizeof(buf) || !lang_read(mem, at, buf, len))
		return false;
	memcpy(&first_word, buf, 8);
	ret_code->freed = is_freed(rt, first_word);
	memcpy(&ret_code->type, buf + rt->ob_type, 8);
	memcpy(&ret_code->name, buf + p->code_name, 8);
	memcpy(&ret_code->filename, buf + rt->code_filename, 8);
	memcpy(&ret_code->qualname, buf + rt->code_qualname, 8);
	memcpy(&ret_code->linetable, buf + p->code_linetable, 8);
	ret_code->first_line = 0;
	memcpy(&ret_code->first_line, buf + p->code_first_line, 4);
	return true;
}

/* A bytes object: the head of any object, length:8 hash:8, then its bytes. */
static int open_table(const struct lang_runtime *rt, const struct lang_memory *mem, uint64_t at,
		      struct python_table *ret_table)
{
	uint8_t head[40];
	uint64_t len, first_word;

	if (!at || at % 8)
		return -EBADMSG;
	if (!lang_read(mem, at, head, rt->object_head + sizeof(len)))
		return -EIO;
	memcpy(&first_word, head, sizeof(first_word));
	memcpy(&len, head + rt->object_head, sizeof(len));
	if (is_freed(rt, first_word))
		return -EIO;
	ret_table->mem = mem;
	ret_table->at = at + rt->object_head + 16;
	ret_table->end = ret_table->at + len;
	ret_table->n = ret_table->next = 0;
	ret_table->lost = false;
	return len > 1 << 24 ? -EBADMSG : 0;
}

/* Bytes from the begin of the code; -1: before its first instruction. False: not known. */
static bool place_of(const struct lang_runtime *rt, uint32_t instr, int64_t *ret_at)
{
	if (rt->row.python.instr_kind == MS_PYTHON_LASTI) {
		/* An int; from 3.10 on it counts instructions of 2 bytes. */
		*ret_at = instr >> INT_SIGN_BIT     ? -1
			  : rt->version >= 0x030a00 ? 2 * (int64_t)instr
						    : instr;
		return true;
	}
	if (instr == MS_LANG_NO_INSTR)
		return false;
	*ret_at = (int64_t)instr - rt->code_bytecode;
	/* 3.11 and 3.12 note the instruction before the first where nothing was executed yet. */
	return *ret_at >= -2;
}

static enum python_lines lines_of(const struct lang_runtime *rt)
{
	uint32_t minor = rt->version >> 8 & 0xff;

	return minor < 10 ? PYTHON_LNOTAB : minor == 10 ? PYTHON_LINES_10 : PYTHON_LOCATIONS;
}

static enum lang_decoded why(int r)
{
	return r == -EIO ? LANG_GONE : LANG_DAMAGED;
}

static bool is_the_one(const struct lang_runtime *rt, const struct code *code, uint64_t at_word)
{
	return !code->freed && (!rt->code_type || code->type == rt->code_type) &&
	       ms_python_cookie((uint32_t)code->first_line, code->name, code->linetable) ==
		       (at_word >> 32 & MS_LANG_COOKIE_MASK);
}

static int read_names(const struct lang_runtime *rt, const struct lang_memory *mem,
		      const struct code *code, struct lang_frame *frame)
{
	bool cut;
	int r = python_text(rt, mem, code->qualname, frame->function, sizeof(frame->function),
			    &cut);

	if (r < 0)
		return r;
	r = python_text(rt, mem, code->filename, frame->file, sizeof(frame->file), &frame->cut);
	frame->cut |= cut;
	return r;
}

static int read_line(const struct lang_runtime *rt, const struct lang_memory *mem,
		     const struct code *code, uint32_t instr, struct lang_frame *frame)
{
	struct python_table table;
	int64_t at, line = 0;
	int r = open_table(rt, mem, code->linetable, &table);

	if (r < 0)
		return r;
	if (place_of(rt, instr, &at))
		line = python_line(lines_of(rt), &table, (uint32_t)code->first_line, at);
	if (line == -EIO)
		return -EIO;
	/* A place behind the end of the table has no line; the function is what it is. */
	frame->line = line > 0 ? (uint32_t)line : 0;
	frame->first_line = code->first_line <= INT32_MAX ? (uint32_t)code->first_line : 0;
	return 0;
}

enum lang_decoded python_decode(const struct lang_runtime *rt, const struct lang_memory *mem,
				const uint64_t words[2], struct lang_frame *ret_frame)
{
	uint64_t at = words[0] & MS_FRAME_ADDR_MASK;
	struct lang_frame frame;
	struct code code = { 0 }, after = { 0 };
	int r;

	if (!at || !read_code(rt, mem, at, &code))
		return LANG_GONE;
	/* Another object is there by now: that this one was freed is all that is known. */
	if (!is_the_one(rt, &code, words[1]))
		return LANG_GONE;
	frame.cut = false;
	r = read_names(rt, mem, &code, &frame);
	if (r == 0)
		r = read_line(rt, mem, &code, (uint32_t)words[1], &frame);
	if (!read_code(rt, mem, at, &after) || memcmp(&code, &after, sizeof(code)) != 0)
		return LANG_GONE;
	if (r < 0)
		return why(r);
	*ret_frame = frame;
	return LANG_DECODED;
}
