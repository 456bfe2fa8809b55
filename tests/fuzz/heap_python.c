/*
 * CPython's strings and dicts as anyone may have made them: memory whose bytes are the input. Reading ends, stays within bounds, and
 * what comes out is text.
 *
 *   at:2 bytes…
 */
#include "base/bytes.h"
#include "heap/snapshot/python.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x10000, READS_MAX = 1 << 20 };

struct memory {
	struct bytes bytes;
	uint32_t reads;
};

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = ctx;

	if (++m->reads > READS_MAX)
		abort();
	if (addr < BASE || addr - BASE > m->bytes.len || len > m->bytes.len - (addr - BASE))
		return false;
	memcpy(buf, m->bytes.data + (addr - BASE), len);
	return true;
}

static void check(const char text[PYTHON_TEXT_MAX])
{
	size_t n = strnlen(text, PYTHON_TEXT_MAX);

	if (!n || n == PYTHON_TEXT_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || (uint8_t)text[i] > 0x7e)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct memory m = { .bytes = bytes_of(data, len) };
	struct python_memory mem = { read_memory, &m };
	char text[PYTHON_TEXT_MAX];
	struct python_keys keys;
	uint16_t at;

	if (bytes_u16(&m.bytes, &at) < 0)
		return 0;
	if (python_str(&mem, BASE + at, text))
		check(text);
	if (python_keys(&mem, BASE + at, &keys)) {
		if (!keys.bytes || keys.key >= keys.bytes || keys.value >= keys.bytes ||
		    keys.n > 1ULL << 28)
			abort();
		for (uint64_t i = 0; i < 8; i++)
			if (python_key_at(&mem, &keys, keys.entries + i * keys.bytes, text))
				check(text);
	}
	python_dict_get(&mem, BASE + at, "__module__");
	return 0;
}
