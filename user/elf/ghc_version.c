#include "elf/ghc_version.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	RODATA_MAX = 64 << 20,
	RODATA_PART = 1 << 20,
	VERSION_TEXT = 9, /* bytes: "99.99.99" and its end */
	COMMENT_MAX = 1 << 16,
};

uint32_t ghc_version_of(const char *text, size_t len)
{
	uint32_t part[3] = { 0 };
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		int digits = 0;

		for (; at < len && isdigit((unsigned char)text[at]) && digits < 2; at++, digits++)
			part[i] = part[i] * 10 + (uint32_t)(text[at] - '0');
		if (!digits || (i < 2 && (at >= len || text[at++] != '.')))
			return 0;
	}
	if ((at < len && isdigit((unsigned char)text[at])) || part[0] < 8 || part[0] > 20)
		return 0;
	return part[0] << 16 | part[1] << 8 | part[2];
}

static bool read_section(struct elf_file *elf, const char *name, uint64_t max, uint8_t **ret_bytes,
			 uint64_t *ret_len)
{
	const struct elf_section *sec;

	if (elf_file_find_section(elf, name, &sec, NULL) < 0 || sec->size > max ||
	    elf_file_read_section(elf, sec, ret_bytes, NULL) < 0)
		return false;
	*ret_len = sec->size;
	return true;
}

/* Where a part of .rodata has a text that looks like a version; of two different ones, *version becomes ~0. */
static void find_version(const uint8_t *bytes, uint64_t len, uint32_t *version)
{
	for (uint64_t i = 0; i + 8 < len; i++) {
		uint32_t other;
		uint64_t n;

		if (bytes[i] || !isdigit(bytes[i + 1]))
			continue;
		n = strnlen((const char *)bytes + i + 1, VERSION_TEXT);
		other = n < VERSION_TEXT ? ghc_version_of((const char *)bytes + i + 1, n) : 0;
		if (other && other >> 16 <= 9)
			*version = *version && *version != other ? UINT32_MAX : other;
	}
}

/* Part by part: it may be as large as the rest of the program. */
static uint32_t version_in_rodata(struct elf_file *elf)
{
	_cleanup_(freep) uint8_t *part = calloc(1, RODATA_PART + VERSION_TEXT + 2);
	const struct elf_section *sec;
	uint32_t version = 0;

	if (!part || elf_file_find_section(elf, ".rodata", &sec, NULL) < 0 ||
	    sec->size > RODATA_MAX)
		return 0;
	for (uint64_t at = 0; at < sec->size && version != UINT32_MAX; at += RODATA_PART) {
		uint64_t rest = sec->size - at, most = RODATA_PART + VERSION_TEXT,
			 len = rest < most ? rest : most;

		if (elf_file_read(elf, sec->off + at, part, len, NULL) < 0)
			return 0;
		memset(part + len, 0, 2);
		find_version(part, len, &version);
	}
	return version == UINT32_MAX ? 0 : version;
}

/* The compiler's name of itself, "GHC 9.0.2"; else the only text that looks like a version of it. */
uint32_t ghc_version_read(struct elf_file *elf)
{
	_cleanup_(freep) uint8_t *comment = NULL;
	uint32_t other;
	uint64_t len;

	if (read_section(elf, ".comment", COMMENT_MAX, &comment, &len))
		for (uint64_t i = 0; i + 4 < len; i++)
			if (!memcmp(comment + i, "GHC ", 4) &&
			    (other = ghc_version_of((const char *)comment + i + 4, len - i - 4)))
				return other;
	return version_in_rodata(elf);
}
