/*
 * A growable string. Running out of memory sticks: adding may go unchecked, strbuf_oom() tells at
 * the end. `s` is NUL-terminated, or NULL while nothing was added. A zeroed struct is an empty one.
 */
#ifndef MEMSCOPE_BASE_STRBUF_H
#define MEMSCOPE_BASE_STRBUF_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf {
	char *s;
	size_t len, cap;
	bool oom;
};

void strbuf_add(struct strbuf *b, const void *data, size_t len);
void strbuf_puts(struct strbuf *b, const char *str);
void strbuf_putc(struct strbuf *b, char c);
/* Numbers in a twentieth of the time that strbuf_printf() takes: "-7"; "0x1f", 0 as "0"; with zeros in front, `digits` of them. */
void strbuf_unsigned(struct strbuf *b, uint64_t value);
void strbuf_signed(struct strbuf *b, int64_t value);
void strbuf_hex(struct strbuf *b, uint64_t value);
void strbuf_digits(struct strbuf *b, uint64_t value, uint32_t digits);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Adds a name that others chose, as UTF-8 safe to show: each byte that is not part of valid
 * UTF-8, and each control character (C0, DEL, C1), becomes U+FFFD.
 */
void strbuf_add_clean(struct strbuf *b, const char *name, size_t len);

static inline bool strbuf_oom(const struct strbuf *b)
{
	return b->oom;
}

/* Empties it, keeps its memory. */
void strbuf_reset(struct strbuf *b);
/* Hands the string over (free() it) and leaves an empty strbuf; NULL when out of memory. */
char *strbuf_take(struct strbuf *b);
void strbuf_free(struct strbuf *b);

#endif
