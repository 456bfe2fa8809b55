/*
 * A frame of PHP's as the walk recorded it (bpf/walk/php.h), its function's address, a cookie and a line, to function and file.
 * Functions of a request are freed at its end, and the next request's lie in the same memory: the cookie is checked, strings are,
 * and the function is read once more at the end.
 *
 *   zend_function  type:1 … function_name@8 scope@16 …   of the program's code: opcodes, filename, line_start:4 line_end:4
 *   zend_string    references:4 type:4 hash:8 length:8 bytes
 */
#include "abi.h"
#include "base/utf8.h"
#include "lang/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	INTERNAL = 1,
	COUNTER_BEFORE_FILE = 32, /* refcount, of zend_op_array, before filename, in all versions */
	COUNT_MAX = 1 << 20,
	EVAL_CODE = 4,
	CLASS_NAME = 8, /* of zend_class_entry */
	STRING_HASH = 8,
	STRING_LENGTH = 16,
	STRING_HEAD = 24,
	STRING_TYPE = 6, /* IS_STRING, in the low 4 bits of the type */
};

struct func {
	uint64_t name, scope, ops, file, lines, file_hash;
	uint8_t type;
};

static bool read_word(const struct lang_memory *mem, uint64_t at, uint64_t *ret_word)
{
	return lang_read(mem, at, ret_word, sizeof(*ret_word));
}

static bool read_func(const struct lang_runtime *rt, const struct lang_memory *mem, uint64_t at,
		      struct func *ret_func)
{
	const struct ms_php *p = &rt->row.php;
	struct func f;

	memset(&f, 0, sizeof(f)); /* it is compared as bytes */
	if (!lang_read(mem, at, &f.type, 1) || !read_word(mem, at + 8, &f.name) ||
	    !read_word(mem, at + 16, &f.scope) || !read_word(mem, at + p->func_ops, &f.ops))
		return false;
	if (f.type != INTERNAL && (!read_word(mem, at + p->func_file, &f.file) ||
				   !read_word(mem, at + p->func_file + 8, &f.lines) ||
				   !read_word(mem, f.file + STRING_HASH, &f.file_hash)))
		return false;
	*ret_func = f;
	return true;
}

/*
 * Code of the program has a count of its users, which its copies share, and none where it is in memory that is shared
 * between processes (opcache). What was freed has a pointer there, to what was freed before it, or 0.
 */
static bool is_alive(const struct lang_runtime *rt, const struct lang_memory *mem, uint64_t at,
		     const struct func *f)
{
	uint64_t counter;
	uint32_t count;

	if (f->type == INTERNAL)
		return true;
	if (!read_word(mem, at + rt->row.php.func_file - COUNTER_BEFORE_FILE, &counter))
		return false;
	return !counter ||
	       (lang_read(mem, counter, &count, sizeof(count)) && count && count <= COUNT_MAX);
}

/* --- text --- */

/* Bytes of the character at p (RFC 3629), `*ret_c`; 0: it is none. */
static size_t char_at(const uint8_t *p, size_t n, uint32_t *ret_c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80       ? 1
		     : p[0] >> 5 == 6  ? 2
		     : p[0] >> 4 == 14 ? 3
		     : p[0] >> 3 == 30 ? 4
				       : 0;
	uint32_t c;

	if (!len || len > n)
		return 0;
	c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[len])
		return 0;
	*ret_c = c;
	return len;
}

/* Controls, surrogates, marks of direction and of lines, and what is not a character, are not. */
static bool is_text(uint32_t c)
{
	return !(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
		 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe ||
		 c > 0x10ffff);
}

