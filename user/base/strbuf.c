#include "base/strbuf.h"

#include <stdarg.h>
#include <string.h>

/* Room for `len` more bytes and a NUL. */
static bool grow(struct strbuf *b, size_t len)
{
	size_t need, cap;
	char *s;

	if (b->oom)
		return false;
	if (__builtin_add_overflow(b->len, len, &need) || need > SIZE_MAX / 2)
		goto oom;
	if (need < b->cap)
		return true;
	cap = b->cap ? b->cap : 64;
	while (cap <= need)
		cap *= 2;
	s = realloc(b->s, cap);
	if (!s)
		goto oom;
	b->s = s;
	b->cap = cap;
	return true;
oom:
	b->oom = true;
	return false;
}

void strbuf_add(struct strbuf *b, const void *data, size_t len)
{
	if (!grow(b, len))
		return;
	if (len)
		memcpy(b->s + b->len, data, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *str)
{
	strbuf_add(b, str, strlen(str));
}

void strbuf_putc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

/* In base 10 or 16, at least `digits` of them. */
static void add_number(struct strbuf *b, uint64_t value, uint32_t base, uint32_t digits)
{
	char room[24], *at = room + sizeof(room);
	uint32_t n = 0;

	while (value || n < digits) {
		*--at = "0123456789abcdef"[value % base];
		value /= base;
		if (++n == sizeof(room))
			break;
	}
	strbuf_add(b, at, n);
}

void strbuf_unsigned(struct strbuf *b, uint64_t value)
{
	add_number(b, value, 10, 1);
}

void strbuf_signed(struct strbuf *b, int64_t value)
{
	if (value < 0)
		strbuf_putc(b, '-');
	add_number(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 1);
}

void strbuf_hex(struct strbuf *b, uint64_t value)
{
	if (value)
		strbuf_add(b, "0x", 2);
	add_number(b, value, 16, 1);
}

void strbuf_digits(struct strbuf *b, uint64_t value, uint32_t digits)
{
	add_number(b, value, 10, digits);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || !grow(b, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(b->s + b->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
}

/*
 * The length of the well-formed UTF-8 character at `p` (Unicode 15, table 3-7: no overlong forms,
 * no surrogates, nothing above U+10FFFF), 0 when there is none.
 */
static size_t utf8_len(const uint8_t *p, size_t n)
{
	uint8_t lo = 0x80, hi = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (n < len || p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static bool is_control(const uint8_t *p, size_t len)
{
	if (len == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	return len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

void strbuf_add_clean(struct strbuf *b, const char *name, size_t len)
{
	const uint8_t *p = (const uint8_t *)name;

	while (len) {
		size_t run = 0, bad = 1;

		while (run < len) {
			size_t n = utf8_len(p + run, len - run);

			if (!n || is_control(p + run, n)) {
				bad = n ? n : 1;
				break;
			}
			run += n;
		}
		strbuf_add(b, p, run);
		p += run;
		len -= run;
		if (!len)
			return;
		strbuf_puts(b, "\xef\xbf\xbd"); /* U+FFFD */
		p += bad;
		len -= bad;
	}
}

void strbuf_reset(struct strbuf *b)
{
	b->len = 0;
	b->oom = false;
	if (b->s)
		b->s[0] = '\0';
}

char *strbuf_take(struct strbuf *b)
{
	char *s;

	strbuf_add(b, "", 0); /* an empty string is not NULL */
	s = b->oom ? NULL : TAKE_PTR(b->s);
	strbuf_free(b);
	return s;
}

void strbuf_free(struct strbuf *b)
{
	free(b->s);
	*b = (struct strbuf){ 0 };
}
