/* Numbers and texts at the end of a strbuf, as bytes.h takes them from the front of bytes. */
#ifndef MEMSCOPE_BASE_PUT_H
#define MEMSCOPE_BASE_PUT_H

#include "base/strbuf.h"

#include <string.h>

static inline void put_u8(struct strbuf *b, uint8_t v)
{
	strbuf_add(b, &v, sizeof(v));
}

static inline void put_u16(struct strbuf *b, uint16_t v)
{
	strbuf_add(b, &v, sizeof(v));
}

static inline void put_u32(struct strbuf *b, uint32_t v)
{
	strbuf_add(b, &v, sizeof(v));
}

static inline void put_u64(struct strbuf *b, uint64_t v)
{
	strbuf_add(b, &v, sizeof(v));
}

/* Its length:4 and its bytes, `max` of them at most; NULL is an empty one. */
static inline void put_text(struct strbuf *b, const char *text, size_t max)
{
	uint32_t len = text ? (uint32_t)strnlen(text, max) : 0;

	put_u32(b, len);
	strbuf_add(b, text, len);
}

#endif
