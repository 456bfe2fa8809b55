/*
 * PHP as anyone may have made it: the memory of a process. What is read ends, and names that come out of it are text.
 *
 *   threads:1bit function:7bits line:4 { place:2 bytes:1 base:1 word:8 }…
 */
#include "lang_input.h"
#include "php_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const uint64_t bases[] = { 0, PHF_BIAS + PHF_DATA, PHF_METHOD, PHF_FILE };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t funcs[] = { PHF_METHOD, PHF_MAIN, PHF_INTERNAL };
	static struct php_process p;
	struct bytes in = bytes_of(data, len);
	struct lang_runtime rt;
	uint64_t words[2];
	uint32_t line;
	uint8_t func;

	if (bytes_u8(&in, &func) < 0 || bytes_u32(&in, &line) < 0)
		return 0;
	phf_init(&p);
	if (func & 0x80)
		phf_threads(&p, line);
	lang_change(&p.memory, &in, false, bases);
	if (!lang_find(&p.memory, &p.at, NULL, 100, &rt))
		return 0;
	if (rt.row.php.func_ops + 8 > MS_LANG_BYTES)
		abort();
	phf_words(&p, funcs[func % 3], line, words);
	lang_check_decode(&rt, &p.memory, words, 40);
	return 0;
}
