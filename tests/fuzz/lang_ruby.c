/*
 * Ruby as anyone may have made it: a file, and the memory of a process. What is read ends, and names that come out of it
 * are text.
 *
 *   0 file…                                      an image
 *   1 version:1 frame:1 at:4 { place:2 bytes:1 base:1 word:8 }…   what is changed in a process
 */
#include "base/bytes.h"
#include "ruby_fixture.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_image(struct bytes in)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	if (elf_file_open_memory(in.data, in.len, "image", &elf, NULL) < 0 ||
	    lang_image_read(elf, &image, NULL) < 0)
		return;
	if (image->n_ranges > MS_LANG_RANGES || image->ruby.n_names > RUBY_CANDIDATES)
		abort();
	for (uint32_t i = 0; i < image->n_ranges; i++)
		if (image->range[i].start >= image->range[i].end)
			abort();
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

static bool change(struct ruby_process *p, struct bytes *in)
{
	static const uint64_t bases[] = { 0, RBF_BIAS + RBF_DATA, RBF_BIAS + RBF_DATA + RBF_ENTRY,
					  RBF_BIAS };
	uint8_t bytes, base;
	uint64_t word;
	uint16_t at;

	if (bytes_u16(in, &at) < 0 || bytes_u8(in, &bytes) < 0 || bytes_u8(in, &base) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	rbf_put(p, at, word + bases[base % 4], 1 + bytes % 8);
	return true;
}

static void decode(struct bytes in)
{
	static const uint32_t versions[] = { 0x020704, 0x030007, 0x030107,
					     0x030209, 0x030308, 0x030405 };
	static struct ruby_process p;
	static struct lang_frame frame;
	struct lang_runtime rt;
	uint8_t version, kind;
	uint64_t words[2];
	uint32_t at;
	int r;

	if (bytes_u8(&in, &version) < 0 || bytes_u8(&in, &kind) < 0 || bytes_u32(&in, &at) < 0)
		return;
	rbf_init(&p, versions[version % 6]);
	while (change(&p, &in))
		;
	r = lang_runtime_find(&p.at, NULL, &p.mem, &rt, NULL);
	if ((r < 0 && r != -EAGAIN && r != -EOPNOTSUPP) || p.reads > 1000)
		abort();
	if (r < 0)
		return;
	rbf_words((enum rbf_frame)(kind % RBF_KINDS),
		  at & (kind % RBF_KINDS == RBF_INSIDE ? MS_RUBY_INSIDE_AT : MS_RUBY_AT), words);
	p.reads = 0;
	memset(&frame, 'x', sizeof(frame));
	if (lang_decode(&rt, &p.mem, words, &frame) == LANG_DECODED) {
		check_text(frame.function, sizeof(frame.function));
		check_text(frame.file, sizeof(frame.file));
	}
	/* At most 64 variables of a class and of its own one, each with a name of one part, and the texts themselves. */
	if (p.reads > 4000)
		abort();
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
