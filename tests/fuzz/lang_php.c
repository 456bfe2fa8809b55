/*
 * PHP as anyone may have made it: the memory of a process. What is read ends, and names that come out of it are text.
 *
 *   threads:1bit function:7bits line:4 { place:2 bytes:1 base:1 word:8 }…
 */
#include "base/bytes.h"
#include "php_fixture.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

static bool change(struct php_process *p, struct bytes *in)
{
	static const uint64_t bases[] = { 0, PHF_BIAS + PHF_DATA, PHF_METHOD, PHF_FILE };
	uint8_t bytes, base;
	uint64_t word;
	uint16_t at;

	if (bytes_u16(in, &at) < 0 || bytes_u8(in, &bytes) < 0 || bytes_u8(in, &base) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	phf_put(p, at, word + bases[base % 4], 1 + bytes % 8);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t funcs[] = { PHF_METHOD, PHF_MAIN, PHF_INTERNAL };
	static struct php_process p;
	static struct lang_frame frame;
	struct bytes in = bytes_of(data, len);
	struct lang_runtime rt;
	uint64_t words[2];
	uint32_t line;
	uint8_t func;
	int r;

	if (bytes_u8(&in, &func) < 0 || bytes_u32(&in, &line) < 0)
		return 0;
	phf_init(&p);
	if (func & 0x80)
		phf_threads(&p, line);
	while (change(&p, &in))
		;
	r = lang_runtime_find(&p.at, NULL, &p.mem, &rt, NULL);
	if ((r < 0 && r != -EAGAIN && r != -EOPNOTSUPP) || p.reads > 100)
		abort();
	if (r < 0)
		return 0;
	if (rt.row.php.func_ops + 8 > MS_LANG_BYTES || !memchr(rt.name, 0, sizeof(rt.name)))
		abort();
	phf_words(&p, funcs[func % 3], line, words);
	p.reads = 0;
	memset(&frame, 'x', sizeof(frame));
	if (lang_decode(&rt, &p.mem, words, &frame) == LANG_DECODED) {
		check_text(frame.function, sizeof(frame.function));
		check_text(frame.file, sizeof(frame.file));
	}
	if (p.reads > 40)
		abort();
	return 0;
}
