#include "elf/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

struct output {
	char *buf;
	size_t len;
	jmp_buf too_long;
};

/*
 * The demanglers hand over their output in pieces and cannot be told to stop. They hold
 * nothing on the heap while they print, so leaving by longjmp loses nothing.
 */
static void append(const char *s, size_t len, void *ctx)
{
	struct output *out = ctx;

	if (len >= DEMANGLE_OUT_MAX - out->len)
		longjmp(out->too_long, 1);
	memcpy(out->buf + out->len, s, len);
	out->len += len;
}

/* Rust's legacy names are C++ names with a hash for their last part, so Rust is asked first. */
static bool print(const char *name, struct output *out)
{
	const int opts = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;

	if (setjmp(out->too_long))
		return false;
	if (rust_demangle_callback(name, opts, append, out))
		return true;
	out->len = 0;
	return cplus_demangle_v3_callback(name, opts, append, out);
}

bool demangle(const char *name, size_t len, char out[DEMANGLE_OUT_MAX])
{
	char in[DEMANGLE_IN_MAX];
	struct output o = { .buf = out };

	if (len < 3 || len >= sizeof(in) || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return false;
	memcpy(in, name, len);
	in[len] = '\0';
	if (!print(in, &o) || !o.len)
		return false;
	out[o.len] = '\0';
	return true;
}
