/*
 * Numbers and names into bytes for a page: varints, raw deflate (RFC 1951, as a browser's DecompressionStream
 * "deflate-raw" reads it) and base64 (RFC 4648, section 4).
 */
#ifndef MEMSCOPE_RENDER_HTML_PACKED_H
#define MEMSCOPE_RENDER_HTML_PACKED_H

#include "base/sink.h"
#include "base/strbuf.h"

#include <stdint.h>

/* Unsigned LEB128. Out of memory sticks in `out`. */
void packed_number(struct strbuf *out, uint64_t n);
/* Zigzag (0, -1, 1, -2 … → 0, 1, 2, 3 …), then the same. */
void packed_signed(struct strbuf *out, int64_t n);
/* Its length in bytes, then the name as UTF-8 without control and direction characters (render/formats/text.h). */
void packed_name(struct strbuf *out, const char *name);

/* -ENOMEM. */
int packed_deflate(const void *data, size_t len, struct strbuf *out);
void packed_base64(const void *data, size_t len, struct strbuf *out);

#endif
