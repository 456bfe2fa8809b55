/*
 * Names of symbols, whoever wrote them: what comes out is a text that ends within its bounds, is the same each time, and of a name
 * that was encoded as GHC encodes it (z and two letters, or z, hex and U) the text that was encoded.
 */
#include "elf/demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t encode(unsigned char c, char *out)
{
	static const char lower[] = "zza&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%",
			  upper[] = "L(R)M[N]C:ZZ";

	for (size_t i = 0; i + 1 < sizeof(lower); i += 2)
		if ((unsigned char)lower[i + 1] == c)
			return (size_t)sprintf(out, "z%c", lower[i]);
	for (size_t i = 0; i + 1 < sizeof(upper); i += 2)
		if ((unsigned char)upper[i + 1] == c)
			return (size_t)sprintf(out, "Z%c", upper[i]);
	if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
		return (size_t)sprintf(out, "%c", c);
	return (size_t)sprintf(out, "z%s%xU", c >> 4 > 9 ? "0" : "", c);
}

static void check_ghc(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 16] = "Main.f", name[5 * TEXT_MAX + 16] = "Main_f";
	static char out[DEMANGLE_OUT_MAX];
	size_t n = strlen(text), len = strlen(name);

	for (size_t i = 0; i < size && i < TEXT_MAX; i++) {
		unsigned char c = 0x20 + data[i] % (0x7f - 0x20);

		text[n++] = (char)c;
		len += encode(c, name + len);
	}
	text[n] = '\0';
	strcpy(name + len, "_info");
	if (!demangle(name, len + 5, out) || strcmp(out, text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char out[DEMANGLE_OUT_MAX], again[DEMANGLE_OUT_MAX];
	char *name = malloc(size +
			    1); /* as in a table of names: a NUL, or something else, is behind it */

	memcpy(name, data, size);
	name[size] = '\0';
	memset(out, 'x', sizeof(out));
	memset(again, 'y', sizeof(again));
	if (demangle(name, strlen(name), out)) {
		if (strnlen(out, sizeof(out)) == sizeof(out) ||
		    !demangle(name, strlen(name), again) || strcmp(out, again) != 0)
			abort();
	}
	free(name);
	check_ghc(data, size);
	return 0;
}
