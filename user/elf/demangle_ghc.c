#include "elf/demangle.h"

#include <stdint.h>
#include <string.h>

/*
 * GHC's z-encoding (GHC Commentary, "Symbol Names"; compiler/GHC/Utils/Encoding.hs):
 *
 *   ghczmprim_GHCziTypes_False_closure   →   ghc-prim_GHC.Types.False_closure
 *
 * PACKAGE_MODULE_NAME_KIND, or without PACKAGE; an underscore of a name itself is zu. Code is _info, which is
 * not shown.
 */

static const char *const kinds[] = {
	"_info", "_closure", "_entry",    "_con_info", "_static_info", "_con_entry", "_ret",
	"_slow", "_fast",    "_ret_info", "_srt",      "_bytes",       "_alt",       "_dflt",
};

/* What follows a z or Z, and what it stands for. */
static const char lower[] = "zza&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%";
static const char upper[] = "L(R)M[N]C:ZZ";

struct writer {
	char *out;
	size_t len, cap;
};

static bool put(struct writer *w, char c)
{
	if (w->len + 1 >= w->cap)
		return false;
	w->out[w->len++] = c;
	return true;
}

static bool put_some(struct writer *w, const char *s)
{
	while (*s)
		if (!put(w, *s++))
			return false;
	return true;
}

static char meaning(const char *pairs, char c)
{
	for (; *pairs; pairs += 2)
		if (pairs[0] == c)
			return pairs[1];
	return '\0';
}

/* Z3T is the constructor of a triple, (,,); Z3H that of an unboxed one, (#,,#). */
static const char *tuple(const char *at, const char *end, struct writer *w)
{
	unsigned n = 0;

	for (; at < end && *at >= '0' && *at <= '9' && n < 100; at++)
		n = n * 10 + (unsigned)(*at - '0');
	if (at == end || n >= 100 || (*at != 'T' && *at != 'H'))
		return NULL;
	if (!put_some(w, *at == 'T' ? "(" : "(#"))
		return NULL;
	for (unsigned i = 1; i < n; i++)
		if (!put(w, ','))
			return NULL;
	return put_some(w, *at == 'T' ? ")" : "#)") ? at + 1 : NULL;
}

static bool put_utf8(struct writer *w, uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return false;
	if (c < 0x80)
		return put(w, (char)c);
	if (c < 0x800)
		return put(w, (char)(0xc0 | c >> 6)) && put(w, (char)(0x80 | (c & 63)));
	if (c < 0x10000)
		return put(w, (char)(0xe0 | c >> 12)) && put(w, (char)(0x80 | (c >> 6 & 63))) &&
		       put(w, (char)(0x80 | (c & 63)));
	return put(w, (char)(0xf0 | c >> 18)) && put(w, (char)(0x80 | (c >> 12 & 63))) &&
	       put(w, (char)(0x80 | (c >> 6 & 63))) && put(w, (char)(0x80 | (c & 63)));
}

/* z3bbU, z0e9U: any other character in hex, with a zero before a letter. */
static const char *character(const char *at, const char *end, struct writer *w)
{
	uint32_t c = 0;

	for (; at < end && c <= 0x10ffff; at++) {
		if (*at >= '0' && *at <= '9')
			c = c << 4 | (uint32_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			c = c << 4 | (uint32_t)(*at - 'a' + 10);
		else
			break;
	}
	if (at == end || *at != 'U')
		return NULL;
	return put_utf8(w, c) ? at + 1 : NULL;
}

/* One escape behind its z or Z; NULL: it is none. */
static const char *escape(char z, const char *at, const char *end, struct writer *w)
{
	char c;

	if (at == end)
		return NULL;
	if (*at >= '0' && *at <= '9')
		return z == 'Z' ? tuple(at, end, w) : character(at, end, w);
	c = meaning(z == 'z' ? lower : upper, *at);
	return c && put(w, c) ? at + 1 : NULL;
}

static bool decode(const char *at, const char *end, struct writer *w)
{
	while (at < end) {
		if (*at == 'z' || *at == 'Z') {
			char z = *at;

			at = escape(z, at + 1, end, w);
			if (!at)
				return false;
		} else if (!put(w, *at++)) {
			return false;
		}
	}
	return true;
}

/* Where the longest known kind begins; NULL when it ends in none. */
static const char *kind_of(const char *name, size_t len)
{
	const char *best = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t n = strlen(kinds[i]);

		if (len > n && !memcmp(name + len - n, kinds[i], n) &&
		    (!best || name + len - n < best))
			best = name + len - n;
	}
	return best;
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/*
 * C names may look alike (Widget_size_info), but hardly have what is in nearly all of GHC's: a
 * module in a module (GHCziBase), or a package with a dash (ghczmprim).
 */
static bool is_haskell(const char *const *parts, unsigned n)
{
	const char *module = parts[n - 2], *name = parts[n - 1];

	/* A program's own code; no function's name begins with a capital. */
	if (n == 2 && name - module == 5 && !memcmp(module, "Main_", 5) && !is_upper(name[0]))
		return true;
	for (const char *at = module; at + 3 < name; at++)
		if (at[0] == 'z' && at[1] == 'i' && is_upper(at[2]))
			return true;
	for (const char *at = parts[0]; n == 3 && at + 2 < module; at++)
		if (at[0] == 'z' && at[1] == 'm')
			return true;
	return false;
}

static bool is_code(const char *kind, const char *end)
{
	return end - kind == 5 && !memcmp(kind, "_info", 5);
}

bool demangle_ghc(const char *name, size_t len, char out[DEMANGLE_OUT_MAX])
{
	struct writer w = { out, 0, DEMANGLE_OUT_MAX };
	const char *kind, *parts[4], *at = name;
	unsigned n = 0;

	if (len >= DEMANGLE_IN_MAX)
		return false;
	kind = kind_of(name, len);
	if (!kind)
		return false;
	/* [PACKAGE_]MODULE_NAME: two or three parts. */
	for (parts[n++] = name; at < kind; at++) {
		if (*at != '_')
			continue;
		if (n == 3)
			return false;
		parts[n++] = at + 1;
	}
	if (n < 2 || !is_upper(parts[n - 2][0]) || !is_haskell(parts, n))
		return false;
	parts[n] = kind + 1;
	for (unsigned i = 0; i < n; i++) {
		const char *end = parts[i + 1] - 1;

		if (end == parts[i] || !decode(parts[i], end, &w))
			return false;
		if (i + 1 < n && !put(&w, i + 2 == n ? '.' : '_'))
			return false;
	}
	if (is_code(kind, name + len))
		kind = name + len;
	while (kind < name + len)
		if (!put(&w, *kind++))
			return false;
	out[w.len] = '\0';
	return true;
}
