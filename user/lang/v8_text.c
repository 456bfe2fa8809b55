/*
 * V8's strings (src/objects/string.tq): the instance type says whether the characters are Latin-1 or UTF-16, and
 * whether they follow, are in another string (cons, sliced, thin) or outside of the heap (external).
 */
#include "lang/v8.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	STRING_LENGTH = 12,
	STRING_DATA = 16,   /* characters; of others the string that has them, or the first part */
	STRING_SECOND = 24, /* the second part; where it begins; where the characters are */
	NOT_STRING = 0x80,
	ONE_BYTE = 8,
	UNCACHED = 16, /* an external string that does not say where its characters are */
	SHAPE = 7,
	DEPTH_MAX = 64,
	CHARS_MAX = 2048,
};

enum shape { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };

struct text {
	const struct v8_reader *r;
	char *to;
	size_t len, room;
	bool cut;
	uint16_t high; /* a surrogate whose second one is still to come */
};

static bool is_text(uint32_t c)
{
	return !(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
		 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe ||
		 c > 0x10ffff);
}

static void add(struct text *t, uint32_t c)
{
	char one[16];
	size_t n;

	if (t->cut)
		return;
	if (is_text(c))
		n = utf8_encode(c, one);
	else
		n = (size_t)snprintf(one, sizeof(one), c < 0x100 ? "\\x%02x" : "\\u%04x", c);
	if (t->len + n + 1 > t->room) {
		t->cut = true;
		return;
	}
	memcpy(t->to + t->len, one, n);
	t->len += n;
	t->to[t->len] = '\0';
}

static void add_unit(struct text *t, uint16_t c)
{
	if (t->high && c >= 0xdc00 && c < 0xe000) {
		add(t, 0x10000 + ((t->high - 0xd800u) << 10) + (c - 0xdc00u));
		t->high = 0;
		return;
	}
	if (t->high)
		add(t, t->high);
	t->high = c >= 0xd800 && c < 0xdc00 ? c : 0;
	if (!t->high)
		add(t, c);
}

/* A string that has no other one in it; -ELOOP: it has, which is *string from now on. */
static int step(const struct v8_reader *r, uint64_t *string, uint64_t *from,
		struct v8_chars *ret_chars, int *ret_shape)
{
	int type = v8_type(r, *string);
	uint64_t word, second;
	uint32_t n;

	if (type < 0)
		return -EIO;
	if (type >= NOT_STRING)
		return -EBADMSG;
	if (!lang_read(r->mem, *string - 1 + STRING_LENGTH, &n, sizeof(n)))
		return -EIO;
	*ret_shape = type & SHAPE;
	*ret_chars = (struct v8_chars){ .n = n, .two_bytes = !(type & ONE_BYTE) };
	switch (type & SHAPE) {
	case SEQUENTIAL:
		ret_chars->at = *string - 1 + STRING_DATA;
		return 0;
	case EXTERNAL:
		if (type & UNCACHED)
			return -EBADMSG;
		return v8_word(r, *string, STRING_SECOND, &ret_chars->at) ? 0 : -EIO;
	case THIN:
	case SLICED:
		if (!v8_word(r, *string, STRING_DATA, &word) ||
		    !v8_word(r, *string, STRING_SECOND, &second))
			return -EIO;
		if ((type & SHAPE) == SLICED)
			*from += second >> 32;
		*string = word;
		return -ELOOP;
	case CONS:
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Through thin and sliced strings. */
static int open_string(const struct v8_reader *r, uint64_t *string, struct v8_chars *ret_chars,
		       int *ret_shape)
{
	uint64_t from = 0;
	uint32_t n = 0;
	bool has_n = false;

	for (int i = 0; i < DEPTH_MAX; i++) {
		int rc = step(r, string, &from, ret_chars, ret_shape);

		if (!has_n)
			n = ret_chars->n;
		has_n = true;
		if (rc == -ELOOP)
			continue;
		if (rc < 0)
			return rc;
		if (*ret_shape == CONS)
			return from ? -EBADMSG : 0;
		if (from + n > ret_chars->n)
			return -EBADMSG;
		ret_chars->at += from << ret_chars->two_bytes;
		ret_chars->n = n;
		return 0;
	}
	return -EBADMSG;
}

static int add_chars(struct text *t, const struct v8_chars *c)
{
	uint8_t bytes[2 * CHARS_MAX];
	uint32_t n = c->n < CHARS_MAX ? c->n : CHARS_MAX;

	if (!n)
		return 0;
	if (!lang_read(t->r->mem, c->at, bytes, (size_t)n << c->two_bytes))
		return -EIO;
	for (uint32_t i = 0; i < n && !t->cut; i++)
		add_unit(t, c->two_bytes ? (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8)
					 : bytes[i]);
	t->cut |= n < c->n;
	return 0;
}

int v8_text(const struct v8_reader *r, uint64_t string, char *ret_text, size_t room, bool *ret_cut)
{
	struct text t = { .r = r, .to = ret_text, .room = room };
	uint64_t stack[DEPTH_MAX];
	uint32_t n = 0;
	int rc;

	if (!room)
		return -EBADMSG;
	ret_text[0] = '\0';
	stack[n++] = string;
	/* Parts to the left first; no more steps than could fill the room. */
	for (size_t steps = 0; n && !t.cut && steps < 4 * DEPTH_MAX; steps++) {
		uint64_t at = stack[--n], first, second;
		struct v8_chars c;
		int shape;

		rc = open_string(r, &at, &c, &shape);
		if (rc < 0)
			return rc;
		if (shape != CONS) {
			rc = add_chars(&t, &c);
			if (rc < 0)
				return rc;
			continue;
		}
		if (!v8_word(r, at, STRING_DATA, &first) || !v8_word(r, at, STRING_SECOND, &second))
			return -EIO;
		if (n + 2 > DEPTH_MAX)
			return -EBADMSG;
		stack[n++] = second;
		stack[n++] = first;
	}
	if (t.high)
		add(&t, t.high);
	*ret_cut = t.cut || n;
	return 0;
}

int v8_flat(const struct v8_reader *r, uint64_t string, struct v8_chars *ret_chars)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		uint64_t first, second;
		struct v8_chars rest;
		int shape, rc = open_string(r, &string, ret_chars, &shape);

		if (rc < 0)
			return rc;
		if (shape != CONS)
			return 0;
		/* It has been flattened: the second part is empty. */
		if (!v8_word(r, string, STRING_DATA, &first) ||
		    !v8_word(r, string, STRING_SECOND, &second) ||
		    open_string(r, &second, &rest, &shape) < 0)
			return -EIO;
		if (shape == CONS || rest.n)
			return -EBADMSG;
		string = first;
	}
	return -EBADMSG;
}
