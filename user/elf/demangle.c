#include "elf/demangle.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

enum { D_BYTES_MAX = 1024, D_BACK_REFERENCES_MAX = 12 };

struct output {
	char *buf;
	size_t len;
	jmp_buf too_long;
};

/*
 * The demanglers hand over their output in pieces and cannot be stopped. They hold
 * nothing on the heap while they print, so leaving by longjmp loses nothing.
 */
static void append(const char *s, size_t len, void *ctx)
{
	struct output *out = ctx;

	if (len >= DEMANGLE_OUT_MAX - out->len)
		longjmp(out->too_long, 1);
	/* Of an empty identifier of Rust it is NULL. */
	if (len)
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

/*
 * The D demangler returns its own memory, and a back reference (Q and letters) repeats what came
 * before it, back references included: each may double the output. So few of them, in a short name.
 */
static bool demangle_d(const char *in, size_t len, char out[DEMANGLE_OUT_MAX])
{
	_cleanup_(freep) char *shown = NULL;
	unsigned refs = 0;

	for (size_t i = 0; i < len; i++)
		refs += in[i] == 'Q';
	if (len > D_BYTES_MAX || refs > D_BACK_REFERENCES_MAX)
		return false;
	shown = dlang_demangle(in, DMGL_PARAMS);
	if (!shown || !*shown || strlen(shown) >= DEMANGLE_OUT_MAX)
		return false;
	memcpy(out, shown, strlen(shown) + 1);
	return true;
}

/* Go's linker distinguishes by a suffix what has the same name under both calling conventions. */
static bool demangle_go(const char *in, size_t len, char out[DEMANGLE_OUT_MAX])
{
	static const char *const suffixes[] = { ".abi0", ".abiinternal" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && len - n < DEMANGLE_OUT_MAX && !strcmp(in + len - n, suffixes[i])) {
			memcpy(out, in, len - n);
			out[len - n] = '\0';
			return true;
		}
	}
	return false;
}

bool demangle(const char *name, size_t len, char out[DEMANGLE_OUT_MAX])
{
	char in[DEMANGLE_IN_MAX];
	struct output o = { .buf = out };

	if (len < 3 || len >= sizeof(in))
		return false;
	memcpy(in, name, len);
	in[len] = '\0';
	if (in[0] == '_' && in[1] == 'D' &&
	    (isdigit((unsigned char)in[2]) || !strcmp(in, "_Dmain")))
		return demangle_d(in, len, out);
	if (in[0] != '_' || (in[1] != 'Z' && in[1] != 'R'))
		return demangle_go(in, len, out) || demangle_ghc(in, len, out);
	if (!print(in, &o) || !o.len)
		return false;
	out[o.len] = '\0';
	return true;
}
