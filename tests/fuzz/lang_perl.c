/*
 * Perl as anyone may have made it: a file, and the memory of a process, of which anything is changed. What is read
 * ends, and names that come out of it are text.
 *
 *   0 file…                                    an image
 *   1 version:1 kind:1 cookie:8 { place:2 bytes:1 base:1 word:8 }…   a process, and a frame in it
 */
#include "lang_input.h"
#include "perl_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_image(struct bytes in)
{
	_cleanup_(lang_image_freep) struct lang_image *image = lang_image_of(in);

	if (image && (image->perl.main.start > image->perl.main.end ||
		      image->perl.catch.start > image->perl.catch.end))
		abort();
}

static const uint64_t bases[] = { 0, PLF_BIAS + PLF_DATA, PLF_BIAS + PLF_DATA + PLF_SI,
				  PLF_BIAS + PLF_DATA + PLF_GV };

static void decode(struct bytes in)
{
	static struct perl_process p;
	struct lang_runtime rt;
	uint64_t cookie, words[2];
	uint8_t version, kind;

	if (bytes_u8(&in, &version) < 0 || bytes_u8(&in, &kind) < 0 || bytes_u64(&in, &cookie) < 0)
		return;
	plf_init(&p);
	p.perl.perl.version = 0x050000 | (uint32_t)(28 + version % 16) << 8;
	if (version & 16)
		p.perl.perl.thread_key = 0;
	lang_change(&p.memory, &in, false, bases);
	if (!lang_find(&p.memory, &p.runtime_at, &p.libc_at, 1000, &rt))
		return;
	if (rt.row.perl.cx_bytes > MS_LANG_BYTES)
		abort();
	plf_words((enum ms_perl_kind)(kind % 8), kind / 8 % 8, kind / 64, words);
	words[0] ^= cookie & 0x00ff000000000000;
	words[1] ^= cookie << 8 & 0x00ff000000000007;
	lang_check_decode(&rt, &p.memory, words, 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	uint8_t what;

	if (bytes_u8(&in, &what) < 0)
		return 0;
	if (what % 2 == 0)
		read_image(in);
	else
		decode(in);
	return 0;
}
