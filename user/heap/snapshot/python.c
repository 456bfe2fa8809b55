#include "heap/snapshot/python.h"

#include <string.h>

enum {
	STR_LENGTH = 16,
	STR_STATE = 32,
	KIND_GENERAL = 0,
	KIND_UNICODE = 1,
	KIND_SPLIT = 2,
	LOG2_MAX = 28
};

static bool word_at(const struct python_memory *mem, uint64_t at, uint64_t *ret)
{
	return at % 8 == 0 && mem->read(mem->ctx, at, ret, 8);
}

/* --- str --- */

static bool is_text(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || (uint8_t)text[i] > 0x7e)
			return false;
	return true;
}

bool python_str(const struct python_memory *mem, uint64_t at, char text[PYTHON_TEXT_MAX])
{
	static const uint64_t data[] = { 40, 48 }; /* from 3.12 on; before, behind wstr */
	uint64_t length;
	size_t n;

	if (!word_at(mem, at + STR_LENGTH, &length) || !length || length > 1 << 20)
		return false;
	n = length < PYTHON_TEXT_MAX ? (size_t)length : PYTHON_TEXT_MAX - 1;
	for (int i = 0; i < 2; i++) {
		char end;

		if (mem->read(mem->ctx, at + data[i], text, n) &&
		    mem->read(mem->ctx, at + data[i] + length, &end, 1) && !end &&
		    is_text(text, n)) {
			text[n] = '\0';
			return true;
		}
	}
	return false;
}

/* --- dict --- */

/* Up to 3.10: dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, indices of 1, 2, 4 or 8 bytes. */
static bool old_keys(uint64_t at, const uint64_t words[5], struct python_keys *ret)
{
	uint64_t size = words[1], index = size <= 0x80         ? 1
					  : size <= 0x8000     ? 2
					  : size <= 0x80000000 ? 4
							       : 8;

	if (!size || size & (size - 1) || size >> LOG2_MAX || words[4] > size)
		return false;
	*ret = (struct python_keys){ at + 40 + size * index, words[4], 24, 8, 16 };
	return true;
}

/* From 3.11 on: dk_refcnt, three bytes and a version, dk_usable, dk_nentries, indices. */
static bool new_keys(uint64_t at, const uint64_t words[5], struct python_keys *ret)
{
	uint32_t log2_size = words[1] & 0xff, log2_bytes = words[1] >> 8 & 0xff,
		 kind = words[1] >> 16 & 0xff;

	if (log2_size > LOG2_MAX || log2_bytes < log2_size || log2_bytes > log2_size + 3 ||
	    kind > KIND_SPLIT || words[3] > 1ULL << log2_size)
		return false;
	*ret = (struct python_keys){ at + 32 + (1ULL << log2_bytes), words[3], 24, 8, 16 };
	if (kind != KIND_GENERAL)
		*ret = (struct python_keys){ ret->entries, ret->n, 16, 0,
					     kind == KIND_SPLIT ? 0 : 8 };
	return true;
}

bool python_keys(const struct python_memory *mem, uint64_t at, struct python_keys *ret_keys)
{
	uint64_t words[5];

	if (at % 8 || !mem->read(mem->ctx, at, words, sizeof(words)))
		return false;
	return words[2] > UINT32_MAX ? old_keys(at, words, ret_keys)
				     : new_keys(at, words, ret_keys);
}

bool python_key_at(const struct python_memory *mem, const struct python_keys *keys, uint64_t addr,
		   char text[PYTHON_TEXT_MAX])
{
	uint64_t i, key;

	if (addr < keys->entries)
		return false;
	i = (addr - keys->entries) / keys->bytes;
	return i < keys->n && word_at(mem, keys->entries + i * keys->bytes + keys->key, &key) &&
	       key && python_str(mem, key, text);
}

uint64_t python_dict_get(const struct python_memory *mem, uint64_t dict, const char *key)
{
	char text[PYTHON_TEXT_MAX];
	struct python_keys keys;
	uint64_t at, value;

	if (!word_at(mem, dict + PYTHON_MA_KEYS, &at) || !python_keys(mem, at, &keys) ||
	    !keys.value)
		return 0;
	for (uint64_t i = 0; i < keys.n && i < PYTHON_ENTRIES_MAX; i++) {
		uint64_t entry = keys.entries + i * keys.bytes;

		if (!word_at(mem, entry + keys.value, &value))
			return 0;
		if (value && python_key_at(mem, &keys, entry, text) && strcmp(text, key) == 0)
			return value;
	}
	return 0;
}
