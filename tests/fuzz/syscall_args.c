/*
 * System calls of a program as text: what its arguments point to is its own choice, the call's number and its arguments too. Of each
 * argument as many bytes were read as the kernel's program may have read (bpf/trace.bpf.c): all of what has a fixed size, of the rest
 * as many as the input says. What comes out is printable ASCII of a bounded length; a quoted string says the bytes that it was made of.
 *
 *   input:  number:2  returned:1  result:8  arguments:8 …  { bytes read:2 } …  the bytes
 */
#include "analyse/syscall_quote.h"
#include "analyse/syscall_text.h"

#include "base/bytes.h"

#include <ctype.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 17 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint16_t next16(struct bytes *in)
{
	uint16_t v = 0;

	bytes_u16(in, &v);
	return v;
}

static void check_text(const struct strbuf *b)
{
	if (b->len > TEXT_MAX)
		abort();
	for (size_t i = 0; i < b->len; i++)
		if (b->s[i] < ' ' || b->s[i] > '~')
			abort();
}

/* A copy of exactly what was read, so that a byte more is seen to be read. */
static struct trace_bytes bytes_read(struct bytes *in, const struct trace_read *r)
{
	uint16_t says = next16(in);
	uint32_t most = r->how == TRACE_FIXED ? r->size : r->most ? r->most : TRACE_SHORT, len;
	struct trace_bytes b = { 0 };
	char *copy;

	if (r->how == TRACE_NONE || says == UINT16_MAX) {
		b.unread = r->how != TRACE_NONE;
		return b;
	}
	if (r->how == TRACE_MSG)
		most = sizeof(struct trace_msg);
	else if (r->how == TRACE_STRINGS || r->how == TRACE_VECTORS || r->how == TRACE_MSG_VECTORS)
		most = TRACE_LONG;
	len = r->how == TRACE_FIXED ? most : says % (most + 1);
	if (!len)
		return b;
	copy = calloc(1, len);
	bytes_copy(in, copy, len < in->len ? len : in->len);
	if (r->how == TRACE_STRING)
		copy[len - 1] = '\0';
	b.s = copy;
	b.len = len;
	return b;
}

static void one_call(struct bytes in)
{
	struct trace_event ev = { .nr = next16(&in) % TRACE_CALLS, .begin_ns = 1 };
	struct strbuf text = { 0 };
	struct call_shape shape;
	struct trace_call call;
	uint8_t returned = 0;
	uint32_t n;

	bytes_u8(&in, &returned);
	ev.returns = !(returned & 1);
	ev.file[0] = returned & 2 ? "/a \x1b[1mfile" : NULL;
	bytes_copy(&in, &ev.ret, in.len < 8 ? in.len : 8);
	for (int i = 0; i < TRACE_ARGS; i++)
		bytes_copy(&in, &ev.args[i], in.len < 8 ? in.len : 8);
	call_shape_of(ev.nr, 32 + returned, &shape, &call);
	for (int i = 0; i < TRACE_READS; i++)
		ev.read[i] = bytes_read(&in, &call.reads[i]);
	n = call_n_args(&shape, &ev);
	if (n > TRACE_ARGS)
		abort();
	for (uint32_t i = 0; i < n; i++)
		call_arg_put(&text, &shape, &ev, i);
	call_result_put(&text, &shape, &ev);
	check_text(&text);
	strbuf_free(&text);
	for (int i = 0; i < TRACE_READS; i++)
		free((void *)ev.read[i].s);
}

/* As C reads a string literal. */
static char unescape(const char **at)
{
	static const char letters[] = "\"\\ntrvf", escapes[] = "\"\\\n\t\r\v\f";
	const char *s = *at;
	unsigned c = 0, n = 0;

	if (*s != '\\') {
		*at = s + 1;
		return *s;
	}
	for (s++; n < 3 && *s >= '0' && *s <= '7'; n++)
		c = c * 8 + (unsigned)(*s++ - '0');
	*at = n ? s : s + 1;
	return n ? (char)c : escapes[strchr(letters, *s) - letters];
}

static void quote(const uint8_t *data, uint32_t len)
{
	struct strbuf b = { 0 };
	const char *at;

	quoted_put(&b, (const char *)data, len, false);
	check_text(&b);
	at = b.s + 1;
	for (uint32_t i = 0; i < len; i++)
		if (unescape(&at) != (char)data[i])
			abort();
	if (strcmp(at, "\"") != 0)
		abort();
	strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	one_call(bytes_of(data, size));
	quote(data, size < 1024 ? (uint32_t)size : 1024);
	return 0;
}