/* Appends `n` bytes, up to a 0, as text. false: there is no room left. */
static bool append(char *text, size_t room, const uint8_t *bytes, size_t n)
{
	size_t len = strlen(text);

	for (size_t i = 0, used; i < n && bytes[i]; i += used) {
		char one[8];
		uint32_t c = 0;
		size_t bytes_of;

		used = char_at(bytes + i, n - i, &c);
		if (used && is_text(c)) {
			bytes_of = utf8_encode(c, one);
		} else {
			used = 1;
			bytes_of = (size_t)snprintf(one, sizeof(one), "\\x%02x", bytes[i]);
		}
		if (len + bytes_of + 1 > room)
			return false;
		memcpy(text + len, one, bytes_of);
		len += bytes_of;
		text[len] = '\0';
	}
	return true;
}

/*
 * Appends a zend_string. What follows a 0 is no name: an anonymous class's has its file and line there. -EIO: it cannot be
 * read, -EBADMSG: it is none.
 */
static int append_string(const struct lang_memory *mem, uint64_t at, char *text, size_t room,
			 bool *cut)
{
	uint8_t head[STRING_HEAD], body[LANG_FILE_MAX];
	uint64_t length;
	size_t n;

	if (!at || at % 8)
		return -EBADMSG;
	if (!lang_read(mem, at, head, sizeof(head)))
		return -EIO;
	memcpy(&length, head + STRING_LENGTH, sizeof(length));
	if ((head[4] & 0xf) != STRING_TYPE || length > 1 << 24)
		return -EBADMSG;
	n = length < sizeof(body) ? (size_t)length : sizeof(body);
	if (n && !lang_read(mem, at + STRING_HEAD, body, n))
		return -EIO;
	/* The last character may be cut: not enough bytes for it. */
	if (!append(text, room, body, n) || length > sizeof(body))
		*cut = true;
	return 0;
}

/* --- a frame --- */

static int read_names(const struct lang_memory *mem, const struct func *f, uint32_t at,
		      struct lang_frame *frame)
{
	uint64_t class_name;
	int r = 0;

	frame->function[0] = frame->file[0] = '\0';
	if (!f->name) {
		snprintf(frame->function, sizeof(frame->function), "%s",
			 f->type == EVAL_CODE   ? "eval"
			 : at & MS_PHP_INCLUDED ? "include"
						: "{main}");
	} else if (f->scope) {
		if (!read_word(mem, f->scope + CLASS_NAME, &class_name))
			return -EIO;
		/* So that the method is there in any case. */
		r = append_string(mem, class_name, frame->function, LANG_NAME_MAX / 2, &frame->cut);
		strcat(frame->function, "::");
	}
	if (r == 0 && f->name)
		r = append_string(mem, f->name, frame->function, sizeof(frame->function),
				  &frame->cut);
	if (r == 0 && f->type != INTERNAL)
		r = append_string(mem, f->file, frame->file, sizeof(frame->file), &frame->cut);
	return r;
}

enum lang_decoded php_decode(const struct lang_runtime *rt, const struct lang_memory *mem,
			     const uint64_t words[2], struct lang_frame *ret_frame)
{
	uint64_t at = words[0] & MS_FRAME_ADDR_MASK;
	struct func func, after;
	struct lang_frame frame = { 0 };
	int r;

	if (!at || !read_func(rt, mem, at, &func) ||
	    ms_php_cookie(func.name, func.scope, func.ops, func.lines, func.file_hash) !=
		    (words[1] & MS_PHP_COOKIES))
		return LANG_GONE;
	r = read_names(mem, &func, (uint32_t)words[1], &frame);
	if (!read_func(rt, mem, at, &after) || memcmp(&func, &after, sizeof(func)) != 0)
		return LANG_GONE;
	/* Where a string should be is none: it has been freed before the rest was. */
	if (r < 0 || !is_alive(rt, mem, at, &func))
		return LANG_GONE;
	if (func.type != INTERNAL) {
		frame.line = (uint32_t)words[1] & MS_PHP_LINE;
		frame.first_line = (uint32_t)func.lines;
	}
	*ret_frame = frame;
	return LANG_DECODED;
}
