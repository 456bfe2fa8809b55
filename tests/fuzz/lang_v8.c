/*
 * V8's objects as anyone may have made them: functions, strings, source, tables and code, of which anything is changed.
 * What is read ends, and names that come out of it are text.
 *
 *   place:8 { at:4 bytes:1 base:1 word:8 }…   the first 8 bytes are a frame's place, and what it is
 */
#include "lang_input.h"
#include "v8_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { READS_MAX = 1 << 20 };

static const uint64_t bases[] = { 0, V8F_BIAS, V8F_BIAS + 1, V8F_BIAS + V8F_MAPS + 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct v8_process p;
	struct bytes in = bytes_of(data, len);
	struct lang_runtime rt;
	uint64_t place, words[2], bytes;
	uint32_t at;

	if (bytes_u64(&in, &place) < 0)
		return 0;
	v8f_init(&p);
	lang_change(&p.memory, &in, true, bases);
	if (!lang_find(&p.memory, &p.at, NULL, READS_MAX, &rt))
		abort();
	at = (uint32_t)place & 0x3ff;
	v8f_words(v8f_addr(V8F_OUTER), v8f_cookie(V8F_NUMBER), 53 + at, words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	v8f_words(v8f_addr(V8F_OUTER), v8f_cookie(V8F_NUMBER),
		  MS_V8_BASELINE | ((uint32_t)v8f_addr(V8F_BASELINE_AT + 16 + at) & MS_V8_AT),
		  words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	v8f_words(v8f_addr(V8F_OPTIMIZED_AT + 16 + at), v8f_cookie(V8F_NUMBER),
		  MS_V8_CODE | (place >> 63 ? MS_V8_EXACT : 0), words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	memcpy(&bytes, p.bytes + V8F_OPTIMIZED_AT + 16 + at, 8);
	v8f_words(v8f_addr(V8F_OPTIMIZED_AT + 16 + at), ms_lang_cookie(bytes),
		  MS_V8_BYTES | MS_V8_EXACT, words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	return 0;
}
