#include "lang/v8.h"

#include <string.h>

/* --- memory --- */

static bool paged_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct v8_pages *p = ctx;
	uint8_t *to = buf;

	if (len > V8_PAGE || addr > UINT64_MAX - V8_PAGE)
		return p->from->read(p->from->ctx, addr, buf, len);
	while (len) {
		uint64_t at = addr & ~(uint64_t)(V8_PAGE - 1), off = addr - at;
		uint32_t slot = at / V8_PAGE % V8_PAGES;
		size_t n = len < V8_PAGE - off ? len : (size_t)(V8_PAGE - off);

		if (!p->has[slot] || p->at[slot] != at) {
			p->has[slot] = p->from->read(p->from->ctx, at, p->bytes[slot], V8_PAGE);
			p->at[slot] = at;
		}
		if (p->has[slot])
			memcpy(to, p->bytes[slot] + off, n);
		else if (!p->from->read(p->from->ctx, addr, to, n)) /* part of it is not there */
			return false;
		to += n;
		addr += n;
		len -= n;
	}
	return true;
}

void v8_pages_open(struct v8_pages *p, const struct lang_memory *from)
{
	p->from = from;
	p->mem = (struct lang_memory){ paged_read, p };
	v8_pages_forget(p);
}

void v8_pages_forget(struct v8_pages *p)
{
	memset(p->has, 0, sizeof(p->has));
}

/* --- objects --- */

bool v8_word(const struct v8_reader *r, uint64_t object, uint32_t at, uint64_t *ret_word)
{
	return v8_is_pointer(object) && object < 1ULL << 56 &&
	       lang_read(r->mem, object - 1 + at, ret_word, sizeof(*ret_word));
}

int v8_type(const struct v8_reader *r, uint64_t object)
{
	uint64_t map;
	uint16_t type;

	if (!v8_word(r, object, 0, &map) || !v8_is_pointer(map) || map >= 1ULL << 56 ||
	    !lang_read(r->mem, map - 1 + r->rt->map_type, &type, sizeof(type)))
		return -1;
	return type;
}

bool v8_is(const struct v8_reader *r, uint64_t object, uint16_t type)
{
	return v8_type(r, object) == type;
}

int64_t v8_length(const struct v8_reader *r, uint64_t array)
{
	uint64_t word;

	if (!v8_word(r, array, r->rt->array_length, &word) || word & 0xffffffff || word >> 63)
		return -1;
	return (int64_t)(word >> 32);
}

bool v8_element(const struct v8_reader *r, uint64_t array, uint32_t ix, uint64_t *ret_word)
{
	int64_t n = v8_length(r, array);

	return (int64_t)ix < n && v8_word(r, array, r->rt->array_data + 8 * ix, ret_word);
}
