/*
 * Objects of Ruby's: strings, arrays, IDs and their names, names of classes (include/ruby/internal/core/rstring.h,
 * rarray.h, symbol.c, variable.c, class.c).
 *
 *   any object   flags:8 class:8 …
 *   String       length and place of the bytes; short ones are in the object, with the length among the flags up to 3.1
 *   Array        the same, always with the length among the flags
 *   names        an Array of Arrays of 512 pairs, {String, Symbol}, by the serial number of an ID
 */
#include "lang/ruby.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	OBJECT_BYTES = 40,
	ELSEWHERE = 1 << 13, /* String: RSTRING_NOEMBED                  */
	IN_OBJECT = 1 << 13, /* Array: RARRAY_EMBED_FLAG                */
	STRING_LENGTH_SHIFT = 14,
	ARRAY_LENGTH_SHIFT = 15,
	ARRAY_LENGTH_MASK = 0x7f,
	EMBEDDED_MAX = 640 - 24, /* of the largest slots, 3.2 on */
	LENGTH_MAX = 1 << 24,
	AT_ONCE = 256,
	LAST_OPERATOR =
		1000, /* IDs of operators are tokens, fewer than 256; those of names at least 150 << 4 */
	NAMES_EACH = 512,
	VARIABLES_MAX = 64,
};

struct object {
	uint64_t word[OBJECT_BYTES / 8];
};

static int read_object(const struct lang_memory *mem, uint64_t at, unsigned type,
		       struct object *ret)
{
	if (!ruby_is_object(at))
		return -EBADMSG;
	if (!lang_read(mem, at, ret->word, sizeof(ret->word)))
		return -EIO;
	return (ret->word[0] & RUBY_T_MASK) == type ? 0 : -EBADMSG;
}

/* --- strings --- */

/* The code point at `p`, of `len` bytes; its length, 0: that is none. */
static size_t point_of(const uint8_t *p, size_t len, uint32_t *ret_point)
{
	size_t n = p[0] < 0x80       ? 1
		   : p[0] >> 5 == 6  ? 2
		   : p[0] >> 4 == 14 ? 3
		   : p[0] >> 3 == 30 ? 4
				     : 0;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;

	if (!n || n > len)
		return 0;
	c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	*ret_point = c;
	return c < least[n] || c > 0x10ffff ? 0 : n;
}

/* Not: controls, surrogates, marks of direction and of lines, and what is not a character. */
static bool is_harmless(uint32_t c)
{
	return !(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
		 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe);
}

/* Appends what `n` bytes at `p` are. false: there is no room left. */
static bool append(char *text, size_t room, size_t *len, const uint8_t *p, size_t n, bool harmless)
{
	size_t more = harmless ? n : 4 * n;

	if (*len + more + 1 > room)
		return false;
	if (harmless)
		memcpy(text + *len, p, n);
	else
		for (size_t i = 0; i < n; i++)
			snprintf(text + *len + 4 * i, 5, "\\x%02x", p[i]);
	*len += more;
	text[*len] = '\0';
	return true;
}

static int string_bytes(const struct ruby_rt *ruby, uint64_t at, const struct object *o,
			uint64_t *ret_at, uint64_t *ret_len)
{
	bool elsewhere = o->word[0] & ELSEWHERE;
	uint64_t embedded =
		ruby->length_apart ? o->word[2] : o->word[0] >> STRING_LENGTH_SHIFT & 0x1f;

	*ret_at = elsewhere ? o->word[3] : at + (ruby->length_apart ? 24 : 16);
	*ret_len = elsewhere ? o->word[2] : embedded;
	return *ret_len > (elsewhere ? LENGTH_MAX : EMBEDDED_MAX) ? -EBADMSG : 0;
}

int ruby_text(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t string,
	      char *ret_text, size_t room, bool *ret_cut)
{
	size_t len = strlen(ret_text);
	uint8_t buf[AT_ONCE];
	uint64_t at, left;
	struct object o;
	int r = read_object(mem, string, RUBY_T_STRING, &o);

	if (r == 0)
		r = string_bytes(ruby, string, &o, &at, &left);
	while (r == 0 && left) {
		size_t n = left < AT_ONCE ? (size_t)left : AT_ONCE, k = 0;

		if (!lang_read(mem, at, buf, n))
			return -EIO;
		/* A character may go over the end of this part. */
		while (k < n && (n - k >= 4 || n == left)) {
			uint32_t c;
			size_t bytes = point_of(buf + k, n - k, &c);

			if (!append(ret_text, room, &len, buf + k, bytes ? bytes : 1,
				    bytes && is_harmless(c))) {
				*ret_cut = true;
				return 0;
			}
			k += bytes ? bytes : 1;
		}
		at += k;
		left -= k;
	}
	return r;
}

