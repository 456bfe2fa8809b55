/*
 * CPython as anyone may have made it: a file, the code of its functions, and the memory of a process. What is
 * read ends, and names that come out of it are text.
 *
 *   0 file…                              an image
 *   1 machine:1 argument:2 code…         a function that is followed
 *   2 { place:2 bytes:1 base:1 word:8 }… what is changed in a process; the first 8 bytes are a frame's place
 */
#include "lang_input.h"
#include "python_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void note(void *ctx, const struct place *value)
{
	uint32_t *n = ctx;

	if (++*n > ACCESSOR_STEPS_MAX * ACCESSOR_REGS || value->reads > ACCESSOR_READS_MAX)
		abort();
}

static void follow(struct bytes in)
{
	struct accessor code = { .vaddr = 0x1000 };
	uint32_t n[3] = { 0 };
	uint16_t arg;
	uint8_t x86;

	if (bytes_u8(&in, &x86) < 0 || bytes_u16(&in, &arg) < 0)
		return;
	code.machine = x86 ? EM_X86_64 : EM_AARCH64;
	code.len = in.len < ACCESSOR_BYTES_MAX ? (uint16_t)in.len : ACCESSOR_BYTES_MAX;
	memcpy(code.bytes, in.data, code.len);
	accessor_follow(&code, arg, &(struct accessor_fn){ note, NULL, NULL, &n[0] });
	accessor_follow(&code, arg, &(struct accessor_fn){ NULL, note, NULL, &n[1] });
	accessor_follow(&code, arg, &(struct accessor_fn){ NULL, NULL, note, &n[2] });
}

static const uint64_t bases[] = { 0, PYF_BIAS + PYF_RUNTIME, PYF_TSTATE, PYF_CODE };

static void decode(struct bytes in)
{
	static struct python_process p;
	struct lang_runtime rt;
	uint64_t place, words[2];

	if (bytes_u64(&in, &place) < 0)
		return;
	pyf_init(&p);
	lang_change(&p.memory, &in, false, bases);
	if (!lang_find(&p.memory, &p.runtime_at, &p.libc_at, 20000, &rt))
		return;
	if (rt.row.python.frame_bytes > MS_LANG_BYTES)
		abort();
	pyf_words((int64_t)(place % 4096) - 16, words);
	/* Of this object: its cookie. */
	if (place >> 63)
		words[1] ^= place & 0xffffffff00000000;
	lang_check_decode(&rt, &p.memory, words, 200);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	uint8_t what;

	if (bytes_u8(&in, &what) < 0)
		return 0;
	if (what % 3 == 0)
		lang_image_free(lang_image_of(in));
	else if (what % 3 == 1)
		follow(in);
	else
		decode(in);
	return 0;
}
