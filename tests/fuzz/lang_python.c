/*
 * CPython as anyone may have made it: a file, the code of its functions, and the memory of a process. What is
 * read ends, and names that come out of it are text.
 *
 *   0 file…                              an image
 *   1 machine:1 argument:2 code…         a function that is followed
 *   2 { place:2 bytes:1 base:1 word:8 }… what is changed in a process; the first 8 bytes are a frame's place
 */
#include "base/bytes.h"
#include "python_fixture.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_image(struct bytes in)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	if (elf_file_open_memory(in.data, in.len, "image", &elf, NULL) < 0 ||
	    lang_image_read(elf, &image, NULL) < 0)
		return;
	if (image->n_ranges > MS_LANG_RANGES)
		abort();
	for (uint32_t i = 0; i < image->n_ranges; i++)
		if (image->range[i].start >= image->range[i].end)
			abort();
}

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

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

static bool change(struct python_process *p, struct bytes *in)
{
	static const uint64_t bases[] = { 0, PYF_BIAS + PYF_RUNTIME, PYF_TSTATE, PYF_CODE };
	uint8_t bytes, base;
	uint64_t word;
	uint16_t at;

	if (bytes_u16(in, &at) < 0 || bytes_u8(in, &bytes) < 0 || bytes_u8(in, &base) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	pyf_put(p, at, word + bases[base % 4], 1 + bytes % 8);
	return true;
}

static void decode(struct bytes in)
{
	static struct python_process p;
	static struct lang_frame frame;
	struct lang_runtime rt;
	uint64_t place, words[2];
	int r;

	if (bytes_u64(&in, &place) < 0)
		return;
	pyf_init(&p);
	while (change(&p, &in))
		;
	r = lang_runtime_find(&p.runtime_at, &p.libc_at, &p.mem, &rt, NULL);
	if ((r < 0 && r != -EAGAIN && r != -EOPNOTSUPP) || p.reads > 20000)
		abort();
	if (r < 0)
		return;
	if (rt.row.python.frame_bytes > MS_LANG_BYTES || !memchr(rt.name, 0, sizeof(rt.name)))
		abort();
	pyf_words((int64_t)(place % 4096) - 16, words);
	/* Of this object: its cookie. */
	if (place >> 63)
		words[1] ^= place & 0xffffffff00000000;
	p.reads = 0;
	memset(&frame, 'x', sizeof(frame));
	if (lang_decode(&rt, &p.mem, words, &frame) == LANG_DECODED) {
		check_text(frame.function, sizeof(frame.function));
		check_text(frame.file, sizeof(frame.file));
	}
	if (p.reads > 200)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	uint8_t what;

	if (bytes_u8(&in, &what) < 0)
		return 0;
	if (what % 3 == 0)
		read_image(in);
	else if (what % 3 == 1)
		follow(in);
	else
		decode(in);
	return 0;
}