/* --- arrays, names --- */

int ruby_element(const struct lang_memory *mem, uint64_t array, uint64_t i, uint64_t *ret_value)
{
	uint64_t at, len;
	struct object o;
	int r = read_object(mem, array, RUBY_T_ARRAY, &o);

	if (r < 0)
		return r;
	if (o.word[0] & IN_OBJECT) {
		at = array + 16;
		len = o.word[0] >> ARRAY_LENGTH_SHIFT & ARRAY_LENGTH_MASK;
	} else {
		at = o.word[4];
		len = o.word[2];
	}
	if (i >= len || len > LENGTH_MAX)
		return -EBADMSG;
	return lang_read(mem, at + 8 * i, ret_value, sizeof(*ret_value)) ? 0 : -EIO;
}

int ruby_name(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t id,
	      uint64_t *ret_string)
{
	uint64_t serial = id > LAST_OPERATOR ? id >> 4 : id, names, part;
	int r;

	if (!lang_read(mem, ruby->names, &names, sizeof(names)))
		return -EIO;
	r = ruby_element(mem, names, serial / NAMES_EACH, &part);
	return r < 0 ? r : ruby_element(mem, part, serial % NAMES_EACH * 2, ret_string);
}

/* --- classes --- */

static bool name_is(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t id,
		    const char *name)
{
	char text[32] = "";
	uint64_t string;
	bool cut = false;

	return ruby_name(ruby, mem, id, &string) == 0 &&
	       ruby_text(ruby, mem, string, text, sizeof(text), &cut) == 0 && !strcmp(text, name);
}

/*
 * A variable of a class, up to 3.1, in a hash table (st.h, st.c): entries_start, entries_bound and entries at 32, each entry
 * hash, key and value.
 */
static int class_variable(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t klass,
			  const char *const names[2], uint64_t *ret_value)
{
	uint64_t ext, table, head[3], entry[3];

	if (!lang_read(mem, klass + 24, &ext, sizeof(ext)) ||
	    !lang_read(mem, ext + ruby->class_variables, &table, sizeof(table)))
		return -EIO;
	if (!table)
		return -ENOENT;
	if (!lang_read(mem, table + 32, head, sizeof(head)))
		return -EIO;
	for (uint64_t i = head[0]; i < head[1] && i < head[0] + VARIABLES_MAX; i++) {
		if (!lang_read(mem, head[2] + i * sizeof(entry), entry, sizeof(entry)))
			return -EIO;
		/* Of an entry that was deleted the hash is ~0. */
		if (entry[0] == ~0ULL)
			continue;
		if (name_is(ruby, mem, entry[1], names[0]) ||
		    (names[1] && name_is(ruby, mem, entry[1], names[1]))) {
			*ret_value = entry[2];
			return 0;
		}
	}
	return -ENOENT;
}

static int class_word(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t klass,
		      bool own, uint64_t *ret_value)
{
	static const char *const paths[] = { "__classpath__", "__tmp_classpath__" };
	static const char *const attached[] = { "__attached__", NULL };
	uint16_t at = own ? ruby->class_attached : ruby->class_path;

	if (ruby->class_variables)
		return class_variable(ruby, mem, klass, own ? attached : paths, ret_value);
	if (!at)
		return -ENOENT;
	return lang_read(mem, klass + at, ret_value, sizeof(*ret_value)) ? 0 : -EIO;
}

static int read_class(const struct lang_memory *mem, uint64_t at, struct object *ret)
{
	int r = read_object(mem, at, RUBY_T_CLASS, ret);

	return r == -EBADMSG ? read_object(mem, at, RUBY_T_MODULE, ret) : r;
}

int ruby_class(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t owner,
	       uint64_t *ret_string, bool *ret_own)
{
	uint64_t klass = owner;
	struct object o, of;
	bool own;
	int r = read_class(mem, owner, &o);

	if (r < 0)
		return r;
	own = (o.word[0] & RUBY_T_MASK) == RUBY_T_CLASS && o.word[0] & ruby->singleton;
	if (own) {
		r = class_word(ruby, mem, owner, true, &klass);
		if (r < 0)
			return r;
		/* Of an object that is no class: it has no name. Its class must be the one that names it. */
		if (read_class(mem, klass, &of) < 0 || of.word[1] != owner)
			return -ENOENT;
	}
	r = class_word(ruby, mem, klass, false, ret_string);
	if (r == 0 && !ruby_is_object(*ret_string))
		r = -ENOENT;
	*ret_own = own;
	return r;
}
