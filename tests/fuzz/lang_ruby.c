/*
 * Ruby as anyone may have made it: a file, and the memory of a process. What is read ends, and names that come out of it
 * are text.
 *
 *   0 file…                                      an image
 *   1 version:1 frame:1 at:4 { place:2 bytes:1 base:1 word:8 }…   what is changed in a process
 */
#include "lang_input.h"
#include "ruby_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_image(struct bytes in)
{
	_cleanup_(lang_image_freep) struct lang_image *image = lang_image_of(in);

	if (image && image->ruby.n_names > RUBY_CANDIDATES)
		abort();
}

static const uint64_t bases[] = { 0, RBF_BIAS + RBF_DATA, RBF_BIAS + RBF_DATA + RBF_ENTRY,
				  RBF_BIAS };

static void decode(struct bytes in)
{
	static const uint32_t versions[] = { 0x020704, 0x030007, 0x030107,
					     0x030209, 0x030308, 0x030405 };
	static struct ruby_process p;
	struct lang_runtime rt;
	uint8_t version, kind;
	uint64_t words[2];
	uint32_t at;

	if (bytes_u8(&in, &version) < 0 || bytes_u8(&in, &kind) < 0 || bytes_u32(&in, &at) < 0)
		return;
	rbf_init(&p, versions[version % 6]);
	lang_change(&p.memory, &in, false, bases);
	if (!lang_find(&p.memory, &p.at, NULL, 1000, &rt))
		return;
	rbf_words((enum rbf_frame)(kind % RBF_KINDS),
		  at & (kind % RBF_KINDS == RBF_INSIDE ? MS_RUBY_INSIDE_AT : MS_RUBY_AT), words);
	/* At most 64 variables of a class and of its own one, each with a name of one part, and the texts themselves. */
	lang_check_decode(&rt, &p.memory, words, 4000);
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
